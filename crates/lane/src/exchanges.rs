//! The broker's commands about exchanges and bindings, and the exchanges that go by themselves.

use std::sync::Arc;

use crate::broker::Broker;
use crate::command::{Reply, Step};
use crate::fact::Fact;
use crate::ids::QueueId;
use crate::refusal::Refusal;
use crate::topology::{Binding, Destination, ExchangeSettings, Losers};

impl Broker {
    pub(crate) fn declare_exchange(
        &mut self,
        name: Arc<str>,
        settings: Box<ExchangeSettings>,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        if self.topology.check_declare(&name, &settings)? {
            self.topology.store(Arc::clone(&name), (*settings).clone(), &self.policies);
            step.facts.push(Fact::ExchangeStored { name, settings });
        }
        Ok(Reply::Done)
    }

    pub(crate) fn delete_exchange(
        &mut self,
        name: Arc<str>,
        if_unused: bool,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        self.topology.check_delete(&name, if_unused)?;
        self.drop_exchange(name, step);
        Ok(Reply::Done)
    }

    pub(crate) fn bind(&mut self, binding: Box<Binding>, step: &mut Step) -> Result<Reply, Refusal> {
        self.topology.check_binding(&binding)?;
        if let Destination::Queue(queue) = &binding.to {
            self.usable(queue)?;
        }
        if self.topology.bind((*binding).clone()) {
            step.facts.push(Fact::Bound(binding));
        }
        Ok(Reply::Done)
    }

    pub(crate) fn unbind(&mut self, binding: Box<Binding>, step: &mut Step) -> Result<Reply, Refusal> {
        self.topology.named(&binding.exchange)?;
        if !self.topology.unbind(&binding) {
            return Err(Refusal::NoSuchBinding);
        }
        let losers = Losers::from([Arc::clone(&binding.exchange)]);
        step.facts.push(Fact::Unbound(binding));
        self.drop_unbound(losers, step);
        Ok(Reply::Done)
    }

    fn drop_exchange(&mut self, name: Arc<str>, step: &mut Step) {
        let losers = self.topology.delete(&name);
        step.facts.push(Fact::ExchangeDeleted { name });
        self.drop_unbound(losers, step);
    }

    /// Says that the bindings of a queue are gone, which goes next: bindings know it by its name, and the record that it is
    /// deleted by its number, which says nothing once the record of its definition is given back. Answers the exchanges that
    /// lose one, for [`Broker::drop_unbound`].
    pub(crate) fn unbind_all(&self, queue: QueueId, step: &mut Step) -> Losers {
        let to = Destination::Queue(Arc::clone(&self.queue_ref(queue).name));
        let bindings = self.topology.bindings_to(&to);
        step.facts.extend(bindings.map(|binding| Fact::Unbound(Box::new(binding.clone()))));
        self.topology.bindings_to(&to).map(|binding| Arc::clone(&binding.exchange)).collect()
    }

    /// Of exchanges that lost a binding those go that were to go with the last one, and then those that lost one by that.
    pub(crate) fn drop_unbound(&mut self, mut losers: Losers, step: &mut Step) {
        while let Some(name) = losers.pop_first() {
            if self.topology.goes(&name) {
                losers.extend(self.topology.delete(&name));
                step.facts.push(Fact::ExchangeDeleted { name });
            }
        }
    }

    /// After a restart those go that were not to survive it.
    pub(crate) fn drop_transient_exchanges(&mut self, step: &mut Step) {
        let transient: Vec<Arc<str>> = self.topology.transient().cloned().collect();
        for name in transient {
            // An earlier one may have taken it along.
            if self.topology.exchange(&name).is_some() {
                self.drop_exchange(name, step);
            }
        }
    }
}

//! The broker's commands about exchanges and bindings, and the exchanges that go by themselves.

use std::sync::Arc;

use crate::broker::Broker;
use crate::command::{Reply, Step};
use crate::fact::Fact;
use crate::ids::{QueueId, VhostId};
use crate::refusal::Refusal;
use crate::topology::{Binding, Destination, ExchangeSettings, Losers, Topology};

impl Broker {
    pub(crate) fn declare_exchange(
        &mut self,
        name: Arc<str>,
        settings: Box<ExchangeSettings>,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let vhost = self.asking.vhost;
        let topology = &mut self.vhosts.get_mut(vhost)?.topology;
        if topology.check_declare(&name, &settings)? {
            topology.store(Arc::clone(&name), (*settings).clone());
            step.facts.push(Fact::ExchangeStored { vhost, name, settings });
        }
        Ok(Reply::Done)
    }

    pub(crate) fn delete_exchange(
        &mut self,
        name: Arc<str>,
        if_unused: bool,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let vhost = self.asking.vhost;
        self.vhosts.get(vhost)?.topology.check_delete(&name, if_unused)?;
        self.drop_exchange(vhost, name, step);
        Ok(Reply::Done)
    }

    pub(crate) fn bind(&mut self, binding: Box<Binding>, step: &mut Step) -> Result<Reply, Refusal> {
        let vhost = self.asking.vhost;
        self.vhosts.get(vhost)?.topology.check_binding(&binding)?;
        if let Destination::Queue(queue) = &binding.to {
            self.usable(queue, step)?;
        }
        if self.vhosts.get_mut(vhost)?.topology.bind((*binding).clone()) {
            step.facts.push(Fact::Bound { vhost, binding });
        }
        Ok(Reply::Done)
    }

    pub(crate) fn unbind(&mut self, binding: Box<Binding>, step: &mut Step) -> Result<Reply, Refusal> {
        let vhost = self.asking.vhost;
        if let Destination::Queue(queue) = &binding.to
            && self.usable(queue, step) == Err(Refusal::QueueLocked)
        {
            return Err(Refusal::QueueLocked);
        }
        let topology = &mut self.vhosts.get_mut(vhost)?.topology;
        topology.named(&binding.exchange)?;
        if !topology.unbind(&binding) {
            return Err(Refusal::NoSuchBinding);
        }
        let losers = Losers::from([Arc::clone(&binding.exchange)]);
        step.facts.push(Fact::Unbound { vhost, binding });
        self.drop_unbound(vhost, losers, step);
        Ok(Reply::Done)
    }

    fn drop_exchange(&mut self, vhost: VhostId, name: Arc<str>, step: &mut Step) {
        let losers = self.topology_mut(vhost).delete(&name);
        step.facts.push(Fact::ExchangeDeleted { vhost, name });
        self.drop_unbound(vhost, losers, step);
    }

    /// Says that the bindings of a queue are gone, which goes next: bindings know it by its name, and the record that it is
    /// deleted by its number, which says nothing once the record of its definition is given back. Answers the exchanges that
    /// lose one, for [`Broker::drop_unbound`].
    pub(crate) fn unbind_all(&self, queue: QueueId, step: &mut Step) -> Losers {
        let queue = self.queue_ref(queue);
        let (vhost, to) = (queue.vhost, Destination::Queue(Arc::clone(&queue.name)));
        let Ok(there) = self.vhosts.get(vhost) else { return Losers::new() };
        let bindings = there.topology.bindings_to(&to);
        let unbound = |binding: &Binding| Fact::Unbound { vhost, binding: Box::new(binding.clone()) };
        step.facts.extend(bindings.map(unbound));
        there.topology.bindings_to(&to).map(|binding| Arc::clone(&binding.exchange)).collect()
    }

    /// Of exchanges that lost a binding those go that were to go with the last one, and then those that lost one by that.
    pub(crate) fn drop_unbound(&mut self, vhost: VhostId, mut losers: Losers, step: &mut Step) {
        let topology = self.topology_mut(vhost);
        while let Some(name) = losers.pop_first() {
            if topology.goes(&name) {
                losers.extend(topology.delete(&name));
                step.facts.push(Fact::ExchangeDeleted { vhost, name });
            }
        }
    }

    /// After a restart those go that were not to survive it.
    pub(crate) fn drop_transient_exchanges(&mut self, step: &mut Step) {
        let all = self.vhosts.iter();
        let transient: Vec<(VhostId, Arc<str>)> = all
            .flat_map(|(vhost, there)| there.topology.transient().map(move |name| (vhost, Arc::clone(name))))
            .collect();
        for (vhost, name) in transient {
            // An earlier one may have taken it along.
            if self.topology_mut(vhost).exchange(&name).is_some() {
                self.drop_exchange(vhost, name, step);
            }
        }
    }

    fn topology_mut(&mut self, vhost: VhostId) -> &mut Topology {
        &mut self.vhosts.get_mut(vhost).expect("what is in a virtual host goes with it").topology
    }
}

//! Looking without changing.

use std::sync::Arc;

use overtake_lane::{
    Binding, BrowseOrder, Count, Cursor, Look, Place, PolicyKind, Query, QueueId, QueueView, Refusal, Seq,
    Status, Time, Topology, Walk,
};

use super::{Answer, Core, Request};
use crate::api::{Browse, BrowsedMessage, Filter, Metadata, NamedPolicies, PageCursor, QueuePage};
use crate::jobs::is_of_broker;

impl<T> Core<T> {
    /// Everything that changes nothing.
    pub(super) fn look(&self, now: Time, request: Request) -> Result<Answer, Refusal> {
        Ok(match request {
            Request::Queues { after, limit } => Answer::Queues(self.queues(now, after.as_deref(), limit)?),
            Request::Queue(name) => {
                let view = self.broker.view(now, self.asking.vhost, &name)?;
                Answer::Queue(Box::new(self.with_missing(view)))
            }
            Request::QueueNames(queues) => {
                let here = |id: &QueueId| self.broker.vhost_of(*id) == Some(self.asking.vhost);
                let name = |id: QueueId| self.broker.name(id).filter(|_| here(&id)).cloned();
                Answer::QueueNames(queues.into_iter().map(name).collect())
            }
            Request::StillThere(receipts) => Answer::Each(
                receipts
                    .iter()
                    .map(|receipt| {
                        let is_here = self.broker.vhost_of(receipt.queue) == Some(self.asking.vhost);
                        let there = self.broker.message_at(receipt.queue, receipt.seq).filter(|_| is_here);
                        let goes_on = there.is_some_and(|message| message.status != Status::Dead);
                        goes_on.then_some(()).ok_or(Refusal::NoSuchMessage)
                    })
                    .collect(),
            ),
            Request::Exchanges => Answer::Exchanges(self.topology()?.views().collect()),
            Request::Exchange(name) => Answer::Exchange(Box::new(self.topology()?.view(&name)?)),
            Request::Bindings(exchange) => Answer::Bindings(self.bindings(&exchange)?),
            Request::Vhosts => Answer::Vhosts(self.broker.vhosts().collect()),
            Request::Vhost(name) => Answer::Vhost(Box::new(self.broker.vhost(&name)?)),
            Request::Metadata => Answer::Metadata(self.metadata()),
            Request::Routes => Answer::Routes(Box::new(self.routes_view()?)),
            Request::Policies(kind) => Answer::Policies(self.policies(kind)?),
            Request::Message { queue, id } => self.message(&queue, &id)?,
            _ => unreachable!("everything else changes something"),
        })
    }

    /// The exchanges of where it is asked.
    fn topology(&self) -> Result<&Topology, Refusal> {
        self.broker.topology(self.asking.vhost)
    }

    fn queues(&self, now: Time, after: Option<&str>, limit: usize) -> Result<QueuePage, Refusal> {
        let mut views = self.broker.views(now, self.asking.vhost, after)?;
        let queues: Vec<QueueView> = views.by_ref().take(limit).map(|view| self.with_missing(view)).collect();
        let last = queues.last().map(|view| Arc::clone(&view.name));
        Ok(QueuePage { queues, next: last.filter(|_| views.next().is_some()) })
    }

    /// The view with the messages that wait in missing segments: they are in quarantine, too, and the broker does not know of them.
    fn with_missing(&self, mut view: QueueView) -> QueueView {
        view.quarantined += self.missing_in(view.queue);
        view
    }

    fn bindings(&self, exchange: &str) -> Result<Vec<Binding>, Refusal> {
        let exchange = self.topology()?.exchange(exchange).ok_or(Refusal::NoSuchExchange)?;
        Ok(exchange.bindings().cloned().collect())
    }

    fn metadata(&self) -> Metadata {
        let all = self.broker.metadata().filter(|(key, _)| !is_of_broker(key));
        all.map(|(key, value)| (Arc::clone(key), Arc::clone(value))).collect()
    }

    fn policies(&self, kind: PolicyKind) -> Result<NamedPolicies, Refusal> {
        let all = self.broker.policies(self.asking.vhost, kind)?;
        Ok(all.map(|(name, policy)| (Arc::clone(name), policy.clone())).collect())
    }

    /// The messages of a page, as far as so many looks go; in dispatch order `walk` goes on.
    pub(super) fn find_some(
        &self,
        queue: &str,
        browse: &Browse,
        walk: &mut Walk,
        looks: Option<usize>,
    ) -> Result<Look, Refusal> {
        let query = Query { looks, ..self.query(queue, browse)? };
        let mut says = |place| self.says(place, &browse.filter);
        match browse.order {
            BrowseOrder::Dispatch => self.broker.walk(self.asking.vhost, queue, &query, walk, &mut says),
            BrowseOrder::Published | BrowseOrder::Newest => {
                self.broker.browse(self.asking.vhost, queue, &query, &mut says)
            }
        }
    }

    /// How many messages the filter takes in all, counted in one step.
    pub(super) fn total(&self, queue: &str, filter: &Filter) -> Result<u64, Refusal> {
        Ok(self.count_some(queue, filter, None, None)?.count)
    }

    /// How many messages the filter takes, from where an earlier count ended, as far as so many looks go.
    pub(super) fn count_some(
        &self,
        queue: &str,
        filter: &Filter,
        cursor: Option<Cursor>,
        looks: Option<usize>,
    ) -> Result<Count, Refusal> {
        let cursor = cursor.map(|cursor| PageCursor::After(Seq(cursor.0)));
        let browse = Browse { filter: filter.clone(), cursor, ..Browse::default() };
        let query = Query { looks, ..self.query(queue, &browse)? };
        let mut says = |place| self.says(place, filter);
        let accept: Option<&mut dyn FnMut(Place) -> bool> =
            if filter.is_about_content() { Some(&mut says) } else { None };
        self.broker.count(self.asking.vhost, queue, &query, accept)
    }

    fn query(&self, queue: &str, browse: &Browse) -> Result<Query, Refusal> {
        let level = |given| self.broker.map_priority(self.asking.vhost, queue, given).map(|(level, _)| level);
        Ok(browse.query(browse.filter.priority.as_ref().map(level).transpose()?))
    }

    /// Whether the content of a message is as a filter wants it.
    fn says(&self, place: Place, filter: &Filter) -> bool {
        !filter.is_about_content() || filter.says(&self.content(place))
    }

    fn message(&self, queue: &str, id: &str) -> Result<Answer, Refusal> {
        let (message, position, position_in_priority) = self.broker.message(self.asking.vhost, queue, id)?;
        let (content, held) = (self.content(message.place), self.held(queue, &message));
        let shown = BrowsedMessage { message, content, held, position, position_in_priority };
        Ok(Answer::Message(Box::new(shown)))
    }
}

//! Seeing what is in a queue without taking it.

use std::borrow::Cow;

use crate::entries::Slot;
use crate::ids::{Seq, Time};
use crate::message::{Message, State, Status, public_id};
use crate::queue::Queue;
use crate::view::{BrowseOrder, Cursor, LaneView, MessageView, Query, QueueView};

impl Queue {
    /// The ready messages as they would be leased one after the other, if nothing came in between.
    pub(crate) fn dispatch_order(&self) -> impl Iterator<Item = (u16, Cow<'_, Message>)> + '_ {
        let indices: Vec<u16> = (0..self.lanes.len()).map(|rank| self.lanes.index_at(rank)).collect();
        let mut lanes: Vec<_> = indices.iter().map(|index| self.lane_messages(*index)).collect();
        let mut heads: Vec<Option<Cow<'_, Message>>> = lanes.iter_mut().map(Iterator::next).collect();
        let mut ready = self.lanes.ready();
        for (rank, head) in heads.iter().enumerate() {
            // A run that cannot be read has none.
            ready.set(rank, head.is_some());
        }
        let mut picker = self.picker.clone();
        std::iter::from_fn(move || {
            let rank = picker.pick(ready, |rank| {
                let head = heads[rank].as_deref().expect("a ready lane has a head");
                self.lanes.at_rank(rank).head_of(head)
            })?;
            let message = std::mem::replace(&mut heads[rank], lanes[rank].next())?;
            picker.charge(rank, self.lanes.at_rank(rank).weight);
            ready.set(rank, heads[rank].is_some());
            Some((indices[rank], message))
        })
    }

    /// A page of messages that `accept` takes, and where to go on.
    pub(crate) fn browse(
        &self,
        query: &Query,
        accept: &mut dyn FnMut(&MessageView) -> bool,
    ) -> (Vec<MessageView>, Option<Cursor>) {
        let mut page = Vec::new();
        let mut last = None;
        for (at, lane, message) in self.browse_from(query) {
            if page.len() == query.limit {
                return (page, last);
            }
            last = Some(at);
            if matches(&message, query) {
                let view = self.view_message(lane, &message);
                if accept(&view) {
                    page.push(view);
                }
            }
        }
        (page, None)
    }

    fn browse_from<'a>(&'a self, query: &'a Query) -> Box<dyn Iterator<Item = Browsed<'a>> + 'a> {
        let after = query.cursor.map_or(0, |cursor| cursor.0);
        match query.order {
            BrowseOrder::Published => Box::new(
                (self.messages_from(Seq(after).next()))
                    .map(|(lane, message)| (Cursor(message.seq.0), lane, message)),
            ),
            BrowseOrder::Dispatch => {
                let here = |slot: Slot| (self.entries[slot].lane, Cow::Borrowed(&self.entries[slot].message));
                let leased = self.leased_slots().into_iter().map(here);
                let rest = self.delayed_slots().into_iter().chain(self.dead_slots()).map(here);
                let all = leased.chain(self.dispatch_order()).chain(rest);
                let wanted = all.filter(|(_, message)| {
                    query.status.is_none_or(|status| message.state.status() == status)
                });
                let counted = (1_u64..).zip(wanted).skip(usize::try_from(after).unwrap_or(usize::MAX));
                Box::new(counted.map(|(at, (lane, message))| (Cursor(at), lane, message)))
            }
        }
    }

    /// One message as it is now.
    pub(crate) fn view_message(&self, lane: u16, message: &Message) -> MessageView {
        let (due, deadline) = match message.state {
            State::Delayed { due } => (Some(due), None),
            State::Leased { deadline, .. } => (None, deadline.some()),
            State::Ready | State::Dead => (None, None),
        };
        MessageView {
            seq: message.seq,
            id: public_id(message.id(), message.seq),
            priority: self.settings.scheme.show(message.original, message.priority),
            level: message.priority,
            lane: self.lanes.lane(lane).name.clone(),
            status: message.state.status(),
            since: message.since,
            expires: message.expires.some(),
            due,
            deadline,
            count: message.count,
            bytes: message.bytes,
            key: message.key().map(ToOwned::to_owned),
            deaths: message.extras.as_ref().and_then(|extras| extras.deaths.clone()),
            work: message.work().copied(),
            record: message.record().cloned(),
            place: message.place,
        }
    }

    /// The queue as it is now.
    pub(crate) fn view(&self, now: Time) -> QueueView {
        let (consumers, waiting) = self.roster.counts();
        let lanes = self.lanes.iter().enumerate().map(|(rank, lane)| LaneView {
            lane: lane.name.clone(),
            level: lane.level,
            ready: lane.ready,
            delayed: lane.delayed,
            leased: lane.leased,
            dead: lane.dead,
            bytes: lane.bytes,
            oldest_age_ms: self
                .lane_messages(self.lanes.index_at(rank))
                .next()
                .map_or(0, |message| now.since(message.since)),
            max_active: lane.max_active,
            published: lane.stats.published,
            delivered: lane.stats.delivered,
            settled: lane.stats.acked,
            redelivered: lane.stats.redelivered,
            expired: lane.stats.expired,
            evicted: lane.stats.evicted,
            removed: lane.stats.removed,
            moved: lane.stats.moved,
            dead_lettered: lane.stats.dead_lettered,
            wait: lane.stats.wait(),
        });
        QueueView {
            queue: self.id,
            vhost: self.vhost,
            name: self.name.clone(),
            settings: self.own().clone(),
            ruled: self.ruled_otherwise(),
            policy: self.policy.clone(),
            operator_policy: self.operator_policy.clone(),
            without_effect: self.without_effect.clone(),
            identity: self.identity.clone(),
            owner: self.owner,
            consumers,
            waiting,
            next_seq: self.next_seq,
            lanes: lanes.collect(),
        }
    }

    /// Slots by status: by default what is ready and delayed.
    pub(crate) fn purgeable(&self, status: Option<Status>) -> Vec<Slot> {
        self.slots_with(|stands| match status {
            None => matches!(stands, Status::Ready | Status::Delayed),
            Some(status) => stands == status && status != Status::Leased,
        })
    }
}

/// Where to go on after it, the index of its lane, and the message.
type Browsed<'a> = (Cursor, u16, Cow<'a, Message>);

fn matches(message: &Message, query: &Query) -> bool {
    query.status.is_none_or(|status| message.state.status() == status)
        && query.priority.is_none_or(|priority| message.priority == priority)
        && query.key.as_deref().is_none_or(|key| message.key() == Some(key))
}

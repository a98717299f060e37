//! Seeing what is in a queue without taking it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;

use crate::broker::Broker;
use crate::entries::Slot;
use crate::groups::Standing;
use crate::ids::{Place, QueueId, Receipt, Seq, Time, VhostId};
use crate::lane::Lane;
use crate::message::{Message, State, Status, public_id};
use crate::policy::Ruled;
use crate::priority::{Original, Priority};
use crate::queue::Queue;
use crate::record::Ending;
use crate::refusal::Refusal;
use crate::run::Run;
use crate::settings::Order;
use crate::view::{
    BrowseOrder, Count, Cursor, KEYS_SHOWN, KeyView, LaneView, Look, MessageView, Query, QueueView,
};
use crate::walk::Walk;

impl Queue {
    /// A page of messages that `accept` takes.
    pub(crate) fn browse(&self, query: &Query, accept: &mut dyn FnMut(Place) -> bool) -> Look {
        if query.order == BrowseOrder::Dispatch {
            let query = Query { looks: None, ..query.clone() };
            return self.walk(&query, &mut Walk::default(), accept);
        }
        let mut look = Look::default();
        let mut last = query.cursor;
        for (at, lane, message) in self.browse_from(query) {
            if look.messages.len() == query.limit || query.has_looked_at(look.looked) {
                return Look { next: last, ..look };
            }
            let is_taken = query.takes(&message) && accept(message.place);
            if self.awaits_disk() {
                break;
            }
            look.looked += 1;
            look.looks += 1;
            last = Some(at);
            if !is_taken {
                continue;
            }
            if look.skipped < query.skip {
                look.skipped += 1;
            } else {
                look.messages.push((at, self.view_message(lane, &message)));
            }
        }
        let next = self.awaits_disk().then(|| last.unwrap_or_else(|| self.begin_of(query.order)));
        Look { next, ..look }
    }

    /// The cursor that goes on with the first message.
    fn begin_of(&self, order: BrowseOrder) -> Cursor {
        match order {
            BrowseOrder::Newest => Cursor(self.next_seq.0),
            BrowseOrder::Published | BrowseOrder::Dispatch => Cursor(0),
        }
    }

    fn browse_from<'a>(&'a self, query: &'a Query) -> Box<dyn Iterator<Item = Browsed<'a>> + 'a> {
        let after = query.cursor.map_or(0, |cursor| cursor.0);
        match query.order {
            BrowseOrder::Newest if self.standing(query) == Some(0) => Box::new(std::iter::empty()),
            BrowseOrder::Newest => {
                let before = query.cursor.unwrap_or_else(|| self.begin_of(query.order));
                let before = Seq(before.0);
                Box::new(
                    (self.messages_before(before, query))
                        .map(|(lane, message)| (Cursor(message.seq.0), lane, message)),
                )
            }
            BrowseOrder::Published => Box::new(
                (self.messages_from(Seq(after).next()))
                    .map(|(lane, message)| (Cursor(message.seq.0), lane, message)),
            ),
            BrowseOrder::Dispatch => unreachable!("dispatch order is that of a walk"),
        }
    }

    /// The messages before this sequence with the indices of their lanes, the last first; all that a query could take.
    fn messages_before<'a>(
        &'a self,
        before: Seq,
        query: &Query,
    ) -> impl Iterator<Item = (u16, Cow<'a, Message>)> + 'a {
        let mut here = self.slots_before(before, query.status).peekable();
        let only = query.priority.and_then(|priority| self.own_lane(priority));
        // Only what is ready waits in runs.
        let is_ready = query.status.is_none_or(|status| status == Status::Ready);
        let ranks = if is_ready { 0..self.lanes.len() } else { 0..0 };
        let ranks = ranks.filter(|rank| only.is_none_or(|only| only == *rank));
        let mut spilled = self.runs_before(ranks.map(|rank| self.lanes.at_rank(rank)), before);
        std::iter::from_fn(move || {
            let next = here.peek().map(|slot| self.entries[*slot].message.seq);
            let spilled = spilled.next_before(next).map(|(lane, message)| (lane, Cow::Owned(message)));
            spilled.or_else(|| {
                here.next().map(|slot| (self.entries[slot].lane, Cow::Borrowed(&self.entries[slot].message)))
            })
        })
    }

    /// Messages in memory before this sequence, the last first; of all that stand so at least.
    fn slots_before(&self, before: Seq, status: Option<Status>) -> Box<dyn Iterator<Item = Slot> + '_> {
        if status != Some(Status::Leased) {
            return Box::new(self.by_seq.before(before));
        }
        // Few among many.
        let mut slots = self.leased_slots();
        slots.retain(|slot| self.entries[*slot].message.seq < before);
        slots.sort_by_key(|slot| Reverse(self.entries[*slot].message.seq));
        Box::new(slots.into_iter())
    }

    /// How many messages a query takes of those before its cursor; without `accept`, all that match.
    fn count(&self, query: &Query, accept: Option<&mut dyn FnMut(Place) -> bool>) -> Count {
        let narrows = query.key.is_some() || query.ending.is_some() || query.without_priority;
        let is_counted = accept.is_none() && !narrows && query.cursor.is_none();
        if let Some(count) = self.standing(query).filter(|_| is_counted) {
            return Count { count, ..Count::default() };
        }
        let mut all = |_: Place| true;
        let accept = accept.unwrap_or(&mut all);
        let mut last = query.cursor.unwrap_or_else(|| self.begin_of(BrowseOrder::Newest));
        let mut counted = Count::default();
        for (_, message) in self.messages_before(Seq(last.0), query) {
            if query.has_looked_at(counted.looked) {
                return Count { next: Some(last), ..counted };
            }
            let is_taken = query.takes(&message) && accept(message.place);
            if self.awaits_disk() {
                break;
            }
            last = Cursor(message.seq.0);
            counted.looked += 1;
            counted.count += u64::from(is_taken);
        }
        Count { next: self.awaits_disk().then_some(last), ..counted }
    }

    /// How many messages have the status and the priority of a query, where the gauges of the lanes say it.
    fn standing(&self, query: &Query) -> Option<u64> {
        let ranks = match query.priority {
            None => 0..self.lanes.len(),
            Some(_) if !self.has_lane_per_priority() => return None,
            Some(priority) => self.own_lane(priority).map_or(0..0, |rank| rank..rank + 1),
        };
        let lanes = ranks.map(|rank| self.lanes.at_rank(rank));
        Some(lanes.map(|lane| lane.standing(query.status)).sum())
    }

    /// The rank of the lane of this priority alone, if it has one.
    fn own_lane(&self, priority: Priority) -> Option<usize> {
        let rank = self.lanes.find(priority).ok()?;
        self.has_lane_per_priority().then_some(rank)
    }

    /// The priority that a message was given, as a number.
    pub(crate) fn given(&self, message: &Message) -> Option<i32> {
        self.settings.scheme.number(message.original, message.priority)
    }

    /// One message as it is now.
    pub(crate) fn view_message(&self, lane: u16, message: &Message) -> MessageView {
        self.view_in(Arc::clone(&self.lanes.lane(lane).name), message)
    }

    /// One message as it is, in a lane of this name.
    fn view_in(&self, lane: Arc<str>, message: &Message) -> MessageView {
        let (due, deadline) = match message.state {
            State::Delayed { due } => (Some(due), None),
            State::Leased { deadline, .. } => (None, deadline.some()),
            State::Ready | State::Dead => (None, None),
        };
        MessageView {
            seq: message.seq,
            id: public_id(message.id(), message.seq),
            scheme: self.settings.known_scheme(),
            priority: self.settings.scheme.show(message.original, message.priority),
            given: self.given(message),
            level: message.priority,
            lane,
            status: message.state.status(),
            since: message.since,
            expires: message.expires.some(),
            due,
            deadline,
            count: message.count,
            bytes: message.bytes,
            key: message.key().map(ToOwned::to_owned),
            key_weight: message.key_weight(),
            deaths: message.extras.as_ref().and_then(|extras| extras.deaths.clone()),
            work: message.work().copied(),
            record: message.record().cloned(),
            attempts: message.attempts().cloned(),
            place: message.place,
        }
    }

    /// The queue as it is now.
    pub(crate) fn view(&self, now: Time) -> QueueView {
        let (consumers, waiting) = self.roster.counts();
        let mut lanes: Vec<LaneView> = Vec::new();
        for (rank, lane) in self.lanes.iter().enumerate() {
            let view = self.view_lane(now, rank, lane);
            match lanes.iter_mut().find(|other| lane.is_former && other.lane == lane.name) {
                Some(same) => same.add(view),
                None if lane.is_former && lane.is_vacant() => {}
                None => lanes.push(view),
            }
        }
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
            active_at: self.active_at,
            first_seq: self.first_seq(),
            next_seq: self.next_seq,
            quarantined: self.runs.values().chain(self.quarantined.values()).map(Run::quarantined).sum(),
            lanes,
            keys: self.largest_keys(now),
        }
    }

    fn largest_keys(&self, now: Time) -> Vec<KeyView> {
        let largest = self.groups.as_ref().map(|groups| groups.largest(KEYS_SHOWN)).unwrap_or_default();
        let view = |Standing { key, weight, ready, leased, oldest }| {
            let oldest = oldest.and_then(|seq| self.look(seq));
            let oldest_age_ms = oldest.map_or(0, |(_, message)| now.since(message.since));
            KeyView { key: key.into(), weight, ready, leased, oldest_age_ms }
        };
        largest.into_iter().map(view).collect()
    }

    fn view_lane(&self, now: Time, rank: usize, lane: &Lane) -> LaneView {
        LaneView {
            lane: lane.name.clone(),
            level: lane.level,
            ready: lane.ready,
            delayed: lane.delayed,
            leased: lane.leased,
            dead: lane.dead,
            moving: if lane.is_former { lane.standing(None) } else { 0 },
            bytes: lane.bytes,
            ready_bytes: lane.ready_bytes,
            leased_bytes: lane.leased_bytes,
            spilled: lane.spilled,
            spilled_bytes: lane.runs.iter().map(|(_, id)| self.runs[id].bytes).sum(),
            oldest_age_ms: self
                .lane_messages(self.lanes.index_at(rank))
                .next()
                .map_or(0, |message| now.since(message.since)),
            max_active: lane.max_active,
            published: lane.stats.published,
            delivered: lane.stats.delivered,
            settled: lane.stats.acked,
            redelivered: lane.stats.redelivered,
            inversions: lane.stats.inversions,
            expired: lane.stats.expired,
            evicted: lane.stats.evicted,
            removed: lane.stats.removed,
            moved: lane.stats.moved,
            dead_lettered: lane.stats.dead_lettered,
            wait: lane.stats.wait(),
        }
    }

    /// No message has a lesser sequence.
    fn first_seq(&self) -> Seq {
        let here = self.by_seq.from(Seq(0)).next().map(|slot| self.entries[slot].message.seq);
        let runs = self.runs.values().map(|run| run.first);
        here.into_iter().chain(runs).min().unwrap_or(self.next_seq)
    }

    /// Whether each priority has a lane of its own, in which all of its messages are.
    pub(crate) fn has_lane_per_priority(&self) -> bool {
        self.settings.order == Order::Priority && !self.lanes.has_former()
    }

    /// Slots by status: by default what is ready and delayed.
    pub(crate) fn purgeable_count(&self, status: Option<Status>) -> u64 {
        let of = |lane: &Lane| match status {
            None => lane.ready + lane.delayed,
            Some(Status::Leased) => 0,
            status => lane.standing(status),
        };
        self.lanes.iter().map(of).sum()
    }

    /// The messages in memory that a purge takes.
    pub(crate) fn purgeable(&self, status: Option<Status>) -> Vec<Slot> {
        self.slots_with(|stands| match status {
            None => matches!(stands, Status::Ready | Status::Delayed),
            Some(status) => stands == status && status != Status::Leased,
        })
    }
}

/// Where to go on after it, the index of its lane, and the message.
type Browsed<'a> = (Cursor, u16, Cow<'a, Message>);

impl Lane {
    /// Messages that stand so, or all.
    pub(crate) fn standing(&self, status: Option<Status>) -> u64 {
        match status {
            None => self.ready + self.delayed + self.leased + self.dead,
            Some(Status::Ready) => self.ready,
            Some(Status::Delayed) => self.delayed,
            Some(Status::Leased) => self.leased,
            Some(Status::Dead) => self.dead,
        }
    }
}

impl Message {
    /// How the work on it ended, if it is over.
    fn ending(&self) -> Option<Ending> {
        let died = || self.death().filter(|_| self.state == State::Dead);
        self.record().map(|record| record.ending).or_else(|| died().map(|death| death.reason.ending()))
    }
}

impl Broker {
    /// The message of a lease, while that holds.
    #[must_use]
    pub fn leased(&self, receipt: &Receipt) -> Option<&Message> {
        let queue = self.queues.get(&receipt.queue)?;
        let slot = queue.leased(receipt).ok()?;
        Some(&queue.entries[slot].message)
    }

    /// What is to be seen of a message that is kept elsewhere, as one of this queue; `None`: there is no such queue.
    #[must_use]
    pub fn view_of(&self, queue: QueueId, message: &Message) -> Option<MessageView> {
        let queue = self.queues.get(&queue)?;
        let lane = match queue.lanes.find(message.priority) {
            Ok(rank) => Arc::clone(&queue.lanes.at_rank(rank).name),
            Err(_) => Arc::from(queue.settings.scheme.name(message.priority).as_ref()),
        };
        Some(queue.view_in(lane, message))
    }

    /// The priority that a message of a queue was given, as a number; `None`: none was, or there is no such queue.
    #[must_use]
    pub fn given(&self, queue: QueueId, message: &Message) -> Option<i32> {
        self.queues.get(&queue)?.given(message)
    }

    /// Queues of a virtual host as they are now, by name: those after a name, which need not be one of a queue.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVhost`].
    pub fn views(
        &self,
        now: Time,
        vhost: VhostId,
        after: Option<&str>,
    ) -> Result<impl Iterator<Item = QueueView> + '_, Refusal> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let queues = self.vhosts.get(vhost)?.queues.range::<str, _>((from, Bound::Unbounded));
        Ok(queues.map(move |(_, id)| self.seen(*id, now)))
    }

    /// Every queue as it is now, by virtual host and name.
    pub fn all_views(&self, now: Time) -> impl Iterator<Item = QueueView> + '_ {
        self.vhosts.queues().map(move |id| self.seen(id, now))
    }

    /// A queue as it is now.
    ///
    /// # Errors
    /// As [`Broker::id_of`].
    pub fn view(&self, now: Time, vhost: VhostId, name: &str) -> Result<QueueView, Refusal> {
        Ok(self.seen(self.id_of(vhost, name)?, now))
    }

    /// One that is not [ruled](Broker::is_ruled) yet is seen with what will hold for it, and with its messages as they are.
    fn seen(&self, id: QueueId, now: Time) -> QueueView {
        let queue = self.queue_ref(id);
        let view = queue.view(now);
        match self.will_hold(queue) {
            None => view,
            Some(Ruled { settings, own, policy, operator_policy, without_effect }) => {
                let ruled = own.is_some().then_some(settings);
                QueueView { ruled, policy, operator_policy, without_effect, ..view }
            }
        }
    }

    /// A page of the messages of a queue that `accept` takes.
    ///
    /// # Errors
    /// As [`Broker::id_of`].
    pub fn browse(
        &self,
        vhost: VhostId,
        name: &str,
        query: &Query,
        accept: &mut dyn FnMut(Place) -> bool,
    ) -> Result<Look, Refusal> {
        Ok(self.queue_ref(self.id_of(vhost, name)?).browse(query, accept))
    }

    /// One message by its id, with its position and its position among its own priority.
    ///
    /// # Errors
    /// As [`Broker::id_of`]; [`Refusal::NoSuchMessage`].
    pub fn message(
        &self,
        vhost: VhostId,
        name: &str,
        id: &str,
    ) -> Result<(MessageView, Option<u64>, Option<u64>), Refusal> {
        let queue = self.queue_ref(self.id_of(vhost, name)?);
        let seq = queue.find(id)?;
        let (lane, message) = queue.look(seq).expect("what is found is there");
        let (position, in_priority) = queue.position(lane, &message, usize::MAX);
        Ok((queue.view_message(lane, &message), position, in_priority))
    }

    /// One message by its sequence.
    #[must_use]
    pub fn message_at(&self, id: QueueId, seq: Seq) -> Option<MessageView> {
        let queue = self.queues.get(&id)?;
        let (lane, message) = queue.look(seq)?;
        Some(queue.view_message(lane, &message))
    }

    /// How many messages of a queue a query takes; without `accept`, all that match. They are counted from the last published one down, or from the
    /// cursor that an earlier count answered, whatever the query's order, page and limit. By status and by priority gauges tell, else the queue is walked.
    ///
    /// # Errors
    /// As [`Broker::id_of`].
    pub fn count(
        &self,
        vhost: VhostId,
        name: &str,
        query: &Query,
        accept: Option<&mut dyn FnMut(Place) -> bool>,
    ) -> Result<Count, Refusal> {
        Ok(self.queue_ref(self.id_of(vhost, name)?).count(query, accept))
    }
}

impl Query {
    /// Whether so many messages are as many as it may look at.
    fn has_looked_at(&self, looked: usize) -> bool {
        self.looks.is_some_and(|looks| looked >= looks)
    }

    /// Whether it takes a message, as far as that is told without the content.
    pub(crate) fn takes(&self, message: &Message) -> bool {
        self.status.is_none_or(|status| message.state.status() == status)
            && self.priority.is_none_or(|priority| message.priority == priority)
            && self.key.as_deref().is_none_or(|key| message.key() == Some(key))
            && self.ending.is_none_or(|ending| message.ending() == Some(ending))
            && (!self.without_priority || message.original == Original::Missing)
    }
}

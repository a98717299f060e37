//! Who takes messages from a queue, how many each may hold, and whose turn it is.
//!
//! Consumers that stay have a window, and those without acknowledgements a bound on what they have not read; pulls take once,
//! maybe from some lanes only; and some take nothing more and hold something still: gets, pulls, and consumers that left. Among those that have room, a consumer
//! of a higher priority goes first; among equals, whoever has waited longest since its last message.
//!
//! Invariant: everybody stands in the order that its room says, and whoever waits for the place of a single active consumer
//! in none.

mod wants;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::bitmap::Bitmap;
use crate::command::{Consume, Effect, UrgentCredit};
use crate::entries::List;
use crate::ids::{ConsumerId, FeedId, Time, WindowId};
use crate::lane::{Lane, Lanes};
use crate::priority::Priority;
use crate::pulling::{Pull, Pulling};
use crate::windows::Share;

pub use wants::{Terms, Want};

/// Everybody who takes from one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    takers: BTreeMap<ConsumerId, Taker>,
    /// Those with room for any message, in the order in which they are served.
    open: Order,
    /// Those with room for urgent messages only.
    urgent: Order,
    /// Pulls that take from some lanes only.
    choosy: Order,
    /// When pulls give up.
    waits: BTreeSet<(Time, ConsumerId)>,
    turn: u64,
    /// Windows that consumers here share, maybe with others elsewhere.
    shares: BTreeMap<WindowId, Share>,
    /// Who shares which.
    sharers: BTreeSet<(WindowId, ConsumerId)>,
    /// Consumers that stay.
    staying: u64,
    /// Of those the ones that want to be the only one.
    exclusive: u64,
    /// Of those the ones that may be the single active one, the first choice first.
    candidates: BTreeSet<Candidate>,
    /// Of the consumers that stay only one is served.
    is_single: bool,
    /// That one.
    active: Option<ConsumerId>,
    /// Who was served at the last election. Of the consumers that stay, all others are benched.
    served: Option<ConsumerId>,
    /// Somebody may be benched.
    has_benched: bool,
    /// It holds something still, and then gives its place to a more urgent one.
    is_leaving: bool,
    /// It is of another broker: nobody here is.
    is_elsewhere: bool,
    /// Those who took nothing more and hold nothing any more.
    done: Vec<ConsumerId>,
}

/// A place in the order of service: the consumer priority, larger first, then the turn, which nobody shares.
type Place = (Reverse<i32>, u64);

/// How one stands for election: the consumer priority, larger first, then the turn it came with.
type Candidate = (Reverse<i32>, u64, ConsumerId);

/// Places in order. Mostly the first one leaves and comes back last, which moves nothing and allocates nothing.
///
/// Whoever leaves from the middle leaves its place empty, and the empty places go together once they are as many as the others:
/// thousands that leave at once cost no more each than one alone. Invariant: the first place is not empty.
#[derive(Clone, Debug, Default)]
struct Order {
    places: VecDeque<(Place, Option<ConsumerId>)>,
    empty: usize,
}

impl Order {
    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = (Place, ConsumerId)> + '_ {
        self.places.iter().filter_map(|(place, consumer)| Some((*place, (*consumer)?)))
    }

    fn insert(&mut self, place: Place, consumer: ConsumerId) {
        if self.places.back().is_none_or(|(last, _)| *last < place) {
            return self.places.push_back((place, Some(consumer)));
        }
        match self.places.binary_search_by(|(other, _)| other.cmp(&place)) {
            Ok(at) => {
                // Nobody shares a place: it is the one that it left.
                self.places[at].1 = Some(consumer);
                self.empty -= 1;
            }
            Err(at) => {
                count_work(at.min(self.places.len() - at));
                self.places.insert(at, (place, Some(consumer)));
            }
        }
    }

    fn remove(&mut self, place: Place) {
        if self.places.pop_front_if(|(first, _)| *first == place).is_some() {
            while self.places.pop_front_if(|(_, consumer)| consumer.is_none()).is_some() {
                self.empty -= 1;
            }
            return;
        }
        let at = self.places.binary_search_by(|(other, _)| other.cmp(&place));
        self.places[at.expect("who has room stands in order")].1 = None;
        self.empty += 1;
        if self.empty * 2 > self.places.len() {
            count_work(self.places.len());
            self.places.retain(|(_, consumer)| consumer.is_some());
            self.empty = 0;
        }
    }
}

/// Counts what is done for several consumers at a time, for the tests that compare many with few.
#[cfg(test)]
fn count_work(steps: usize) {
    work::DONE.with(|done| done.set(done.get() + steps as u64));
}

#[cfg(not(test))]
#[inline]
fn count_work(_: usize) {}

/// One who takes messages.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    priority: i32,
    turn: u64,
    /// The turn it came with: larger is younger.
    joined: u64,
    /// It wants to be the only consumer that stays.
    is_exclusive: bool,
    shared: Option<WindowId>,
    /// It waits until it is the single active consumer.
    is_benched: bool,
    /// It held something for too long, and takes nothing more.
    is_stopped: bool,
    /// What bounds the bytes that are pushed to it.
    feed: Option<FeedId>,
    /// It waits until its connection has taken some of them.
    is_held_back: bool,
    /// Where it stands in order, and in which.
    stands: (Room, Place),
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A consumer that acknowledges.
    Stays { window: u32, urgent: Option<UrgentCredit>, held: List },
    /// A consumer whose messages are settled as they are given; so many it has not read.
    Keeps { window: u32, unread: u32 },
    /// A pull.
    Pulls(Pulling),
    /// A get, a pull that is over, or a consumer that left, with what it holds.
    Holds { held: List },
}

impl Kind {
    /// Messages that are leased to it, in the order of their leases.
    pub(crate) fn held(&self) -> List {
        match self {
            Self::Stays { held, .. } | Self::Holds { held } | Self::Pulls(Pulling { held, .. }) => *held,
            Self::Keeps { .. } => List::default(),
        }
    }

    /// Where messages stand that are leased to it until it is gone.
    pub(crate) fn held_mut(&mut self) -> &mut List {
        match self {
            Self::Stays { held, .. } | Self::Holds { held } | Self::Pulls(Pulling { held, .. }) => held,
            Self::Keeps { .. } => unreachable!("what these are given has no holder"),
        }
    }

    /// Whether it is a consumer that stays.
    pub(crate) fn stays(&self) -> bool {
        matches!(self, Self::Stays { .. } | Self::Keeps { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Any,
    Urgent,
    Choosy,
    None,
}

impl Taker {
    fn room(&self, shares: &BTreeMap<WindowId, Share>) -> Room {
        match &self.kind {
            _ if self.is_benched || self.is_stopped || self.is_held_back => Room::None,
            Kind::Stays { window, urgent, held } => {
                let has_room = |extra: u32| {
                    held.len() < window.saturating_add(extra)
                        && self.shared.is_none_or(|id| shares[&id].has_room(extra))
                };
                match urgent {
                    _ if has_room(0) => Room::Any,
                    Some(urgent) if has_room(urgent.extra) => Room::Urgent,
                    _ => Room::None,
                }
            }
            Kind::Keeps { window, unread } if unread < window => Room::Any,
            Kind::Pulls(pull) if pull.is_done() => Room::None,
            Kind::Pulls(pull) if pull.is_choosy() => Room::Choosy,
            Kind::Pulls(_) => Room::Any,
            Kind::Keeps { .. } | Kind::Holds { .. } => Room::None,
        }
    }

    fn place(&self) -> Place {
        (Reverse(self.priority), self.turn)
    }

    fn candidate(&self, id: ConsumerId) -> Candidate {
        (Reverse(self.priority), self.joined, id)
    }

    fn urgent_floor(&self) -> i32 {
        match &self.kind {
            Kind::Stays { urgent: Some(urgent), .. } => urgent.at.0,
            _ => i32::MAX,
        }
    }

    /// Whether it takes from a lane, if it takes from some only.
    fn takes(&self, lane: &Lane) -> bool {
        if let Kind::Pulls(pull) = &self.kind { pull.takes(lane) } else { false }
    }

    /// The lanes with ready messages that it takes from, by rank, if it takes from some only.
    fn choice(&self, lanes: &Lanes) -> Bitmap {
        if let Kind::Pulls(pull) = &self.kind { pull.choice(lanes) } else { Bitmap::default() }
    }
}

impl Roster {
    pub(crate) fn get(&self, consumer: ConsumerId) -> Option<&Taker> {
        self.takers.get(&consumer)
    }

    /// Consumers that stay, and pulls that wait.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.staying, self.waits.len() as u64)
    }

    /// Whether nobody consumes and nobody waits.
    pub(crate) fn is_unused(&self) -> bool {
        self.waits.is_empty() && self.staying == 0
    }

    /// Whether somebody wants to be the only consumer that stays.
    pub(crate) fn has_exclusive(&self) -> bool {
        self.exclusive > 0
    }

    /// Everybody, whatever they take or hold.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConsumerId> + '_ {
        self.takers.keys().copied()
    }

    /// What must be said of somebody who is taken off: a consumer is cancelled, a pull is over; whoever only holds is not told.
    pub(crate) fn farewell(&self, consumer: ConsumerId) -> Option<Effect> {
        match self.takers.get(&consumer)?.kind {
            Kind::Stays { .. } | Kind::Keeps { .. } => Some(Effect::Cancelled { consumer }),
            Kind::Pulls(_) => Some(Effect::Served { consumer }),
            Kind::Holds { .. } => None,
        }
    }

    fn consumers(&self) -> impl Iterator<Item = (ConsumerId, &Taker)> + '_ {
        self.takers.iter().filter(|(_, taker)| taker.kind.stays()).map(|(id, taker)| (*id, taker))
    }

    // ---- coming and going ----

    /// Takes a consumer that stays. A shared window must be known ([`Roster::share`]).
    pub(crate) fn consume(&mut self, consume: &Consume, window: u32) {
        let kind = if consume.no_ack {
            Kind::Keeps { window, unread: 0 }
        } else {
            Kind::Stays { window, urgent: consume.urgent, held: List::default() }
        };
        let shared = consume.shared.filter(|_| !consume.no_ack);
        let taker = self.newcomer(consume.priority, kind);
        self.has_benched |= taker.is_benched;
        self.staying += 1;
        self.exclusive += u64::from(consume.exclusive);
        self.candidates.insert(taker.candidate(consume.consumer));
        let feed = consume.feed;
        self.insert(consume.consumer, Taker { is_exclusive: consume.exclusive, shared, feed, ..taker });
        self.elect();
    }

    pub(crate) fn pull(&mut self, pull: &Pull) {
        self.waits.insert((pull.until, pull.consumer));
        let taker = self.newcomer(0, Kind::Pulls(Pulling::new(pull)));
        self.insert(pull.consumer, taker);
    }

    /// Takes one that will hold something and takes nothing by itself.
    pub(crate) fn hold(&mut self, consumer: ConsumerId) {
        let taker = self.newcomer(0, Kind::Holds { held: List::default() });
        self.insert(consumer, taker);
    }

    fn newcomer(&mut self, priority: i32, kind: Kind) -> Taker {
        self.turn += 1;
        Taker {
            priority,
            turn: self.turn,
            joined: self.turn,
            is_exclusive: false,
            shared: None,
            is_benched: self.is_single && kind.stays(),
            is_stopped: false,
            feed: None,
            is_held_back: false,
            stands: (Room::None, (Reverse(priority), self.turn)),
            kind,
        }
    }

    fn insert(&mut self, consumer: ConsumerId, taker: Taker) {
        if let Some(window) = taker.shared {
            self.sharers.insert((window, consumer));
            if let Some(share) = self.shares.get_mut(&window) {
                share.takers += 1;
            }
        }
        self.takers.insert(consumer, taker);
        self.relist(consumer);
    }

    /// Somebody takes nothing more and keeps what it holds. False: it holds nothing.
    pub(crate) fn leave(&mut self, consumer: ConsumerId) -> bool {
        let Some(taker) = self.takers.get_mut(&consumer) else { return false };
        let held = taker.kind.held();
        if let Kind::Pulls(Pulling { until, .. }) = taker.kind {
            self.waits.remove(&(until, consumer));
        }
        let before = std::mem::replace(&mut taker.kind, Kind::Holds { held });
        if before.stays() {
            let (is_exclusive, candidate) = (taker.is_exclusive, taker.candidate(consumer));
            self.count_out(is_exclusive, &candidate);
        }
        self.relist(consumer);
        self.elect();
        held.len() > 0
    }

    /// A consumer takes nothing more, and is still there.
    pub(crate) fn stop(&mut self, consumer: ConsumerId) {
        if let Some(taker) = self.takers.get_mut(&consumer) {
            taker.is_stopped = true;
            let candidate = taker.candidate(consumer);
            self.candidates.remove(&candidate);
            self.relist(consumer);
            self.elect();
        }
    }

    /// What bounds the bytes that are pushed to somebody.
    pub(crate) fn feed(&self, consumer: ConsumerId) -> Option<FeedId> {
        self.takers.get(&consumer)?.feed
    }

    /// Has somebody wait until its connection has taken some of the bytes that were pushed to it, or no longer. It keeps its turn.
    pub(crate) fn hold_back(&mut self, consumer: ConsumerId, is_held_back: bool) {
        if let Some(taker) = self.takers.get_mut(&consumer) {
            taker.is_held_back = is_held_back;
            self.relist(consumer);
        }
    }

    pub(crate) fn remove(&mut self, consumer: ConsumerId) -> Option<Taker> {
        let taker = self.takers.remove(&consumer)?;
        self.delist(taker.stands);
        if let Kind::Pulls(Pulling { until, .. }) = taker.kind {
            self.waits.remove(&(until, consumer));
        }
        if let Some(window) = taker.shared {
            let share = self.shares.get_mut(&window).expect("a window is known while somebody shares it");
            share.takers -= 1;
            self.sharers.remove(&(window, consumer));
            self.change_share(window, |share| share.here -= taker.kind.held().len());
        }
        if taker.kind.stays() {
            self.count_out(taker.is_exclusive, &taker.candidate(consumer));
            self.elect();
        }
        Some(taker)
    }

    /// A consumer stays no more.
    fn count_out(&mut self, is_exclusive: bool, candidate: &Candidate) {
        self.staying -= 1;
        self.exclusive -= u64::from(is_exclusive);
        self.candidates.remove(candidate);
    }

    /// The single active consumer that leaves gives its place away, if it holds nothing any more. To be asked when a request is
    /// done: what changes its state or its lane is nobody's for a moment.
    pub(crate) fn give_place(&mut self) {
        if self.is_leaving {
            self.elect();
        }
    }

    /// Those who took nothing more and hold nothing any more. To be asked when a request is done, too.
    pub(crate) fn take_done(&mut self) -> Vec<ConsumerId> {
        let mut done = std::mem::take(&mut self.done);
        let holds_none = |taker: &Taker| matches!(&taker.kind, Kind::Holds { held } if held.len() == 0);
        done.retain(|consumer| self.takers.get(consumer).is_some_and(holds_none));
        for consumer in &done {
            self.remove(*consumer);
        }
        done
    }

    // ---- order ----

    fn enlist(&mut self, (room, place): (Room, Place), consumer: ConsumerId) {
        match room {
            Room::Any => self.open.insert(place, consumer),
            Room::Urgent => self.urgent.insert(place, consumer),
            Room::Choosy => self.choosy.insert(place, consumer),
            Room::None => {}
        }
    }

    fn delist(&mut self, (room, place): (Room, Place)) {
        match room {
            Room::Any => self.open.remove(place),
            Room::Urgent => self.urgent.remove(place),
            Room::Choosy => self.choosy.remove(place),
            Room::None => {}
        }
    }

    /// Puts somebody where its room and turn say.
    fn relist(&mut self, consumer: ConsumerId) {
        let taker = self.takers.get_mut(&consumer).expect("whoever is put in order is there");
        let stands = (taker.room(&self.shares), taker.place());
        let before = std::mem::replace(&mut taker.stands, stands);
        if before != stands {
            self.delist(before);
            self.enlist(stands, consumer);
        }
    }

    /// Of the lanes with ready messages those that somebody has room for, by rank.
    pub(crate) fn wanted(&self, lanes: &Lanes) -> Bitmap {
        let ready = lanes.ready();
        if !self.open.is_empty() || ready.first().is_none() {
            return ready;
        }
        let floors = self.urgent.iter().map(|(_, consumer)| self.takers[&consumer].urgent_floor());
        let urgent = floors.min().map(|floor| ready.below(lanes.rank_below(Priority(floor))));
        let choosy = self.choosy.iter().map(|(_, consumer)| self.takers[&consumer].choice(lanes));
        choosy.fold(urgent.unwrap_or_default(), Bitmap::with)
    }

    /// Who takes the next message of the lane of this rank, which has some.
    pub(crate) fn next(&self, lanes: &Lanes, rank: usize) -> Option<ConsumerId> {
        self.next_of(lanes.at_rank(rank), |_| true)
    }

    /// Who takes the next message of a lane, of those who `fit`.
    pub(crate) fn next_of(&self, lane: &Lane, fits: impl Fn(ConsumerId) -> bool) -> Option<ConsumerId> {
        let choosy = self.choosy.iter().find(|(_, id)| fits(*id) && self.takers[id].takes(lane));
        let open = match (self.open.iter().find(|(_, id)| fits(*id)), choosy) {
            (Some(open), Some(choosy)) => Some(open.min(choosy)),
            (open, choosy) => open.or(choosy),
        };
        let is_urgent = |id: &ConsumerId| self.takers[id].urgent_floor() <= lane.floor;
        let urgent = || self.urgent.iter().find(|(_, id)| is_urgent(id) && fits(*id));
        open.or_else(urgent).map(|(_, consumer)| consumer)
    }

    /// Somebody got a message of so many bytes from this lane. Whether it is a pull.
    pub(crate) fn pulled(&mut self, consumer: ConsumerId, lane: u16, bytes: u32) -> bool {
        let pulls = matches!(self.takers[&consumer].kind, Kind::Pulls(_));
        if pulls {
            self.change(consumer, true, |kind| {
                if let Kind::Pulls(pull) = kind {
                    pull.take(lane, bytes);
                }
            });
        }
        pulls
    }

    /// Somebody was given a message for good, which a consumer has not read yet.
    pub(crate) fn gave(&mut self, consumer: ConsumerId) {
        self.change(consumer, true, |kind| {
            if let Kind::Keeps { unread, .. } = kind {
                *unread += 1;
            }
        });
    }

    /// Whether a message of so many bytes from this lane is no more for a taker that has some already. Then it takes nothing more.
    pub(crate) fn has_enough(&mut self, consumer: ConsumerId, lane: u16, bytes: u32) -> bool {
        let Kind::Pulls(pull) = &self.takers[&consumer].kind else { return false };
        let has_enough = pull.has_enough(lane, bytes);
        if has_enough {
            self.change(consumer, false, |kind| {
                if let Kind::Pulls(pull) = kind {
                    pull.stop();
                }
            });
        }
        has_enough
    }

    /// Changes a taker and puts it where its room says; `served` gives up its turn.
    pub(crate) fn change<T>(
        &mut self,
        consumer: ConsumerId,
        served: bool,
        change: impl FnOnce(&mut Kind) -> T,
    ) -> Option<T> {
        let taker = self.takers.get_mut(&consumer)?;
        let before = taker.kind.held().len();
        let answer = change(&mut taker.kind);
        if served && taker.kind.stays() {
            self.turn += 1;
            taker.turn = self.turn;
        }
        let (held, shared) = (taker.kind.held().len(), taker.shared);
        if held == 0 && matches!(taker.kind, Kind::Holds { .. }) {
            self.done.push(consumer);
        }
        self.relist(consumer);
        if let Some(window) = shared.filter(|_| held != before) {
            self.change_share(window, |share| share.here = share.here - before + held);
        }
        Some(answer)
    }

    // ---- shared windows ----

    /// Says how large a window is, and how much of it is taken elsewhere.
    pub(crate) fn share(&mut self, window: WindowId, size: u32, elsewhere: u32) {
        self.shares.entry(window).or_default();
        self.change_share(window, |share| (share.size, share.elsewhere) = (size, elsewhere));
    }

    /// Changes a window, and puts those who share it where its room says; nobody moves while it has room before and after.
    fn change_share(&mut self, window: WindowId, change: impl FnOnce(&mut Share)) {
        let share = self.shares.get_mut(&window).expect("a window is known while somebody shares it");
        let had_room = share.has_room(0);
        change(share);
        if !had_room || !share.has_room(0) {
            self.relist_sharers(window);
        }
    }

    /// Windows that are shared here, as they are now. Those that nobody here shares any more are forgotten.
    pub(crate) fn take_shares(&mut self) -> Vec<(WindowId, Share)> {
        let all = self.shares.iter().map(|(id, share)| (*id, *share)).collect();
        self.shares.retain(|_, share| share.takers > 0);
        all
    }

    pub(crate) fn has_shares(&self) -> bool {
        !self.shares.is_empty()
    }

    fn relist_sharers(&mut self, window: WindowId) {
        let of_it = self.sharers.range((window, ConsumerId(0))..=(window, ConsumerId(u64::MAX)));
        let ids: Vec<ConsumerId> = of_it.map(|(_, id)| *id).collect();
        count_work(ids.len());
        for consumer in ids {
            self.relist(consumer);
        }
    }

    // ---- the single active consumer ----

    /// Whether only one consumer that stays is served.
    pub(crate) fn set_single(&mut self, is_single: bool) {
        if std::mem::replace(&mut self.is_single, is_single) != is_single {
            (self.active, self.served) = (None, None);
            self.bench_all(is_single);
            self.elect();
        }
    }

    /// Whether the single active consumer, where there is to be one, is of another broker.
    pub(crate) fn set_elsewhere(&mut self, is_elsewhere: bool) {
        if std::mem::replace(&mut self.is_elsewhere, is_elsewhere) != is_elsewhere {
            self.elect();
        }
    }

    /// Chooses who is served where only one is: the oldest of the highest priority. One that is served stays until it is gone;
    /// when a more urgent one has come it gets no more, and gives up its place as soon as it holds nothing.
    ///
    /// As RabbitMQ's quorum queues since 4.0; its classic queues know no such change.
    fn elect(&mut self) {
        if !self.is_single && self.active.is_none() && !self.has_benched {
            return;
        }
        let best = self.candidates.first().map(|(Reverse(priority), _, id)| (*id, *priority));
        let active = self.active.and_then(|id| self.takers.get(&id));
        let active = active.filter(|taker| taker.kind.stays() && !taker.is_stopped);
        let is_outranked = active.is_none_or(|active| best.is_some_and(|(_, most)| active.priority < most));
        self.is_leaving = is_outranked && active.is_some_and(|active| active.kind.held().len() > 0);
        if is_outranked && !self.is_leaving {
            self.active = best.map(|(id, _)| id);
        }
        let served = self.active.filter(|_| self.is_single && !self.is_leaving && !self.is_elsewhere);
        let before = std::mem::replace(&mut self.served, served);
        if self.is_single {
            for consumer in before.into_iter().chain(served) {
                self.bench(consumer, served != Some(consumer));
            }
        } else {
            self.bench_all(false);
            (self.active, self.is_leaving) = (None, false);
        }
    }

    /// Has a consumer that stays wait for the place of the single active one, or no longer.
    fn bench(&mut self, consumer: ConsumerId, is_benched: bool) {
        if let Some(taker) = self.takers.get_mut(&consumer).filter(|taker| taker.kind.stays()) {
            taker.is_benched = is_benched;
            self.has_benched |= is_benched;
            self.relist(consumer);
        }
    }

    fn bench_all(&mut self, is_benched: bool) {
        let ids: Vec<ConsumerId> = self.consumers().map(|(id, _)| id).collect();
        count_work(self.takers.len());
        self.has_benched = false;
        for consumer in ids {
            self.bench(consumer, is_benched);
        }
    }

    // ---- pulls ----

    /// A pull has something, and gives up now.
    pub(crate) fn wait_no_more(&mut self, consumer: ConsumerId, now: Time) {
        if let Some(Taker { kind: Kind::Pulls(pull), .. }) = self.takers.get_mut(&consumer) {
            self.waits.remove(&(pull.until, consumer));
            pull.until = now;
            self.waits.insert((now, consumer));
        }
    }

    /// When the first pull gives up.
    pub(crate) fn next_give_up(&self) -> Option<Time> {
        self.waits.first().map(|(until, _)| *until)
    }

    /// Pulls that end now: they have something, or have waited long enough. In the order of their waits.
    pub(crate) fn ended(&self, now: Time, served: &[ConsumerId]) -> Vec<ConsumerId> {
        let late = self.waits.iter().take_while(|(until, _)| *until <= now).map(|(_, consumer)| *consumer);
        let mut ended: Vec<_> = served.to_vec();
        ended.extend(late.filter(|consumer| !served.contains(consumer)));
        ended
    }
}

#[cfg(test)]
mod work {
    use std::cell::Cell;

    thread_local! {
        pub(super) static DONE: Cell<u64> = const { Cell::new(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::{Broker, Options};
    use crate::command::{Command, Reply, Step};
    use crate::ids::{Asker, SessionId};
    use crate::settings::Settings;

    /// Two sessions with so many consumers each of one queue, in turns; the first ends. What is done for several consumers at a time.
    fn work_of_an_end(
        consumers: u64,
        settings: &Settings,
        make: impl Fn(Consume, SessionId) -> Consume,
    ) -> u64 {
        let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
        let declare = Command::declare("q".into(), Box::new(settings.clone()));
        broker.apply(Time(1), declare, &mut step).expect("it is declared");
        for number in 1..=consumers {
            for session in [SessionId(1), SessionId(2)] {
                let id = ConsumerId(2 * number + session.0);
                let consume = make(Consume { window: Some(1), ..Consume::new(id, "q".into()) }, session);
                let asker = Asker { session: Some(session), ..Asker::default() };
                let reply = broker.apply_by(Time(1), asker, Command::Consume(consume), &mut step);
                assert!(matches!(reply, Ok(Reply::Done | Reply::Declared { .. })), "{reply:?}");
            }
        }
        work::DONE.set(0);
        let end = Command::EndSession { session: SessionId(1) };
        broker.apply(Time(2), end, &mut step).expect("it ends");
        let left = broker.view(Time(2), crate::VhostId::DEFAULT, "q").expect("it is there").consumers;
        assert_eq!(left, consumers, "the other session is there still");
        work::DONE.get()
    }

    fn check_end_is_linear(settings: &Settings, make: impl Fn(Consume, SessionId) -> Consume + Copy) {
        let of_one = work_of_an_end(500, settings, make);
        let of_four = work_of_an_end(2_000, settings, make);
        assert!(of_four <= 5 * of_one.max(500), "{of_one} steps for 500 consumers, {of_four} for 2,000");
    }

    #[test]
    fn the_end_of_four_times_the_consumers_takes_four_times_the_work() {
        check_end_is_linear(&Settings::default(), |consume, _| consume);
    }

    #[test]
    fn so_does_the_end_of_consumers_of_which_one_is_active() {
        let single = Settings { single_active_consumer: true, ..Settings::default() };
        check_end_is_linear(&single, |consume, _| consume);
    }

    #[test]
    fn so_does_the_end_of_consumers_that_share_a_window() {
        let shares = |consume, session| Consume { shared: Some(WindowId { session, number: 1 }), ..consume };
        check_end_is_linear(&Settings::default(), shares);
    }

    #[test]
    fn whoever_leaves_the_middle_of_an_order_can_come_back_to_its_place() {
        let mut order = Order::default();
        let place = |turn: u64| (Reverse(0), turn);
        let all = |order: &Order| order.iter().map(|(_, consumer)| consumer.0).collect::<Vec<_>>();
        (1..=6).for_each(|turn| order.insert(place(turn), ConsumerId(turn)));
        order.remove(place(3));
        order.remove(place(2));
        assert_eq!(all(&order), [1, 4, 5, 6]);
        order.insert(place(3), ConsumerId(3));
        assert_eq!(all(&order), [1, 3, 4, 5, 6]);
        order.remove(place(1));
        assert_eq!((all(&order), order.places.len()), (vec![3, 4, 5, 6], 4), "no empty place is first");
        for turn in [6, 4, 5, 3] {
            order.remove(place(turn));
        }
        assert!(order.is_empty() && order.empty == 0);
    }
}

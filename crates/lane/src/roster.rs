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
use crate::ids::{ConsumerId, Time, WindowId};
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
    /// Of the consumers that stay only one is served.
    is_single: bool,
    /// That one.
    active: Option<ConsumerId>,
    /// It holds something still, and then gives its place to a more urgent one.
    is_leaving: bool,
    /// It is of another broker: nobody here is.
    is_elsewhere: bool,
    /// Those who took nothing more and hold nothing any more.
    done: Vec<ConsumerId>,
}

/// A place in the order of service: the consumer priority, larger first, then the turn, which nobody shares.
type Place = (Reverse<i32>, u64);

/// Places in order. Mostly the first one leaves and comes back last, which moves nothing and allocates nothing.
#[derive(Clone, Debug, Default)]
struct Order(VecDeque<(Place, ConsumerId)>);

impl Order {
    fn insert(&mut self, place: Place, consumer: ConsumerId) {
        if self.0.back().is_none_or(|(last, _)| *last < place) {
            return self.0.push_back((place, consumer));
        }
        let at = self.0.partition_point(|(other, _)| *other < place);
        self.0.insert(at, (place, consumer));
    }

    fn remove(&mut self, place: Place) {
        if self.0.pop_front_if(|(first, _)| *first == place).is_some() {
            return;
        }
        let at =
            self.0.binary_search_by(|(other, _)| other.cmp(&place)).expect("who has room stands in order");
        self.0.remove(at);
    }
}

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
            _ if self.is_benched || self.is_stopped => Room::None,
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
        (self.consumers().count() as u64, self.waits.len() as u64)
    }

    /// Whether nobody consumes and nobody waits.
    pub(crate) fn is_unused(&self) -> bool {
        self.waits.is_empty() && self.consumers().next().is_none()
    }

    /// Whether somebody wants to be the only consumer that stays.
    pub(crate) fn has_exclusive(&self) -> bool {
        self.consumers().any(|(_, taker)| taker.is_exclusive)
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
        self.insert(consume.consumer, Taker { is_exclusive: consume.exclusive, shared, ..taker });
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
            stands: (Room::None, (Reverse(priority), self.turn)),
            kind,
        }
    }

    fn insert(&mut self, consumer: ConsumerId, taker: Taker) {
        if let Some(share) = taker.shared.and_then(|window| self.shares.get_mut(&window)) {
            share.takers += 1;
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
        taker.kind = Kind::Holds { held };
        self.relist(consumer);
        self.elect();
        held.len() > 0
    }

    /// A consumer takes nothing more, and is still there.
    pub(crate) fn stop(&mut self, consumer: ConsumerId) {
        if let Some(taker) = self.takers.get_mut(&consumer) {
            taker.is_stopped = true;
            self.relist(consumer);
            self.elect();
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
            share.here -= taker.kind.held().len();
            self.relist_sharers(window);
        }
        if taker.kind.stays() {
            self.elect();
        }
        Some(taker)
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
        if !self.open.0.is_empty() || ready.first().is_none() {
            return ready;
        }
        let floors = self.urgent.0.iter().map(|(_, consumer)| self.takers[consumer].urgent_floor());
        let urgent = floors.min().map(|floor| ready.below(lanes.rank_below(Priority(floor))));
        let choosy = self.choosy.0.iter().map(|(_, consumer)| self.takers[consumer].choice(lanes));
        choosy.fold(urgent.unwrap_or_default(), Bitmap::with)
    }

    /// Who takes the next message of the lane of this rank, which has some.
    pub(crate) fn next(&self, lanes: &Lanes, rank: usize) -> Option<ConsumerId> {
        self.next_of(lanes.at_rank(rank), |_| true)
    }

    /// Who takes the next message of a lane, of those who `fit`.
    pub(crate) fn next_of(&self, lane: &Lane, fits: impl Fn(ConsumerId) -> bool) -> Option<ConsumerId> {
        let choosy = self.choosy.0.iter().find(|(_, id)| fits(*id) && self.takers[id].takes(lane));
        let open = match (self.open.0.iter().find(|(_, id)| fits(*id)), choosy) {
            (Some(open), Some(choosy)) => Some(open.min(choosy)),
            (open, choosy) => open.or(choosy),
        };
        let is_urgent = |id: &ConsumerId| self.takers[id].urgent_floor() <= lane.floor;
        let urgent = || self.urgent.0.iter().find(|(_, id)| is_urgent(id) && fits(*id));
        open.or_else(urgent).map(|(_, consumer)| *consumer)
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
            let share = self.shares.get_mut(&window).expect("a window is known while somebody shares it");
            share.here = share.here - before + held;
            self.relist_sharers(window);
        }
        Some(answer)
    }

    // ---- shared windows ----

    /// Says how large a window is, and how much of it is taken elsewhere.
    pub(crate) fn share(&mut self, window: WindowId, size: u32, elsewhere: u32) {
        let share = self.shares.entry(window).or_default();
        (share.size, share.elsewhere) = (size, elsewhere);
        self.relist_sharers(window);
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
        let of_it = self.takers.iter().filter(|(_, taker)| taker.shared == Some(window));
        let ids: Vec<ConsumerId> = of_it.map(|(id, _)| *id).collect();
        for consumer in ids {
            self.relist(consumer);
        }
    }

    // ---- the single active consumer ----

    /// Whether only one consumer that stays is served.
    pub(crate) fn set_single(&mut self, is_single: bool) {
        if std::mem::replace(&mut self.is_single, is_single) != is_single {
            self.active = None;
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
        if !self.is_single && self.active.is_none() && self.consumers().all(|(_, taker)| !taker.is_benched) {
            return;
        }
        let candidates = self.consumers().filter(|(_, taker)| !taker.is_stopped);
        let best = candidates.min_by_key(|(_, taker)| (Reverse(taker.priority), taker.joined));
        let best = best.map(|(id, taker)| (id, taker.priority));
        let active = self.consumers().find(|(id, taker)| Some(*id) == self.active && !taker.is_stopped);
        let active = active.map(|(_, taker)| taker);
        let is_outranked = active.is_none_or(|active| best.is_some_and(|(_, most)| active.priority < most));
        self.is_leaving = is_outranked && active.is_some_and(|active| active.kind.held().len() > 0);
        if is_outranked && !self.is_leaving {
            self.active = best.map(|(id, _)| id);
        }
        let served = self.active.filter(|_| !self.is_leaving && !self.is_elsewhere);
        let ids: Vec<ConsumerId> = self.consumers().map(|(id, _)| id).collect();
        for consumer in ids {
            let taker = self.takers.get_mut(&consumer).expect("it was just found");
            taker.is_benched = self.is_single && served != Some(consumer);
            self.relist(consumer);
        }
        if !self.is_single {
            (self.active, self.is_leaving) = (None, false);
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

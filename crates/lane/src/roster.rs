//! Who takes messages from a queue, how many each may hold, and whose turn it is.
//!
//! Consumers that stay have a window, and those without acknowledgements a bound on what they have not read; pulls take once,
//! maybe from some lanes only; and some take nothing more and hold something still: gets, pulls, and consumers that left. Among those that have room, a consumer
//! of a higher priority goes first; among equals, whoever has waited longest since its last message.
//!
//! Invariant: everybody stands in the order that its room says, and whoever waits for the place of a single active consumer
//! in none.

mod election;
mod order;
mod taker;
#[cfg(test)]
mod tests;
mod wants;
mod work;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::bitmap::Bitmap;
use crate::command::{Consume, Effect};
use crate::entries::List;
use crate::ids::{ConsumerId, FeedId, LeaseId, Time, WindowId};
use crate::lane::{Lane, Lanes};
use crate::priority::Priority;
use crate::pulling::{Pull, Pulling};
use crate::windows::Share;

pub use wants::{Terms, Want};

use self::election::{Candidate, Election};
use self::order::{Order, Place};
pub(crate) use self::taker::Kind;
use self::taker::{Room, Taker};
use self::work::count_work;

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
    /// The shared windows that have changed since the other queues were told.
    changed: BTreeSet<WindowId>,
    /// Who shares which.
    sharers: BTreeSet<(WindowId, ConsumerId)>,
    /// Leases of messages that were taken from consumers, and who held them, until they are answered for.
    withdrawn: BTreeMap<LeaseId, ConsumerId>,
    /// Consumers that stay.
    staying: u64,
    /// Of those the ones that want to be the only one.
    exclusive: u64,
    /// Which of them is served, where only one is.
    election: Election,
    /// Those who took nothing more and hold nothing any more.
    done: Vec<ConsumerId>,
    /// Most messages that a consumer holds unacknowledged, whatever it asks for; `None`: no limit.
    most_held: Option<u32>,
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
            Kind::Stays { window, urgent: consume.urgent, held: List::default(), withdrawn: 0 }
        };
        let shared = consume.shared;
        let taker = self.newcomer(consume.priority, kind);
        self.staying += 1;
        self.exclusive += u64::from(consume.exclusive);
        self.election.stand(taker.candidate(consume.consumer));
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
            is_benched: self.election.is_single() && kind.stays(),
            is_stopped: false,
            feed: None,
            is_held_back: false,
            is_retired: false,
            stands: (Room::None, (Reverse(priority), self.turn)),
            kind,
        }
    }

    fn insert(&mut self, consumer: ConsumerId, taker: Taker) {
        if let Some(window) = taker.shared {
            self.sharers.insert((window, consumer));
            if let Some(share) = self.shares.get_mut(&window) {
                share.takers += 1;
                self.changed.insert(window);
            }
        }
        self.takers.insert(consumer, taker);
        self.relist(consumer);
    }

    /// Whether somebody is a consumer that shares no window.
    pub(crate) fn may_join(&self, consumer: ConsumerId) -> bool {
        self.takers.get(&consumer).is_some_and(|taker| taker.kind.stays() && taker.shared.is_none())
    }

    /// Has a consumer that shares no window share this one, with what it holds. The window must be known ([`Roster::share`]).
    pub(crate) fn join(&mut self, window: WindowId, consumer: ConsumerId) {
        let taker = self.takers.get_mut(&consumer).expect("only a consumer that is there may join");
        taker.shared = Some(window);
        let held = taker.kind.occupies();
        self.sharers.insert((window, consumer));
        let share = self.shares.get_mut(&window).expect("a window is known before somebody shares it");
        share.takers += 1;
        self.change_share(window, |share| share.here += held);
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
        let (shared, withdrawn) = (taker.shared, before.occupies() - held.len());
        if before.stays() {
            let (is_exclusive, candidate) = (taker.is_exclusive, taker.candidate(consumer));
            self.count_out(is_exclusive, &candidate);
        }
        if withdrawn > 0 {
            self.withdrawn.retain(|_, from| *from != consumer);
            if let Some(window) = shared {
                self.change_share(window, |share| share.here -= withdrawn);
            }
        }
        self.relist(consumer);
        self.elect();
        held.len() > 0
    }

    /// A message that a consumer held by this lease was taken from it, and it does not know: the message keeps its place in the window
    /// until the consumer [answers](Roster::answered) for it.
    pub(crate) fn withdrawn(&mut self, lease: LeaseId, consumer: ConsumerId) {
        let stays = self.change(consumer, false, |kind| {
            let Kind::Stays { withdrawn, .. } = kind else { return false };
            *withdrawn += 1;
            true
        });
        if stays == Some(true) {
            self.withdrawn.insert(lease, consumer);
        }
    }

    /// A consumer says something of a lease that is over.
    pub(crate) fn answered(&mut self, lease: LeaseId) {
        if let Some(consumer) = self.withdrawn.remove(&lease) {
            self.change(consumer, false, |kind| {
                if let Kind::Stays { withdrawn, .. } = kind {
                    *withdrawn -= 1;
                }
            });
        }
    }

    /// The session of somebody is over: it takes nothing more, shares no window, and keeps what it holds until that is put back. False: it held nothing, and is
    /// gone. To be asked only once the windows of the session are forgotten: nobody is told what it held of them.
    pub(crate) fn retire(&mut self, consumer: ConsumerId) -> bool {
        let Some(taker) = self.takers.get_mut(&consumer) else { return false };
        taker.is_retired = true;
        if let Some(window) = taker.shared.take() {
            self.sharers.remove(&(window, consumer));
            let share = self.shares.get_mut(&window).expect("a window is known while somebody shares it");
            share.takers -= 1;
            share.here -= taker.kind.occupies();
            if share.takers == 0 {
                self.shares.remove(&window);
            }
        }
        let holds_something = self.leave(consumer);
        if !holds_something {
            self.remove(consumer);
        }
        holds_something
    }

    /// A consumer takes nothing more, and is still there.
    pub(crate) fn stop(&mut self, consumer: ConsumerId) {
        if let Some(taker) = self.takers.get_mut(&consumer) {
            taker.is_stopped = true;
            let candidate = taker.candidate(consumer);
            self.election.withdraw(&candidate);
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
        if taker.kind.occupies() > taker.kind.held().len() {
            self.withdrawn.retain(|_, from| *from != consumer);
        }
        if let Kind::Pulls(Pulling { until, .. }) = taker.kind {
            self.waits.remove(&(until, consumer));
        }
        if let Some(window) = taker.shared {
            let share = self.shares.get_mut(&window).expect("a window is known while somebody shares it");
            share.takers -= 1;
            self.sharers.remove(&(window, consumer));
            self.change_share(window, |share| share.here -= taker.kind.occupies());
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
        self.election.withdraw(candidate);
    }

    /// The single active consumer that leaves gives its place away, if it holds nothing any more. To be asked when a request is
    /// done: what changes its state or its lane is nobody's for a moment.
    pub(crate) fn give_place(&mut self) {
        if self.election.is_leaving() {
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
        let most = self.most_held();
        let taker = self.takers.get_mut(&consumer).expect("whoever is put in order is there");
        let stands = (taker.room(most, &self.shares), taker.place());
        let before = std::mem::replace(&mut taker.stands, stands);
        if before != stands {
            self.delist(before);
            self.enlist(stands, consumer);
        }
    }

    /// Whether somebody has room for some message.
    pub(crate) fn has_room(&self) -> bool {
        !(self.open.is_empty() && self.urgent.is_empty() && self.choosy.is_empty())
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

    /// What a taker holds stands in other slots.
    pub(crate) fn set_held(&mut self, consumer: ConsumerId, held: List) {
        let taker = self.takers.get_mut(&consumer).expect("whoever holds something is there");
        assert_eq!(taker.kind.held().len(), held.len(), "it holds what it held");
        *taker.kind.held_mut() = held;
    }

    /// Changes a taker and puts it where its room says; `served` gives up its turn.
    pub(crate) fn change<T>(
        &mut self,
        consumer: ConsumerId,
        served: bool,
        change: impl FnOnce(&mut Kind) -> T,
    ) -> Option<T> {
        let taker = self.takers.get_mut(&consumer)?;
        let before = taker.kind.occupies();
        let answer = change(&mut taker.kind);
        if served && taker.kind.stays() {
            self.turn += 1;
            taker.turn = self.turn;
        }
        let (held, shared) = (taker.kind.occupies(), taker.shared);
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
        self.changed.insert(window);
        if !had_room || !share.has_room(0) {
            self.relist_sharers(window);
        }
    }

    /// Windows that are shared here and have changed since the last call, as they are now. Those that nobody here shares any more are forgotten.
    pub(crate) fn take_changed_shares(&mut self) -> Vec<(WindowId, Share)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let shares: Vec<_> = changed.filter_map(|id| Some((id, *self.shares.get(&id)?))).collect();
        for (id, _) in shares.iter().filter(|(_, share)| share.takers == 0) {
            self.shares.remove(id);
        }
        shares
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

    /// Most messages that a consumer that acknowledges holds, and a pull takes.
    pub(crate) fn most_held(&self) -> u32 {
        self.most_held.unwrap_or(u32::MAX)
    }

    /// Says how many messages a consumer holds at most, whatever it asks for. What is held already stays so.
    pub(crate) fn set_most_held(&mut self, most: Option<u32>) {
        if std::mem::replace(&mut self.most_held, most) != most {
            let all: Vec<ConsumerId> = self.takers.keys().copied().collect();
            all.into_iter().for_each(|consumer| self.relist(consumer));
        }
    }

    // ---- the single active consumer ----

    /// Says whether only one consumer that stays is served.
    pub(crate) fn set_single(&mut self, is_single: bool) {
        if self.election.set_single(is_single) {
            self.bench_all(is_single);
            self.elect();
        }
    }

    /// Says whether the single active consumer, where there is to be one, is connected to another broker.
    pub(crate) fn set_elsewhere(&mut self, is_elsewhere: bool) {
        if self.election.set_elsewhere(is_elsewhere) {
            self.elect();
        }
    }

    /// Chooses who is served, where only one is. All other consumers that stay are benched.
    fn elect(&mut self) {
        if !self.election.is_single() {
            return;
        }
        let active = self.election.active().and_then(|id| self.takers.get(&id));
        let (before, served) = self.election.hold(active.and_then(Taker::incumbent));
        for consumer in before.into_iter().chain(served) {
            self.bench(consumer, served != Some(consumer));
        }
    }

    /// Has a consumer that stays wait for the place of the single active one, or no longer.
    fn bench(&mut self, consumer: ConsumerId, is_benched: bool) {
        if let Some(taker) = self.takers.get_mut(&consumer).filter(|taker| taker.kind.stays()) {
            taker.is_benched = is_benched;
            self.relist(consumer);
        }
    }

    fn bench_all(&mut self, is_benched: bool) {
        let ids: Vec<ConsumerId> = self.consumers().map(|(id, _)| id).collect();
        count_work(self.takers.len());
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

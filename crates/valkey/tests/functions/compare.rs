//! Everything that can be seen of a place and of its queue is the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    BrowseOrder, Death, Deaths, LaneView, Message, MessageView, Query, Route, Seq, Settings, State, Status,
    Step, Time, VhostId,
};
use overtake_valkey::functions::{Configured, Peek, Ready, Seen, Standing, Sweep, View, Where};

use crate::twin::{QUEUE, Twin};

fn standing(statuses: &[Status]) -> Standing {
    Standing { newest: false, after: None, limit: 10_000, with_content: true, statuses: statuses.to_vec() }
}

impl Twin {
    /// The messages that stand so, with whoever holds them, by sequence. Time passes.
    pub(crate) fn stored(&mut self, status: Status) -> Vec<(Message, Option<String>)> {
        let shown = self.call(&standing(&[status]), None);
        self.broker.tick(self.now, &mut Step::default());
        shown.into_iter().map(|one| (one.stored.message, one.stored.holder)).collect()
    }

    fn messages_of(&self, queue: &str) -> Vec<MessageView> {
        let query = Query { order: BrowseOrder::Published, limit: 10_000, ..Query::default() };
        let look = self.broker.browse(VhostId::DEFAULT, queue, &query, &mut |_| true).expect("it is there");
        look.messages.into_iter().map(|(_, view)| view).collect()
    }

    pub(crate) fn seqs(&self, wanted: impl Fn(Status) -> bool) -> Vec<Seq> {
        self.messages_of(QUEUE).into_iter().filter(|view| wanted(view.status)).map(|view| view.seq).collect()
    }

    fn views_of(&self, queue: &str) -> Vec<LaneView> {
        self.broker.view(self.now, VhostId::DEFAULT, queue).expect("it is there").lanes
    }

    pub(crate) fn views(&self) -> Vec<LaneView> {
        self.views_of(QUEUE)
    }

    /// Everything is where it goes, and can be seen of both.
    pub(crate) fn compare(&mut self) {
        const ALL: [Status; 4] = [Status::Ready, Status::Delayed, Status::Leased, Status::Dead];
        self.catch_up();
        self.compare_standing();
        loop {
            self.move_all();
            let shown = self.call(&standing(&ALL), None);
            self.broker.tick(self.now, &mut Step::default());
            // What has just left may come to stay.
            if !self.leaving {
                let stored = shown.into_iter().map(|one| one.stored.message).collect();
                self.compare_messages(QUEUE, stored, self.head);
                self.compare_outlook();
                break;
            }
        }
        loop {
            self.move_all();
            let seen = self.call(&View, None);
            self.broker.tick(self.now, &mut Step::default());
            if !self.leaving {
                self.compare_lanes(QUEUE, &seen);
                break;
            }
        }
        for (name, base) in self.beside() {
            let (head, shown) = self.call_beside(base, &standing(&ALL));
            self.compare_messages(name, shown.into_iter().map(|one| one.stored.message).collect(), head);
            let seen = self.call_beside(base, &View).1;
            self.compare_lanes(name, &seen);
        }
    }

    fn compare_messages(&self, queue: &str, stored: Vec<Message>, told: Option<Where>) {
        let views = self.messages_of(queue);
        let scheme = self.broker.settings(VhostId::DEFAULT, queue).expect("it is there").scheme;
        let mut head: Option<Where> = None;
        assert_eq!(
            stored.iter().map(|one| one.seq).collect::<Vec<_>>(),
            views.iter().map(|one| one.seq).collect::<Vec<_>>()
        );
        let lanes: BTreeMap<Arc<str>, i32> =
            self.views_of(queue).into_iter().map(|lane| (lane.lane, lane.level)).collect();
        for (message, view) in stored.iter().zip(&views) {
            let (due, deadline) = match message.state {
                State::Delayed { due } => (Some(due), None),
                State::Leased { deadline, .. } => (None, deadline.some()),
                _ => (None, None),
            };
            let id = overtake_lane::public_id(message.id(), message.seq);
            assert_eq!(
                (&id, message.priority, scheme.show(message.original, message.priority)),
                (&view.id, view.level, view.priority.clone())
            );
            assert_eq!(
                (message.state.status(), message.since, message.expires.some(), due, deadline),
                (view.status, view.since, view.expires, view.due, view.deadline),
                "{id}"
            );
            assert_eq!(
                (message.count, message.bytes, message.key(), message.work()),
                (view.count, view.bytes, view.key.as_deref(), view.work.as_ref()),
                "{id}"
            );
            assert_eq!(message.deaths().map(shape), view.deaths.as_deref().map(shape), "{id}");
            assert_eq!(message.record(), view.record.as_ref(), "{id}");
            if view.status == Status::Ready {
                let here = Where::new(lanes[&view.lane], view.seq);
                head = Some(head.map_or(here, |head| head.min(here)));
            }
        }
        let Settings { group_limit, key_rate_limit, fair_keys, .. } = self.settings;
        // Of what a key holds back nothing goes next.
        if queue != QUEUE || group_limit == 0 && key_rate_limit.is_none() && !fair_keys {
            assert_eq!(told, head, "what goes next");
        }
    }

    /// What goes next is seen in the order of the lanes, also of those from some level down.
    fn compare_outlook(&mut self) {
        let lanes: BTreeMap<Arc<str>, i32> =
            self.views().into_iter().map(|lane| (lane.lane, lane.level)).collect();
        let views = self.messages_of(QUEUE).into_iter().filter(|view| view.status == Status::Ready);
        let ready = |view: MessageView| {
            let stands = Where::new(lanes[&view.lane], view.seq);
            Ready { stands, bytes: view.bytes.into() }
        };
        let mut all: Vec<Ready> = views.map(ready).collect();
        all.sort_by_key(|ready| ready.stands);
        let middle = all.get(all.len() / 2).map(|ready| ready.stands.level());
        for (most, from) in [(3, None), (10_000, middle)] {
            let is_from = |ready: &&Ready| from.is_none_or(|from| ready.stands.level() <= from);
            let expected: Vec<Ready> = all.iter().filter(is_from).take(most as usize).copied().collect();
            assert_eq!(self.peek(Peek { most, from }).ready, expected);
        }
    }

    /// Told what holds already, a place says how it stands as a sweep finds it.
    fn compare_standing(&mut self) {
        let holds = Configured { is_new: false, version: self.version };
        assert_eq!(self.say_again(), Ok(holds));
        self.broker.tick(self.now, &mut Step::default());
        let stands = (self.head, self.wakes_at, self.leaving);
        self.call(&Sweep, None);
        self.broker.tick(self.now, &mut Step::default());
        let is_due = stands.1.is_some_and(|wakes_at| wakes_at <= self.now);
        // Keys get tokens as time passes.
        if !is_due && self.settings.key_rate_limit.is_none() {
            assert_eq!((self.head, self.wakes_at, self.leaving), stands);
        }
    }

    fn compare_lanes(&self, queue: &str, seen: &Seen) {
        let view = self.broker.view(self.now, VhostId::DEFAULT, queue).expect("it is there");
        assert_eq!((seen.first_seq, Seq(seen.last_seq.0 + 1)), (view.first_seq, view.next_seq));
        for lane in view.lanes {
            let none = BTreeMap::new();
            let told = seen.lanes.get(&lane.level).unwrap_or(&none);
            let of = |name: &str| told.get(name).copied().unwrap_or(0);
            let names = ["ready", "ready_bytes", "delayed", "leased", "leased_bytes", "dead", "bytes"];
            let gauges = [
                lane.ready,
                lane.ready_bytes,
                lane.delayed,
                lane.leased,
                lane.leased_bytes,
                lane.dead,
                lane.bytes,
            ];
            assert_eq!(names.map(of), gauges, "{}: {names:?}", lane.lane);
            let counters = [
                "published",
                "delivered",
                "settled",
                "redelivered",
                "inversions",
                "expired",
                "evicted",
                "removed",
                "moved",
                "dead_lettered",
            ];
            let expected = [
                lane.published,
                lane.delivered,
                lane.settled,
                lane.redelivered,
                lane.inversions,
                lane.expired,
                lane.evicted,
                lane.removed,
                lane.moved,
                lane.dead_lettered,
            ];
            assert_eq!(counters.map(of), expected, "{}: {counters:?}", lane.lane);
            let mut below = 0;
            let waits: Vec<u64> = (1..=lane.wait.buckets.len())
                .map(|at| {
                    below += of(&format!("wait_{at}"));
                    below
                })
                .collect();
            assert_eq!(waits, lane.wait.buckets.iter().map(|(_, count)| *count).collect::<Vec<_>>());
            assert_eq!([of("waits"), of("waited_ms")], [lane.wait.count, lane.wait.sum_ms]);
            let age = seen.oldest.get(&lane.level).map_or(0, |since| self.now.since(*since));
            assert_eq!(age, lane.oldest_age_ms, "{}", lane.lane);
        }
    }
}

/// Deaths, and which was the first, but for what the content of the message says. What comes to a queue beside comes there a little later than it does to one of a broker,
/// and who pays for it dies then.
fn shape(deaths: &Deaths) -> (Vec<Death>, usize) {
    let bare = |death: &Death| {
        let there = *death.queue != *QUEUE;
        let when = |time: Time| if there { Time(0) } else { time };
        let (first_at, at) = (when(death.first_at), when(death.at));
        Death { route: Route::default(), ttl_ms: None, first_at, at, ..death.clone() }
    };
    (deaths.iter().map(bare).collect(), deaths.first_at())
}

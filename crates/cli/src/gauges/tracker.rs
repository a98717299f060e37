//! What polls say together: rates, quantiles, and whether a queue falls behind.

use std::collections::HashMap;

use super::now::{LaneNow, QueueNow, Sign, Sums};
use super::read::{LaneIn, QueueIn};
use super::urgency::Heat;
use super::wait::Waits;

/// So long the oldest message must have grown older until a queue counts as behind, ms.
const BEHIND_MS: u64 = 10_000;

/// Queues by name, as they were when they were asked for last.
#[derive(Debug, Default)]
pub(crate) struct Tracker(HashMap<String, Seen>);

#[derive(Debug)]
struct Seen {
    /// When, ms on any clock that never goes back.
    at: u64,
    queue: QueueIn,
    slide: Option<Slide>,
}

/// A time in which the oldest message only grew older.
#[derive(Clone, Copy, Debug)]
struct Slide {
    since: u64,
    /// What waited when it began.
    ready: u64,
}

impl Tracker {
    /// Queues as they were at `at`, ms. Where these are `all`, what is known of others is forgotten.
    pub(crate) fn turn(&mut self, at: u64, queues: Vec<QueueIn>, all: bool) -> Vec<QueueNow> {
        let mut seen = HashMap::with_capacity(if all { queues.len() } else { 0 });
        let mut now = Vec::with_capacity(queues.len());
        for queue in queues {
            let before = self.0.remove(&queue.name);
            let slide = slide(&queue, before.as_ref());
            now.push(look(at, &queue, before.as_ref(), slide));
            seen.insert(queue.name.clone(), Seen { at, queue, slide });
        }
        if all {
            self.0 = seen;
        } else {
            self.0.extend(seen);
        }
        now
    }
}

/// Whether the oldest message grew older once more.
fn slide(queue: &QueueIn, before: Option<&Seen>) -> Option<Slide> {
    let (ready, age) = waiting(queue);
    let before = before?;
    let (_, age_before) = waiting(&before.queue);
    (ready > 0 && age_before > 0 && age > age_before)
        .then(|| before.slide.unwrap_or(Slide { since: before.at, ready }))
}

/// What is ready, and the age of the oldest.
fn waiting(queue: &QueueIn) -> (u64, u64) {
    let ready = queue.lanes.iter().map(|lane| lane.ready).sum();
    (ready, queue.lanes.iter().map(|lane| lane.oldest_age_ms).max().unwrap_or(0))
}

/// A queue beside what it was.
fn look(at: u64, queue: &QueueIn, before: Option<&Seen>, slide: Option<Slide>) -> QueueNow {
    let settings = queue.settings();
    // A counter that went back belongs to a broker that has begun anew.
    let none = LaneIn::default();
    let before = before.filter(|before| {
        let has_gone_back =
            |lane: &LaneIn| lane.published < lane_of(&before.queue, &lane.lane, &none).published;
        at > before.at && !queue.lanes.iter().any(has_gone_back)
    });
    let (mut lanes, mut waits) = (Vec::with_capacity(queue.lanes.len()), Waits::default());
    let mut grown = Grown::default();
    for lane in &queue.lanes {
        let since = before.map(|before| (lane_of(&before.queue, &lane.lane, &none), at - before.at));
        let new = since.map(|(then, _)| Waits::since(&lane.wait, &then.wait)).unwrap_or_default();
        let rate = |now: u64, of: fn(&LaneIn) -> u64| {
            since.map(|(then, ms)| now.saturating_sub(of(then)) as f64 * 1e3 / ms as f64)
        };
        lanes.push(LaneNow {
            name: lane.lane.clone(),
            heat: Heat::of(lane, settings),
            sums: Sums {
                ready: lane.ready,
                delayed: lane.delayed,
                leased: lane.leased,
                dead: lane.dead,
                bytes: lane.bytes,
                oldest_ms: lane.oldest_age_ms,
                in_rate: rate(lane.published, |then| then.published),
                out_rate: rate(lane.settled, |then| then.settled),
            },
            cap: lane.max_active,
            p50: new.quantile(50),
            p95: new.quantile(95),
        });
        waits.add(&new);
        grown.add(lane, since.map(|(then, _)| then));
    }
    let sums = lanes.iter().fold(Sums::default(), |sums, lane| sums.and(&lane.sums));
    let mut now = QueueNow {
        name: queue.name.clone(),
        lanes,
        sums,
        p50: waits.quantile(50),
        p95: waits.quantile(95),
        takers: queue.consumers + queue.waiting,
        signs: Vec::new(),
        new_dead: grown.dead,
    };
    now.signs = signs(at, queue, &now, &grown, slide);
    now
}

/// The lane of this name, else `none`: where there was none, nothing had happened in it.
fn lane_of<'a>(queue: &'a QueueIn, name: &str, none: &'a LaneIn) -> &'a LaneIn {
    queue.lanes.iter().find(|lane| lane.lane == name).unwrap_or(none)
}

/// What happened between two polls.
#[derive(Debug, Default)]
struct Grown {
    delivered: u64,
    evicted: u64,
    dead: u64,
}

impl Grown {
    fn add(&mut self, now: &LaneIn, then: Option<&LaneIn>) {
        let Some(then) = then else { return };
        self.delivered += now.delivered.saturating_sub(then.delivered);
        self.evicted += now.evicted.saturating_sub(then.evicted);
        self.dead += now.dead_lettered.saturating_sub(then.dead_lettered);
    }
}

fn signs(at: u64, queue: &QueueIn, now: &QueueNow, grown: &Grown, slide: Option<Slide>) -> Vec<Sign> {
    let (settings, sums) = (queue.settings(), &now.sums);
    let reached = |limit: Option<u64>, amount: u64| limit.is_some_and(|limit| limit > 0 && amount >= limit);
    // Of the bytes it is not told which are leased, and those do not count.
    let is_full = reached(settings.max_length, sums.ready + sums.delayed)
        || (sums.leased == 0 && reached(settings.max_bytes, sums.bytes))
        || grown.evicted > 0;
    let is_left_alone = sums.ready > 0 && now.takers == 0 && sums.leased == 0 && grown.delivered == 0;
    let is_behind = slide.is_some_and(|slide| at - slide.since >= BEHIND_MS && sums.ready >= slide.ready)
        && !is_left_alone;
    let all = [
        (is_full, Sign::Full),
        (is_left_alone && !settings.paused, Sign::NoConsumer),
        (is_behind && !settings.paused, Sign::Behind),
        (grown.dead > 0, Sign::Dying),
        (settings.paused, Sign::Paused),
    ];
    all.into_iter().filter(|(is, _)| *is).map(|(_, sign)| sign).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn queue(settings: &Value, consumers: u64, lanes: Value) -> QueueIn {
        let queue = json!({"name": "jobs", "settings": settings, "consumers": consumers, "lanes": lanes});
        serde_json::from_value(queue).expect("a queue")
    }

    /// Polls every second; the last one.
    fn last(queues: Vec<QueueIn>) -> QueueNow {
        let mut tracker = Tracker::default();
        let mut last = Vec::new();
        for (at, queue) in queues.into_iter().enumerate() {
            last = tracker.turn(at as u64 * 1_000, vec![queue], true);
        }
        last.pop().expect("polled")
    }

    #[test]
    fn counters_of_two_polls_are_rates() {
        let at = |published: u64, settled: u64| {
            queue(
                &json!({}),
                1,
                json!([{"lane": "9", "level": 9, "published": published, "settled": settled}]),
            )
        };
        let first = last(vec![at(5, 5)]);
        assert_eq!((first.sums.in_rate, first.sums.out_rate), (None, None));
        let second = last(vec![at(5, 5), at(25, 15)]);
        assert_eq!((second.sums.in_rate, second.sums.out_rate), (Some(20.0), Some(10.0)));
        let restarted = last(vec![at(25, 15), at(3, 0)]);
        assert_eq!((restarted.sums.in_rate, restarted.sums.out_rate), (None, None));
    }

    #[test]
    fn a_lane_that_came_between_two_polls_began_with_nothing() {
        let first = queue(&json!({}), 1, json!([{"lane": "1", "level": 1, "published": 4}]));
        let second = queue(
            &json!({}),
            1,
            json!([
                {"lane": "9", "level": 9, "published": 3, "wait": {"buckets": [[1, 3], [2, 3]], "count": 3}},
                {"lane": "1", "level": 1, "published": 4},
            ]),
        );
        let now = last(vec![first, second]);
        assert_eq!(now.lanes[0].sums.in_rate, Some(3.0));
        assert_eq!(now.p95.map(super::super::Quantile::ms), Some(1));
        assert_eq!(now.sums.in_rate, Some(3.0));
    }

    fn signs(settings: Value, consumers: u64, polls: &[Value]) -> String {
        let lane = |poll: &Value| {
            let mut lane = json!({"lane": "5", "level": 5});
            let (lane_in, poll) = (lane.as_object_mut().expect("an object"), poll.as_object().expect("too"));
            lane_in.extend(poll.clone());
            lane
        };
        last(polls.iter().map(|poll| queue(&settings, consumers, json!([lane(poll)]))).collect()).words()
    }

    #[test]
    fn what_is_to_be_known_is_said_in_a_word() {
        let waits = json!({"ready": 3, "oldest_age_ms": 50, "bytes": 300});
        let only = std::slice::from_ref::<Value>;
        assert_eq!(signs(json!({}), 1, only(&waits)), "");
        assert_eq!(signs(json!({}), 0, only(&waits)), "no consumer");
        assert_eq!(signs(json!({"paused": true}), 0, only(&waits)), "paused");
        assert_eq!(signs(json!({"max_length": 3}), 1, only(&waits)), "full");
        assert_eq!(signs(json!({"max_bytes": 300}), 1, only(&waits)), "full");
        assert_eq!(signs(json!({"max_length": 4, "max_bytes": 0}), 1, &[waits]), "");
        // Somebody who asks now and then, and leaves nothing open.
        let taken = [json!({"ready": 3, "delivered": 1}), json!({"ready": 2, "delivered": 2})];
        assert_eq!(signs(json!({}), 0, &taken), "");
        let died = [json!({"dead_lettered": 1, "evicted": 1}), json!({"dead_lettered": 3, "evicted": 2})];
        assert_eq!(signs(json!({}), 0, &died), "full, dead +2");
    }

    #[test]
    fn a_queue_is_behind_when_its_oldest_grows_older_and_no_less_waits() {
        let polls = |many: u64, ready: fn(u64) -> u64, age: fn(u64) -> u64| -> Vec<Value> {
            (0..many)
                .map(|at| json!({"ready": ready(at), "oldest_age_ms": age(at), "delivered": at}))
                .collect()
        };
        let older = |at: u64| 500 + at * 1_000;
        assert_eq!(signs(json!({}), 1, &polls(11, |at| 10 + at, older)), "behind");
        assert_eq!(signs(json!({}), 1, &polls(10, |at| 10 + at, older)), "");
        assert_eq!(signs(json!({}), 1, &polls(60, |at| 100 - at, older)), "");
        assert_eq!(signs(json!({}), 1, &polls(60, |at| 10 + at, |at| 500 + at % 5)), "");
        assert_eq!(signs(json!({"paused": true}), 1, &polls(60, |at| 10 + at, older)), "paused");
    }

    #[test]
    fn what_is_not_there_any_more_is_forgotten_and_what_was_not_asked_for_is_not() {
        let named = |name: &str, published: u64| {
            let mut queue = queue(&json!({}), 1, json!([{"published": published}]));
            name.clone_into(&mut queue.name);
            queue
        };
        let mut tracker = Tracker::default();
        tracker.turn(0, vec![named("a", 0), named("b", 0)], true);
        tracker.turn(1_000, vec![named("a", 10)], false);
        let both = tracker.turn(2_000, vec![named("a", 10), named("b", 10)], true);
        assert_eq!([both[0].sums.in_rate, both[1].sums.in_rate], [Some(0.0), Some(5.0)]);
        tracker.turn(3_000, vec![named("a", 10)], true);
        assert_eq!(tracker.turn(4_000, vec![named("b", 10)], true)[0].sums.in_rate, None);
    }
}

//! What can be counted of endpoints and sources.

use std::sync::Arc;

use overtake_forward::State;
use overtake_telemetry::Kind::{Counter, Gauge, UpDownCounter};
use overtake_telemetry::{Collected, Family, Labels, Point, Source as Counted, Value};

use crate::intake::IntakeState;
use crate::registry::Registry;
use crate::{Endpoint, Source};

impl Counted for Registry<Endpoint> {
    fn collect(&self) -> Collected<'_> {
        Box::pin(async {
            let [mut up, mut connections, mut messages, mut bytes, mut in_flight, mut open] = [
                Family::new(
                    "overtake.endpoint.up",
                    Gauge,
                    "",
                    "1: an endpoint is connected, and not paused.",
                ),
                Family::new(
                    "overtake.endpoint.connections",
                    UpDownCounter,
                    "{connection}",
                    "Connections of an endpoint to its receiver.",
                ),
                Family::new(
                    "overtake.endpoint.messages",
                    Counter,
                    "{message}",
                    "Messages of an endpoint, and what became of them.",
                ),
                Family::new(
                    "overtake.endpoint.sent",
                    Counter,
                    "By",
                    "Bytes that a receiver accepted, with what the protocol adds.",
                ),
                Family::new(
                    "overtake.endpoint.in_flight",
                    UpDownCounter,
                    "{message}",
                    "Messages on their way to a receiver.",
                ),
                Family::new(
                    "overtake.endpoint.breaker.open",
                    Gauge,
                    "",
                    "1: nothing of a lane is sent for a while, since it failed or the receiver is busy.",
                ),
            ];
            for (vhost, view) in self.every().await {
                let of = || [("vhost", Arc::clone(&vhost)), ("endpoint", Arc::clone(&view.name))];
                let work = &view.work;
                let is_up = work.connections > 0 && work.state != State::Paused;
                add(&mut up, of().into(), is_up.into());
                add(&mut connections, of().into(), work.connections as u64);
                for (lane, counts) in &work.lanes {
                    let of_lane = || of().into_iter().chain([("lane", Arc::clone(lane))]);
                    let outcomes = [
                        ("sent", counts.sent),
                        ("failed", counts.failed),
                        ("refused", counts.refused),
                        ("expired", counts.expired),
                        ("put_back", counts.put_back),
                    ];
                    for (outcome, count) in outcomes {
                        let labels = of_lane().chain([("outcome", Arc::from(outcome))]).collect();
                        add(&mut messages, labels, count);
                    }
                    add(&mut bytes, of_lane().collect(), counts.sent_bytes);
                    add(&mut in_flight, of_lane().collect(), counts.in_flight);
                    let is_open = work.breakers.get(lane).is_some_and(|breaker| breaker.open_until.is_some());
                    add(&mut open, of_lane().collect(), is_open.into());
                }
            }
            with_series([up, connections, messages, bytes, in_flight, open])
        })
    }
}

impl Counted for Registry<Source> {
    fn collect(&self) -> Collected<'_> {
        Box::pin(async {
            let [mut up, mut messages, mut bytes] = [
                Family::new(
                    "overtake.source.up",
                    Gauge,
                    "",
                    "1: a source is connected, and takes messages in.",
                ),
                Family::new(
                    "overtake.source.messages",
                    Counter,
                    "{message}",
                    "Messages of a source, and what became of them.",
                ),
                Family::new("overtake.source.taken", Counter, "By", "Bytes of content that were taken in."),
            ];
            for (vhost, view) in self.every().await {
                let of = || [("vhost", Arc::clone(&vhost)), ("source", Arc::clone(&view.name))];
                let work = &view.work;
                add(&mut up, of().into(), (work.state == IntakeState::Running).into());
                for (outcome, count) in [("taken", work.taken), ("refused", work.refused)] {
                    let labels = of().into_iter().chain([("outcome", Arc::from(outcome))]).collect();
                    add(&mut messages, labels, count);
                }
                add(&mut bytes, of().into(), work.taken_bytes);
            }
            with_series([up, messages, bytes])
        })
    }
}

fn add(family: &mut Family, labels: Labels, number: u64) {
    family.points.push(Point { labels, value: Value::Whole(number) });
}

fn with_series(families: impl IntoIterator<Item = Family>) -> Vec<Family> {
    families.into_iter().filter(|family| !family.points.is_empty()).collect()
}

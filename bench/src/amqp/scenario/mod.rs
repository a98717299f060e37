//! What is done with a broker.

mod disk;
mod firehose;
mod idle;
mod instructions;
mod quality;
mod rates;
mod single;
mod slow;
mod urgent;

use anyhow::Result;

use super::Stage;
use super::finding::Finding;
use super::peer::Peer;
use crate::Plan;

pub(super) struct Scenario {
    /// By which it is chosen.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Whether it says anything about this one.
    pub(super) fits: fn(Peer) -> bool,
    /// Takes so long that it must be asked for.
    pub(super) is_long: bool,
    pub(super) run: fn(&Stage<'_>) -> Result<Vec<Finding>>,
}

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "publish and drain",
        about: "one connection publishes and one consumer drains in order, twice; then four connections publish at once",
        fits: |_| true,
        is_long: false,
        run: rates::publish_and_drain,
    },
    Scenario {
        name: "one at a time",
        about: "one message after the other, each when the last is done",
        fits: |_| true,
        is_long: false,
        run: single::run,
    },
    Scenario {
        name: "end to end",
        about: "one publisher and one consumer at once, prefetch 100",
        fits: |peer| peer != Peer::Sink,
        is_long: false,
        run: rates::end_to_end,
    },
    Scenario {
        name: "urgent under bulk",
        about: "so many of level 1 wait, kept up by a publisher while two consumers drain at prefetch 100; every 50 ms \
                one of level 9",
        fits: |peer| peer != Peer::Sink,
        is_long: false,
        run: urgent::run,
    },
    Scenario {
        name: "quality",
        about: "a consumer that works 500 µs on each, one after the other; 1.2 times as many are published as it takes",
        fits: |peer| peer != Peer::Sink,
        is_long: false,
        run: quality::run,
    },
    Scenario {
        name: "beside a firehose",
        about: "one connection publishes as fast as it can, at most 1,000 unconfirmed; another one message each 10 ms to \
                another queue, for 10 s",
        fits: |peer| peer != Peer::Sink,
        is_long: false,
        run: firehose::run,
    },
    Scenario {
        name: "many slow publishers",
        about: "1,000 connections publish to one queue, one message a second each, spread over the second, for 10 s",
        fits: |peer| peer.is_amqp() && peer != Peer::Sink,
        is_long: true,
        run: slow::run,
    },
    Scenario {
        name: "idle connections",
        about: "connections with a channel each that do nothing; then each does a burst of work, and idles again",
        fits: |peer| peer.is_amqp() && peer != Peer::Sink,
        is_long: true,
        run: idle::run,
    },
    Scenario {
        name: "instructions",
        about: "instructions of the broker for each message, and where: counted by Callgrind, without checking passwords",
        fits: |peer| peer == Peer::Overtake,
        is_long: true,
        run: instructions::run,
    },
];

impl Scenario {
    pub(super) fn is_wanted(&self, plan: Plan) -> bool {
        plan.wants(self.name) && (!self.is_long || plan.long || !plan.only.is_empty())
    }
}

//! A queue and its lanes as they are shown.

use super::urgency::{HEATS, Heat};
use super::wait::Quantile;

/// A queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueNow {
    pub(crate) name: String,
    /// The most urgent first.
    pub(crate) lanes: Vec<LaneNow>,
    /// Over its lanes.
    pub(crate) sums: Sums,
    pub(crate) p50: Option<Quantile>,
    pub(crate) p95: Option<Quantile>,
    /// Consumers that stay, and requests that wait for a message.
    pub(crate) takers: u64,
    /// What is to be known about it, the gravest first.
    pub(crate) signs: Vec<Sign>,
    /// Messages that became dead letters since the poll before.
    pub(crate) new_dead: u64,
}

/// A lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneNow {
    pub(crate) name: String,
    pub(crate) heat: Heat,
    pub(crate) sums: Sums,
    /// Most messages leased at once; 0: any number.
    pub(crate) cap: u64,
    pub(crate) p50: Option<Quantile>,
    pub(crate) p95: Option<Quantile>,
}

/// What can be added up over lanes, and over queues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) ready: u64,
    pub(crate) delayed: u64,
    pub(crate) leased: u64,
    pub(crate) dead: u64,
    /// Of what is ready, delayed and leased.
    pub(crate) bytes: u64,
    /// Age of the oldest ready message, ms; 0 where none is.
    pub(crate) oldest_ms: u64,
    /// Messages published in a second; `None` until there are two polls.
    pub(crate) in_rate: Option<f64>,
    /// Messages acknowledged in a second.
    pub(crate) out_rate: Option<f64>,
}

/// What one has to know about a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sign {
    /// It has as many messages, or bytes, as it may have, or dropped some because of that.
    Full,
    /// Messages wait, and there is nobody to take them.
    NoConsumer,
    /// Its oldest message grows older, and what waits does not become less.
    Behind,
    /// Messages became dead letters since the poll before.
    Dying,
    /// Nothing is leased for now, since somebody said so.
    Paused,
}

impl Sign {
    /// For people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoConsumer => "no consumer",
            Self::Behind => "behind",
            Self::Dying => "dying",
            Self::Paused => "paused",
        }
    }

    /// For programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoConsumer => "no_consumer",
            Self::Behind => "behind",
            Self::Dying => "dead_letters",
            Self::Paused => "paused",
        }
    }
}

impl Sums {
    /// With those of another.
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            ready: self.ready + other.ready,
            delayed: self.delayed + other.delayed,
            leased: self.leased + other.leased,
            dead: self.dead + other.dead,
            bytes: self.bytes + other.bytes,
            oldest_ms: self.oldest_ms.max(other.oldest_ms),
            in_rate: both(self.in_rate, other.in_rate),
            out_rate: both(self.out_rate, other.out_rate),
        }
    }
}

/// What is not known of one is what the other is.
fn both(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

impl QueueNow {
    /// Age of the oldest ready message of its most urgent lane that has one, ms; 0 where nothing is ready.
    pub(crate) fn urgent_age_ms(&self) -> u64 {
        self.lanes.iter().find(|lane| lane.sums.ready > 0).map_or(0, |lane| lane.sums.oldest_ms)
    }

    /// What is ready, by how urgent it is.
    pub(crate) fn ready_by_heat(&self) -> [u64; HEATS] {
        let mut ready = [0; HEATS];
        for lane in &self.lanes {
            ready[lane.heat.step()] += lane.sums.ready;
        }
        ready
    }

    /// Whether something was said about it.
    pub(crate) fn is(&self, sign: Sign) -> bool {
        self.signs.contains(&sign)
    }

    /// All that is to be known about it, in words.
    pub(crate) fn words(&self) -> String {
        let word = |sign: &Sign| match sign {
            Sign::Dying => format!("dead +{}", self.new_dead),
            sign => sign.word().to_owned(),
        };
        self.signs.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

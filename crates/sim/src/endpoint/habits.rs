//! What an endpoint and its receiver are like: terms, pace, moods, and what becomes of a message.

use std::sync::Arc;

use overtake_forward::Terms;
use overtake_lane::{Backoff, PickerKind, Priority, Settings};

use crate::draw;
use crate::plan::Plan;
use crate::rng::Rng;

/// What a receiver is like as long as the world lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// What a message takes, µs.
    pub(super) takes_us: u64,
    /// It refuses one in so many messages, whenever they come; 0: none.
    refuses: u64,
    /// It hangs up on one in so many messages, whenever they come; 0: none.
    hangs_up: u64,
}

/// How a receiver is for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// It takes nearly everything.
    Fair,
    /// Anything may happen.
    Rough,
    /// Messages whose priority inside is odd, or even, fail or find it busy.
    Picky(i32),
    /// There is no way to it.
    Down,
}

/// What becomes of a message that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Accepted,
    /// The connection is lost before the answer; the receiver has it, or not.
    Lost {
        arrives: bool,
    },
    /// No answer ever comes; the receiver has it, or not.
    Hangs {
        arrives: bool,
    },
    Fails,
    Busy(u64),
    Refused,
    /// The receiver is gone for good, and says so.
    Gone,
}

impl Fate {
    /// Whether the receiver has it then.
    pub(super) fn arrives(self) -> bool {
        matches!(self, Self::Accepted | Self::Lost { arrives: true } | Self::Hangs { arrives: true })
    }
}

impl Habits {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            takes_us: rng.one_of(&[300, 3_000, 10_000, 20_000]),
            refuses: rng.one_of(&[0, 0, 5, 23]),
            hangs_up: rng.one_of(&[0, 0, 0, 17]),
        }
    }

    /// What becomes of the message of this mark and level.
    pub(super) fn fate(&self, rng: &mut Rng, mood: Mood, mark: u64, level: i32) -> Fate {
        if self.refuses > 0 && mark.is_multiple_of(self.refuses) {
            return Fate::Refused;
        }
        if self.hangs_up > 0 && mark % self.hangs_up == 1 {
            return Fate::Lost { arrives: rng.once_in(2) };
        }
        match mood {
            Mood::Picky(rest) if level.rem_euclid(2) == rest => match rng.below(3) {
                0 => Fate::Busy(rng.within(1, 60)),
                _ => Fate::Fails,
            },
            Mood::Fair | Mood::Picky(_) if !rng.once_in(40) => Fate::Accepted,
            _ => any_fate(rng),
        }
    }
}

fn any_fate(rng: &mut Rng) -> Fate {
    match rng.below(16) {
        0 | 1 => Fate::Lost { arrives: true },
        2 => Fate::Lost { arrives: false },
        3 => Fate::Hangs { arrives: rng.once_in(2) },
        4..=6 => Fate::Fails,
        7 => Fate::Busy(rng.within(1, 200)),
        8 => Fate::Refused,
        9 if rng.once_in(3) => Fate::Gone,
        _ => Fate::Accepted,
    }
}

impl Mood {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        match rng.below(8) {
            0..=2 => Self::Fair,
            3 | 4 => Self::Rough,
            5 | 6 => Self::Picky(rng.below(2) as i32),
            _ => Self::Down,
        }
    }
}

/// How an endpoint sends; times are short enough to matter within a run.
pub(super) fn terms(rng: &mut Rng) -> Terms {
    let backoff = |rng: &mut Rng, most: &[u64]| Backoff {
        initial_ms: rng.one_of(&[1, 5, 40]),
        multiplier: rng.within(1, 3) as u32,
        max_ms: rng.one_of(most),
    };
    let mut terms = Terms {
        fan_out: rng.one_of(&[1, 1, 1, 2, 3]),
        batch: rng.one_of(&[None, None, Some(1), Some(3), Some(40)]),
        batch_bytes: rng.one_of(&[1, 4_000, 262_144, 262_144, 262_144, 262_144]),
        batch_ms: rng.one_of(&[60, 400, 2_000]),
        connect_ms: rng.one_of(&[10, 200]),
        // Longer each time: whose queue is not there must not ask a thousand times a second for ever, so that nothing else is heard.
        reconnect: Backoff { multiplier: 2, ..backoff(rng, &[40, 500]) },
        retry: backoff(rng, &[60, 2_000]),
        breaker_failures: rng.one_of(&[1, 2, 5]),
        breaker: backoff(rng, &[60, 800]),
        ..Terms::default()
    };
    if rng.once_in(4) {
        terms.bytes_per_second = rng.one_of(&[0, 2_000, 200_000]);
        terms.messages_per_second = rng.one_of(&[0, 20, 1_000]);
    }
    if rng.once_in(6) {
        terms.daily_bytes = rng.one_of(&[4_000, 50_000]);
        terms.reserve_bytes = rng.one_of(&[0, 1_500]);
        terms.reserve_from = rng.once_in(2).then(|| Priority(rng.below(8) as i32));
    }
    terms
}

/// The settings of a queue with an endpoint.
pub(crate) fn queue_settings(
    rng: &mut Rng,
    plan: &Plan,
    name: &str,
    queues: &[Arc<str>],
    exchanges: &[Arc<str>],
) -> Settings {
    let mut settings = draw::settings(rng, queues, exchanges);
    if plan.is_deadly {
        draw::dying(rng, &mut settings, exchanges);
    }
    if plan.is_deep {
        draw::without_limits(&mut settings);
    }
    if plan.has_keys && rng.once_in(3) {
        draw::keyed(rng, &mut settings);
    }
    if plan.has_work {
        draw::working(rng, &mut settings, name, queues, plan.is_deep);
    }
    if rng.once_in(2) {
        (settings.max_active, settings.max_length, settings.max_bytes) = (0, 0, 0);
        (settings.ttl_ms, settings.max_ttl_ms) = (0, 0);
        settings.lanes.clear();
        settings.last_value = None;
    }
    if rng.once_in(2) {
        settings.picker = PickerKind::Strict;
    }
    settings
}

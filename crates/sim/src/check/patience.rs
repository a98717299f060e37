//! *Awake*, by the world's own time: whatever happens to the wall clock, no lease and no delay lasts longer than it was to last when it
//! began. The engine's clock says how long that is, and nothing else.

use std::collections::BTreeMap;

use overtake_lane::{QueueId, Seq, State, Time};

use crate::audit::Audit;
use crate::failure::{Checked, Promise, hold};

/// How often an engine notes what time it is, and so by how much a lease may last longer over a restart, µs.
const NOTE_US: u64 = 61_000_000;

/// Which lease or wait it is: of a message, and the how many-eth.
type Wait = (QueueId, Seq, u64);

/// What is leased or delayed.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    waits: BTreeMap<Wait, Until>,
    /// The life that was seen last.
    life: u64,
}

/// When it is over at the latest.
#[derive(Clone, Copy, Debug)]
struct Until {
    /// As the engine says.
    deadline: Time,
    /// By the world's time, µs.
    at_us: u64,
}

/// The time, by both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The engine's clock.
    pub(crate) clock: Time,
    /// The world's, µs.
    pub(crate) now_us: u64,
    /// Nothing is late that was to end after this, µs.
    pub(crate) excused_from_us: u64,
    /// Which life of the engine it is.
    pub(crate) life: u64,
}

impl Patience {
    /// After a step.
    pub(crate) fn look(&mut self, now: Moment, audit: &Audit) -> Checked {
        let is_new_life = std::mem::replace(&mut self.life, now.life) != now.life;
        let mut waits = BTreeMap::new();
        for (queue, message) in audit.messages() {
            let (wait, deadline) = match message.state {
                State::Leased { lease, deadline } => ((queue, message.seq, lease.0), deadline),
                State::Delayed { due } => ((queue, message.seq, 0), due),
                State::Ready | State::Dead => continue,
            };
            if deadline == Time::NEVER {
                continue;
            }
            let at_us = now.now_us.saturating_add(deadline.since(now.clock).saturating_mul(1_000));
            let before = self.waits.get(&wait);
            let until = match before {
                Some(before) if before.deadline == deadline && !is_new_life => *before,
                _ => Until { deadline, at_us },
            };
            if let Some(before) = before.filter(|_| is_new_life) {
                let latest = before.at_us.max(now.now_us).saturating_add(NOTE_US);
                hold(at_us <= latest, Promise::Awake, || {
                    let longer_ms = (at_us - latest) / 1_000;
                    format!("{message:?} of queue {} waits {longer_ms} ms longer after a restart", queue.0)
                })?;
            }
            let is_late = until.at_us < now.excused_from_us;
            hold(!is_late, Promise::Awake, || {
                let late_ms = (now.now_us - until.at_us) / 1_000;
                format!("{message:?} of queue {} waits for {late_ms} ms too long", queue.0)
            })?;
            waits.insert(wait, until);
        }
        self.waits = waits;
        Ok(())
    }
}

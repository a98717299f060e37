//! Messages that expire while they wait in runs: each run is looked through when its first one does, and what is over, or soon will be, is
//! brought into memory, where it has an alarm of its own. A run of which all is over goes as a whole, if nothing else is to be done with its messages.

use super::Queue;
use crate::command::Step;
use crate::deaths::DeathReason;
use crate::fact::Fact;
use crate::ids::Time;
use crate::message::Settled;
use crate::readers::Reader;
use crate::run::RunId;

/// A run is looked through for expired messages at most so many times between its first expiry and its last.
const LOOKS: u64 = 64;
/// And not again before so long, ms: what expires until then is brought in together. Most runs are of messages that live equally long, and
/// are over within that.
pub(super) const LOOKS_APART_MS: u64 = 2_000;

/// A run that is being looked through, a few messages a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waking {
    run: RunId,
    /// The ordinal to go on from.
    at: u32,
    pass: Pass,
}

/// A run is looked through twice: what is brought in together depends on when the last of it expires.
#[derive(Clone, Copy, Debug)]
enum Pass {
    /// The last of those that were looked at expires then: so many, of which some never do where it `keeps` any.
    Measure { last: Time, seen: u64, keeps: bool },
    /// What expires up to `soon` is brought in; the first of the others expires at `next`.
    Bring { soon: Time, next: Time },
}

impl Queue {
    /// When a run must be looked through.
    pub(crate) fn next_run_alarm(&self) -> Option<Time> {
        self.run_alarms.first().and_then(|(when, _)| when.some())
    }

    /// Brings back what has expired in runs, and what soon will; looks at no more messages than the step has room for.
    pub(super) fn wake_runs(&mut self, now: Time, step: &mut Step) {
        while step.room > 0 {
            // The run may be over, or have gone into another.
            let goes_on = self.waking.take().filter(|waking| self.runs.contains_key(&waking.run));
            let Some(waking) = goes_on.or_else(|| self.next_waking(now)) else { return };
            self.waking = self.wake_some(now, waking, step);
        }
    }

    fn next_waking(&self, now: Time) -> Option<Waking> {
        let (_, run) = self.run_alarms.first().copied().filter(|(when, _)| *when <= now)?;
        Some(Waking { run, at: 0, pass: Pass::Measure { last: now, seen: 0, keeps: false } })
    }

    /// Looks at some more messages of a run. Returns how to go on, unless it has come to the end.
    fn wake_some(&mut self, now: Time, waking: Waking, step: &mut Step) -> Option<Waking> {
        let Waking { run: id, at, pass } = waking;
        let backlog = self.backlog.clone();
        let some: Vec<_> = Reader::new(&*backlog, &self.runs[&id], at).take(step.room).collect();
        let is_over = some.len() < step.room;
        step.room -= some.len();
        let at = some.last().map_or(at, |(ordinal, _)| ordinal + 1);
        let expiries = some.iter().map(|(_, message)| message.expires);
        match pass {
            Pass::Measure { last, seen, keeps } => {
                let (seen, keeps) =
                    (seen + some.len() as u64, keeps || expiries.clone().any(|when| when == Time::NEVER));
                let last = expiries.filter(|when| *when != Time::NEVER).fold(last, Time::max);
                if !is_over {
                    return Some(Waking { run: id, at, pass: Pass::Measure { last, seen, keeps } });
                }
                if last <= now && !keeps && self.expire_run(id, seen, step) {
                    return None;
                }
                let apart = match self.settings.check_entire_queue_on_cleanup {
                    true => (last.since(now) / LOOKS).max(LOOKS_APART_MS),
                    false => last.since(now),
                };
                let pass = Pass::Bring { soon: now.after(apart), next: Time::NEVER };
                Some(Waking { run: id, at: 0, pass })
            }
            Pass::Bring { soon, next } => {
                let next = expiries.filter(|when| *when > soon).fold(next, Time::min);
                for (ordinal, message) in some.into_iter().filter(|(_, message)| message.expires <= soon) {
                    self.fetch(id, ordinal, message);
                }
                if !is_over {
                    return Some(Waking { run: id, at, pass: Pass::Bring { soon, next } });
                }
                if let Some(run) = self.runs.get_mut(&id) {
                    self.run_alarms.remove(&(run.expires, id));
                    run.expires = next;
                    self.run_alarms.insert((next, id));
                }
                None
            }
        }
    }

    /// Drops all that waits in a run of which so many messages were found to be over, if that is all, of one lane, and nobody wants them. False: it is not so.
    fn expire_run(&mut self, id: RunId, seen: u64, step: &mut Step) -> bool {
        let run = &self.runs[&id];
        let is_read = seen >= run.waiting() && run.is_untouched() && !run.is_mixed && self.groups.is_none();
        let is_dropped = !self.settings.evict_at_once && !self.settings.keeps(DeathReason::Expired);
        if !(is_read && is_dropped) {
            return false;
        }
        self.settle_run(id, Settled::Expired, step);
        step.facts.push(Fact::RunSettled { queue: self.id, run: id, how: Settled::Expired });
        true
    }
}

//! What happens by itself: time passes in the queues in which something is due, and queues come within their limits, a few messages a step.
//!
//! ```text
//!   schedule ── due ──▶ in_line ─▶ Queue::advance ─┬─▶ nothing more is due: it is scheduled again
//!                          ▲                       │
//!                          └── more than its share ┘
//! ```

use std::collections::BTreeMap;

use crate::broker::Broker;
use crate::command::Step;
use crate::history::End;
use crate::ids::{QueueId, Seq, Time};

impl Broker {
    /// Lets time pass: leases end, delayed messages come due, messages expire, pulls give up, and queues come within their limits. Does at
    /// most [`Options::step_max`](crate::Options::step_max) of it: then it is [late](Broker::is_late), and has more to do at once.
    pub fn tick(&mut self, now: Time, step: &mut Step) {
        self.now = self.now.max(now);
        step.room = self.room();
        while step.room > 0 && self.is_due() {
            self.advance(step);
        }
        self.is_late = self.is_due();
    }

    /// Lets time pass, unless it is late with that: then the next [`Broker::tick`] goes on, and nobody who asks for something pays for it.
    /// What is over is leased to nobody all the same.
    pub(crate) fn keep_up(&mut self, now: Time, step: &mut Step) {
        self.now = self.now.max(now);
        if !self.is_late && self.is_due() {
            self.tick(now, step);
        }
    }

    /// Whether more has come due than the last [`Broker::tick`] did.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// Whether messages that wait in segments are brought into memory to move to other lanes: not while memory is full.
    pub fn let_fetch(&mut self, fetches: bool) {
        if !std::mem::replace(&mut self.fetches, fetches) && fetches {
            self.resuming.begin();
        }
    }

    /// Has queues go on that may, as many as the step has room for.
    pub(crate) fn resume_some(&mut self, step: &mut Step) {
        let mut ids = Vec::new();
        while step.room > 0
            && let Some((id, _)) = self.resuming.next(&self.queues)
        {
            step.room -= 1;
            ids.push(*id);
        }
        self.dispatch_all(ids.into_iter(), step);
    }

    fn is_due(&self) -> bool {
        self.next_deadline().is_some_and(|when| when <= self.now)
    }

    /// Messages that a step may end or move without being asked for each.
    pub(crate) fn room(&self) -> usize {
        if self.options.step_max == 0 { usize::MAX } else { self.options.step_max }
    }

    /// Time passes in every queue that is due before anything moves or is leased, so that a dead letter of one finds in
    /// another nothing that is over. A queue in which more has come due than half of what the step has room for goes on after the others.
    fn advance(&mut self, step: &mut Step) {
        if !self.ruling.is_empty() {
            let left = step.room / 2;
            step.room -= left;
            self.rule_some(step);
            step.room += left;
        }
        if self.resuming.is_open() {
            let left = step.room / 2;
            step.room -= left;
            self.resume_some(step);
            step.room += left;
        }
        let now = self.now;
        let mut due: BTreeMap<QueueId, Vec<(Seq, End)>> = BTreeMap::new();
        for _ in 0..step.room {
            let Some(&(when, id)) = self.schedule.first().filter(|(when, _)| *when <= now) else { break };
            self.schedule.remove(&(when, id));
            let queue = self.queues.get_mut(&id).expect("what is scheduled is there");
            (queue.scheduled, queue.is_in_line) = (None, true);
            self.in_line.push_back(id);
        }
        while step.room > 0
            && let Some(id) = self.in_line.pop_front()
        {
            self.rule_late(id, step);
            // It may be gone by now.
            let Some(queue) = self.queues.get_mut(&id) else { continue };
            let left = step.room / 2;
            step.room -= left;
            // By queue, and not by when: for a run that is only a bound, and nothing may depend on what is in memory.
            due.entry(id).or_default().extend(queue.advance(
                now,
                self.fetches,
                &self.seats,
                &mut self.work_notes,
                step,
            ));
            step.room += left;
            queue.is_in_line = queue.is_late(now, self.fetches);
            if queue.is_in_line {
                self.in_line.push_back(id);
            }
        }
        let mut shared = Vec::new();
        // Before anything moves: nothing dies in a queue that is gone, or moves into it.
        due.retain(|id, _| {
            let is_over = self.queue_ref(*id).expires().is_some_and(|when| when <= now);
            if is_over {
                shared.extend(self.end_queue(*id, step));
            }
            !is_over
        });
        for (id, dying) in &mut due {
            self.end_all(*id, std::mem::take(dying), step);
        }
        self.dispatch_all(due.into_keys().chain(shared), step);
    }

    /// When [`Broker::tick`] has something to do at the latest. It may find that there is nothing yet.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        if self.in_line.is_empty() && self.ruling.is_empty() && !self.resuming.is_open() {
            self.schedule.first().map(|(when, _)| *when)
        } else {
            Some(self.now)
        }
    }
}

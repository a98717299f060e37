//! The calm, for endpoints: receivers take everything, so everything arrives, and then the endpoints go.

use overtake_engine::core::Request;
use overtake_lane::{Command, Message, QueueId, State, Time, VhostId};

use super::{Endpoint, Open};
use crate::check::cap::may_evict;
use crate::failure::{Checked, Promise, hold};
use crate::world::{Event, World};

/// Longer than the budgets of days make the last message wait, µs.
const PATIENCE_US: u64 = 2_000 * 86_400_000_000;

/// Commits that take as long as a timeout within which nobody can be sure to settle.
const HOPELESS: u64 = 3;

impl World {
    /// Everything that waits for an endpoint arrives; then the endpoint stops, and nothing is left in its hand.
    pub(crate) fn forward_all(&mut self) -> Checked {
        if self.plan.endpoints == 0 {
            return Ok(());
        }
        // So that there is a next event, however long the next day takes to come.
        self.at(PATIENCE_US, Event::Relief);
        for at in 0..self.endpoints.all.len() {
            self.wake_endpoint(at, 1);
        }
        // An endpoint without a queue would look for its queue again and again until the others are done, which may take days.
        for at in 0..self.endpoints.all.len() {
            let one = self.endpoints.all[at].as_ref().expect("nobody looks after it");
            if self.audit.named(VhostId::DEFAULT, &one.queue).is_none() {
                self.retire(at)?;
            }
        }
        let until = self.now_us + PATIENCE_US - 1;
        let waiting = self.waiting();
        while let Some(why) = self.is_forwarding() {
            hold(self.now_us < until, Promise::Alive, || format!("in the calm {why}"))?;
            self.goes_on_in_calm()?;
        }
        for (at, queue, message) in waiting {
            self.check_arrived(at, queue, &message)?;
        }
        for at in 0..self.endpoints.all.len() {
            self.retire(at)?;
        }
        Ok(())
    }

    /// What is there to be forwarded now.
    fn waiting(&mut self) -> Vec<(usize, QueueId, Message)> {
        let mut waiting = Vec::new();
        for (at, one) in self.endpoints.all.iter_mut().enumerate() {
            let one = one.as_mut().expect("nobody looks after it");
            one.ledger.begin_calm();
            for open in one.running.iter().flat_map(|running| running.open.values()) {
                if let Open::Settle { receipt, outcome } = open {
                    one.ledger.settles(receipt, *outcome, None);
                }
            }
            let Some((queue, seen)) = self.audit.named(VhostId::DEFAULT, &one.queue) else { continue };
            // A policy of just now may have some of them evicted, step by step.
            if may_evict(&self.book, queue, seen) {
                continue;
            }
            // What is lent may die with that lease, by what the queue said when it was.
            let waits = |message: &&Message| {
                matches!(message.state, State::Ready | State::Delayed { .. })
                    && !self.book.holds.contains_key(&(queue, message.seq))
            };
            let waits = seen.messages.iter().filter(waits);
            waiting.extend(waits.map(|message| (at, queue, message.clone())));
        }
        waiting
    }

    fn check_arrived(&self, at: usize, queue: QueueId, message: &Message) -> Checked {
        let one = self.endpoints.all[at].as_ref().expect("nobody looks after it");
        let is_over = message.expires <= self.true_clock();
        let stands = self.audit.find(queue, message.seq).is_some();
        // Work that takes too long is over, too, and so is what was held for too long too often; and a newer value may have come while an older one was lent.
        let is_bounded = self.book.settings.get(&queue).is_none_or(|settings| {
            let is_given_up = settings.consumer_timeout_ms > 0 && settings.delivery_limit > 0;
            settings.run_timeout_ms > 0 || is_given_up || settings.last_value.is_some()
        });
        let arrived = one.ledger.has(queue, message.seq);
        hold(arrived || is_over || stands || is_bounded, Promise::Kept, || {
            format!("{message:?} left {} and never came to its receiver", one.queue)
        })
    }

    /// Why an endpoint is not done.
    fn is_forwarding(&self) -> Option<String> {
        let mut others = self.endpoints.all.iter().flatten().filter(|one| !one.is_retired);
        others.find_map(|one| self.is_busy(one))
    }

    fn is_busy(&self, one: &Endpoint) -> Option<String> {
        let Some(running) = &one.running else { return Some(format!("{} does not run", one.queue)) };
        if let Some(receipt) = running.held.keys().next() {
            return Some(format!("{} holds {receipt}", one.queue));
        }
        let is_open = |open: &Open| !matches!(open, Open::Lease { is_given_up: false, .. });
        if !running.heard.is_empty() || running.open.values().any(is_open) {
            return Some(format!("{} waits for {:?}", one.queue, running.open));
        }
        let (queue, seen) = self.audit.named(VhostId::DEFAULT, &one.queue)?;
        // What is taken back before a batch with its lease is on the disk arrives nowhere, however often it is leased.
        let timeout_ms = self.book.settings.get(&queue).map_or(0, |settings| settings.consumer_timeout_ms);
        if timeout_ms > 0 && timeout_ms * 1_000 <= HOPELESS * self.plan.commit_us {
            return None;
        }
        // What somebody else took for ever, and may hold back others: only an administrator can end that.
        let is_taken = |message: &Message| matches!(message.state, State::Leased { deadline, .. } if deadline == Time::NEVER);
        if seen.messages.iter().any(is_taken) {
            return None;
        }
        let waits = seen.messages.iter().find(|message| message.state != State::Dead)?;
        Some(format!("{} has {waits:?}", one.queue))
    }

    /// Lets the next thing happen, with an engine that writes down what there is.
    fn goes_on_in_calm(&mut self) -> Checked {
        if let Some(life) = &self.life {
            if life.core.is_held() {
                self.tally.held += 1;
                self.disk.set_capacity(None);
            }
            if !self.inbox.is_empty() || !life.flight.is_empty() || life.durable != life.core.tail() {
                self.turn_soon(1_000);
            }
        }
        self.next_event()
    }

    /// An endpoint stops: what is under way is finished, and it goes.
    fn retire(&mut self, at: usize) -> Checked {
        let one = self.endpoints.all[at].as_mut().expect("nobody looks after it");
        one.is_retired = true;
        let Some(running) = one.running.as_mut() else { return Ok(()) };
        let session = running.session;
        running.forwarder.stop();
        self.wake_endpoint(at, 1);
        let until = self.now_us + 60_000_000;
        self.at(60_000_000, Event::Relief);
        while self.is_stopping(at) {
            hold(self.now_us < until, Promise::Alive, || {
                format!("{:?} does not stop", self.endpoints.all[at])
            })?;
            self.goes_on_in_calm()?;
        }
        let of_it = self.book.of_session(session);
        let leased =
            self.book.holds.values().find(|hold| hold.consumer.is_some_and(|id| of_it.contains(&id)));
        hold(leased.is_none(), Promise::Alive, || format!("{leased:?} is left by an endpoint that stopped"))?;
        if let Some(mut one) = self.endpoints.all[at].take() {
            if one.running.is_some() {
                self.ask_for(&mut one, Open::Other, Request::Do(Command::EndSession { session }));
                one.running = None;
            }
            self.endpoints.all[at] = Some(one);
        }
        Ok(())
    }

    fn is_stopping(&self, at: usize) -> bool {
        let running = self.endpoints.all[at].as_ref().and_then(|one| one.running.as_ref());
        running.is_some_and(|running| !running.forwarder.is_at_rest() || !running.open.is_empty())
    }
}

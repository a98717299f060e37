//! The calm: no more faults, everything drains, and nothing is left but what must be.

use std::collections::BTreeSet;
use std::sync::Arc;

use overtake_engine::core::Request;
use overtake_engine::{Change, LeaseRequest, Select};
use overtake_lane::{Asker, Command, LeaseTerm, Outcome, Settings, State, Status, VhostId};

use crate::book::Taker;
use crate::check::bounded;
use crate::client::admin::change;
use crate::failure::{Checked, Promise, broken, hold};
use crate::step::Act;
use crate::world::{Event, World};

/// Rounds of draining without any progress after which a queue that is not empty never will be.
const ROUNDS_MAX: u32 = 100;
/// Turns in a row after which an engine that says that it is late never catches up.
const LATE_TURNS_MAX: u32 = 100_000;
/// Dead letters that are a flood. A calm begins with some hundred messages at most.
const FLOOD: usize = 500;

impl World {
    /// Ends the storm and drains every queue.
    pub(crate) fn calm(&mut self) -> Checked {
        self.tell(|| "the calm".to_owned());
        self.is_calm = true;
        self.disk.set_capacity(None);
        self.revive()?;
        self.hush()?;
        self.resume()?;
        if self.plan.is_full_in_calm {
            // Nothing breaks any more, but the disk stays full: consuming must be enough to make room.
            self.disk.set_capacity(Some(self.disk.used()));
        }
        self.let_consumers_go()?;
        self.forward_all()?;
        let (mut round, mut fewest, mut since) = (0, usize::MAX, 0);
        while since < ROUNDS_MAX {
            if self.audit.len() == 0 {
                return self.check_empty();
            }
            if self.life.as_ref().is_some_and(|life| life.core.is_held()) {
                self.tally.held += 1;
                self.disk.set_capacity(None);
                self.pass(5_000)?;
            }
            self.drain_once(round)?;
            (round, since) = (round + 1, since + 1);
            if self.audit.len() < fewest {
                (fewest, since) = (self.audit.len(), 0);
            }
        }
        let first = self.audit.messages().next();
        broken(Promise::Alive, format!("{} messages do not drain, the first is {first:?}", self.audit.len()))
    }

    /// Brings the engine up, with nothing broken that could bring it down.
    fn revive(&mut self) -> Checked {
        self.forget_hook();
        self.at(60_000_000, Event::Relief);
        let until = self.now_us + 30_000_000;
        self.settle_down(until)?;
        hold(self.life.is_some(), Promise::Alive, || "the engine does not come up in the calm".to_owned())
    }

    /// Lets events happen until there is nothing on its way, or until then. An engine that is late catches up first: what comes due and what is
    /// freed a few pieces at a time takes as many turns as it needs.
    fn settle_down(&mut self, until: u64) -> Checked {
        let mut late = 0;
        loop {
            self.end_flood()?;
            let is_late = self.life.as_ref().is_some_and(|life| life.core.is_late());
            late = if is_late { late + 1 } else { 0 };
            hold(late < LATE_TURNS_MAX, Promise::Alive, || {
                "what the engine is late with has no end in the calm".to_owned()
            })?;
            let busy = match &self.life {
                None => true,
                Some(life) => {
                    !self.inbox.is_empty()
                        || !life.flight.is_empty()
                        || !life.jobs.is_empty()
                        || life.core.has_more_to_put_back()
                        || life.core.is_scanning()
                        || life.core.is_clearing()
                        || is_late
                        || life.durable != life.core.tail()
                }
            };
            if !busy || self.now_us >= until {
                return Ok(());
            }
            if self.life.is_some() {
                self.turn_soon(1_000);
            }
            self.next_event()?;
        }
    }

    /// Ends a world of queues that all dead-letter to an exchange which leads to all of them: each copy dies once in each queue, so a few of
    /// twenty queues have more copies to come than anybody can wait for. No promise is broken by that, and none is looked at any more.
    fn end_flood(&mut self) -> Checked {
        let dead_letters = || {
            self.audit
                .messages()
                .filter(|(_, message)| message.deaths().is_some_and(|deaths| deaths.iter().len() > 1))
                .count()
        };
        let is_flooded = self.audit.len() > FLOOD && dead_letters() > FLOOD;
        self.tally.floods = u64::from(is_flooded);
        hold(!is_flooded, Promise::Alive, || {
            format!("{} messages, and dead letters make more", self.audit.len())
        })
    }

    /// Lets time pass.
    fn pass(&mut self, us: u64) -> Checked {
        let until = self.now_us + us;
        self.at(us, Event::Relief);
        while self.now_us < until {
            self.next_event()?;
        }
        Ok(())
    }

    /// Asks, and waits until everything is durable.
    ///
    /// The sync that was to fail may do so here. The engine then starts again without the request, which is asked once more.
    fn do_now(&mut self, request: Request) -> Checked {
        let starts = self.tally.starts;
        self.ask_and_wait(request.clone())?;
        if self.tally.starts != starts {
            self.ask_and_wait(request)?;
        }
        Ok(())
    }

    fn ask_and_wait(&mut self, request: Request) -> Checked {
        self.clients[0].holds.clear();
        self.ask(0, request);
        let until = self.now_us + 60_000_000;
        self.settle_down(until)?;
        hold(self.inbox.is_empty() && self.life.is_some(), Promise::Alive, || {
            "the engine does not answer in the calm".to_owned()
        })
    }

    /// [`World::do_now`] in a virtual host.
    fn do_at(&mut self, vhost: VhostId, request: Request) -> Checked {
        self.do_now(Request::By { asker: Asker::in_vhost(vhost), request: Box::new(request) })
    }

    fn let_consumers_go(&mut self) -> Checked {
        // An endpoint may connect again meanwhile.
        let others = |world: &Self, waits: bool| -> Vec<_> {
            let endpoints = world.endpoint_sessions();
            let is_of_endpoint = |taker: &Taker| taker.session.is_some_and(|id| endpoints.contains(&id));
            let takers = world.book.takers.iter().filter(|(_, taker)| !is_of_endpoint(taker));
            takers.filter(|(_, taker)| !waits || taker.window.is_none()).map(|(id, _)| *id).collect()
        };
        let waits = others(self, true);
        for consumer in waits {
            self.do_now(Request::GiveUp { consumer })?;
        }
        let stay = others(self, false);
        for consumer in stay {
            self.do_now(Request::Do(Command::Cancel { consumer }))?;
        }
        let owners = self.book.identities.values().filter_map(|(_, owner)| *owner);
        // What was on its way to somebody who gave it up is held as long as the session.
        let open = self.clients.iter_mut().filter_map(|client| client.session.take());
        let sessions: BTreeSet<_> = owners.chain(open).collect();
        for session in sessions {
            self.do_now(Request::Do(Command::EndSession { session }))?;
        }
        for client in &mut self.clients {
            client.disconnected();
        }
        Ok(())
    }

    /// Takes what there is from each queue and settles it; then lets time pass to the next deadline.
    fn drain_once(&mut self, round: u32) -> Checked {
        let queues = self.audit.queues.values();
        let names: Vec<(VhostId, Arc<str>)> =
            queues.map(|seen| (seen.vhost, Arc::clone(&seen.name))).collect();
        for (vhost, queue) in names {
            self.drain(vhost, queue, round)?;
        }
        let life = self.life.as_ref().expect("it was revived");
        if let Some(deadline) = life.core.next_deadline() {
            let wait_ms = deadline.since(self.true_clock()).min(100 * 3_600_000);
            self.skipped_us += wait_ms * 1_000;
            self.excused_until = self.excused_until.max(self.now_us);
            self.alarm_at = None;
            self.step(Act::Tick)?;
            self.turn_soon(1);
            let until = self.now_us + 30_000_000;
            self.settle_down(until)?;
        }
        Ok(())
    }

    fn drain(&mut self, vhost: VhostId, queue: Arc<str>, round: u32) -> Checked {
        if round == 3 {
            self.forgo_history(vhost, &queue)?;
        }
        let consumer = overtake_lane::ConsumerId(u64::MAX - u64::from(round) * 1_000 - self.next_ticket);
        let term = LeaseTerm::Ms(3_600_000);
        let lease = LeaseRequest { term, ..LeaseRequest::new(Arc::clone(&queue), 1_000) };
        self.do_at(vhost, Request::Lease { consumer, lease })?;
        let receipts = std::mem::take(&mut self.clients[0].holds);
        if !receipts.is_empty() {
            self.do_at(vhost, Request::Do(Command::Settle { receipts, outcome: Outcome::Ack }))?;
        }
        let Some((_, seen)) = self.audit.named(vhost, &queue) else { return Ok(()) };
        let has_dead = seen.messages.iter().any(|message| message.state == State::Dead);
        let forgotten = seen.messages.iter().find_map(|message| match message.state {
            State::Leased { deadline, .. } if deadline.some().is_none() => Some(message.seq),
            _ => None,
        });
        if has_dead && round < 3 {
            let (queue, select) = (Arc::clone(&queue), Select::Matching(Default::default()));
            self.do_at(vhost, change(queue, select, Change::Replay(None)))?;
        } else if has_dead {
            let (queue, status) = (Arc::clone(&queue), Some(Status::Dead));
            self.do_at(vhost, Request::Do(Command::Purge { queue, status, expect: None }))?;
        }
        // It may be gone with its queue by now.
        if let Some(id) = forgotten.and_then(|seq| self.public_id(vhost, &queue, seq)) {
            // A lease without an end whose receipt was lost: only an administrator can end it.
            self.do_at(vhost, change(queue, Select::Id(id), Change::Remove))?;
        }
        Ok(())
    }

    /// Queues that are paused are told to go on, while there is room to remember it.
    fn resume(&mut self) -> Checked {
        let paused = self.book.own.values().filter(|own| own.settings.paused);
        let paused = paused.map(|own| (own.vhost, Arc::clone(&own.name), own.settings.clone()));
        for (vhost, queue, settings) in paused.collect::<Vec<_>>() {
            let settings = Settings { paused: false, ..settings };
            self.do_at(vhost, Request::Do(Command::declare(queue, Box::new(settings))))?;
        }
        Ok(())
    }

    /// What is done in one queue, recorded in another, and comes back from there when its time is over, would go round for ever.
    fn forgo_history(&mut self, vhost: VhostId, queue: &Arc<str>) -> Checked {
        let mut all = self.book.own.values().filter(|own| own.vhost == vhost && own.name == *queue);
        let Some(own) = all.find(|own| own.settings.history.is_some()) else { return Ok(()) };
        let settings = Settings { history: None, ..own.settings.clone() };
        self.do_at(vhost, Request::Do(Command::declare(Arc::clone(queue), Box::new(settings))))
    }

    fn public_id(&self, vhost: VhostId, queue: &str, seq: overtake_lane::Seq) -> Option<String> {
        let (_, seen) = self.audit.named(vhost, queue)?;
        Some(overtake_lane::public_id(seen.find(seq)?.id(), seq))
    }

    /// Nothing is left: not in memory, not in the journal, not in the store after one more start.
    fn check_empty(&mut self) -> Checked {
        for _ in 0..20 {
            self.step(Act::House)?;
            self.turn_soon(1);
            self.pass(5_000)?;
        }
        let until = self.now_us + 60_000_000;
        self.settle_down(until)?;
        let life = self.life.as_ref().expect("it was revived");
        bounded::check_memory(&self.audit, &life.core)?;
        bounded::check_segments(&self.disk, &life.core)?;
        let topology = life.core.broker().topology_len() as u64;
        bounded::check_journal(
            &self.audit,
            life.core.broker().history_bytes(),
            topology,
            0,
            life.core.journal_bytes(),
            self.plan.segment_bytes,
            3,
        )?;
        bounded::check_house(&self.tally, self.plan.segment_bytes, self.live_most)?;
        hold(life.core.broker().outstanding() == 0, Promise::Conserved, || {
            "leases are out of empty queues".to_owned()
        })?;
        self.stop()?;
        self.start()?;
        hold(self.audit.len() == 0, Promise::Gone, || {
            format!("{} messages came back after the calm", self.audit.len())
        })
    }
}

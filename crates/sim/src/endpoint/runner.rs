//! Carries out what a forwarder decides, as the runner of the connectors does: as a session of its own, and in order.

use overtake_engine::core::{Answer, Request};
use overtake_engine::{LeaseRequest, Refused};
use overtake_forward::{Action, Ask, Item};
use overtake_lane::{Asker, Command, LeaseTerm, Outcome, Receipt, Refusal, Time, VhostId};

use super::line::{Link, Sending};
use super::{Endpoint, Held, Open};
use crate::failure::{Checked, Promise, hold};
use crate::sabotage::Sabotage;
use crate::world::{Who, World};

/// A lease that waits is asked for anew after so long, ms.
const WAIT_MS: u64 = 3_600_000;

impl World {
    // ---- what is to be done ----

    /// Does what there is to do until there is nothing.
    pub(super) fn carry_out(&mut self, one: &mut Endpoint) -> Checked {
        loop {
            let now = self.clock();
            let Some(running) = &mut one.running else { return Ok(()) };
            let Some(action) = running.forwarder.poll(now) else { return Ok(()) };
            match action {
                Action::Connect { line } => self.connects(one, line),
                Action::Disconnect { line } => {
                    self.trouble_at(one, line);
                    one.running().lines[line].link = Link::Down;
                }
                Action::Lease { line, ask } => self.lease(one, line, ask)?,
                Action::GiveUp { line } => self.give_up(one, line)?,
                Action::Send { line, batch } => self.send(one, line, batch)?,
                Action::Halt { line } => self.halt(one, line),
                Action::Settle { receipt, outcome, why: _ } => self.ends_lease(one, receipt, outcome)?,
            }
        }
    }

    /// Asks as the session of an endpoint.
    pub(super) fn ask_for(&mut self, one: &mut Endpoint, open: Open, request: Request) -> u64 {
        let running = one.running();
        running.next_token += 1;
        let token = running.next_token;
        running.open.insert(token, open);
        let asker = Asker { session: Some(running.session), vhost: VhostId::DEFAULT };
        let who = Who::Session(running.session, Some(token));
        self.ask_as(who, Request::By { asker, request: Box::new(request) });
        token
    }

    fn lease(&mut self, one: &mut Endpoint, at: usize, ask: Ask) -> Checked {
        let line = &one.running().lines[at];
        hold(line.asked.is_none() && matches!(line.link, Link::Up(_)), Promise::Alive, || {
            format!("line {at} asks for a lease while it waits for one, or cannot send")
        })?;
        let is_sending = matches!(line.link, Link::Up(Some(_)));
        if is_sending && self.config.sabotage == Some(Sabotage::LooksAway) {
            one.running().lines[at].asked = Some(None);
            return Ok(());
        }
        let line = &mut one.running().lines[at];
        if !line.giving_up.is_empty() {
            line.asked = Some(None);
            line.wanted = Some(ask);
            return Ok(());
        }
        let consumer = self.new_consumer();
        let lease = LeaseRequest {
            max_bytes: ask.max_bytes,
            wait_ms: WAIT_MS,
            term: LeaseTerm::Session,
            lanes: ask.lanes,
            ..LeaseRequest::new(one.queue.clone(), ask.max)
        };
        let open = Open::Lease { line: at, consumer, is_given_up: false };
        let token = self.ask_for(one, open, Request::Lease { consumer, lease });
        one.running().lines[at].asked = Some(Some(token));
        Ok(())
    }

    fn give_up(&mut self, one: &mut Endpoint, at: usize) -> Checked {
        let running = one.running();
        let asked = running.lines[at].asked.take();
        hold(asked.is_some(), Promise::Alive, || format!("line {at} gives up what it did not ask for"))?;
        running.lines[at].wanted = None;
        let Some(lease) = asked.flatten() else { return Ok(()) };
        if let Some(Open::Lease { consumer, is_given_up, .. }) = running.open.get_mut(&lease) {
            *is_given_up = true;
            let consumer = *consumer;
            running.lines[at].giving_up.insert(lease);
            self.ask_for(one, Open::GiveUp, Request::GiveUp { consumer });
        }
        Ok(())
    }

    fn send(&mut self, one: &mut Endpoint, at: usize, mut batch: Vec<Receipt>) -> Checked {
        let running = one.running();
        let is_free = matches!(running.lines[at].link, Link::Up(None));
        let is_held = batch.iter().all(|receipt| running.held.contains_key(receipt));
        hold(is_free && is_held && !batch.is_empty(), Promise::Alive, || {
            format!("line {at} is to send {batch:?}, which it cannot")
        })?;
        if self.config.sabotage == Some(Sabotage::SendsBackwards) {
            batch.reverse();
        }
        let level = batch.iter().map(|receipt| running.held[receipt].message.message.level).max();
        let lane = running.held[&batch[0]].message.message.lane.clone();
        let sending = Sending::new(batch, lane, level.expect("it is not empty"));
        running.lines[at].link = Link::Up(Some(sending));
        self.sends_next(one, at)
    }

    fn halt(&mut self, one: &mut Endpoint, at: usize) {
        self.count_endpoint("halted");
        if let Link::Up(Some(sending)) = &mut one.running().lines[at].link
            && self.config.sabotage != Some(Sabotage::IgnoresHalt)
        {
            sending.is_halted = true;
        }
    }

    fn ends_lease(&mut self, one: &mut Endpoint, receipt: Receipt, outcome: Outcome) -> Checked {
        let held = one.running().held.remove(&receipt);
        hold(held.is_some(), Promise::OneHolder, || format!("{receipt} is settled and was not held"))?;
        one.ledger.settles(&receipt, outcome, held.map(|held| held.message.message.lane));
        let is_dropped = match self.config.sabotage {
            Some(Sabotage::DropsSettles) => outcome == Outcome::Ack && receipt.seq.0.is_multiple_of(5),
            Some(Sabotage::LosesPutBacks) => outcome == Outcome::Release,
            _ => false,
        };
        if !is_dropped {
            self.asks_to_settle(one, receipt, outcome);
        }
        Ok(())
    }

    fn asks_to_settle(&mut self, one: &mut Endpoint, receipt: Receipt, outcome: Outcome) -> u64 {
        let settle = Request::Do(Command::Settle { receipts: vec![receipt], outcome });
        self.ask_for(one, Open::Settle { receipt, outcome }, settle)
    }

    /// What was given up has come to its end, but for these; whoever waited for that asks now.
    fn has_given_up(&mut self, one: &mut Endpoint, token: u64, but: Vec<u64>) -> Checked {
        let mut lines = one.running().lines.iter_mut().enumerate();
        let found = lines.find(|(_, line)| line.giving_up.contains(&token));
        let Some((at, line)) = found else { return Ok(()) };
        line.giving_up.remove(&token);
        line.giving_up.extend(but);
        match line.wanted.take_if(|_| line.giving_up.is_empty()) {
            Some(ask) => {
                line.asked = None;
                self.lease(one, at, ask)
            }
            None => Ok(()),
        }
    }

    // ---- what came of it ----

    /// An answer has come.
    pub(super) fn hear_endpoint(
        &mut self,
        one: &mut Endpoint,
        token: u64,
        result: Result<Answer, Refused>,
    ) -> Checked {
        match one.running().open.remove(&token) {
            Some(Open::Lease { is_given_up: true, .. }) => {
                let mut back = Vec::new();
                if let Ok(Answer::Leased(messages)) = result {
                    for message in messages {
                        self.count_endpoint("leased too late");
                        let lane = Some(message.message.lane.clone());
                        one.ledger.settles(&message.receipt, Outcome::Release, lane);
                        back.push(self.asks_to_settle(one, message.receipt, Outcome::Release));
                    }
                }
                self.has_given_up(one, token, back)?;
            }
            Some(Open::Lease { line, .. }) => self.leased(one, line, result),
            Some(Open::Settle { receipt, outcome }) => {
                let refusal = match &result {
                    Ok(Answer::Each(each)) => each.iter().find_map(|one| one.err()),
                    Ok(_) => None,
                    Err(refused) => Some(refused.refusal),
                };
                if refusal == Some(Refusal::StoreFull) {
                    // Nothing is settled while the disk is full but what makes room; it is said again until it is.
                    self.count_endpoint("not settled yet");
                    let again = self.asks_to_settle(one, receipt, outcome);
                    return self.has_given_up(one, token, vec![again]);
                }
                self.has_given_up(one, token, Vec::new())?;
                match outcome {
                    Outcome::Ack => one.ledger.settled(&receipt, refusal.is_none())?,
                    Outcome::Release if refusal.is_some() => one.ledger.was_over(&receipt),
                    _ => {}
                }
            }
            // What was given up is answered all the same, maybe later, and maybe with messages.
            Some(Open::GiveUp | Open::Other) | None => {}
        }
        Ok(())
    }

    fn leased(&mut self, one: &mut Endpoint, at: usize, result: Result<Answer, Refused>) {
        let now = self.clock();
        let running = one.running();
        running.lines[at].asked = None;
        let messages = match result {
            Ok(Answer::Leased(messages)) => messages,
            Ok(_) => Vec::new(),
            Err(refused) => {
                running.forwarder.not_leased(now, at, refused.refusal.code().into());
                return;
            }
        };
        let item = |message: &overtake_engine::LeasedMessage| Item {
            receipt: message.receipt,
            lane: message.message.lane.clone(),
            level: message.message.level,
            bytes: message.content.size() as u64,
            expires: message.message.expires.unwrap_or(Time::NEVER),
            count: message.message.count,
        };
        let items = messages.iter().map(item).collect();
        for message in messages {
            let nth = one.ledger.next_nth();
            let held = Held { message, line: at, nth, is_begun: false };
            one.running().held.insert(held.message.receipt, held);
        }
        one.running().forwarder.leased(now, at, items);
    }
}

//! Those who take messages: by pulls or by staying; settling, forgetting, settling twice.

use overtake_engine::core::Request;
use overtake_engine::{ConsumeRequest, LeaseRequest};
use overtake_lane::{Command, ConsumerId, LeaseTerm, Outcome, Priority, Receipt, UrgentCredit};

use super::Manners;
use crate::draw;
use crate::rng::Rng;
use crate::world::World;

impl World {
    pub(super) fn puller(&mut self, at: usize) {
        if let Some((_, consumer)) = self.clients[at].waits {
            if self.rng().once_in(12) {
                self.clients[at].waits = None;
                self.asks(at, Request::GiveUp { consumer });
            }
            return;
        }
        if !self.clients[at].holds.is_empty() && self.rng().below(3) < 2 {
            return self.settles(at);
        }
        let consumer = self.new_consumer();
        let queue = self.some_queue();
        let rng = self.rng();
        let max = rng.one_of(&[1, 1, 1, 3, 10, 65_535]);
        let wait_ms = rng.one_of(&[0, 0, 20, 300, 5_000]);
        let ms = rng.one_of(&[None, None, Some(30), Some(200), Some(2_000), Some(0)]);
        let term = ms.map_or(LeaseTerm::OfQueue, LeaseTerm::Ms);
        let lease = LeaseRequest { wait_ms, term, ..LeaseRequest::new(queue, max) };
        let ticket = self.asks(at, Request::Lease { consumer, lease });
        if self.asked.contains_key(&ticket) {
            self.clients[at].waits = Some((ticket, consumer));
        }
    }

    pub(crate) fn new_consumer(&mut self) -> ConsumerId {
        self.next_consumer += 1;
        ConsumerId(self.next_consumer)
    }

    pub(super) fn consumer(&mut self, at: usize) {
        let Some(consumer) = self.clients[at].consumer else { return self.consumes(at) };
        if self.rng().once_in(40) {
            self.clients[at].disconnected();
            self.asks(at, Request::Do(Command::Cancel { consumer }));
            return;
        }
        self.settles(at);
    }

    fn consumes(&mut self, at: usize) {
        let consumer = self.new_consumer();
        let queue = self.some_queue();
        let rng = self.rng();
        let urgent = rng
            .once_in(3)
            .then(|| UrgentCredit { at: Priority(rng.below(10) as i32), extra: rng.within(1, 3) as u32 });
        let consume = ConsumeRequest {
            window: rng.one_of(&[None, Some(1), Some(2), Some(5), Some(65_535)]),
            urgent,
            priority: rng.one_of(&[0, 0, 1, -1]),
            ..ConsumeRequest::new(queue)
        };
        if self.life.is_some() {
            self.clients[at].consumer = Some(consumer);
            let request = self.as_connected(at, Request::Consume { consumer, consume });
            self.asks(at, request);
        }
    }

    /// Settles some of what it holds, in its manner.
    fn settles(&mut self, at: usize) {
        let manners = self.clients[at].manners;
        let rng = &mut self.chance.workload;
        let idles = match manners {
            Manners::Good | Manners::Nacks => false,
            Manners::Slow => !rng.once_in(5),
            Manners::Dead => !rng.once_in(40),
        };
        let client = &mut self.clients[at];
        if idles {
            // What it forgets comes back to others, sooner or later.
            if rng.once_in(10) && client.consumer.is_none() {
                client.holds.clear();
            }
            return;
        }
        if !client.old.is_empty() && rng.once_in(12) {
            let receipts = vec![rng.one_of(&client.old)];
            self.asks(at, Request::Do(Command::Settle { receipts, outcome: Outcome::Ack }));
            return;
        }
        if client.holds.is_empty() {
            return;
        }
        if rng.once_in(8) {
            let receipts = vec![rng.one_of(&client.holds)];
            let visibility_ms = rng.one_of(&[1, 50, 500]);
            self.asks(at, Request::Do(Command::Extend { receipts, visibility_ms }));
            return;
        }
        let receipts = some_of(rng, &mut client.holds);
        client.old.extend(receipts.iter().take(2));
        let outcome = outcome(rng, manners);
        if let ([receipt], true) = (&receipts[..], self.plan.has_work && self.chance.work.once_in(2)) {
            let (receipt, report) = (*receipt, Box::new(draw::report(&mut self.chance.work)));
            // No further draw: the seeds that are kept stay what they are.
            let took_too_long = outcome == Outcome::Reject && report.exit_code.is_none();
            let outcome = if took_too_long { Outcome::Timeout } else { outcome };
            self.asks(at, Request::Do(Command::Finish { receipt, outcome, report }));
            return;
        }
        let rng = &mut self.chance.workload;
        if rng.once_in(6) {
            let settlements = receipts.into_iter().map(|receipt| (receipt, outcome)).collect();
            let messages = if self.rng().once_in(4) { Vec::new() } else { self.new_messages() };
            self.asks(at, Request::Publish { messages, settlements });
        } else {
            self.asks(at, Request::Do(Command::Settle { receipts, outcome }));
        }
    }
}

/// Takes some out, the first, or all.
fn some_of(rng: &mut Rng, holds: &mut Vec<Receipt>) -> Vec<Receipt> {
    let count = match rng.below(3) {
        0 => holds.len(),
        _ => rng.within(1, holds.len() as u64) as usize,
    };
    let from = rng.below((holds.len() - count + 1) as u64) as usize;
    let mut taken: Vec<Receipt> = holds.drain(from..from + count).collect();
    if rng.once_in(15) {
        taken.push(taken[0]);
    }
    taken
}

fn outcome(rng: &mut Rng, manners: Manners) -> Outcome {
    let bad = [
        Outcome::Nack { delay_ms: None },
        Outcome::Nack { delay_ms: Some(0) },
        Outcome::Nack { delay_ms: Some(40) },
        Outcome::Release,
        Outcome::Reject,
    ];
    let mostly_fails = manners == Manners::Nacks;
    if rng.below(10) < if mostly_fails { 8 } else { 3 } { rng.one_of(&bad) } else { Outcome::Ack }
}

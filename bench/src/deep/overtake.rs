//! The engine in this process: calls are answered after their `fdatasync`, several are in flight.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use overtake_engine::{Content, Engine, LeaseRequest, LocalEngine, NewMessage, Target};
use overtake_lane::{Outcome, Receipt, Scheme, Settings};
use tokio::runtime::{Builder, Runtime};

use super::queue::{Leased, Message, MinimalQueue};
use super::work::{BATCH, UNCONFIRMED_MAX};

const QUEUE: &str = "deep";

pub(super) struct Overtake {
    engine: LocalEngine,
    runtime: Runtime,
    queue: Arc<str>,
    in_flight: VecDeque<InFlight>,
}

/// An answer that is on its way.
type InFlight = Pin<Box<dyn Future<Output = ()>>>;

impl Overtake {
    /// Sends it now, and waits for the oldest answer where too many are on their way.
    fn send(&mut self, mut call: InFlight) {
        if self.in_flight.len() >= UNCONFIRMED_MAX / BATCH {
            let oldest = self.in_flight.pop_front().expect("some are in flight");
            self.runtime.block_on(oldest);
        }
        // A future that was never polled has asked nothing: what comes next must come after it.
        let is_done =
            self.runtime.block_on(poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())));
        if !is_done {
            self.in_flight.push_back(call);
        }
    }
}

impl MinimalQueue for Overtake {
    type Ticket = Receipt;
    const IS_PIPELINED: bool = true;

    fn create(dir: &Path) -> Self {
        let new = Self::open(dir);
        let settings = Settings { scheme: Scheme::Max(u8::MAX), ..Settings::default() };
        new.runtime.block_on(new.engine.declare_queue(QUEUE, settings)).expect("a new queue");
        new
    }

    fn open(dir: &Path) -> Self {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let engine = LocalEngine::open(dir).expect("the store opens");
        Self { engine, runtime, queue: QUEUE.into(), in_flight: VecDeque::new() }
    }

    fn publish_batch(&mut self, batch: Vec<Message>) {
        let message = |message: Message| NewMessage {
            to: Target::Queue(Arc::clone(&self.queue)),
            priority: i64::from(message.priority).into(),
            content: Content { body: message.body, ..Content::default() },
            ..NewMessage::default()
        };
        let publish = self.engine.publish(batch.into_iter().map(message).collect());
        self.send(Box::pin(async move { publish.await.map(drop).expect("the publish is taken") }));
    }

    fn lease_batch(&mut self, max: usize) -> Vec<Leased<Receipt>> {
        let queue = Arc::clone(&self.queue);
        let lease = LeaseRequest::new(queue, max as u32);
        let messages = self.runtime.block_on(self.engine.lease(lease)).expect("a lease is answered");
        let leased = messages.into_iter().map(|message| Leased {
            ticket: message.receipt,
            priority: message.message.level.0.try_into().expect("no larger than it was published"),
            body: message.content.body.clone(),
        });
        leased.collect()
    }

    fn ack_batch(&mut self, tickets: Vec<Receipt>) {
        let settle = self.engine.settle(tickets, Outcome::Ack);
        self.send(Box::pin(async move {
            let settled = settle.await.expect("acknowledgements are answered");
            assert!(settled.iter().all(Result::is_ok), "a lease was over before it was acknowledged");
        }));
    }

    fn sync(&mut self) {
        for call in self.in_flight.drain(..) {
            self.runtime.block_on(call);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_keeps_order_and_leases() {
        super::super::queue::check::<super::Overtake>("c:1 f:1");
    }
}

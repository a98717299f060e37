//! Messages coming by themselves, one after the other.

use std::collections::VecDeque;

use overtake_lane::{Command, ConsumerId, Receipt};

use crate::api::{ConsumeRequest, Failure};
use crate::core::Request;
use crate::session::{Ask, Asks, Delivered, Event, Events, Session};

/// Messages coming by themselves: a session with nothing but one consumer.
///
/// Held open by this value: dropping it ends the consumer and puts back what it holds.
pub struct Consumer {
    asks: Asks,
    events: Events,
    number: ConsumerId,
    /// Its messages are settled as they are given, and it must say what it has read.
    no_ack: bool,
    came: VecDeque<Coming>,
    is_over: bool,
}

/// What comes to a consumer.
#[derive(Clone, Debug)]
pub enum Coming {
    /// A message.
    Message(Box<Delivered>),
    /// It held this for longer than the queue's `consumer_timeout_ms`. It was put back, and no more messages come.
    TimedOut(Receipt),
}

/// What an answer is called.
const STARTED: u64 = 0;
const LEFT: u64 = 1;

impl Consumer {
    pub(crate) async fn start(session: Session, consume: ConsumeRequest) -> Result<Self, Failure> {
        let Session { asks, events } = session;
        let (number, no_ack) = (asks.next_consumer(), consume.no_ack);
        let mut consumer = Self { asks, events, number, no_ack, came: VecDeque::new(), is_over: false };
        consumer.ask(Some(STARTED), Request::Consume { consumer: number, consume }).await;
        loop {
            match consumer.hear().await {
                Some(Ok(true)) => return Ok(consumer),
                Some(Ok(false)) => {}
                Some(Err(failure)) => return Err(failure),
                None => return Err(consumer.events.unavailable()),
            }
        }
    }

    /// The next message, as soon as there is one; `None` when the queue or the broker is gone, or when it [left](Self::leave).
    /// Given up at any moment it loses nothing.
    pub async fn next(&mut self) -> Option<Delivered> {
        loop {
            if let Coming::Message(message) = self.coming().await? {
                return Some(*message);
            }
        }
    }

    /// As [`Consumer::next`], and also what else there is to tell.
    pub async fn coming(&mut self) -> Option<Coming> {
        while self.came.is_empty() {
            if self.is_over {
                return None;
            }
            self.hear().await?.ok()?;
        }
        if self.no_ack {
            let room = self.asks.room(1).await;
            let took = Command::Took { consumer: self.number, messages: 1 };
            room.ask(vec![Ask { token: None, request: Request::Do(took) }]);
        }
        self.came.pop_front()
    }

    /// Ends it, but not its leases: they last until they are settled or its session ends. What is on its way still comes, then
    /// `None`. Without a session they last as long as this value.
    pub async fn leave(&mut self) {
        self.ask(Some(LEFT), Request::Do(Command::Leave { consumer: self.number })).await;
    }

    async fn ask(&self, token: Option<u64>, request: Request) {
        self.asks.ask(vec![Ask { token, request }]).await;
    }

    /// Takes what has come. True: its start was answered.
    async fn hear(&mut self) -> Option<Result<bool, Failure>> {
        let mut is_started = false;
        for event in self.events.next().await? {
            match event {
                Event::Deliver { message, .. } => self.came.push_back(Coming::Message(Box::new(message))),
                Event::TimedOut { receipt, .. } => self.came.push_back(Coming::TimedOut(receipt)),
                Event::Ended { .. } | Event::Answer { token: LEFT, .. } => self.is_over = true,
                Event::Answer { result: Ok(_), .. } => is_started = true,
                Event::Answer { result: Err(failure), .. } => return Some(Err(failure)),
            }
        }
        Some(Ok(is_started))
    }
}

//! Messages coming by themselves, one after the other.

use std::collections::VecDeque;

use crate::api::{ConsumeRequest, Failure};
use crate::core::Request;
use crate::session::{Ask, Delivered, Event, Events, Session};

/// Messages coming by themselves: a session with nothing but one consumer.
///
/// Held open by this value: dropping it ends the consumer and puts back what it holds.
pub struct Consumer {
    events: Events,
    messages: VecDeque<Delivered>,
    is_over: bool,
}

impl Consumer {
    pub(crate) async fn start(session: Session, consume: ConsumeRequest) -> Result<Self, Failure> {
        let Session { asks, events } = session;
        let request = Request::Consume { consumer: asks.next_consumer(), consume };
        asks.ask(vec![Ask { token: Some(0), request }]).await;
        let mut consumer = Self { events, messages: VecDeque::new(), is_over: false };
        loop {
            match consumer.hear().await {
                Some(Ok(true)) => return Ok(consumer),
                Some(Ok(false)) => {}
                Some(Err(failure)) => return Err(failure),
                None => return Err(consumer.events.unavailable()),
            }
        }
    }

    /// The next message, as soon as there is one; `None` when the queue or the broker is gone.
    pub async fn next(&mut self) -> Option<Delivered> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            if self.is_over {
                return None;
            }
            self.hear().await?.ok()?;
        }
    }

    /// Takes what has come. True: the answer was among it.
    async fn hear(&mut self) -> Option<Result<bool, Failure>> {
        let mut is_answered = false;
        for event in self.events.next().await? {
            match event {
                Event::Deliver { message, .. } => self.messages.push_back(message),
                Event::Ended { .. } => self.is_over = true,
                Event::Answer { result: Ok(_), .. } => is_answered = true,
                Event::Answer { result: Err(failure), .. } => return Some(Err(failure)),
            }
        }
        Some(Ok(is_answered))
    }
}

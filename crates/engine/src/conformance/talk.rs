//! A session on a story, and what it hears as words: `0=1` an answer to the first request, `a` a message, `ended`.

use std::sync::Arc;

use overtake_lane::{Command, ConsumerId, Outcome};

use super::{Fixture, Story};
use crate::api::{ConsumeRequest, Failure, LeaseRequest};
use crate::core::{Answer, Request};
use crate::session::{Ask, Event, Session};

/// A session, and the story it is of. Requests are called 0, 1, 2 and so on.
pub struct Talk<'a, F> {
    story: &'a Story<F>,
    session: Session,
    next: u64,
    heard: Vec<String>,
}

impl<'a, F: Fixture> Talk<'a, F> {
    /// A new session.
    pub fn begin(story: &'a Story<F>) -> Self {
        Self { story, session: story.engine().session(), next: 0, heard: Vec::new() }
    }

    /// Asks for these, each to be answered.
    pub async fn ask(&mut self, requests: Vec<Request>) {
        let number = |(at, request): (usize, Request)| Ask { token: Some(self.next + at as u64), request };
        let asks: Vec<Ask> = requests.into_iter().enumerate().map(number).collect();
        self.next += asks.len() as u64;
        self.session.asks.ask(asks).await;
    }

    /// Asks for these, none to be answered.
    pub async fn tell(&mut self, requests: Vec<Request>) {
        let silent = |request| Ask { token: None, request };
        self.session.asks.ask(requests.into_iter().map(silent).collect()).await;
    }

    /// Publishes messages, each for itself: `a:5 b:9,in=r`.
    pub async fn publish(&mut self, messages: &str) {
        self.ask(self.publishes(messages)).await;
    }

    /// Requests to publish messages.
    pub fn publishes(&self, messages: &str) -> Vec<Request> {
        self.story.messages(messages).into_iter().map(Request::PublishOne).collect()
    }

    /// Starts a consumer of a queue.
    pub async fn consume(&mut self, queue: &str, window: u32) -> ConsumerId {
        let consumer = self.session.asks.next_consumer();
        let consume = ConsumeRequest { queue: queue.into(), window: Some(window), urgent: None, priority: 0 };
        self.ask(vec![Request::Consume { consumer, consume }]).await;
        consumer
    }

    /// Asks for a lease of one message, and waits so long for it.
    pub async fn lease(&mut self, queue: &str, wait_ms: u64) -> ConsumerId {
        let consumer = self.session.asks.next_consumer();
        let lease = LeaseRequest { queue: Arc::from(queue), max: 1, wait_ms, visibility_ms: None };
        self.ask(vec![Request::Lease { consumer, lease }]).await;
        consumer
    }

    /// Settles what was heard of, and waits for no answer.
    pub async fn settle(&mut self, texts: &str, outcome: Outcome) {
        let receipts = texts.split_whitespace().map(|text| self.story.receipt(text)).collect();
        self.tell(vec![Request::Do(Command::Settle { receipts, outcome })]).await;
    }

    /// The next events, so many, in words.
    pub async fn hear(&mut self, count: usize) -> String {
        while self.heard.len() < count {
            let events = self.session.events.next().await.expect("the engine runs");
            let words: Vec<String> = events.iter().map(|event| self.word(event)).collect();
            self.heard.extend(words);
        }
        self.heard.drain(..count).collect::<Vec<_>>().join(" ")
    }

    fn word(&self, event: &Event) -> String {
        match event {
            Event::Deliver { message, .. } => self.story.take_delivered(message),
            Event::Ended { .. } => "ended".to_owned(),
            Event::Answer { token, result } => format!("{token}={}", self.answer(result)),
        }
    }

    fn answer(&self, result: &Result<Answer, Failure>) -> String {
        match result {
            Ok(Answer::Done) => "done".to_owned(),
            Ok(Answer::Count(count)) => count.to_string(),
            Ok(Answer::Leased(messages)) => format!("[{}]", self.story.take(messages)),
            Ok(other) => format!("{other:?}"),
            Err(Failure::Refused(refused)) => refused.refusal.code().to_owned(),
            Err(Failure::Unavailable(why)) => panic!("the engine is available: {why}"),
        }
    }
}

//! A session on a story, and what it hears as words: `0=1` an answer to the first request, `a` a message, `ended`.

use std::sync::Arc;

use overtake_lane::{Command, ConsumerId, Get, Outcome};

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
        Self::over(story, story.engine().session())
    }

    /// Over this session.
    pub fn over(story: &'a Story<F>, session: Session) -> Self {
        Self { story, session, next: 0, heard: Vec::new() }
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
        self.story.messages(messages).into_iter().map(Box::new).map(Request::PublishOne).collect()
    }

    /// Starts a consumer of a queue.
    pub async fn consume(&mut self, queue: &str, window: u32) -> ConsumerId {
        let consumer = self.session.asks.next_consumer();
        let consume = ConsumeRequest { window: Some(window), ..ConsumeRequest::new(queue.into()) };
        self.ask(vec![Request::Consume { consumer, consume }]).await;
        consumer
    }

    /// Asks for the message that goes next, now or not at all.
    pub async fn get(&mut self, queue: &str) {
        let consumer = self.session.asks.next_consumer();
        let get = Get { consumer, queue: queue.into(), no_ack: false };
        self.ask(vec![Request::Get { get, holder: None }]).await;
    }

    /// Asks for a lease of one message, and waits so long for it.
    pub async fn lease(&mut self, queue: &str, wait_ms: u64) -> ConsumerId {
        let consumer = self.session.asks.next_consumer();
        let lease = LeaseRequest { wait_ms, ..LeaseRequest::new(Arc::from(queue), 1) };
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
            Event::TimedOut { .. } => "timed out".to_owned(),
            Event::Ended { .. } => "ended".to_owned(),
            Event::Answer { token, result } => format!("{token}={}", self.answer(result)),
        }
    }

    fn answer(&self, result: &Result<Answer, Failure>) -> String {
        match result {
            Ok(Answer::Done) => "done".to_owned(),
            Ok(Answer::Count(count)) => count.to_string(),
            Ok(Answer::Declared(_)) => "declared".to_owned(),
            Ok(Answer::Got(Some(got))) => self.story.take(std::slice::from_ref(&got.message)),
            Ok(Answer::Leased(messages)) => format!("[{}]", self.story.take(messages)),
            Ok(other) => format!("{other:?}"),
            Err(Failure::Refused(refused)) => refused.refusal.code().to_owned(),
            Err(Failure::Unavailable(why)) => panic!("the engine is available: {why}"),
        }
    }
}

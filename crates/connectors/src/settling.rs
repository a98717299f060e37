//! Events that say how work ended elsewhere: each settles the lease of the message that it names by its id.
//!
//! | the message | `completed` | `failed`, `timeout` | `cancelled` | `extend` |
//! |---|---|---|---|---|
//! | leased | acknowledged | rejected | taken back | its lease goes on |
//! | waits | too late, passed over | too late, passed over | taken back | passed over |
//! | ended, or never there | passed over | passed over | passed over | passed over |
//!
//! So an event that comes twice, or after the end, changes nothing. An attempt that is named must be the one that is leased.

use std::collections::BTreeMap;

use overtake_engine::{Connection, Failure, Select};
use overtake_lane::{Outcome, REPORT_BYTES_MAX, Refusal, Report};
use serde::{Deserialize, Serialize};

use crate::connector::{Flaw, must_name_a_queue};
use crate::inlet::Incoming;
use crate::source::TextFrom;

/// Longest error that is kept of an event, bytes.
const ERROR_BYTES_MAX: usize = 1_024;

/// Which executions the events are about, and what each event means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settles {
    /// The queue that the messages were started from.
    pub queue: String,
    /// Where the kind of an event stands; by default it is where the event came from: the topic, the stream, the routing key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<TextFrom>,
    /// The meaning of each kind. By default kinds that end in `completed`, `failed`, `timeout` or `cancelled` mean that. Other kinds are passed over.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, Verdict>,
    /// Where the number of the attempt stands, if the events say it: an event of an earlier attempt is passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<TextFrom>,
    /// So long from the event a lease lasts that is extended, ms.
    #[serde(default = "extend_ms")]
    pub extend_ms: u64,
    /// Where the exit code stands, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<TextFrom>,
    /// Where the error stands, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TextFrom>,
    /// Where the output stands, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<TextFrom>,
}

fn extend_ms() -> u64 {
    600_000
}

/// The meaning of an event for the message that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The work is done.
    Completed,
    /// The work failed, and is not tried again.
    Failed,
    /// The work took too long, and is not tried again. Recorded as failed, with the error `timeout` where the event says none.
    Timeout,
    /// The work was taken back.
    Cancelled,
    /// The work goes on: its lease lasts [`Settles::extend_ms`] from now.
    Extend,
}

/// The ends, by the word for each.
const ENDS: [(&str, Verdict); 4] = [
    ("completed", Verdict::Completed),
    ("failed", Verdict::Failed),
    ("timeout", Verdict::Timeout),
    ("cancelled", Verdict::Cancelled),
];

/// An event as it was read.
#[derive(Debug)]
pub(crate) struct Event {
    id: String,
    verdict: Verdict,
    attempt: Option<u32>,
    report: Report,
}

impl Settles {
    /// # Errors
    /// The first flaw.
    pub(crate) fn check(&self, id: Option<&TextFrom>) -> Result<(), Flaw> {
        must_name_a_queue("to.settle.queue", &self.queue)?;
        if id.is_none() {
            let how = "`id` must say where an event names the execution, as id.body = \"/execution_id\"";
            return Err(Flaw::of("", how));
        }
        if self.extend_ms == 0 {
            return Err(Flaw::of("to.settle", "`extend_ms` must be at least 1"));
        }
        let texts = [
            ("event", &self.event),
            ("attempt", &self.attempt),
            ("exit_code", &self.exit_code),
            ("error", &self.error),
            ("output", &self.output),
        ];
        texts.iter().try_for_each(|(key, from)| {
            from.iter().try_for_each(|from| from.check(key).map_err(|why| Flaw::of("to.settle", why)))
        })
    }

    /// Reads an event from a message that came in; `None`: the message is none of the events.
    ///
    /// # Errors
    /// The event names no message, as a phrase.
    pub(crate) fn event(&self, id: &TextFrom, incoming: &Incoming) -> Result<Option<Event>, String> {
        let text = |from: &Option<TextFrom>| from.as_ref().and_then(|from| from.of(incoming));
        let kind = match &self.event {
            None => Some(incoming.path.clone()),
            said => text(said),
        };
        let Some(verdict) = kind.and_then(|kind| self.verdict(&kind)) else { return Ok(None) };
        let Some(id) = id.of(incoming) else {
            return Err(format!("it names no execution: {id} is missing, or no text"));
        };
        let own = if verdict == Verdict::Timeout { Some("timeout".to_owned()) } else { None };
        let error = text(&self.error).or(own);
        let report = Report {
            exit_code: text(&self.exit_code).and_then(|code| code.parse().ok()),
            error: error.map(|error| end_of(&error, ERROR_BYTES_MAX)),
            output: text(&self.output).map(|text| end_of(&text, REPORT_BYTES_MAX - ERROR_BYTES_MAX)),
        };
        let attempt = text(&self.attempt).and_then(|attempt| attempt.parse().ok());
        Ok(Some(Event { id, verdict, attempt, report }))
    }

    fn verdict(&self, kind: &str) -> Option<Verdict> {
        if self.events.is_empty() {
            let kind = kind.to_ascii_lowercase();
            return ENDS.iter().find(|(word, _)| kind.ends_with(word)).map(|(_, verdict)| *verdict);
        }
        self.events.get(kind).copied()
    }

    /// Settles the message that an event names.
    ///
    /// # Errors
    /// The engine cannot do that now.
    pub(crate) async fn settle(&self, engine: &Connection, event: &Event) -> Result<(), Failure> {
        // Again where the lease ended in between.
        while !self.settle_once(engine, event).await? {}
        Ok(())
    }

    async fn settle_once(&self, engine: &Connection, event: &Event) -> Result<bool, Failure> {
        let Some(found) = unless_over(engine.message(&self.queue, &event.id).await)? else { return Ok(true) };
        let is_other = event.attempt.is_some_and(|attempt| attempt != found.message.count);
        let receipt = found.held.and_then(|held| held.receipt);
        let outcome = match (event.verdict, receipt) {
            (Verdict::Cancelled, None) => {
                let cancel = engine.cancel_messages(&self.queue, Select::Id(event.id.clone()));
                return unless_over(cancel.await).map(|_| true);
            }
            (verdict, None) => {
                tracing::debug!(queue = &*self.queue, id = &*event.id, "{verdict:?} of none that is leased");
                return Ok(true);
            }
            (verdict, Some(_)) if is_other => {
                tracing::debug!(queue = &*self.queue, id = &*event.id, "{verdict:?} of an earlier attempt");
                return Ok(true);
            }
            (Verdict::Extend, Some(receipt)) => {
                let extended = engine.extend(vec![receipt], self.extend_ms).await?;
                return Ok(extended != [Err(Refusal::StaleReceipt)]);
            }
            (Verdict::Completed, Some(_)) => Outcome::Ack,
            (Verdict::Failed | Verdict::Timeout, Some(_)) => Outcome::Reject,
            (Verdict::Cancelled, Some(_)) => {
                let cancel = engine.cancel_messages(&self.queue, Select::Id(event.id.clone()));
                unless_over(cancel.await)?;
                Outcome::Reject
            }
        };
        let receipt = receipt.expect("only what is leased comes here");
        Ok(engine.finish(receipt, outcome, event.report.clone()).await?.is_ok())
    }
}

/// `None`: the message has ended, or was never there.
fn unless_over<T>(result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Err(Failure::Refused(refused))
            if matches!(refused.refusal, Refusal::NoSuchMessage | Refusal::Dead) =>
        {
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// The end of a text, at most so many bytes.
fn end_of(text: &str, max: usize) -> Box<str> {
    let from = (text.len().saturating_sub(max)..=text.len()).find(|at| text.is_char_boundary(*at));
    text[from.unwrap_or_default()..].into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use overtake_engine::{
        Engine, LeaseRequest, LeasedMessage, LocalEngine, NewMessage, Options, SystemClock, Target,
    };
    use overtake_lane::{Ending, Settings, Status};
    use overtake_store::MemoryDisk;
    use serde_json::json;

    use super::*;

    struct World {
        engine: LocalEngine,
        settles: Settles,
    }

    impl World {
        async fn new() -> Self {
            let options = Options { segment_bytes: 1 << 20, seed: 7, ..Options::default() };
            let engine = LocalEngine::open_on(MemoryDisk::new(7), options, Arc::new(SystemClock));
            let engine = engine.expect("the store opens");
            engine.declare_queue("past", Settings::default()).await.expect("declared");
            let work = Settings { max_active: 1, history: Some("past".to_owned()), ..Settings::default() };
            engine.declare_queue("work", work).await.expect("declared");
            let settles = json!({
                "queue": "work",
                "events": {"done": "completed", "bad": "failed", "late": "timeout", "off": "cancelled", "on": "extend"},
                "attempt": {"body": "/attempt"},
                "error": {"body": "/why"},
                "exit_code": {"body": "/code"},
                "extend_ms": 3_600_000,
            });
            Self { engine, settles: serde_json::from_value(settles).expect("it can be") }
        }

        async fn publish(&self, id: &str) {
            let to = Target::Queue("work".into());
            let message = NewMessage { to, id: Some(id.to_owned()), ..NewMessage::default() };
            self.engine.publish(vec![message]).await.expect("published");
        }

        async fn lease(&self) -> LeasedMessage {
            let mut leased = self.engine.lease(LeaseRequest::new("work".into(), 1)).await.expect("leased");
            leased.remove(0)
        }

        /// An event of this kind about `a`, with this in its body besides.
        async fn hears(&self, kind: &str, more: serde_json::Value) {
            let mut body = json!({"id": "a"});
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let incoming =
                Incoming { path: kind.to_owned(), body: body.to_string().into(), ..Incoming::default() };
            let event =
                self.settles.event(&TextFrom::Body("/id".to_owned()), &incoming).expect("it names one");
            let event = event.expect("it is one");
            self.settles.settle(&self.engine.connect(), &event).await.expect("done");
        }

        /// Where `a` is: how it stands in its queue, or how it ended, with the exit code and the error.
        async fn stands(&self) -> String {
            if let Ok(found) = self.engine.message("work", "a").await {
                return format!("{:?}", found.message.status);
            }
            let found = self.engine.message("past", "a").await.expect("it is in the history");
            let record = found.message.record.expect("it has a record");
            let code = record.report.exit_code.map_or_else(String::new, |code| format!(" {code}"));
            format!("{}{code} {}", record.ending.word(), record.report.error.as_deref().unwrap_or_default())
        }
    }

    #[tokio::test]
    async fn an_event_ends_what_is_leased_and_frees_its_slot_and_another_one_changes_nothing() {
        for (kind, ended) in [
            ("done", "completed 3 why"),
            ("bad", "failed 3 why"),
            ("late", "failed 3 why"),
            ("off", "cancelled 3 why"),
        ] {
            let world = World::new().await;
            world.publish("a").await;
            world.publish("b").await;
            assert_eq!(world.lease().await.message.id, "a");
            for again in [kind, kind, "bad", "done", "off", "on"] {
                world.hears(again, json!({"why": "why", "code": 3})).await;
                assert_eq!(world.stands().await, ended, "{kind}, {again}");
            }
            assert_eq!(world.lease().await.message.id, "b");
        }
    }

    #[tokio::test]
    async fn a_timeout_is_recorded_as_such_in_words() {
        let world = World::new().await;
        world.publish("a").await;
        world.lease().await;
        world.hears("late", json!({})).await;
        assert_eq!(world.stands().await, format!("{} timeout", Ending::Failed.word()));
    }

    #[tokio::test]
    async fn what_waits_is_cancelled_by_its_event_and_by_no_other_ended() {
        let world = World::new().await;
        world.hears("done", json!({})).await;
        world.publish("a").await;
        for kind in ["done", "bad", "late", "on"] {
            world.hears(kind, json!({})).await;
            assert_eq!(world.stands().await, format!("{:?}", Status::Ready), "{kind}");
        }
        world.hears("off", json!({})).await;
        assert_eq!(world.stands().await, "cancelled ");
    }

    #[tokio::test]
    async fn an_event_of_an_earlier_attempt_is_passed_over() {
        let world = World::new().await;
        world.publish("a").await;
        let first = world.lease().await;
        let failed = Outcome::Nack { delay_ms: Some(0) };
        world.engine.settle(vec![first.receipt], failed).await.expect("it waits again");
        assert_eq!(world.lease().await.message.count, 2);
        world.hears("done", json!({"attempt": 1})).await;
        assert_eq!(world.stands().await, format!("{:?}", Status::Leased));
        world.hears("done", json!({"attempt": "2"})).await;
        assert_eq!(world.stands().await, "completed ");
    }

    #[tokio::test]
    async fn an_event_that_the_work_goes_on_extends_the_lease() {
        let world = World::new().await;
        world.publish("a").await;
        let before = world.lease().await.deadline.expect("a lease that ends");
        world.hears("on", json!({})).await;
        let after = world.engine.message("work", "a").await.expect("there").message.deadline;
        assert!(after.expect("it ends").since(before) > 3_000_000);
    }

    #[test]
    fn kinds_mean_what_they_end_in_unless_it_is_said_and_what_names_nobody_is_refused() {
        let settles: Settles = serde_json::from_value(json!({"queue": "work"})).expect("it can be");
        let id = TextFrom::Body("/id".to_owned());
        let event = |path: &str, body: &'static str| {
            settles.event(&id, &Incoming { path: path.to_owned(), body: body.into(), ..Incoming::default() })
        };
        let verdict = |path| event(path, r#"{"id": 7}"#).expect("it can be").map(|event| event.verdict);
        assert_eq!(verdict("execution-completed"), Some(Verdict::Completed));
        assert_eq!(verdict("ExecutionFailed"), Some(Verdict::Failed));
        assert_eq!(verdict("execution.timeout"), Some(Verdict::Timeout));
        assert_eq!(verdict("CANCELLED"), Some(Verdict::Cancelled));
        assert_eq!(verdict("execution-started"), None);
        let why = event("completed", "{}").expect_err("it names none");
        assert_eq!(why, "it names no execution: `/id` of the JSON body is missing, or no text");
        assert!(event("started", "{}").expect("passed over").is_none());
    }

    #[test]
    fn a_long_text_is_kept_from_its_end() {
        assert_eq!(&*end_of("abc", 5), "abc");
        assert_eq!(&*end_of("abécd", 3), "cd");
        assert_eq!(&*end_of("abécd", 4), "écd");
    }
}

//! Events that say how work ended elsewhere: each settles the lease of the message that it names by its id.
//!
//! | the message | `completed` | `failed`, `timeout` | `cancelled` | `extend` |
//! |---|---|---|---|---|
//! | leased by the attempt that the event names, or it names none | acknowledged | rejected | taken back | its lease goes on |
//! | leased by a later attempt | acknowledged: that attempt loses its lease | passed over | passed over | passed over |
//! | waits after the attempt that the event names, or it names none | acknowledged | rejected | taken back | passed over |
//! | waits after a later attempt | acknowledged | passed over | taken back | passed over |
//! | waits for its first attempt | passed over | passed over | taken back | passed over |
//! | ended, or never there | passed over | passed over | passed over | passed over |
//!
//! So an event that comes twice, or after the end, changes nothing, and so does one of an attempt that has not begun yet.

use std::collections::BTreeMap;

use overtake_engine::{Connection, Failure, Select};
use overtake_lane::{Outcome, REPORT_BYTES_MAX, Refusal, Report};
use serde::{Deserialize, Serialize};

use crate::connector::{Flaw, must_name_a_queue};
use crate::inlet::Incoming;
use crate::source::TextFrom;

/// Longest error that is kept of an event, bytes.
const ERROR_BYTES_MAX: usize = 1_024;

/// The executions that the events are about, and the meaning of each event.
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
    /// Where the number of the attempt stands, if the events say it: of an earlier attempt than the last only a `completed` counts.
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
    /// The work took too long, and is not tried again: it ends as when the queue's `run_timeout_ms` is over.
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
    /// Why a part of the event counts nothing; the rest of it counts.
    pub(crate) left_out: Option<String>,
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
    /// The event names no message, or no attempt where it should, or its body is no JSON: as a phrase.
    pub(crate) fn event(&self, id: &TextFrom, incoming: &Incoming) -> Result<Option<Event>, String> {
        let text = |from: &Option<TextFrom>| from.as_ref().and_then(|from| from.of_any(incoming));
        let kind = match &self.event {
            None => Some(incoming.path.clone()),
            Some(from) => from.of_event(incoming)?,
        };
        let Some(verdict) = kind.and_then(|kind| self.verdict(&kind)) else { return Ok(None) };
        let Some(id) = id.of_event(incoming)? else {
            return Err(format!("it names no execution: {id} is missing, or no text"));
        };
        let error = text(&self.error);
        // Work that ended has ended, whatever its exit code is.
        let (exit_code, left_out) = match text(&self.exit_code).map(|code| code.parse().map_err(|_| code)) {
            None => (None, None),
            Some(Ok(code)) => (Some(code), None),
            Some(Err(code)) => {
                let why =
                    format!("its exit code is `{}`, which is no whole number of 32 bits", start_of(&code));
                (None, Some(why))
            }
        };
        let report = Report {
            exit_code,
            error: error.map(|error| end_of(&error, ERROR_BYTES_MAX)),
            output: text(&self.output).map(|text| end_of(&text, REPORT_BYTES_MAX - ERROR_BYTES_MAX)),
        };
        let attempt = text(&self.attempt).map(|attempt| {
            attempt
                .parse()
                .map_err(|_| format!("its attempt is `{}`, which is no number", start_of(&attempt)))
        });
        let attempt = attempt.transpose()?;
        Ok(Some(Event { id, verdict, attempt, report, left_out }))
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

    /// False: the message changed in between, so it is to be looked at again.
    async fn settle_once(&self, engine: &Connection, event: &Event) -> Result<bool, Failure> {
        let Some(found) = unless_over(engine.message(&self.queue, &event.id).await)? else { return Ok(true) };
        let receipt = found.held.and_then(|held| held.receipt);
        // A message that was put back, or submitted anew, has had fewer attempts than an earlier event may say.
        let last = found.message.count;
        let (is_begun, is_last) =
            (last >= event.attempt.unwrap_or(1).max(1), event.attempt.is_none_or(|one| one == last));
        let outcome = match event.verdict {
            Verdict::Cancelled if receipt.is_none() => {
                return unless_over(self.cancel(engine, event).await).map(|_| true);
            }
            Verdict::Completed if is_begun => Outcome::Ack,
            Verdict::Failed if is_begun && is_last => Outcome::Reject,
            Verdict::Timeout if is_begun && is_last => Outcome::Timeout,
            Verdict::Cancelled if is_last => {
                unless_over(self.cancel(engine, event).await)?;
                Outcome::Reject
            }
            Verdict::Extend if is_last && let Some(receipt) = receipt => {
                let extended = engine.extend(vec![receipt], self.extend_ms).await?;
                return Ok(extended != [Err(Refusal::StaleReceipt)]);
            }
            verdict => {
                tracing::debug!(
                    queue = &*self.queue,
                    id = &*event.id,
                    "{verdict:?} of no attempt that it can end"
                );
                return Ok(true);
            }
        };
        let report = event.report.clone();
        let Some(receipt) = receipt else {
            let late = engine.finish_late(&self.queue, &event.id, last, outcome, report).await;
            return match late {
                Err(Failure::Refused(refused))
                    if matches!(refused.refusal, Refusal::Leased | Refusal::StaleReceipt) =>
                {
                    Ok(false)
                }
                late => unless_over(late).map(|_| true),
            };
        };
        Ok(engine.finish(receipt, outcome, report).await?.is_ok())
    }

    fn cancel(&self, engine: &Connection, event: &Event) -> impl Future<Output = Result<u64, Failure>> {
        engine.cancel_messages(&self.queue, Select::Id(event.id.clone()))
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

/// The beginning of a text, to be named in an error.
fn start_of(text: &str) -> String {
    text.chars().take(40).collect()
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
    use overtake_lane::{Settings, Status};
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
            ("late", "timeout 3 why"),
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
    async fn a_timeout_ends_as_when_the_bound_of_the_queue_is_over() {
        let world = World::new().await;
        world.publish("a").await;
        world.lease().await;
        world.hears("late", json!({})).await;
        assert_eq!(world.stands().await, "timeout ran too long");
    }

    #[tokio::test]
    async fn what_was_never_begun_is_cancelled_by_its_event_and_by_no_other_ended() {
        let world = World::new().await;
        world.hears("done", json!({})).await;
        world.publish("a").await;
        for kind in ["done", "bad", "late", "on"] {
            for attempt in [json!({}), json!({"attempt": 1})] {
                world.hears(kind, attempt).await;
                assert_eq!(world.stands().await, format!("{:?}", Status::Ready), "{kind}");
            }
        }
        world.hears("off", json!({})).await;
        assert_eq!(world.stands().await, "cancelled ");
    }

    /// `a` was leased so often, and every lease ran out.
    async fn late(attempts: u32) -> World {
        let world = World::new().await;
        world.publish("a").await;
        for _ in 0..attempts {
            let leased = world.lease().await;
            // As the end of a lease does.
            let failed = Outcome::Nack { delay_ms: Some(0) };
            world.engine.settle(vec![leased.receipt], failed).await.expect("it waits again");
        }
        world
    }

    #[tokio::test]
    async fn a_late_event_ends_what_waits_for_its_next_attempt() {
        for (kind, ended) in [
            ("done", "completed 3 why"),
            ("bad", "failed 3 why"),
            ("late", "timeout 3 why"),
            ("off", "cancelled "),
        ] {
            for attempt in [json!(null), json!(2)] {
                let world = late(2).await;
                for _ in 0..2 {
                    world.hears(kind, json!({"why": "why", "code": 3, "attempt": attempt})).await;
                    assert_eq!(world.stands().await, ended, "{kind}");
                }
                world.publish("b").await;
                assert_eq!(world.lease().await.message.id, "b");
            }
        }
        let world = late(2).await;
        for (kind, attempt) in [("bad", 1), ("late", 1), ("on", 2), ("done", 3), ("bad", 3)] {
            world.hears(kind, json!({"attempt": attempt})).await;
            assert_eq!(world.stands().await, format!("{:?}", Status::Ready), "{kind} {attempt}");
        }
        world.hears("done", json!({"attempt": 1})).await;
        assert_eq!(world.stands().await, "completed ");
    }

    #[tokio::test]
    async fn an_earlier_attempt_that_completes_ends_the_one_that_runs_and_no_other_event_of_it_does() {
        let world = late(1).await;
        let second = world.lease().await;
        for kind in ["bad", "late", "off", "on"] {
            world.hears(kind, json!({"attempt": 1})).await;
            assert_eq!(world.stands().await, format!("{:?}", Status::Leased), "{kind}");
        }
        world.hears("done", json!({"attempt": "1"})).await;
        assert_eq!(world.stands().await, "completed ");
        let told = world.engine.settle(vec![second.receipt], Outcome::Reject).await.expect("answered");
        assert_eq!(told, [Err(Refusal::StaleReceipt)], "the later attempt is told that its lease is lost");
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
        let why = event("completed", "{").expect_err("no JSON");
        assert_eq!(why, "its body is no JSON, so nothing is at `/id`");
    }

    #[test]
    fn an_event_that_cannot_be_read_is_refused() {
        let settles = json!({"queue": "work", "event": {"body": "/type"}, "attempt": {"body": "/attempt"}});
        let settles: Settles = serde_json::from_value(settles).expect("it can be");
        let event = |body: &'static str| {
            let incoming = Incoming { body: body.into(), ..Incoming::default() };
            settles.event(&TextFrom::Body("/id".to_owned()), &incoming).map(|event| event.is_some())
        };
        assert_eq!(event("completed"), Err("its body is no JSON, so nothing is at `/type`".to_owned()));
        assert_eq!(event(r#"{"id": "a"}"#), Ok(false), "another kind is passed over");
        let why = event(r#"{"type": "failed", "id": "a", "attempt": "one"}"#);
        assert_eq!(why, Err("its attempt is `one`, which is no number".to_owned()));
        assert_eq!(event(r#"{"type": "failed", "id": "a", "attempt": 1}"#), Ok(true));
    }

    /// The history has what the event says, whatever kind of value it is.
    #[test]
    fn a_report_is_text_or_json_and_an_exit_code_that_is_none_is_named() {
        let settles = json!({
            "queue": "work",
            "attempt": {"body": "/attempt"}, "exit_code": {"body": "/code"}, "error": {"body": "/why"}, "output": {"body": "/out"},
        });
        let settles: Settles = serde_json::from_value(settles).expect("it can be");
        let event = |more: serde_json::Value| {
            let mut body = json!({"id": "a"});
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let (path, body) = ("completed".to_owned(), body.to_string().into());
            let incoming = Incoming { path, body, ..Incoming::default() };
            let event = settles.event(&TextFrom::Body("/id".to_owned()), &incoming)?;
            Ok::<_, String>(event.expect("it is one"))
        };
        let reported = |more| {
            let event = event(more).expect("it can be read");
            let texts = [event.report.error, event.report.output];
            (
                event.report.exit_code,
                texts.map(|text| text.map(String::from).unwrap_or_default()),
                event.left_out,
            )
        };
        let texts = |error: &str, output: &str| [error.to_owned(), output.to_owned()];
        assert_eq!(reported(json!({"code": "3", "why": "w", "out": "o"})), (Some(3), texts("w", "o"), None));
        let parts = json!({"code": -1, "why": {"kind": "io"}, "out": [1, true]});
        assert_eq!(reported(parts), (Some(-1), texts(r#"{"kind":"io"}"#, "[1,true]"), None));
        assert_eq!(reported(json!({"code": null, "why": null, "out": 1.5})), (None, texts("", "1.5"), None));
        for code in [json!("one"), json!(1.5), json!([0]), json!(4_294_967_296_u64)] {
            let (kept, _, why) = reported(json!({"code": code.clone()}));
            let shown = code.as_str().map_or_else(|| code.to_string(), str::to_owned);
            assert_eq!(kept, None);
            assert_eq!(why, Some(format!("its exit code is `{shown}`, which is no whole number of 32 bits")));
        }
        for attempt in [json!({"n": 1}), json!(1.5), json!(true)] {
            let why = event(json!({"attempt": attempt.clone()})).map(|_| ());
            assert_eq!(why, Err(format!("its attempt is `{attempt}`, which is no number")));
        }
    }

    #[test]
    fn a_long_text_is_kept_from_its_end() {
        assert_eq!(&*end_of("abc", 5), "abc");
        assert_eq!(&*end_of("abécd", 3), "cd");
        assert_eq!(&*end_of("abécd", 4), "écd");
    }
}

//! What answers say about messages. Borrowed from what the engine handed out, and written once.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use overtake_api::body::PropertiesShown;
use overtake_api::params::{Shown, cursor_text};
use overtake_api::schema::{PrioritySchema, StatusSchema};
use overtake_engine::{BrowsedMessage, Content, LeasedMessage, Page, PublishedCopy};
use overtake_lane::{
    Attempt, BrowseOrder, Death, DeathReason, Ending, Given, Headers, MessageView, Record, Refusal, Report,
    Route, Status, Time,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::held::{HolderOut, ProgressOut};
use crate::schema::{DeathReasonSchema, EndingSchema};
use crate::trace::TraceOut;

/// One copy of a published message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PublishedMessage)]
pub(crate) struct PublishedOut {
    /// The id the publisher gave, else `seq-` and the sequence.
    id: String,
    /// Its place in the order of publishing of its queue: digits, as text, since a number of a queue in several partitions is greater than 2^53, and JavaScript would round it.
    seq: String,
    /// The priority, in the words of the queue's scheme.
    #[schema(value_type = Option<PrioritySchema>)]
    priority: Given,
    /// Messages ahead of it; missing when it is not ready, or stands too deep to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// Messages ahead of it in its own lane; missing when it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    position_in_priority: Option<u64>,
    /// A message of this id was pending already; nothing was added. Missing when false.
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    duplicate: bool,
    /// The queue it is in; missing when it was published to a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    queue: Option<Arc<str>>,
}

/// Published messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Published)]
pub(crate) struct PublishedList {
    /// One per copy made, in the order of the request.
    messages: Vec<PublishedOut>,
}

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub(crate) struct MessageOut<'a> {
    /// The id the publisher gave, else `seq-` and the sequence.
    id: &'a str,
    /// Its place in the order of publishing of its queue: digits, as text, since a number of a queue in several partitions is greater than 2^53, and JavaScript would round it.
    seq: String,
    /// The priority as it was given, or what a missing one counts as.
    #[schema(value_type = Option<PrioritySchema>)]
    priority: &'a Given,
    /// The priority as it was given, as a number: of a name what the scheme `signed` calls so. Missing: none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_priority: Option<i32>,
    /// How urgent it is, inside: larger is more urgent.
    level: i32,
    /// Its lane.
    lane: &'a str,
    /// Where in its life it stands.
    #[schema(value_type = StatusSchema)]
    status: Status,
    /// When it was published.
    #[schema(format = DateTime)]
    published_at: String,
    /// When it expires; missing: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// When it is ready, if it is delayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    due_at: Option<String>,
    /// When its lease ends, if it is leased and the lease ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    deadline: Option<String>,
    /// How often the message was leased, releases not counted.
    delivery_count: u32,
    /// Bytes of content.
    bytes: u32,
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    /// The weight that its publisher gave its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000)]
    key_weight: Option<u32>,
    /// The media type of its body.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    /// Whose it is, if its publisher said so: the property `user_id` of AMQP.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a str>,
    /// Further properties of AMQP, as text: `correlation_id`, `reply_to`, `message_id`, `timestamp` in seconds, `type`, `app_id`,
    /// `content_encoding`, `delivery_mode`, `cluster_id`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false, value_type = Object)]
    properties: BTreeMap<&'static str, String>,
    /// Texts, whole numbers and booleans by name.
    #[schema(value_type = Object)]
    headers: Headers,
    /// The body, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    /// The body in base64, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    /// All that its publisher said of it, if that was asked for: the property list of a content header of AMQP 0-9-1, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    properties_base64: Option<String>,
    /// The exchange by which it came; missing: it came straight into its queue.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(required = false)]
    exchange: &'a str,
    /// The routing keys by which it came; missing without an `exchange`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    routing_keys: Vec<&'a str>,
    /// Where it died last, if it ever did.
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter: Option<DeathOut<'a>>,
    /// Every death, the newest first: one entry for each queue and reason, at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    deaths: Vec<DeathOut<'a>>,
    /// When the work on it was begun, while it goes on: in a queue with a history, or a bound on how long work takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    started: Option<String>,
    /// Somebody wants it back from whoever works on it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    cancel_asked: bool,
    /// How the work on it went, in a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<RecordOut<'a>>,
    /// The attempts at the work on it that did not end it, the oldest first: at most the last 8. In a queue with a history or a bound on
    /// how long work takes, each; else those of which something was reported. Their outputs are there where bodies are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    past_attempts: Vec<AttemptOut>,
}

/// One attempt at the work on a message that did not end it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub(crate) struct AttemptOut {
    /// How it ended.
    #[schema(value_type = EndingSchema)]
    ending: Ending,
    /// When it was begun, where that is noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    started_at: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    finished_at: String,
    /// With what its program ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// What kind of error it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<str>>,
    /// The end of what it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Box<str>>,
}

impl std::fmt::Display for AttemptOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.error, self.exit_code) {
            (Some(error), _) if !error.is_empty() => f.write_str(error),
            (_, Some(code)) => write!(f, "exit code {code}"),
            (_, None) => f.write_str(self.ending.word()),
        }
    }
}

impl AttemptOut {
    /// Returns the attempts of a message, with their outputs or without.
    pub(crate) fn all(view: &MessageView, with_output: bool) -> Vec<Self> {
        let one = |attempt: &Attempt| {
            let Report { exit_code, error, output } = attempt.report.clone();
            Self {
                ending: attempt.ending,
                started_at: attempt.started.map(rfc3339),
                finished_at: rfc3339(attempt.finished),
                exit_code,
                error,
                output: output.filter(|_| with_output),
            }
        };
        view.attempts.iter().flat_map(|attempts| attempts.iter()).map(one).collect()
    }
}

/// How the work on a message went.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Record)]
pub(crate) struct RecordOut<'a> {
    /// How it ended.
    #[schema(value_type = EndingSchema)]
    ending: Ending,
    /// The queue it was in.
    queue: &'a str,
    /// The lane it was in.
    lane: &'a str,
    /// When it was published.
    #[schema(format = DateTime)]
    queued: String,
    /// When it was begun, the last time; missing: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    started: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    finished: String,
    /// How often it was begun.
    attempts: u32,
    /// With what its program ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// What kind of error it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// The end of what it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
}

impl<'a> RecordOut<'a> {
    fn of(record: &'a Record) -> Self {
        let Report { exit_code, error, output } = &record.report;
        Self {
            ending: record.ending,
            queue: &record.queue,
            lane: &record.lane,
            queued: rfc3339(record.queued),
            started: record.started.map(rfc3339),
            finished: rfc3339(record.finished),
            attempts: record.attempts,
            exit_code: *exit_code,
            error: error.as_deref(),
            output: output.as_deref(),
        }
    }
}

/// Why, where and when a message became a dead letter.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(crate) struct DeathOut<'a> {
    /// Why.
    #[schema(value_type = DeathReasonSchema)]
    reason: DeathReason,
    /// The queue it died in.
    queue: &'a str,
    /// The lane it died in.
    lane: &'a str,
    /// When, the last time.
    #[schema(format = DateTime)]
    at: String,
    /// When, the first time.
    #[schema(format = DateTime)]
    first_at: String,
    /// How often it died there for this reason.
    count: u32,
    /// How often it had been leased there, the last time.
    delivery_count: u32,
    /// The exchange by which it had come there, the first time; missing: it had come straight into the queue.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(required = false)]
    exchange: &'a str,
    /// The routing keys by which it had come there, the first time; missing without an `exchange`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    routing_keys: Vec<&'a str>,
    /// The time to live of its own that it lost by this, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
}

/// A message, lent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LeasedMessage)]
pub(crate) struct LeasedOut<'a> {
    /// What to show when settling or extending.
    receipt: String,
    /// Whether it was leased before.
    redelivered: bool,
    /// How long the work on it may take from now, however often the lease is extended, ms; missing: as long as it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_timeout_ms: Option<u64>,
    /// The message.
    #[serde(flatten)]
    message: MessageOut<'a>,
}

/// Messages, lent. None when the wait was over first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Leased)]
pub(crate) struct LeasedList<'a> {
    /// In the order they were leased.
    messages: Vec<LeasedOut<'a>>,
}

/// A message, seen and left where it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BrowsedMessage)]
pub(crate) struct BrowsedOut<'a> {
    /// The message.
    #[serde(flatten)]
    message: MessageOut<'a>,
    /// Who holds it, if it is leased and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<HolderOut>,
    /// How far the work on it is, if it is leased and that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressOut>,
    /// The trace it is of, if it says one; only when one message was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<TraceOut>,
    /// Messages ahead of it; only when one message was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// Messages ahead of it in its own lane; only when one message was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    position_in_priority: Option<u64>,
}

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Page)]
pub(crate) struct PageOut<'a> {
    /// In the order asked for.
    messages: Vec<BrowsedOut<'a>>,
    /// The `cursor` of the next page; missing at the end of the queue. Follow it until it is missing: where a filter matches few messages, a page may have
    /// few or none although there is a next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// How many messages this request looked at, whether they match or not. In dispatch order it may be 0 on a page that has a next one.
    looked_at: u64,
    /// How many messages the queue has, whatever their status.
    in_queue: u64,
}

/// How many messages a change touched.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Count)]
pub(crate) struct CountOut {
    /// So many.
    pub(crate) count: u64,
}

/// What became of each receipt.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Results)]
pub(crate) struct ResultList<'a> {
    /// In the order of the request.
    pub(crate) results: Vec<ResultOut<'a>>,
}

/// What became of one receipt.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReceiptResult)]
pub(crate) struct ResultOut<'a> {
    /// The receipt.
    receipt: &'a str,
    /// Whether it was done.
    ok: bool,
    /// Why not: a stable word.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    /// What to do then.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl PublishedList {
    /// Copies in queues that the request did not name itself: each says its queue.
    pub(crate) fn with_queues(copies: Vec<PublishedCopy>) -> Self {
        Self { messages: copies.into_iter().map(|copy| PublishedOut::of(copy, true)).collect() }
    }

    /// Copies in the queue of the path.
    pub(crate) fn in_one_queue(copies: Vec<PublishedCopy>) -> Self {
        Self { messages: copies.into_iter().map(|copy| PublishedOut::of(copy, false)).collect() }
    }
}

impl PublishedOut {
    fn of(copy: PublishedCopy, with_queue: bool) -> Self {
        let PublishedCopy { queue, id, seq, priority, duplicate, position, position_in_priority, .. } = copy;
        let queue = with_queue.then_some(queue);
        Self { id, seq: seq.0.to_string(), priority, position, position_in_priority, duplicate, queue }
    }
}

impl<'a> MessageOut<'a> {
    fn of(view: &'a MessageView, content: &'a Content, shown: Shown) -> Self {
        let text = std::str::from_utf8(&content.body).ok();
        let base64 = (shown.body && text.is_none()).then(|| STANDARD.encode(&content.body));
        Self {
            id: &view.id,
            seq: view.seq.0.to_string(),
            priority: &view.priority,
            given_priority: view.given,
            level: view.level.0,
            lane: &view.lane,
            status: view.status,
            published_at: rfc3339(view.since),
            expires_at: view.expires.map(rfc3339),
            due_at: view.due.map(rfc3339),
            deadline: view.deadline.map(rfc3339),
            delivery_count: view.count,
            bytes: view.bytes,
            key: view.key.as_deref(),
            key_weight: view.key_weight,
            content_type: content.content_type(),
            user_id: content.user_id(),
            properties: content.properties().into_iter().collect(),
            headers: content.headers(),
            body: text.filter(|_| shown.body),
            body_base64: base64,
            properties_base64: (shown.properties == PropertiesShown::Base64)
                .then(|| STANDARD.encode(content.property_list())),
            exchange: &content.route_of(view).exchange,
            routing_keys: keys_of(content.route_of(view)),
            dead_letter: view.death().map(DeathOut::of),
            deaths: view.deaths.iter().flat_map(|deaths| deaths.iter()).map(DeathOut::of).collect(),
            started: view.work.map(|work| rfc3339(work.started)),
            cancel_asked: view.work.is_some_and(|work| work.is_cancelled),
            record: view.record.as_deref().map(RecordOut::of),
            past_attempts: AttemptOut::all(view, shown.body),
        }
    }
}

impl<'a> DeathOut<'a> {
    fn of(death: &'a Death) -> Self {
        let Death { reason, ref queue, ref lane, first_at, at, times, count, ref route, ttl_ms } = *death;
        Self {
            reason,
            queue,
            lane,
            at: rfc3339(at),
            first_at: rfc3339(first_at),
            count: times,
            delivery_count: count,
            exchange: &route.exchange,
            routing_keys: keys_of(route),
            ttl_ms,
        }
    }
}

/// The routing keys of a route by an exchange.
fn keys_of(route: &Route) -> Vec<&str> {
    let keys = route.keys.iter().filter(|_| !route.exchange.is_empty());
    keys.map(|key| &**key).collect()
}

impl<'a> LeasedList<'a> {
    /// What was leased.
    pub(crate) fn of(leased: &'a [LeasedMessage], shown: Shown) -> Self {
        let one = |leased: &'a LeasedMessage| LeasedOut {
            receipt: leased.receipt.to_string(),
            redelivered: leased.message.count > 1,
            run_timeout_ms: leased.message.work.and_then(|work| Some(work.ends.some()?.since(work.started))),
            message: MessageOut {
                deadline: leased.deadline.map(rfc3339),
                ..MessageOut::of(&leased.message, &leased.content, shown)
            },
        };
        Self { messages: leased.iter().map(one).collect() }
    }
}

impl<'a> BrowsedOut<'a> {
    /// One message.
    pub(crate) fn of(browsed: &'a BrowsedMessage, shown: Shown) -> Self {
        Self {
            message: MessageOut::of(&browsed.message, &browsed.content, shown),
            holder: HolderOut::of(browsed.held.as_ref()),
            progress: ProgressOut::of(browsed.held.as_ref()),
            trace: None,
            position: browsed.position,
            position_in_priority: browsed.position_in_priority,
        }
    }
}

impl<'a> BrowsedOut<'a> {
    /// One message that was asked for alone. Traces can be looked at there.
    pub(crate) fn alone(browsed: &'a BrowsedMessage, shown: Shown, traces: Option<&str>) -> Self {
        Self { trace: TraceOut::of(&browsed.content, traces), ..Self::of(browsed, shown) }
    }
}

impl<'a> PageOut<'a> {
    /// One page.
    pub(crate) fn of(page: &'a Page, order: BrowseOrder, shown: Shown) -> Self {
        Self {
            messages: page.messages.iter().map(|message| BrowsedOut::of(message, shown)).collect(),
            next_cursor: page.next.as_ref().map(|cursor| cursor_text(cursor, order)),
            looked_at: page.looked_at,
            in_queue: page.in_queue,
        }
    }
}

impl<'a> ResultOut<'a> {
    /// What became of this receipt.
    pub(crate) fn of(receipt: &'a str, result: Result<(), Refusal>) -> Self {
        let refusal = result.err();
        Self {
            receipt,
            ok: refusal.is_none(),
            code: refusal.map(Refusal::code),
            hint: refusal.map(Refusal::hint),
        }
    }
}

/// A moment as in RFC 3339, UTC, with milliseconds. Moments after the year 9999 are shown as its end.
pub(crate) fn rfc3339(time: Time) -> String {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    let timestamp = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    format!("{timestamp:.3}")
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_utc_with_milliseconds() {
        assert_eq!(rfc3339(Time(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(Time(1_732_678_400_001)), "2024-11-27T03:33:20.001Z");
        assert_eq!(rfc3339(Time(u64::MAX - 1)), "9999-12-30T22:00:00.999Z");
    }
}

//! `overtake consume`

use std::io::{self, Write};
use std::time::Instant;

use clap::Args;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{Ended, Session};
use crate::address::path;
use crate::body;
use crate::failure::{Exit, Failure};
use crate::words;
use crate::worker_name;

/// Longest wait of one request, ms.
const WAIT_MS_MAX: u64 = 20_000;

/// Take a message out of a queue, the most urgent first.
///
/// The body is printed on a line of its own, and its message is acknowledged after that, which removes it from the queue; what could
/// not be printed is put back. --count takes more, --all takes every message. Without --wait it ends when nothing is ready. Exit code 75
/// when there was nothing, or less than --count.
///
/// To look at messages and leave them where they are: overtake peek, overtake top, overtake watch, overtake queue show.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake consume jobs
  overtake consume jobs --count 10 --wait 30s
  overtake consume jobs --all --wait --json | while read -r job; do ./work \"$job\"; done
  overtake consume jobs --nack --delay 5m")]
pub(crate) struct ConsumeArgs {
    /// The queue.
    queue: String,
    /// Stop after so many messages [default: 1].
    #[arg(long, short = 'n', value_name = "N", value_parser = words::whole(1_u64..))]
    count: Option<u64>,
    /// Take every message that is ready; with --wait also those that come later.
    #[arg(long, conflicts_with_all = ["count", "nack"])]
    all: bool,
    /// Wait for messages: so long for each, or for ever.
    #[arg(long, short, value_name = "DURATION", num_args = 0..=1, default_missing_value = "forever", value_parser = wait)]
    wait: Option<Wait>,
    /// Lease at most so many messages with one request, of those that --count or --all takes. What was leased is printed before what becomes urgent later, so 1 is strictest.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = words::whole(1_u64..=1_000))]
    max: u64,
    /// How long the broker waits for the acknowledgement; 0: for ever [default: as the queue says].
    #[arg(long, value_name = "DURATION", value_parser = words::duration_ms)]
    visibility_timeout: Option<u64>,
    /// What this consumer calls itself, for people who ask who holds a message [default: HOST:PID].
    #[arg(long, value_name = "NAME", value_parser = worker_name::given)]
    name: Option<String>,
    /// Acknowledge after printing. This is the default.
    #[arg(long, group = "how", help_heading = "After printing")]
    ack: bool,
    /// Leave the messages leased: they come back when their leases end.
    #[arg(long, group = "how", help_heading = "After printing")]
    no_ack: bool,
    /// Say that it failed: the message is put back for another attempt.
    #[arg(long, group = "how", help_heading = "After printing")]
    nack: bool,
    /// Say that it can never be done: the message becomes a dead letter.
    #[arg(long, group = "how", help_heading = "After printing")]
    reject: bool,
    /// With --nack: wait so long before the next attempt [default: the queue's backoff].
    #[arg(long, requires = "nack", value_name = "DURATION", value_parser = words::duration_ms, help_heading = "After printing")]
    delay: Option<u64>,
    /// End each body with a zero byte instead of a line feed.
    #[arg(long, short = '0', conflicts_with = "json")]
    null: bool,
}

/// How long to wait for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    For(u64),
    Forever,
}

fn wait(text: &str) -> Result<Wait, String> {
    match text {
        "forever" => Ok(Wait::Forever),
        text => words::duration_ms(text).map(Wait::For),
    }
}

/// How messages are settled; `None` leaves them leased.
fn outcome(args: &ConsumeArgs) -> Option<Value> {
    match (args.no_ack, args.nack, args.reject) {
        (true, ..) => None,
        (_, true, _) => Some(match args.delay {
            Some(delay_ms) => json!({ "how": "nack", "delay_ms": delay_ms }),
            None => json!({ "how": "nack" }),
        }),
        (.., true) => Some(json!({ "how": "reject" })),
        _ => Some(json!({ "how": "ack" })),
    }
}

/// Leases, prints, settles, until there is enough or nothing.
pub(crate) async fn run(args: &ConsumeArgs, session: &Session) -> Ended {
    let most = (!args.all).then(|| args.count.unwrap_or(1));
    let mut taken = 0;
    while most.is_none_or(|most| taken < most) {
        let max = most.map_or(args.max, |most| args.max.min(most - taken));
        let messages = lease(args, max, session).await?;
        if messages.is_empty() {
            break;
        }
        taken += messages.len() as u64;
        if let Err(failure) = print(args, &messages, session) {
            give_back(args, &messages, session).await;
            return Err(failure);
        }
        settle(args, &messages, session).await?;
    }
    let too_few = taken == 0 || args.count.is_some_and(|count| taken < count);
    if too_few { Err(nothing(args, taken)) } else { Ok(Exit::Done) }
}

fn nothing(args: &ConsumeArgs, taken: u64) -> Failure {
    let what = match (taken, args.count) {
        (0, _) => format!("no message is ready in {}", args.queue),
        (taken, count) => format!("{taken} of {} messages came from {}", count.unwrap_or(0), args.queue),
    };
    let failure = Failure::new(Exit::Empty, what);
    if args.wait.is_none() { failure.hint("wait for one with --wait, or --wait 30s") } else { failure }
}

/// What is there, or the first that comes in time.
async fn lease(args: &ConsumeArgs, max: u64, session: &Session) -> Result<Vec<Value>, Failure> {
    let started = Instant::now();
    loop {
        let waited = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let left = match args.wait {
            None => 0,
            Some(Wait::Forever) => u64::MAX,
            Some(Wait::For(ms)) => ms.saturating_sub(waited),
        };
        let wait_ms = left.min(WAIT_MS_MAX);
        let name = args.name.clone().unwrap_or_else(worker_name::own);
        let mut request = json!({ "max": max, "wait_ms": wait_ms, "worker": name });
        if let Some(ms) = args.visibility_timeout {
            request["visibility_timeout_ms"] = ms.into();
        }
        let path = path(&["v1", "queues", &args.queue, "leases"]);
        let mut answer = session.client.ask_waiting(wait_ms, &path, &request).await?.body;
        match answer["messages"].take() {
            Value::Array(messages) if !messages.is_empty() || left <= wait_ms => return Ok(messages),
            Value::Array(_) => {}
            _ => return Err(Failure::new(Exit::Error, "the broker sent no messages")),
        }
    }
}

fn print(args: &ConsumeArgs, messages: &[Value], session: &Session) -> Result<(), Failure> {
    let mut out = Vec::new();
    for message in messages {
        if session.out.is_json() {
            out.extend_from_slice(message.to_string().as_bytes());
        } else {
            out.extend(body::of(message)?);
        }
        out.push(if args.null { 0 } else { b'\n' });
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(&out)?;
    Ok(stdout.flush()?)
}

async fn settle(args: &ConsumeArgs, messages: &[Value], session: &Session) -> Result<(), Failure> {
    let Some(mut request) = outcome(args) else { return Ok(()) };
    request["receipts"] = receipts(messages);
    let path = path(&["v1", "queues", &args.queue, "settle"]);
    let answer = session.client.post(&path, &request).await?;
    let results = answer["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let late = results.iter().filter(|result| result["ok"] == false).count();
    if late == 0 {
        return Ok(());
    }
    let hint = results.iter().find_map(|result| result["hint"].as_str()).unwrap_or_default();
    let status = StatusCode::CONFLICT.as_u16();
    Err(Failure::new(
        Exit::Error,
        format!("{late} of {} leases were over before they were settled ({status})", messages.len()),
    )
    .hint(hint))
}

/// Puts back what could not be printed. If that fails, too, the leases run out.
async fn give_back(args: &ConsumeArgs, messages: &[Value], session: &Session) {
    let path = path(&["v1", "queues", &args.queue, "settle"]);
    let _ = session.client.post(&path, &json!({ "receipts": receipts(messages), "how": "release" })).await;
}

fn receipts(messages: &[Value]) -> Value {
    messages.iter().map(|message| message["receipt"].clone()).collect()
}

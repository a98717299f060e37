//! `overtake publish`

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use super::{Ended, Session, lines};
use crate::address::path;
use crate::body;
use crate::failure::{Exit, Failure};
use crate::table::number;
use crate::words;

/// Publish one message, or every line of a file.
///
/// It answers when the broker has it on the disk. A publish with --id can be repeated: while a message of that id is
/// pending, another is not made.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake publish jobs 'resize 4711' --priority 9
  tar c photos | overtake publish archives - --priority LOW --ttl 7d
  overtake publish jobs --lines todo.txt --priority 1
  jq -c '.[]' jobs.json | overtake publish jobs --lines - --json-lines")]
pub(crate) struct PublishArgs {
    /// The queue.
    queue: String,
    /// The body; - or nothing reads it from stdin.
    body: Option<String>,
    #[command(flatten)]
    message: MessageArgs,
    /// Publish each line of this file (- is stdin) as a message.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["body", "id"], help_heading = "Many messages")]
    lines: Option<PathBuf>,
    /// Each line is a message as the HTTP API takes it: {"body":…,"priority":…,…}. Flags fill in what it lacks.
    #[arg(long, requires = "lines", help_heading = "Many messages")]
    json_lines: bool,
    /// Most messages of one request.
    #[arg(long, requires = "lines", value_name = "N", default_value_t = 500, help_heading = "Many messages")]
    #[arg(value_parser = words::whole(1_u64..=10_000))]
    batch: u64,
    /// Requests under way at once. With more than 1 batches may overtake each other, so lines of one priority are no
    /// longer in the order of the file.
    #[arg(long, requires = "lines", value_name = "N", default_value_t = 1, help_heading = "Many messages")]
    #[arg(value_parser = words::whole(1_u64..=64))]
    in_flight: u64,
}

/// What a message says beside its body.
#[derive(Clone, Debug, Args)]
pub(crate) struct MessageArgs {
    #[command(flatten)]
    content: ContentArgs,
    /// Its id: makes publishing it again harmless while it is pending.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Do not deliver it before so long.
    #[arg(long, value_name = "DURATION", value_parser = words::duration_ms)]
    delay: Option<u64>,
}

/// What it says wherever it comes from.
#[derive(Clone, Debug, Args)]
pub(crate) struct ContentArgs {
    /// How urgent, in the words of the queue's scheme: a number or a name.
    #[arg(long, short, value_name = "PRIORITY", allow_hyphen_values = true)]
    priority: Option<String>,
    /// Its key, for last-value queues, groups and filters.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The turns of its key beside those of others, where keys take turns and the queue's settings give this key no
    /// weight: 1 to 1000.
    #[arg(long, value_name = "N", value_parser = words::whole(1_u32..=1_000))]
    key_weight: Option<u32>,
    /// Never deliver it after so long: 250ms, 30s, 5m, 1h30m [default: as the queue says].
    #[arg(long, value_name = "DURATION")]
    #[arg(value_parser = words::more_than_0("a time to live of 0 is none: say 1ms or more, or leave --ttl out for the queue's time to live"))]
    ttl: Option<u64>,
    /// A header. May be given again.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = words::pair)]
    headers: Vec<(String, String)>,
    /// The media type of the body.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
}

impl MessageArgs {
    /// As the wire says it, without a body.
    pub(crate) fn json(&self) -> Result<Map<String, Value>, Failure> {
        let mut message = self.content.json()?;
        put(&mut message, "id", self.id.as_deref().map(Value::from));
        put(&mut message, "delay_ms", self.delay.map(Value::from));
        Ok(message)
    }
}

impl ContentArgs {
    /// As the wire says it, without a body.
    pub(crate) fn json(&self) -> Result<Map<String, Value>, Failure> {
        let mut message = Map::new();
        put(&mut message, "priority", self.priority.as_deref().map(words::priority));
        put(&mut message, "key", self.key.as_deref().map(Value::from));
        put(&mut message, "key_weight", self.key_weight.map(Value::from));
        put(&mut message, "ttl_ms", self.ttl.map(Value::from));
        put(&mut message, "content_type", self.content_type.as_deref().map(Value::from));
        let headers = words::headers(&self.headers)?;
        put(&mut message, "headers", (!self.headers.is_empty()).then_some(headers));
        Ok(message)
    }
}

fn put(message: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    message.extend(value.map(|value| (name.to_owned(), value)));
}

/// Publishes.
pub(crate) async fn run(args: &PublishArgs, session: &Session) -> Ended {
    let to = path(&["v1", "queues", &args.queue, "messages"]);
    if let Some(file) = &args.lines {
        let plan = lines::Plan {
            file: file.clone(),
            to,
            common: args.message.json()?,
            are_json: args.json_lines,
            batch: usize::try_from(args.batch).unwrap_or(usize::MAX),
            in_flight: usize::try_from(args.in_flight).unwrap_or(1),
        };
        return lines::publish(plan, session).await;
    }
    let mut message = args.message.json()?;
    body::put(&mut message, &read_body(args.body.as_deref())?);
    let answer = session.client.post(&to, &Value::Object(message)).await?;
    session.out.done(&answer, || published(&answer["messages"][0], &args.queue))?;
    Ok(Exit::Done)
}

/// The body that was given, or stdin.
pub(crate) fn read_body(given: Option<&str>) -> Result<Vec<u8>, Failure> {
    match given {
        Some(text) if text != "-" => Ok(text.as_bytes().to_vec()),
        None if io::stdin().is_terminal() => {
            Err(Failure::usage("there is no body").hint("give it after the queue, or pipe it in"))
        }
        _ => {
            let mut body = Vec::new();
            io::stdin().lock().read_to_end(&mut body)?;
            Ok(body)
        }
    }
}

/// One copy, in a sentence.
pub(crate) fn published(copy: &Value, queue: &str) -> String {
    let id = super::queue::text(&copy["id"]);
    let there = if copy["duplicate"] == true { "was there already" } else { "is published" };
    let priority = super::queue::text(&copy["priority"]);
    let ahead = match (copy["position"].as_u64(), copy["position_in_priority"].as_u64()) {
        (Some(all), Some(own)) => {
            format!(", {} ahead of it, {} of its own priority", number(all), number(own))
        }
        (None, Some(own)) => format!(", {} of its own priority ahead of it", number(own)),
        _ => String::new(),
    };
    format!("{id} {there} in {queue} with priority {priority}{ahead}")
}

//! `overtake exec submit`

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::{Value, json};

use super::exec::hint_to_create;
use super::publish::{MessageArgs, read_body};
use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::body;
use crate::failure::Exit;
use crate::table::number;

/// Submit work to be executed.
///
/// It answers with the id, which is made up if none is given, when the broker has it on the disk, and with how many are ahead of it.
/// Submitting one again whose --id waits or runs changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake exec submit 'render 4711' --priority high
  overtake exec submit - --id order-4711 --key customer-17 < order.json
  overtake exec submit 'report' --priority background --delay 1h --for ann")]
pub(crate) struct SubmitArgs {
    /// What is to be done; - or nothing reads it from stdin.
    body: Option<String>,
    /// Whose it is, if not your own; administrators submit others'.
    #[arg(long = "for", value_name = "NAME")]
    user_id: Option<String>,
    #[command(flatten)]
    message: MessageArgs,
}

/// Publishes it.
pub(crate) async fn run(args: &SubmitArgs, queue: &str, session: &Session) -> Ended {
    let mut message = args.message.json()?;
    body::put(&mut message, &read_body(args.body.as_deref())?);
    message.entry("id").or_insert_with(|| new_id().into());
    let user_id = match &args.user_id {
        Some(name) => Value::from(name.as_str()),
        None => session.client.get("/v1/whoami").await?["name"].take(),
    };
    message.insert("user_id".to_owned(), user_id);
    let to = path(&["v1", "queues", queue, "messages"]);
    let published = session.client.post(&to, &Value::Object(message)).await;
    let mut published = published.map_err(|failure| match failure.word() {
        Some("no-such-queue") => failure.hint(hint_to_create(queue)),
        _ => failure,
    })?;
    let mut copy = published["messages"][0].take();
    let id = copy["id"].take();
    let mut answer = json!({ "execution_id": id, "queue": queue });
    for key in ["priority", "position", "position_in_priority", "duplicate"] {
        if !copy[key].is_null() {
            answer[key] = copy[key].take();
        }
    }
    session.out.done(&answer, || told(&answer, queue))?;
    Ok(Exit::Done)
}

fn told(answer: &Value, queue: &str) -> String {
    let there = if answer["duplicate"] == true { "was there already" } else { "is submitted" };
    let ahead = answer["position"].as_u64();
    let ahead = ahead.map_or_else(String::new, |ahead| format!(", {} ahead of it", number(ahead)));
    let [id, priority] = ["execution_id", "priority"].map(|key| text(&answer[key]));
    format!("{id} {there} in {queue} with priority {priority}{ahead}")
}

/// An id that nobody else makes up.
fn new_id() -> String {
    // Keyed by what the system draws.
    let drawn = RandomState::new().build_hasher().finish();
    let ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    format!("{ms:011x}-{drawn:016x}")
}

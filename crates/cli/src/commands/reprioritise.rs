//! `overtake reprioritise`

use clap::Args;
use hyper::Method;
use serde_json::{Map, Value, json};

use super::queue::{touch_each, touched};
use super::{Ended, Session, job};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::{Exit, Failure};
use crate::selection::{Chosen, Selection};
use crate::words;

/// Give waiting messages another priority.
///
/// Each keeps its age: it stands in its new lane where it would if it had been published with that priority. Leased messages
/// are refused when named, and left alone otherwise.
#[derive(Debug, Args)]
#[command(
    visible_alias = "reprioritize",
    after_help = "\
Examples:
  overtake reprioritise jobs seq-17 --to 9
  overtake reprioritise jobs --header tenant=acme --to HIGH
  overtake reprioritise jobs --all --to 4"
)]
pub(crate) struct ReprioritiseArgs {
    /// The queue.
    queue: String,
    /// The new priority, in the words of the queue's scheme.
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true)]
    to: String,
    #[command(flatten)]
    which: Selection,
    #[command(flatten)]
    yes: Yes,
}

/// Asks for each id, or once for a filter.
pub(crate) async fn run(args: &ReprioritiseArgs, session: &Session) -> Ended {
    let (priority, done) = (words::priority(&args.to), format!("now with priority {}", args.to));
    let answer = match args.which.chosen()? {
        Chosen::Ids(ids) => {
            let one = async |id: &str| {
                let path = path(&["v1", "queues", &args.queue, "messages", id, "priority"]);
                let body = json!({ "priority": priority });
                session.client.ask(Method::PUT, &path, Some(&body)).await.map(|answer| answer.body)
            };
            return touch_each(ids, &done, session, one).await;
        }
        Chosen::Matching(request) => many(args, request, priority, session).await?,
        Chosen::All(request) => {
            let question =
                format!("Give every message that waits in queue `{}` priority {}?", args.queue, args.to);
            args.yes.or_ask_at_terminal(&question)?;
            many(args, request, priority, session).await?
        }
    };
    session.out.done(&answer, || touched(&answer, &done))?;
    Ok(Exit::Done)
}

async fn many(
    args: &ReprioritiseArgs,
    mut request: Map<String, Value>,
    priority: Value,
    session: &Session,
) -> Result<Value, Failure> {
    request.insert("priority".to_owned(), priority);
    let to = path(&["v1", "queues", &args.queue, "reprioritise"]);
    job::change(&session.client, session.out.is_quiet(), &to, &Value::Object(request)).await
}

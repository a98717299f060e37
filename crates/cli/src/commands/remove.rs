//! `overtake remove`

use clap::Args;
use hyper::Method;
use serde_json::Value;

use super::queue::{touch_each, touched};
use super::{Ended, Session, job};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::{Exit, Failure};
use crate::selection::{Chosen, Selection};

/// Remove messages from a queue, wherever in their life they stand.
///
/// A leased one is taken away from its consumer: his acknowledgement will be refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake remove jobs seq-17 seq-18
  overtake remove jobs --status dead --key customer-4711
  overtake remove jobs --all --yes")]
pub(crate) struct RemoveArgs {
    /// The queue.
    queue: String,
    #[command(flatten)]
    which: Selection,
    #[command(flatten)]
    yes: Yes,
}

/// Asks for each id, or once for a filter.
pub(crate) async fn run(args: &RemoveArgs, session: &Session) -> Ended {
    let answer = match args.which.chosen()? {
        Chosen::Ids(ids) => {
            let one = async |id: &str| {
                let path = path(&["v1", "queues", &args.queue, "messages", id]);
                session.client.ask(Method::DELETE, &path, None).await.map(|answer| answer.body)
            };
            return touch_each(ids, "removed", session, one).await;
        }
        Chosen::Matching(request) => {
            args.which.ask(args.yes, "Remove", &args.queue)?;
            remove(args, request, session).await?
        }
        Chosen::All(request) => {
            args.yes.or_ask(&format!(
                "Remove every message of queue `{}`, also leased and dead ones?",
                args.queue
            ))?;
            remove(args, request, session).await?
        }
    };
    session.out.done(&answer, || touched(&answer, "removed"))?;
    Ok(Exit::Done)
}

async fn remove(
    args: &RemoveArgs,
    request: serde_json::Map<String, Value>,
    session: &Session,
) -> Result<Value, Failure> {
    let to = path(&["v1", "queues", &args.queue, "remove"]);
    job::change(&session.client, session.out.is_quiet(), &to, &Value::Object(request)).await
}

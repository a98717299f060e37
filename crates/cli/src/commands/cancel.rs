//! `overtake cancel`

use clap::Args;
use hyper::Method;
use serde_json::Value;

use super::queue::{touch_each, touched};
use super::{Ended, Session, job};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::Exit;
use crate::selection::{Chosen, Selection};

/// Take messages back: those that wait, and those that somebody works on.
///
/// What waits ends at once, as cancelled in the history of the queue. Who works on a message is told when it asks for more time: `overtake
/// work` ends the program then.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake cancel jobs seq-17 order-4711
  overtake cancel jobs --status ready --key customer-4711
  overtake cancel jobs --all --yes")]
pub(crate) struct CancelArgs {
    /// The queue.
    queue: String,
    #[command(flatten)]
    which: Selection,
    #[command(flatten)]
    yes: Yes,
}

/// What became of the messages.
const DONE: &str = "cancelled, or asked for";

/// Asks for each id, or once for a filter.
pub(crate) async fn run(args: &CancelArgs, session: &Session) -> Ended {
    let many = async |request| {
        let to = path(&["v1", "queues", &args.queue, "cancel"]);
        job::change(&session.client, session.out.is_quiet(), &to, &Value::Object(request)).await
    };
    let answer = match args.which.chosen()? {
        Chosen::Ids(ids) => {
            let one = async |id: &str| {
                let path = path(&["v1", "queues", &args.queue, "messages", id, "cancel"]);
                session.client.ask(Method::POST, &path, None).await.map(|answer| answer.body)
            };
            return touch_each(ids, DONE, session, one).await;
        }
        Chosen::Matching(request) => {
            args.which.ask(args.yes, "Cancel", &args.queue)?;
            many(request).await?
        }
        Chosen::All(request) => {
            args.yes.or_ask(&format!("Cancel every message of queue `{}`, also leased ones?", args.queue))?;
            many(request).await?
        }
    };
    session.out.done(&answer, || touched(&answer, DONE))?;
    Ok(Exit::Done)
}

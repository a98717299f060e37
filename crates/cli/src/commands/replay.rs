//! `overtake replay`

use clap::Args;
use serde_json::Value;

use super::queue::{touch_each, touched};
use super::{Ended, Session, job};
use crate::address::path;
use crate::failure::Exit;
use crate::selection::{Chosen, Selection};
use crate::words;

/// Put dead letters back into their lanes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake replay jobs --all
  overtake replay jobs seq-17 --promote 9
  overtake replay jobs --key customer-4711")]
pub(crate) struct ReplayArgs {
    /// The queue.
    queue: String,
    #[command(flatten)]
    which: Selection,
    /// With this priority instead of the one they had.
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true)]
    promote: Option<String>,
}

/// Asks for each id, or once for a filter.
pub(crate) async fn run(args: &ReplayArgs, session: &Session) -> Ended {
    let to = path(&["v1", "queues", &args.queue, "replay"]);
    let ask = async |mut request: serde_json::Map<String, Value>| {
        if let Some(priority) = &args.promote {
            request.insert("priority".to_owned(), words::priority(priority));
        }
        job::change(&session.client, session.out.is_quiet(), &to, &Value::Object(request)).await
    };
    let answer = match args.which.chosen()? {
        Chosen::Ids(ids) => {
            let one = async |id: &str| ask([("id".to_owned(), Value::from(id))].into_iter().collect()).await;
            return touch_each(ids, "replayed", session, one).await;
        }
        Chosen::Matching(request) | Chosen::All(request) => ask(request).await?,
    };
    session.out.done(&answer, || touched(&answer, "replayed"))?;
    Ok(Exit::Done)
}

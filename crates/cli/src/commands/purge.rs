//! `overtake purge`

use clap::Args;
use serde_json::json;

use super::queue::touched;
use super::{Ended, Session};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::Exit;
use crate::selection::Status;
use crate::words;

/// Remove everything that waits in a queue: what is ready or delayed. Leased messages stay with their consumers.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake purge jobs
  overtake purge jobs --status dead --yes")]
pub(crate) struct PurgeArgs {
    /// The queue.
    queue: String,
    /// Only what stands so: ready, delayed or dead.
    #[arg(long, value_name = "STATUS")]
    status: Option<Status>,
    /// Do it only if exactly so many messages are removed by it.
    #[arg(long, value_name = "N", value_parser = words::whole(0_u64..))]
    expect: Option<u64>,
    #[command(flatten)]
    yes: Yes,
}

/// Asks once.
pub(crate) async fn run(args: &PurgeArgs, session: &Session) -> Ended {
    let what = args.status.map_or("everything that waits", Status::word);
    args.yes.or_ask(&format!("Purge {what} in queue `{}`?", args.queue))?;
    let mut request = args.status.map_or_else(|| json!({}), |status| json!({ "status": status.word() }));
    if let Some(expect) = args.expect {
        request["expect"] = expect.into();
    }
    let answer = session.client.post(&path(&["v1", "queues", &args.queue, "purge"]), &request).await?;
    session.out.done(&answer, || touched(&answer, "purged"))?;
    Ok(Exit::Done)
}

//! `overtake drain`

use clap::Args;
use serde_json::json;

use super::{Ended, Session};
use crate::failure::{Exit, Failure};
use crate::words;

/// Prepare the broker for its end: it gives out nothing more, and waits for what is leased.
///
/// From now on the broker is not ready, accepts no AMQP connections, cancels consumers and closes connections that hold nothing any
/// more. Exit code 0 when everything came back, 75 when the time was over first; then AMQP connections are closed, and what they
/// hold is put back. The broker still runs: stop it, or start it again, which is the only way back.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake drain && systemctl restart overtake
  overtake drain --within 5m")]
pub(crate) struct DrainArgs {
    /// How long what is leased may take: 30s, 5m; else the broker's server.drain_timeout_ms.
    #[arg(long, value_name = "DURATION", value_parser = words::duration_ms)]
    within: Option<u64>,
}

/// Drains, and waits until that is over.
pub(crate) async fn run(args: &DrainArgs, session: &Session) -> Ended {
    let query = args.within.map(|ms| format!("?timeout_ms={ms}")).unwrap_or_default();
    let answer = session.client.post_for_long(&format!("/v1/drain{query}")).await?;
    let left = answer["unacknowledged"].as_u64().unwrap_or_default();
    if answer["drained"] != json!(true) {
        let messages = if left == 1 { "message was" } else { "messages were" };
        return Err(Failure::new(Exit::Empty, format!("the time is over: {left} {messages} still leased"))
            .hint("what AMQP connections held is put back; stop the broker, or start it again"));
    }
    session.out.done(&answer, || "drained: nothing is leased, and no AMQP connection is open".to_owned())?;
    Ok(Exit::Done)
}

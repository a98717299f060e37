//! `overtake exec create`

use clap::Args;
use hyper::Method;
use serde_json::{Value, json};

use super::{Ended, Session};
use crate::address::path;
use crate::failure::{Exit, Failure};
use crate::words;

/// Make a queue of executions, and the queue of what is finished, its history.
///
/// Both are queues like any other, and may be changed like them; the history is called NAME.history. What is there already, and is so, is
/// left as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake exec create
  overtake exec create --max-concurrent 20 --history 7d
  overtake exec create --queue renders --run-timeout 10m --attempts 1")]
pub(crate) struct CreateArgs {
    /// Most executions that run at once; 0: as many as workers take.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = words::whole(0_u32..=u32::MAX))]
    max_concurrent: u32,
    /// Forget what has been finished for so long: 24h, 7d; 0: never.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = words::duration_ms)]
    history: u64,
    /// Remember at most so many of them; 0: no limit.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = words::whole(0_u64..))]
    history_count: u64,
    /// Begin one that fails at most so often; 0: no limit.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = words::whole(0_u32..=u32::MAX))]
    attempts: u32,
    /// Wait so long before the second attempt, and twice as long before each further one, up to a minute.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = words::duration_ms)]
    backoff: u64,
    /// End one that runs for longer; 0: none.
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = words::duration_ms)]
    run_timeout: u64,
}

/// The longest backoff, ms.
const BACKOFF_MS_MAX: u64 = 60_000;

/// Makes both, the history first: a queue never names one that is not there.
pub(crate) async fn run(args: &CreateArgs, queue: &str, session: &Session) -> Ended {
    let history = format!("{queue}.history");
    let past = json!({
        "scheme": "named", "order": "fifo", "ttl_ms": args.history, "max_length": args.history_count,
    });
    let backoff =
        json!({ "initial_ms": args.backoff, "multiplier": 2, "max_ms": BACKOFF_MS_MAX.max(args.backoff) });
    let work = json!({
        "scheme": "named", "max_active": args.max_concurrent, "history": history, "delivery_limit": args.attempts,
        "backoff": backoff, "run_timeout_ms": args.run_timeout,
    });
    let pair = [(history.as_str(), &past), (queue, &work)];
    for (name, settings) in pair {
        check(name, settings, session).await?;
    }
    let mut made = false;
    for (name, settings) in pair {
        made |= declare(name, settings, session).await?;
    }
    session.out.done(&json!({ "queue": queue, "history": history, "made": made }), || {
        let what = if made { "made" } else { "there, with these settings" };
        format!("queue {queue} is {what}; what is finished goes to {history}")
    })?;
    Ok(Exit::Done)
}

/// The settings of a queue that is there.
async fn there(name: &str, session: &Session) -> Result<Option<Value>, Failure> {
    match session.client.get(&path(&["v1", "queues", name])).await {
        Ok(mut queue) => Ok(Some(queue["settings"].take())),
        Err(failure) if failure.word() == Some("no-such-queue") => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Whether what is there is so; somebody may have meant it otherwise.
async fn check(name: &str, settings: &Value, session: &Session) -> Result<(), Failure> {
    let Some(there) = there(name, session).await? else { return Ok(()) };
    let differs = settings.as_object().into_iter().flatten().find(|(key, value)| there[*key] != **value);
    differs.map_or(Ok(()), |(key, value)| {
        let what = format!("queue {name} is there already: its `{key}` is {} and not {value}", there[key]);
        Err(Failure::new(Exit::Error, what).hint(
            "change it with `overtake exec limit` or `overtake queue set`, or make another pair with --queue",
        ))
    })
}

/// Makes one that is not there. Answers whether it did.
async fn declare(name: &str, settings: &Value, session: &Session) -> Result<bool, Failure> {
    if there(name, session).await?.is_some() {
        return Ok(false);
    }
    session.client.ask(Method::PUT, &path(&["v1", "queues", name]), Some(settings)).await?;
    Ok(true)
}

//! `overtake watch`

use clap::Args;

use super::{Ended, Session};
use crate::watch::{self, Plan};
use crate::words;

/// Watch one queue, a line at a time: what is ready, leased, coming and going, how old, how long it waited.
///
/// Between the lines it says when something happens: the queue is paused or full, nobody takes from it, it falls behind, messages become
/// dead letters, the broker goes away or comes back. Rates and P95 (19 of 20 waited at most so long) are those since the line before. Ctrl-C
/// ends it with exit code 0.
///
/// For scripts: with --until-idle it ends with 0 when nothing is ready and nothing leased; what is delayed is not waited for. With --for,
/// too, it ends with 75 when that takes longer.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake watch jobs
  overtake watch jobs --interval 10s --warn-age 30s >> jobs.log
  overtake watch jobs --until-idle --for 10m --quiet && ./next
  overtake watch jobs --json | jq -c 'select(.event)'")]
pub(crate) struct WatchArgs {
    /// The queue.
    queue: String,
    /// Between two lines, 200ms or longer.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = words::interval_ms)]
    interval: u64,
    /// End after so many lines.
    #[arg(long, short = 'n', value_name = "N", value_parser = words::whole(1_u64..))]
    count: Option<u64>,
    /// Say when the oldest message has waited so long.
    #[arg(long, value_name = "DURATION")]
    #[arg(value_parser = words::more_than_0("every message has waited for 0: say 1ms or more"))]
    warn_age: Option<u64>,
    /// End when nothing is ready and nothing leased.
    #[arg(long)]
    until_idle: bool,
    /// End after so long.
    #[arg(long = "for", value_name = "DURATION", value_parser = words::duration_ms)]
    most: Option<u64>,
}

/// Prints lines until it is told to stop.
pub(crate) async fn run(args: &WatchArgs, session: &Session) -> Ended {
    let plan = Plan {
        queue: args.queue.clone(),
        interval: args.interval,
        lines: args.count,
        warn_age: args.warn_age,
        until_idle: args.until_idle,
        most: args.most,
    };
    watch::run(&plan, session).await
}

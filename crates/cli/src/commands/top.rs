//! `overtake top`

use clap::Args;

use super::{Ended, Session};
use crate::top::sort::Sort;
use crate::top::{self, Plan};
use crate::words;

/// Watch all queues: what waits, how urgent it is, how long it has waited, and who holds it.
///
/// The queue in which the most urgent work has waited longest comes first. Enter opens a queue into its lanes, with what is
/// leased and who takes; ? explains keys and columns. The bar under WAITING shows what is ready by urgency: █ the most urgent,
/// then ▓ ▒ ░ and ·. Rates and waiting times are those between two polls. When the broker goes away it is asked again until it is back.
///
/// Where standard output is no terminal, and with --once, one frame is printed as text, after one interval; with --json a line for each
/// poll. A broker that takes long to answer is asked less often than --interval says.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake top
  overtake top --queue 'orders.*' --sort ready --interval 5s
  overtake top --once
  overtake top --json | jq -c '.queues[] | select(.states != []) | [.name, .states]'")]
pub(crate) struct TopArgs {
    /// Between two polls, 200ms or longer.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = words::interval_ms)]
    interval: u64,
    /// Only queues whose names are like this: * is any text, ? any character.
    #[arg(long, value_name = "PATTERN")]
    queue: Option<String>,
    /// What comes first.
    #[arg(long, value_name = "BY", default_value = "trouble")]
    sort: Sort,
    /// Print one frame as text, and end.
    #[arg(long)]
    once: bool,
}

/// Shows queues until it is told to stop.
pub(crate) async fn run(args: &TopArgs, session: &Session) -> Ended {
    let plan = Plan { interval: args.interval, only: args.queue.clone(), sort: args.sort, once: args.once };
    top::run(&plan, session).await
}

//! `overtake subscribe`

use clap::Args;
use serde_json::Map;

use super::category::join;
use super::work::{Manner, work};
use super::{Ended, Session};
use crate::commands::queue::text;

/// Run a program for each message of a category, as a member of a group of consumers: the primary lane first.
///
/// The group is made where it is not there yet; it then gets what is published from now on. What a program finds and how it ends a message
/// is as `overtake work` has it, which works the queue CATEGORY@GROUP.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake subscribe --category customer --group mails -- ./send-mail
  overtake subscribe -c customer -g billing --slots 4 --until-empty -- ./bill")]
pub(crate) struct SubscribeArgs {
    /// The category.
    #[arg(long, short, value_name = "NAME")]
    category: String,
    /// The group of consumers: its members share its messages.
    #[arg(long, short, value_name = "NAME")]
    group: String,
    #[command(flatten)]
    manner: Manner,
}

/// Joins the group and works until it is told to stop.
pub(crate) async fn run(args: &SubscribeArgs, session: &Session) -> Ended {
    let (_, joined) = join(&args.category, &args.group, Map::new(), session).await?;
    work(text(&joined["queue"]), &args.manner, session).await
}

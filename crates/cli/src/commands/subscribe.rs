//! `overtake subscribe`

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use overtake_streams::{Retry, Start, SubscribeOptions, Subscriber};
use serde_json::Map;

use super::category::join;
use super::work::Manner;
use super::{Ended, Session};
use crate::commands::queue::text;
use crate::failure::{Exit, Failure};
use crate::redis::RedisArgs;
use crate::words;
use crate::work::Origin;

/// Run a program for each message of a category, as a member of a group of consumers: the primary lane first.
///
/// The group is made where it is not there yet. At a broker it gets what is published from then on, and works the queue CATEGORY@GROUP as `overtake work` does. Of
/// streams of Redis or Valkey it gets what is there, too; what a consumer that died held is taken over, what fails is tried again in its own lane, and in the end it is
/// among the dead letters CATEGORY:dlq or CATEGORY:backfill:dlq.
///
/// What a program finds, and how it ends a message, is as `overtake work` has it. Of an entry of a stream there are OVERTAKE_ID, OVERTAKE_STREAM, OVERTAKE_ENTRY, OVERTAKE_LANE,
/// OVERTAKE_TYPE, OVERTAKE_PRIORITY, OVERTAKE_ATTEMPT and OVERTAKE_METADATA (JSON), where the entry has them; its data is the standard input.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake subscribe --category customer --group mails -- ./send-mail
  overtake subscribe -c customer -g billing --slots 4 --until-empty -- ./bill
  overtake subscribe redis://127.0.0.1:6379/0 -c customer -g mails -- ./send-mail")]
pub(crate) struct SubscribeArgs {
    /// redis://HOST:PORT/DATABASE, or rediss, valkey, valkeys [default: the broker].
    #[arg(value_name = "URL")]
    source: Option<String>,
    /// The category.
    #[arg(long, short, value_name = "NAME")]
    category: String,
    /// The group of consumers: its members share its messages.
    #[arg(long, short, value_name = "NAME")]
    group: String,
    #[command(flatten)]
    manner: Manner,
    #[command(flatten)]
    redis: RedisArgs,
    #[command(flatten)]
    reading: Reading,
}

/// How streams of Redis are read.
#[derive(Debug, Args)]
#[command(next_help_heading = "In Redis or Valkey")]
struct Reading {
    /// So often an entry is tried before it is a dead letter.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "source", value_parser = words::whole(1_u32..))]
    attempts: u32,
    /// What another consumer has not settled for so long is taken over.
    #[arg(long, value_name = "DURATION", default_value = "60s", requires = "source", value_parser = words::duration_ms)]
    claim_idle: u64,
    /// A group that is made begins with what is added from now on, in place of the oldest entry.
    #[arg(long, requires = "source")]
    from_now: bool,
    /// The category is parted by keys: the streams of each partition are read, too, and the group has one entry of each at a time.
    #[arg(long, requires = "source")]
    partitions: bool,
    /// How many of the `--slots` never run a program for the backfill lane: an urgent entry finds one free while bulk work is slow.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "source", value_parser = primary_slots)]
    primary_slots: u16,
}

fn primary_slots(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "a number of slots from 0 to 65535, fewer than --slots".to_owned())
}

/// Joins the group and works until it is told to stop.
pub(crate) async fn run(args: &SubscribeArgs, session: &Session) -> Ended {
    let Some(url) = &args.source else {
        args.redis.none("name their server, as redis://HOST:PORT/DATABASE")?;
        let (_, joined) = join(&args.category, &args.group, Map::new(), session).await?;
        let from = Origin::Broker(Box::new(session.client.clone()));
        return args.manner.work(text(&joined["queue"]), from, session.out).await;
    };
    let subscriber = Subscriber::connect(&args.redis.server(url, session)?, options(args)?).await;
    let subscriber = subscriber.map_err(|why| Failure::new(Exit::Error, why))?;
    subscriber.set_slots(args.manner.slots()).map_err(Failure::usage)?;
    if let Ok(Some(unread)) = subscriber.unread().await
        && !session.out.is_quiet()
    {
        let hint = "--priority-lanes and --priority-lanes-suffix are `lanes`, --partitions is `partitions`";
        // Without a stderr there is nobody to tell.
        let _ = writeln!(io::stderr(), "warning: {unread} ({hint})");
    }
    args.manner.work(args.category.clone(), Origin::Streams(subscriber), session.out).await
}

fn options(args: &SubscribeArgs) -> Result<SubscribeOptions, Failure> {
    let Reading { attempts, claim_idle, from_now, partitions, primary_slots } = args.reading;
    let lanes = args.redis.lanes()?;
    if primary_slots > 0 && lanes.all().len() < 2 {
        return Err(Failure::usage(
            "--primary-slots needs two lanes: say --priority-lanes, or leave out --primary-slots",
        ));
    }
    if primary_slots > 0 && primary_slots >= args.manner.slots() {
        let slots = args.manner.slots();
        return Err(Failure::usage(format!(
            "--primary-slots {primary_slots} must be less than --slots {slots}, or the backfill lane is never read"
        )));
    }
    let usual = Retry::default();
    Ok(SubscribeOptions {
        consumer: args.manner.name(),
        lanes,
        partitions,
        primary_slots,
        // What waits for a slot would be held, while others might do it.
        batch: 1,
        retry: Retry { attempts, initial: args.manner.delay().unwrap_or(usual.initial), ..usual },
        claim_idle: Duration::from_millis(claim_idle),
        start: if from_now { Start::New } else { Start::Beginning },
        ..SubscribeOptions::new(&*args.category, &*args.group)
    })
}

//! `overtake work`

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use overtake_server::config::{ByteSize, Value as _};

use super::{Ended, Session};
use crate::failure::Failure;
use crate::out::Out;
use crate::words;
use crate::work::{Origin, Plan, Program};
use crate::worker_name;

/// Shortest lease, ms: a third of it must be long enough for an answer.
const LEASE_MS_MIN: u64 = 1_000;
/// Most of the output that is kept of a program, bytes.
const KEEP_MAX: u64 = 24 << 10;

/// Run a program for each message of a queue, the most urgent first.
///
/// The body is the program's standard input, the properties are in its environment. When it ends with 0 the message is
/// acknowledged; when it ends otherwise the message is put back for another attempt, as the queue's backoff and delivery limit
/// say. While it runs the lease is extended. Where the terminal shows it, a line for each slot says what it does; else a line
/// is printed when a program starts and one when it ends.
///
/// The first Ctrl-C, SIGTERM or SIGHUP takes no more messages and waits for what runs, the second ends what runs and puts it back
/// untouched, the third kills it and waits for nothing. After a first or second the exit code is 0, after a third 1. When the
/// broker goes away it is asked again until it is back.
///
/// OVERTAKE_ID, OVERTAKE_QUEUE, OVERTAKE_PRIORITY, OVERTAKE_LANE, OVERTAKE_ATTEMPT (how often it was leased, this time included), OVERTAKE_KEY,
/// OVERTAKE_CONTENT_TYPE and whatever else the API shows of a message are set where the message has them, and
/// OVERTAKE_HEADER_X for each header x: in capitals, with _ for all that is no letter or digit. A message that is of a trace (header
/// traceparent) also sets TRACEPARENT and TRACESTATE.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake work jobs -- ./work
  overtake work jobs --slots 4 --reject-on 64,65 -- ./work --fast
  overtake work mails --until-empty -- sh -c 'mail -s \"$OVERTAKE_HEADER_SUBJECT\" \"$OVERTAKE_KEY\"'
  overtake work jobs --json --lease 5m -- ./work >> work.log")]
pub(crate) struct WorkArgs {
    /// The queue.
    queue: String,
    #[command(flatten)]
    manner: Manner,
}

/// Which program, and how it is run.
#[derive(Debug, Args)]
pub(crate) struct Manner {
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
    /// Run so many programs at once.
    #[arg(long, short = 'j', value_name = "N", default_value_t = 1, value_parser = words::whole(1_u16..=256))]
    slots: u16,
    /// Stop after so many messages.
    #[arg(long, short = 'n', value_name = "N", value_parser = words::whole(1_u64..))]
    max: Option<u64>,
    /// Stop when nothing runs and there is nothing to lease. Delayed messages are not waited for.
    #[arg(long)]
    until_empty: bool,
    /// Lease each message for so long. While its program runs it is extended every third of that.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = lease)]
    lease: u64,
    /// Between SIGTERM and SIGKILL, when a program has to end.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = words::duration_ms)]
    grace: u64,
    /// Exit codes that say it can never be done: the message becomes a dead letter at once.
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = words::whole(1_u8..=u8::MAX))]
    reject_on: Vec<u8>,
    /// Wait so long before the next attempt of what failed [default: the queue's backoff].
    #[arg(long, value_name = "DURATION", value_parser = words::duration_ms)]
    delay: Option<u64>,
    /// Keep so much of the end of what a program prints, at most 24KiB.
    #[arg(long, value_name = "BYTES", default_value = "8KiB", value_parser = keep)]
    keep: u64,
    /// Pass on what the programs print, each line behind the id of its message, to standard error.
    #[arg(long)]
    show: bool,
    /// What the worker calls itself, for people who ask who holds a message [default: HOST:PID].
    #[arg(long, value_name = "NAME", value_parser = worker_name::given)]
    name: Option<String>,
    /// Print lines on a terminal, too.
    #[arg(long)]
    lines: bool,
}

/// Works until it is told to stop.
pub(crate) async fn run(args: &WorkArgs, session: &Session) -> Ended {
    args.manner.work(args.queue.clone(), Origin::Broker(Box::new(session.client.clone())), session.out).await
}

impl Manner {
    /// Works a queue until it is told to stop.
    pub(super) async fn work(&self, queue: String, from: Origin, out: Out) -> Ended {
        let words = self.program.split_first();
        let (name, rest) = words.ok_or_else(|| Failure::usage("no program was named"))?;
        let plan = Plan {
            queue,
            name: self.name(),
            slots: self.slots.into(),
            max: self.max,
            until_empty: self.until_empty,
            lease: Duration::from_millis(self.lease),
            grace: Duration::from_millis(self.grace),
            reject_on: self.reject_on.clone(),
            delay_ms: self.delay,
            keep: usize::try_from(self.keep).unwrap_or(usize::MAX),
            show: self.show,
            lines: self.lines,
        };
        crate::work::run(plan, Program::find(name, rest)?, from, out).await
    }

    /// How many programs run at once.
    pub(super) fn slots(&self) -> u16 {
        self.slots
    }

    /// What the worker calls itself.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(worker_name::own)
    }

    /// The wait before another attempt, if it is said.
    pub(super) fn delay(&self) -> Option<Duration> {
        self.delay.map(Duration::from_millis)
    }
}

fn lease(text: &str) -> Result<u64, String> {
    let ms = words::duration_ms(text)?;
    if ms < LEASE_MS_MIN { Err("a lease lasts 1s or longer".to_owned()) } else { Ok(ms) }
}

fn keep(text: &str) -> Result<u64, String> {
    let size = ByteSize::read(text)?.0;
    if size > KEEP_MAX { Err("at most 24KiB are kept".to_owned()) } else { Ok(size) }
}

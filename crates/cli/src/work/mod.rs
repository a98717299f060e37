//! The worker: a program for each message of a queue.
//!
//! ```text
//!            lease                 start                    end                 settle
//!  broker ─────────▶ free slot ─────────▶ program runs ─────────▶ verdict ─────────▶ broker
//!                                             │  ▲
//!                                       extend every third of the lease
//! ```
//!
//! Invariants: no more is leased than there are free slots; a slot is free only when nothing of its program's group runs; a
//! message is settled by whoever holds its lease, once, or not at all.

mod backoff;
mod contact;
mod display;
mod environment;
mod group;
mod heart;
mod item;
mod lines;
mod live;
mod printed;
mod program;
mod queue;
mod reaper;
mod running;
mod slot;
mod source;
mod stage;
mod stream;
mod tail;
mod tally;
mod terminal;
mod verdict;
mod worker;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use program::Program;

use overtake_streams::Subscriber;

use crate::client::Client;
use crate::commands::Ended;
use crate::out::Out;
use contact::Contact;
use display::Display;
use queue::Queue;
use reaper::Reaper;
use source::{Source, Supply};
use stage::Stages;
use stream::Stream;
use worker::Worker;

/// How to work.
pub(crate) struct Plan {
    /// Whose messages.
    pub(crate) queue: String,
    /// What the worker calls itself.
    pub(crate) name: String,
    /// Most programs at once.
    pub(crate) slots: usize,
    /// Most messages in all.
    pub(crate) max: Option<u64>,
    /// Whether to stop when nothing is ready and nothing runs.
    pub(crate) until_empty: bool,
    /// How long a lease lasts.
    pub(crate) lease: Duration,
    /// Between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
    /// Exit codes that say it can never be done.
    pub(crate) reject_on: Vec<u8>,
    /// Before the next attempt of what failed; `None`: as the queue says.
    pub(crate) delay_ms: Option<u64>,
    /// Most bytes of output that are kept.
    pub(crate) keep: usize,
    /// Whether what programs print is passed on.
    pub(crate) show: bool,
    /// Whether lines are wanted where a live display would do.
    pub(crate) lines: bool,
}

/// Where messages come from.
pub(crate) enum Origin {
    /// From the queue of the plan.
    Broker(Box<Client>),
    /// From a category's streams in Redis.
    Streams(Subscriber),
}

/// What every slot shares.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) program: Program,
    pub(crate) supply: Supply,
    pub(crate) reaper: Arc<Reaper>,
    pub(crate) stages: Stages,
    pub(crate) display: Display,
}

/// Works until it is told to stop, or until there is no more to do.
pub(crate) async fn run(plan: Plan, program: Program, from: Origin, out: Out) -> Ended {
    let reaper = Reaper::start()?;
    let stages = Stages::listen()?;
    let (display, shown) = Display::start(out, &plan)?;
    let contact = Arc::new(Contact::new(display.clone()));
    let source = match from {
        Origin::Broker(client) => {
            Source::Queue(Box::new(Queue::new(*client, &plan, Arc::clone(&contact), &stages)))
        }
        Origin::Streams(subscriber) => Source::Stream(Stream::new(subscriber, stages.clone())),
    };
    let job = Job { plan, program, supply: Supply { source, contact }, reaper, stages, display };
    let ended = Worker::new(job).work().await;
    // The worker is gone, and with it whoever could say more.
    let shown = shown.join();
    ended.and_then(|exit| shown.map(|()| exit))
}

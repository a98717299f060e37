//! `overtake top`: queues and their lanes, live.
//!
//! ```text
//!  keys ────▶ State::key ──▶ Deed          state.rs   no terminal, no clock, no broker
//!  broker ──▶ State::put_…                 gauges/    polls become rates
//!             State ────────▶ cells        frame.rs, lists.rs, opened.rs, help.rs, on grid.rs
//!  terminal ◀─ Screen                      screen.rs  the only place that knows one
//! ```
//!
//! The loop below waits for whatever comes first, and draws.

mod frame;
mod grid;
mod help;
mod lists;
mod opened;
mod screen;
pub(crate) mod sort;
mod state;
mod text;
mod theme;

#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use crate::commands::{Ended, Session};
use crate::failure::{Exit, Failure};
use crate::gauges::Tracker;
use crate::gauges::ask::{Asker, Poll, Wanted};
use crate::signals::Ending;
use screen::{Input, Screen};
use sort::{Sort, is_like, is_pattern};
use state::{Deed, State};

/// A broker that does not answer is not asked more often.
const RETRY: Duration = Duration::from_secs(1);
/// How often it is shown for how long the broker has not answered.
const TICK: Duration = Duration::from_secs(1);

/// What to show.
pub(crate) struct Plan {
    /// Between two polls, ms.
    pub(crate) interval: u64,
    /// Only queues whose names are like this.
    pub(crate) only: Option<String>,
    pub(crate) sort: Sort,
    /// One frame as text.
    pub(crate) once: bool,
}

/// Shows it until it is told to stop.
pub(crate) async fn run(plan: &Plan, session: &Session) -> Ended {
    let mut feed = Feed::new(plan, session);
    if session.out.is_json() {
        return text::lines(plan, &mut feed, session).await;
    }
    if plan.once || !io::stdout().is_terminal() {
        return text::once(plan, &mut feed, session).await;
    }
    live(plan, feed, session).await
}

/// What the broker says, as it is shown.
struct Feed {
    asker: Asker,
    tracker: Tracker,
    only: Option<String>,
    begun: Instant,
}

impl Feed {
    fn new(plan: &Plan, session: &Session) -> Self {
        let asker = Asker::new(session.client.clone());
        Self { asker, tracker: Tracker::default(), only: plan.only.clone(), begun: Instant::now() }
    }

    /// The name of the only queue, where it is one.
    fn only_one(&self) -> Option<&str> {
        self.only.as_deref().filter(|only| !is_pattern(only))
    }

    /// ms since it began.
    fn now(&self) -> u64 {
        millis(self.begun.elapsed())
    }

    /// Asks for the first time: what is wrong is said as every command says it.
    async fn first(&mut self, state: &mut State) -> Result<(), Failure> {
        let wanted = state.wanted(self.only_one());
        let poll = self.asker.poll(&wanted).await?;
        if let (Wanted::One(name), true) = (&wanted, poll.queues.is_empty()) {
            return Err(Failure::new(Exit::Error, format!("there is no queue {name}"))
                .hint("`overtake queue list` lists them; in a pattern * is any text"));
        }
        self.put(state, &wanted, poll);
        Ok(())
    }

    /// Has an answer shown.
    fn put(&mut self, state: &mut State, wanted: &Wanted, poll: Poll) {
        let Poll { health, mut queues, holders, took } = poll;
        if let Some(only) = &self.only {
            queues.retain(|queue| is_like(&queue.name, only));
        }
        let at = self.now();
        state.answered(health, millis(took));
        match wanted {
            Wanted::All | Wanted::One(_) => state.put_all(self.tracker.turn(at, queues, true)),
            Wanted::Opened(name) => {
                let queue = self.tracker.turn(at, queues, false).pop();
                state.put_opened(name, queue, holders.unwrap_or_default());
            }
        }
    }
}

/// A poll on its way.
type Polling = Option<JoinHandle<(Wanted, Result<Poll, Failure>)>>;

async fn live(plan: &Plan, mut feed: Feed, session: &Session) -> Ended {
    let mut state = State::new(session.client.url(), session.client.vhost(), plan.sort, plan.interval);
    feed.first(&mut state).await?;
    let mut ending = Ending::listen()?;
    let mut inputs = Screen::inputs()?;
    let mut screen = Screen::enter()?;
    let theme = screen::theme();
    let mut ticks = interval(TICK);
    // Those that nobody waited for are not made up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut polling: Polling = None;
    let mut due = Instant::now() + Duration::from_millis(state.pause());
    loop {
        let (_, height) = screen.size()?;
        let lines = state.opened_queue().map_or(0, |queue| opened::lines(queue, &state.holders));
        state.fit(frame::rows(height), lines);
        screen.draw(|buffer| frame::draw(&state, feed.now(), theme, buffer))?;
        tokio::select! {
            () = ending.wait() => return Ok(Exit::Done),
            input = inputs.recv() => match input {
                None => return Ok(Exit::Done),
                Some(Input::Resized) => {}
                Some(Input::Key(key)) => match state.key(key) {
                    Deed::Draw => {}
                    Deed::Quit => return Ok(Exit::Done),
                    Deed::Redraw => screen.forget()?,
                    Deed::Suspend => screen.suspend()?,
                    Deed::Poll => polling = start(&feed, &state, polling),
                },
            },
            (wanted, polled) = answer(&mut polling) => {
                polling = None;
                let mut pause = Duration::ZERO;
                match polled {
                    Ok(poll) => feed.put(&mut state, &wanted, poll),
                    Err(failure) if failure.exit() == Exit::Denied => return Err(failure),
                    Err(failure) => {
                        state.lose(feed.now(), failure.what());
                        pause = RETRY;
                    }
                }
                due = Instant::now() + pause.max(Duration::from_millis(state.pause()));
            }
            () = sleep_until(due.into()), if polling.is_none() && !state.is_paused => {
                polling = start(&feed, &state, None);
            }
            _ = ticks.tick(), if state.lost.is_some() => {}
        }
    }
}

/// Asks for what is looked at now; an answer to what was looked at before is not waited for.
fn start(feed: &Feed, state: &State, before: Polling) -> Polling {
    if let Some(before) = before {
        before.abort();
    }
    let (asker, wanted) = (feed.asker.clone(), state.wanted(feed.only_one()));
    Some(tokio::spawn(async move {
        let polled = asker.poll(&wanted).await;
        (wanted, polled)
    }))
}

/// What came of the poll that is on its way; for ever, where none is.
async fn answer(polling: &mut Polling) -> (Wanted, Result<Poll, Failure>) {
    match polling {
        Some(poll) => poll.await.expect("a poll that is waited for is not aborted, and does not panic"),
        None => std::future::pending().await,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

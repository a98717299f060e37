//! `overtake watch`: one queue, a line at a time.
//!
//! ```text
//!  broker ─▶ Tracker ─┬─▶ row.rs    the figures, as columns or JSON
//!                     └─▶ news.rs   what has happened since the line before
//! ```

mod news;
mod row;

use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use tokio::time::sleep_until;

use crate::commands::{Ended, Session};
use crate::failure::{Exit, Failure};
use crate::gauges::ask::{self, Health};
use crate::gauges::{QueueNow, Tracker};
use crate::signals::Ending;
use crate::table::{count, duration};
use news::{News, Watcher};

/// Lines between two headings.
const HEAD_EVERY: u64 = 20;

/// What to watch.
pub(crate) struct Plan {
    pub(crate) queue: String,
    /// Between two lines, ms.
    pub(crate) interval: u64,
    /// Most lines.
    pub(crate) lines: Option<u64>,
    /// An age of the oldest message that is worth a word, ms.
    pub(crate) warn_age: Option<u64>,
    /// Whether to end when nothing is ready and nothing leased.
    pub(crate) until_idle: bool,
    /// Longest time, ms.
    pub(crate) most: Option<u64>,
}

/// Prints lines until it is told to stop, or has nothing more to wait for.
pub(crate) async fn run(plan: &Plan, session: &Session) -> Ended {
    let begun = Instant::now();
    let end = plan.most.map(|ms| begun + Duration::from_millis(ms));
    let mut ending = Ending::listen()?;
    let mut paper = Paper { session, rows: 0, since_head: 0 };
    let mut watcher = Watcher::new(plan.warn_age);
    let mut tracker = Tracker::default();
    // The first answer is only what rates are counted from; what is wrong is said as every command says it.
    let (mut last, _) = look(plan, session, &mut tracker, begun).await?;
    let mut due = begun;
    loop {
        if plan.until_idle && is_idle(&last) {
            return Ok(Exit::Done);
        }
        due = Instant::now().max(due + Duration::from_millis(plan.interval));
        let until = end.map_or(due, |end| end.min(due));
        tokio::select! {
            () = ending.wait() => return Ok(Exit::Done),
            () = sleep_until(until.into()) => {}
        }
        if until < due {
            return late(plan, &last);
        }
        let at = SystemTime::now();
        match look(plan, session, &mut tracker, begun).await {
            Ok((now, health)) => {
                for news in watcher.turn(millis(begun), &now, &health) {
                    paper.news(at, &news)?;
                }
                paper.row(at, &now)?;
                last = now;
            }
            // Who may not, and what is gone, will not be otherwise next time.
            Err(failure) if failure.is_declined() => return Err(failure),
            Err(failure) => {
                if let Some(news) = watcher.lose(millis(begun), failure.what()) {
                    paper.news(at, &news)?;
                }
            }
        }
        if plan.lines.is_some_and(|lines| paper.rows >= lines) {
            return Ok(Exit::Done);
        }
    }
}

async fn look(
    plan: &Plan,
    session: &Session,
    tracker: &mut Tracker,
    begun: Instant,
) -> Result<(QueueNow, Health), Failure> {
    let queue = ask::queue(&session.client, &plan.queue).await?;
    let health = ask::health(&session.client).await?;
    let now = tracker.turn(millis(begun), vec![queue], true).pop();
    Ok((now.expect("a queue for a queue"), health))
}

/// What is delayed is not waited for: a schedule always has something there.
fn is_idle(queue: &QueueNow) -> bool {
    queue.sums.ready == 0 && queue.sums.leased == 0
}

/// The time is over.
fn late(plan: &Plan, last: &QueueNow) -> Ended {
    if !plan.until_idle {
        return Ok(Exit::Done);
    }
    let left = format!("{} ready, {} leased", count(last.sums.ready, "message"), last.sums.leased);
    let time = duration(plan.most.unwrap_or(0));
    Err(Failure::new(Exit::Empty, format!("{} is not idle after {time}: {left}", plan.queue)))
}

fn millis(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// What is printed on.
struct Paper<'a> {
    session: &'a Session,
    /// Lines with figures.
    rows: u64,
    /// Lines since the last heading.
    since_head: u64,
}

impl Paper<'_> {
    fn row(&mut self, at: SystemTime, queue: &QueueNow) -> Result<(), Failure> {
        self.rows += 1;
        self.line(row::json(at, queue), || row::row(&row::time_of_day(at), queue))
    }

    fn news(&mut self, at: SystemTime, news: &News) -> Result<(), Failure> {
        self.line(news.json(at), || row::said(&row::time_of_day(at), news))
    }

    fn line(&mut self, json: Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
        let out = self.session.out;
        if out.is_json() {
            return Ok(out.json(&json)?);
        }
        if self.since_head == 0 && !out.is_quiet() {
            out.text(&row::head())?;
        }
        self.since_head = (self.since_head + 1) % HEAD_EVERY;
        Ok(out.text(&text())?)
    }
}

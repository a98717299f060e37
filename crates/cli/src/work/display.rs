//! What people and programs see of the worker.
//!
//! A thread prints: a terminal that is held, or a pipe that nobody empties, must not cost a lease.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::Plan;
use super::item::Item;
use super::lines::Lines;
use super::live::Live;
use super::source::Report;
use super::tally::Tally;
use super::terminal::Terminal;
use super::verdict::Outcome;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::table::one_line;

/// Events that may wait to be printed.
const EVENTS_MAX: usize = 1_000;
/// How often a live display shows that time passes.
const TICK: Duration = Duration::from_millis(200);

/// Something to show.
pub(crate) enum Event {
    /// A program is being started.
    Started(Arc<Label>),
    /// It has ended, and the message is settled.
    Ended { label: Arc<Label>, outcome: Outcome, report: Report, took: Duration },
    /// A line that a program printed.
    Shown { id: Arc<str>, line: String },
    /// Something about the worker itself.
    Notice(String),
    /// Time passes.
    Tick,
    /// It has stopped, and all went so.
    Stopped(Tally),
    /// There is nothing more to come.
    Over,
}

/// A message as it is named.
pub(crate) struct Label {
    /// From 0.
    pub(crate) slot: usize,
    pub(crate) id: String,
    pub(crate) priority: Value,
    /// The priority for people.
    pub(crate) urgency: String,
    pub(crate) attempt: u64,
    pub(crate) begun: Instant,
    /// The same by the calendar.
    pub(crate) begun_at: SystemTime,
}

/// One way to show it.
pub(crate) trait Show {
    /// Shows what happened.
    fn event(&mut self, event: &Event) -> io::Result<()>;
}

/// Who tells the thread that prints.
#[derive(Clone)]
pub(crate) struct Display(mpsc::Sender<Event>);

/// The thread that prints.
pub(crate) struct Printer(JoinHandle<io::Result<()>>);

impl Display {
    /// Live where a terminal shows it, else by lines.
    pub(crate) fn start(out: Out, plan: &Plan) -> io::Result<(Self, Printer)> {
        let wants_lines = plan.lines || out.is_json() || out.is_quiet();
        let terminal = if wants_lines { None } else { Terminal::take() };
        let (tell, events) = mpsc::channel(EVENTS_MAX);
        if terminal.is_some() {
            tokio::spawn(tick(tell.clone().downgrade()));
        }
        let (slots, queue) = (plan.slots, plan.queue.clone());
        let printer = std::thread::Builder::new().name("printer".to_owned()).spawn(move || {
            let mut show: Box<dyn Show> = match terminal {
                Some(terminal) => Box::new(Live::new(out, terminal, slots, &queue)),
                None => Box::new(Lines::new(out)),
            };
            print(&mut *show, events)
        })?;
        Ok((Self(tell), Printer(printer)))
    }

    /// Has something shown, if there is anybody to see it.
    pub(crate) async fn tell(&self, event: Event) {
        let _ = self.0.send(event).await;
    }

    /// Waits until there is nobody to see anything.
    pub(crate) async fn is_closed(&self) {
        self.0.closed().await;
    }
}

impl Printer {
    /// Waits until all is printed.
    ///
    /// # Errors
    /// When it cannot be.
    pub(crate) fn join(self) -> Result<(), Failure> {
        let printed = self.0.join().map_err(|_| Failure::new(Exit::Error, "the display has failed"))?;
        Ok(printed?)
    }
}

impl Label {
    /// Of a message that is started now.
    pub(crate) fn of(slot: usize, item: &Item) -> Self {
        Self {
            slot,
            id: item.id.clone(),
            priority: item.priority.clone(),
            urgency: item.urgency(),
            attempt: item.attempt,
            begun: Instant::now(),
            begun_at: SystemTime::now(),
        }
    }

    /// What people see of it: a message must not steer the terminal.
    pub(crate) fn text(&self) -> String {
        format!("{}  priority {}", one_line(&self.id, usize::MAX), one_line(&self.urgency, usize::MAX))
    }
}

fn print(show: &mut dyn Show, mut events: mpsc::Receiver<Event>) -> io::Result<()> {
    while let Some(event) = events.blocking_recv() {
        if matches!(event, Event::Over) {
            break;
        }
        show.event(&event)?;
    }
    Ok(())
}

async fn tick(tell: mpsc::WeakSender<Event>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(tell) = tell.upgrade() else { return };
        // Whoever is behind needs no tick to catch up.
        let _ = tell.try_send(Event::Tick);
    }
}

/// The lines of one program.
pub(crate) struct Shown {
    id: Arc<str>,
    display: Display,
}

impl Shown {
    /// Of the program for this message.
    pub(crate) fn of(id: &str, display: Display) -> Self {
        Self { id: Arc::from(one_line(id, usize::MAX)), display }
    }

    /// One line, with its end.
    pub(crate) async fn line(&self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let line = one_line(text.trim_end_matches(['\n', '\r']), usize::MAX);
        self.display.tell(Event::Shown { id: Arc::clone(&self.id), line }).await;
    }
}

//! A line for each slot, and one for all of them, where a terminal shows it.
//!
//! Events only change what is to be seen; it is drawn when time passes.

use std::io;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::display::{Event, Label, Show};
use super::tally::Tally;
use super::terminal::Terminal;
use super::verdict::Outcome;
use crate::out::Out;
use crate::table::{duration, one_line};

/// What is on the screen. What is printed above it stays there, the rest goes when it ends.
pub(crate) struct Live {
    out: Out,
    terminal: Terminal,
    /// All lines are its message.
    screen: ProgressBar,
    /// What each slot works on.
    slots: Vec<Option<Arc<Label>>>,
    queue: String,
    tally: Tally,
    /// What did not go well last, and why.
    trouble: Option<String>,
}

impl Live {
    /// All slots are free.
    pub(crate) fn new(out: Out, terminal: Terminal, slots: usize, queue: &str) -> Self {
        let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        let screen = ProgressBar::no_length().with_style(style);
        screen.set_draw_target(ProgressDrawTarget::stderr());
        let (tally, queue) = (Tally::default(), queue.to_owned());
        Self { out, terminal, screen, slots: vec![None; slots], queue, tally, trouble: None }
    }

    fn draw(&self) {
        let (rows, columns) = self.terminal.size();
        let lines = self.slot_lines(rows.saturating_sub(2)).into_iter().chain([self.summary()]);
        // A line that is as wide as the terminal ends in the next one.
        let lines: Vec<_> = lines.map(|line| one_line(&line, columns.saturating_sub(2))).collect();
        self.screen.set_message(lines.join("\n"));
    }

    /// All slots; where they do not fit, those that work.
    fn slot_lines(&self, most: usize) -> Vec<String> {
        let slots = self.slots.iter().enumerate().map(|(at, label)| (at + 1, label.as_deref()));
        if self.slots.len() <= most {
            return slots.map(|(number, label)| slot(number, label)).collect();
        }
        let busy: Vec<_> = slots.filter(|(_, label)| label.is_some()).collect();
        let fit = busy.len().min(most.saturating_sub(1));
        let more = self.slots.len() - fit;
        let lines = busy[..fit].iter().map(|(number, label)| slot(*number, *label));
        lines.chain([format!("     {more} more")]).collect()
    }

    fn summary(&self) -> String {
        let busy = self.slots.iter().flatten().count();
        let trouble = self.trouble.as_ref().map_or_else(String::new, |trouble| format!("; {trouble}"));
        format!("{}: {}, {busy} running{trouble}", self.queue, self.tally.text())
    }

    fn put(&mut self, at: usize, label: Option<Arc<Label>>) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = label;
        }
    }
}

impl Show for Live {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Started(label) => self.put(label.slot, Some(Arc::clone(label))),
            Event::Ended { label, outcome, report, .. } => {
                self.tally.add(*outcome);
                if *outcome != Outcome::Done {
                    let why = report.error.as_deref().unwrap_or(outcome.word());
                    self.trouble = Some(format!("last {}: {} ({why})", outcome.word(), label.id));
                }
                self.put(label.slot, None);
            }
            Event::Shown { id, line } => self.screen.println(format!("{id}: {line}")),
            Event::Notice(text) => self.screen.println(text),
            Event::Tick => self.draw(),
            Event::Stopped(tally) => {
                self.screen.finish_and_clear();
                self.out.text(&format!("stopped: {}\n", tally.text()))?;
            }
            Event::Over => {}
        }
        Ok(())
    }
}

impl Drop for Live {
    /// Also when nobody said that it is over.
    fn drop(&mut self) {
        self.screen.finish_and_clear();
    }
}

fn slot(number: usize, label: Option<&Label>) -> String {
    let Some(label) = label else { return format!("{number:>3}  idle") };
    let since = match label.begun.elapsed().as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => duration(seconds.saturating_mul(1_000)),
    };
    let again = if label.attempt > 1 { format!(", attempt {}", label.attempt) } else { String::new() };
    format!("{number:>3}  {since:>7}  {}{again}", label.text())
}

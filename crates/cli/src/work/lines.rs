//! A line when a program starts, and one when it ends.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::display::{Event, Label, Show};
use super::source::Report;
use super::verdict::Outcome;
use crate::out::Out;
use crate::table::duration;

/// Lines for people, or for programs.
pub(crate) struct Lines(Out);

impl Lines {
    /// As the flags say.
    pub(crate) fn new(out: Out) -> Self {
        Self(out)
    }
}

impl Show for Lines {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let out = self.0;
        match event {
            Event::Started(label) => out.done(&started(label), || {
                let again =
                    if label.attempt > 1 { format!(", attempt {}", label.attempt) } else { String::new() };
                format!("started  {}{again}", label.text())
            }),
            Event::Ended { label, outcome, report, took } => {
                let ended = ended(label, *outcome, report, *took);
                out.done(&ended, || ending(label, *outcome, report, *took))
            }
            Event::Shown { id, line } => say(&format!("{id}: {line}")),
            Event::Notice(text) if !out.is_quiet() => say(text),
            Event::Stopped(tally) => out.done(&tally.json(), || format!("stopped: {}", tally.text())),
            Event::Notice(_) | Event::Tick | Event::Over => Ok(()),
        }
    }
}

/// What became of a message, in one line.
fn ending(label: &Label, outcome: Outcome, report: &Report, took: Duration) -> String {
    let error = report.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
    format!("{:<8} {}, {}{error}", outcome.word(), label.text(), duration(ms(took)))
}

fn started(label: &Label) -> Value {
    json!({
        "event": "started",
        "id": label.id,
        "priority": label.priority,
        "attempt": label.attempt,
        "slot": label.slot + 1,
        "started_ms": unix_ms(label.begun_at),
    })
}

fn ended(label: &Label, outcome: Outcome, report: &Report, took: Duration) -> Value {
    json!({
        "event": "ended",
        "id": label.id,
        "priority": label.priority,
        "attempt": label.attempt,
        "slot": label.slot + 1,
        "outcome": outcome.name(),
        "started_ms": unix_ms(label.begun_at),
        "ended_ms": unix_ms(label.begun_at + took),
        "ms": ms(took),
        "exit_code": report.exit_code,
        "error": report.error,
        "output": report.output,
    })
}

/// Since 1970.
fn unix_ms(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, ms)
}

fn ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

fn say(text: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{text}")
}

//! Steps about the work on messages, and what is to be seen of it.
//!
//! | step | does |
//! |---|---|
//! | `finish a exit=0 error=x output=y` | acknowledges by the latest receipt, with a report; `nack`, `release`, `reject` or `timeout` as a further word: settles so |
//! | `finish-late a attempt=1 exit=0` | ends a message that waits after this attempt, by its id; further words as of `finish` |
//! | `want-back a` | cancels messages; `all` for all that can be |
//! | `record a` | says how the work on it went: `completed in q/4, waited 5ms, ran 3ms, 2x, exit 0, error x, output y` |
//! | `work a` | says what goes on: `for 3ms, ends in 7ms, wanted back` |

use std::fmt::Write;

use overtake_lane::{Command, Outcome, Report};

use super::{Stage, Words, outcome};

impl Stage {
    pub(super) fn finish(&mut self, words: &Words<'_>) {
        let receipt = self.receipt(words.plain[0]);
        let (outcome, report) = ended(words);
        self.run(Command::Finish { receipt, outcome, report });
    }

    pub(super) fn finish_late(&mut self, words: &Words<'_>) {
        let (queue, id) = (self.queue.clone(), words.plain[0].into());
        let attempt = words.number("attempt").expect("an attempt") as u32;
        let (outcome, report) = ended(words);
        self.run(Command::FinishLate { queue, id, attempt, outcome, report });
    }

    pub(super) fn want_back(&mut self, name: &str) {
        let (queue, which) = (self.queue.clone(), self.which(name));
        self.run(Command::CancelMessages { queue, which });
    }

    pub(super) fn say_record(&mut self, name: &str) {
        let Some(view) = self.find(name) else { return self.said.push(format!("no {name}")) };
        let Some(record) = view.record else { return self.said.push(format!("{name} has no record")) };
        let began = record.started.unwrap_or(record.finished);
        let mut text = format!(
            "{} in {}/{}, waited {}ms",
            record.ending.word(),
            record.queue,
            record.lane,
            began.since(record.queued)
        );
        if let Some(started) = record.started {
            write!(text, ", ran {}ms", record.finished.since(started)).expect("a string takes all");
        }
        write!(text, ", {}x", record.attempts).expect("a string takes all");
        let Report { exit_code, error, output } = &record.report;
        if let Some(code) = exit_code {
            write!(text, ", exit {code}").expect("a string takes all");
        }
        for (word, said) in [("error", error), ("output", output)] {
            if let Some(said) = said {
                write!(text, ", {word} {said}").expect("a string takes all");
            }
        }
        self.said.push(text);
    }

    pub(super) fn say_work(&mut self, name: &str) {
        let Some(view) = self.find(name) else { return self.said.push(format!("no {name}")) };
        let Some(work) = view.work else { return self.said.push(format!("nobody works on {name}")) };
        let now = self.watch.now;
        let mut text = format!("for {}ms", now.since(work.started));
        if let Some(ends) = work.ends.some() {
            write!(text, ", ends in {}ms", ends.since(now)).expect("a string takes all");
        }
        if work.is_cancelled {
            text.push_str(", wanted back");
        }
        self.said.push(text);
    }
}

/// How the work went.
fn ended(words: &Words<'_>) -> (Outcome, Box<Report>) {
    let said = |key| words.keys.get(key).map(|word| super::text(word).into());
    let report = Report {
        exit_code: words.keys.get("exit").map(|code| code.parse().expect("a number")),
        error: said("error"),
        output: said("output"),
    };
    (outcome(words.plain.get(1).copied().unwrap_or("ack"), words), Box::new(report))
}

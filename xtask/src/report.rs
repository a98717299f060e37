//! What a run of steps says: a heading before each, its time after it, one table at the end, and the suite's counts
//! alone on the last line.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::counts::Counts;

/// How a step that did not fail ended.
pub(crate) enum Done {
    /// It ran and found nothing wrong.
    Ok,
    /// It could not run here, and this is why.
    Skipped(String),
}

/// What happened so far.
pub(crate) struct Report {
    start: Instant,
    rows: Vec<Row>,
    /// A skip is a failure: set in CI.
    strict: bool,
}

/// How one step ended, and how long it took.
pub(crate) struct Row {
    name: &'static str,
    took: Duration,
    end: End,
}

impl Row {
    /// Runs a step.
    pub(crate) fn of(name: &'static str, body: impl FnOnce() -> Result<Done>) -> Self {
        let start = Instant::now();
        let end = match body() {
            Ok(Done::Ok) => End::Ok,
            Ok(Done::Skipped(why)) => End::Skipped(why),
            Err(error) => End::Failed(format!("{error:#}")),
        };
        Self { name, took: start.elapsed(), end }
    }

    /// Says what the step ran without.
    pub(crate) fn without(mut self, lacking: Option<String>) -> Self {
        if let (Some(lacking), End::Ok) = (lacking, &self.end) {
            self.end = End::Partly(format!("without {lacking}"));
        }
        self
    }

    /// Runs what everything after it depends on: without it there is no report.
    pub(crate) fn trying(name: &'static str, body: impl FnOnce() -> Result<()>) -> Result<Self> {
        let start = Instant::now();
        body()?;
        Ok(Self { name, took: start.elapsed(), end: End::Ok })
    }
}

enum End {
    Ok,
    /// It passed, and some of its tests were skipped.
    Partly(String),
    Failed(String),
    Skipped(String),
}

impl Report {
    /// An empty report; `strict` turns skips into failures.
    pub(crate) fn new(strict: bool) -> Self {
        Self { start: Instant::now(), rows: Vec::new(), strict }
    }

    /// The heading of a step.
    pub(crate) fn begin(&self, name: &str, what: &str) {
        println!("\n── {name} ── {what}");
    }

    /// The end of a step. One that failed does not end the run: the others still have something to say.
    pub(crate) fn end(&mut self, mut row: Row) {
        if let (End::Skipped(why), true) = (&row.end, self.strict) {
            row.end = End::Failed(format!("skipped, which CI does not allow: {why}"));
        }
        println!("── {} {}, {:.1} s", row.name, row.end.word(), row.took.as_secs_f64());
        if let End::Failed(why) | End::Skipped(why) = &row.end {
            println!("   {}", why.replace('\n', "\n   "));
        }
        self.rows.push(row);
    }

    /// Whether no step failed.
    pub(crate) fn is_ok(&self) -> bool {
        self.failed() == 0
    }

    /// Steps that failed.
    pub(crate) fn failed(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row.end, End::Failed(_))).count()
    }

    /// Steps that were skipped, where that is no failure.
    pub(crate) fn skipped(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row.end, End::Skipped(_))).count()
    }

    /// The table, and the counts if any test ran.
    pub(crate) fn close(&self, counts: Counts) -> String {
        let mut text = format!("\n{:<10} {:>8}  result\n", "step", "seconds");
        for row in &self.rows {
            let why = row.end.why().lines().next().unwrap_or_default().to_owned();
            let colon = if why.is_empty() { "" } else { ": " };
            let line =
                format!("{:<10} {:>8.1}  {}{colon}{why}", row.name, row.took.as_secs_f64(), row.end.word());
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let all = self.start.elapsed().as_secs_f64();
        text.push_str(&format!("{:<10} {all:>8.1}  (steps may run side by side)\n", "together"));
        if counts != Counts::default() {
            text.push_str(&format!("\n{counts}\n"));
        }
        text
    }
}

impl End {
    fn word(&self) -> &'static str {
        match self {
            Self::Ok | Self::Partly(_) => "ok",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Ok => "",
            Self::Failed(why) | Self::Skipped(why) | Self::Partly(why) => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(strict: bool) -> Report {
        let mut report = Report::new(strict);
        report.end(Row::of("one", || Ok(Done::Ok)));
        report.end(Row::of("two", || Ok(Done::Skipped("no compiler".into()))));
        report
    }

    #[test]
    fn a_skip_is_a_failure_only_where_it_must_be() {
        assert!(run(false).is_ok());
        assert!(!run(true).is_ok());
    }

    #[test]
    fn an_error_fails_its_step_and_the_next_one_still_runs() {
        let mut report = Report::new(false);
        report.end(Row::of("one", || anyhow::bail!("broken\nin two lines")));
        report.end(Row::of("two", || Ok(Done::Ok)));
        let text = report.close(Counts::default());
        assert!(text.contains("FAILED: broken\n") && text.contains("two"), "{text}");
        assert!(!report.is_ok());
    }

    #[test]
    fn a_step_says_what_it_ran_without() {
        let mut report = Report::new(true);
        report.end(Row::of("one", || Ok(Done::Ok)).without(Some("Redis".into())));
        assert!(report.is_ok() && report.close(Counts::default()).contains("ok: without Redis\n"));
    }

    #[test]
    fn the_counts_stand_alone_on_the_last_line() {
        let text = run(false).close(Counts { passed: 7, failed: 0 });
        assert_eq!(text.lines().last(), Some("7 passed, 0 failed"));
    }
}

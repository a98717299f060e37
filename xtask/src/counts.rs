//! How many tests ran: read off the runners' own closing lines, and added up.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::report::Done;
use crate::shell::run_hearing_for;
use crate::slowest::Slowest;

/// Tests that passed and tests that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    /// Adds what this line of a runner's output closes, if it closes anything.
    pub(crate) fn hear(&mut self, line: &str) {
        let runners = [libtest, nextest, pytest, node];
        if let Some(more) = runners.iter().find_map(|runner| runner(line)) {
            self.add(more);
        }
    }

    /// Adds what a whole run of `cargo xtask test` ends with, if this is it: `12 passed, 0 failed`.
    pub(crate) fn hear_closing(&mut self, line: &str) {
        if let (Some(passed), Some(failed)) = (before(line, " passed"), before(line, " failed")) {
            self.add(Self { passed, failed });
        }
    }

    /// Adds others.
    pub(crate) fn add(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Runs tests, adding up how many; nothing run, nothing passed. If they have not ended by then, they are killed.
pub(crate) fn run_counted(
    command: &mut Command,
    limit: Duration,
    counts: &mut Counts,
    slowest: &mut Slowest,
) -> Result<Done> {
    let (mut heard, mut left_out) = (Counts::default(), 0);
    let end = run_hearing_for(command, limit, |line| {
        heard.hear(line);
        slowest.hear(line);
        left_out += skipped(line);
    });
    counts.add(heard);
    end?;
    ensure!(heard.passed > 0, "no test ran, or the runner's closing line has changed");
    ensure!(heard.failed == 0, "{} failed", heard.failed);
    Ok(match left_out {
        0 => Done::Ok,
        _ => Done::Skipped(format!("{left_out} tests were skipped, and skips.txt does not say why")),
    })
}

/// `test result: ok. 3 passed; 0 failed; 0 ignored; …`. Indented, it is of a test that nextest shows, and counts itself.
fn libtest(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result:")?;
    Some(Counts { passed: before(rest, " passed")?, failed: before(rest, " failed")? })
}

/// `Summary [   1.2s] 12 tests run: 11 passed (1 slow), 1 timed out, 0 skipped`; with a fail-fast, `5/12 tests run`.
/// Whatever ran and did not pass has failed, by whichever name.
fn nextest(line: &str) -> Option<Counts> {
    let (head, tail) = line.trim_start().strip_prefix("Summary [")?.split_once(" run:")?;
    let run = head.split_once(']')?.1.split_whitespace().next()?.split('/').next()?;
    let passed = before(tail, " passed").unwrap_or(0);
    Some(Counts { passed, failed: run.parse::<u64>().ok()?.checked_sub(passed)? })
}

/// `1 failed, 164 passed, 2 skipped, 1 error in 7.48s`, between `=` or not. Errors are failures; who is not told is not run.
fn pytest(line: &str) -> Option<Counts> {
    let closing = pytest_closing(line)?;
    let of = |word| before(closing, word).unwrap_or(0);
    Some(Counts { passed: of(" passed"), failed: of(" failed") + of(" error") })
}

fn pytest_closing(line: &str) -> Option<&str> {
    let (closing, seconds) = line.trim_matches(['=', ' ']).split_once(" in ")?;
    let seconds = seconds.split(' ').next()?.strip_suffix('s')?;
    (seconds.parse::<f64>().is_ok() && closing.starts_with(|c: char| c.is_ascii_digit())).then_some(closing)
}

/// Node's `ℹ pass 14`, `ℹ fail 1` and `ℹ cancelled 1`: what was given up has failed.
fn node(line: &str) -> Option<Counts> {
    let (word, number) = line.strip_prefix("ℹ ")?.split_once(' ')?;
    let number = number.parse().ok()?;
    match word {
        "pass" => Some(Counts { passed: number, failed: 0 }),
        "fail" | "cancelled" => Some(Counts { passed: 0, failed: number }),
        _ => None,
    }
}

/// How many tests this line says were skipped, of whichever runner.
fn skipped(line: &str) -> u64 {
    let said = pytest_closing(line).map(|closing| before(closing, " skipped"));
    let said =
        said.or_else(|| line.trim_start().strip_prefix("test result:").map(|rest| before(rest, " ignored")));
    said.flatten().or_else(|| line.strip_prefix("ℹ skipped ")?.parse().ok()).unwrap_or(0)
}

/// The number just before `word`.
fn before(text: &str, word: &str) -> Option<u64> {
    let head = &text[..text.find(word)?];
    head.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], passed: u64, failed: u64) {
        let mut counts = Counts::default();
        lines.iter().for_each(|line| counts.hear(line));
        assert_eq!(counts, Counts { passed, failed });
    }

    #[test]
    fn libtest_says_it_once_per_binary() {
        check(
            &[
                "running 2 tests",
                "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
                "test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            ],
            12,
            3,
        );
    }

    #[test]
    fn nextest_says_it_once() {
        check(&["     Summary [   0.010s] 12 tests run: 12 passed, 0 skipped"], 12, 0);
        check(&["     Summary [   0.010s] 1 test run: 0 passed, 1 failed, 0 skipped"], 0, 1);
        check(
            &["     Summary [  10.010s] 12 tests run: 9 passed (1 slow), 2 failed, 1 timed out, 0 skipped"],
            9,
            3,
        );
        let shown = "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 11 filtered out";
        check(
            &[shown, shown, "     Summary [   0.010s] 12 tests run: 11 passed, 1 failed, 0 skipped"],
            11,
            1,
        );
        check(&["     Summary [  10.010s] 5/12 tests run: 4 passed, 1 failed, 0 skipped"], 4, 1);
    }

    #[test]
    fn pytest_says_it_once() {
        check(&["164 passed, 3 deselected in 7.48s"], 164, 0);
        check(&["= 1 failed, 12 passed, 2 skipped, 1 warning, 1 error in 61.02s (0:01:01) ="], 12, 2);
        check(&["2 errors in 0.39s"], 0, 2);
        check(&["no tests ran in 0.01s"], 0, 0);
    }

    #[test]
    fn node_says_it_in_lines() {
        check(
            &["ℹ tests 16", "ℹ pass 14", "ℹ fail 1", "ℹ cancelled 1", "ℹ skipped 0", "✔ pass 3 (1.2ms)"],
            14,
            2,
        );
    }

    #[test]
    fn a_skip_is_heard_from_every_runner() {
        let lines = [
            "12 passed, 2 skipped in 1.00s",
            "test result: ok. 2 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "ℹ skipped 4",
            "12 passed in 1.00s",
            "5 skipped",
        ];
        assert_eq!(lines.map(skipped), [2, 3, 4, 0, 0]);
    }

    #[test]
    fn other_lines_count_nothing() {
        check(&["", "12 passed, 3 failed", "test a_test ... ok", "Summary of things"], 0, 0);
    }
}

//! How many tests ran: read off the runners' own closing lines, and added up.

/// Tests that passed and tests that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    /// Adds what this line of a runner's output closes, if it closes anything.
    pub(crate) fn hear(&mut self, line: &str) {
        if let Some(more) = libtest(line).or_else(|| nextest(line)) {
            self.passed += more.passed;
            self.failed += more.failed;
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// `test result: ok. 3 passed; 0 failed; 0 ignored; …`
fn libtest(line: &str) -> Option<Counts> {
    let rest = line.trim_start().strip_prefix("test result:")?;
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
        check(&["     Summary [  10.010s] 5/12 tests run: 4 passed, 1 failed, 0 skipped"], 4, 1);
    }

    #[test]
    fn other_lines_count_nothing() {
        check(&["", "12 passed, 3 failed", "test a_test ... ok", "Summary of things"], 0, 0);
    }
}

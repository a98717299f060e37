//! The slowest tests of a run, which the report ends with.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// How many are kept.
const KEPT: usize = 10;

/// The slowest tests so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slowest {
    /// Milliseconds and name.
    tests: BTreeSet<(u64, String)>,
}

impl Slowest {
    /// Notes a test that took so long.
    fn note(&mut self, seconds: f64, name: String) {
        self.tests.insert(((seconds * 1000.0) as u64, name));
        if self.tests.len() > KEPT {
            self.tests.pop_first();
        }
    }

    /// Adds others.
    pub(crate) fn add(&mut self, more: Self) {
        for (ms, name) in more.tests {
            self.note(ms as f64 / 1000.0, name);
        }
    }

    /// Notes what a line of `pytest --durations` says: `12.34s call     test_acks.py::test_a_nack`.
    pub(crate) fn hear(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        if let (Some(seconds), Some("call" | "setup"), Some(test), None) =
            (words.next(), words.next(), words.next(), words.next())
            && let Some(Ok(seconds)) = seconds.strip_suffix('s').map(str::parse)
        {
            self.note(seconds, test.to_owned());
        }
    }

    /// Notes what nextest has written to this JUnit file, if it is there: `<testcase name="…" classname="…" … time="1.234">`.
    pub(crate) fn read_junit(&mut self, file: &Path) {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        for case in text.split("<testcase ").skip(1) {
            let tag = case.split('>').next().unwrap_or_default();
            let of = |name: &str| {
                let (_, value) = tag.split_once(&format!("{name}=\""))?;
                value.split('"').next()
            };
            // The name is the first attribute, before `classname`.
            if let (Some(name), Some(of_crate), Some(Ok(seconds))) =
                (of("name"), of("classname"), of("time").map(str::parse))
            {
                self.note(seconds, format!("{of_crate} {name}"));
            }
        }
    }
}

impl fmt::Display for Slowest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tests.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nslowest tests, seconds")?;
        for (ms, name) in self.tests.iter().rev() {
            writeln!(f, "{:>8.1}  {name}", *ms as f64 / 1000.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_are_kept_and_shown_first() {
        let mut slowest = Slowest::default();
        for seconds in 0..20 {
            slowest.hear(&format!("{seconds}.50s call     test_it.py::test_{seconds}"));
        }
        slowest.hear("99.0s teardown test_it.py::test_1");
        slowest.hear("3 passed in 99.0s");
        let text = slowest.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2 + KEPT, "{text}");
        assert_eq!(lines[2], "    19.5  test_it.py::test_19");
        assert_eq!(lines[11], "    10.5  test_it.py::test_10");
    }

    #[test]
    fn a_junit_file_names_crate_and_test() {
        let dir = std::env::temp_dir().join(format!("overtake-junit-{}", std::process::id()));
        std::fs::write(
            &dir,
            "<testsuite name=\"overtake-lane\" time=\"9.0\">\n\
             <testcase name=\"pick::a_head\" classname=\"overtake-lane\" timestamp=\"2026\" time=\"1.234\">\n\
             </testcase></testsuite>",
        )
        .unwrap();
        let mut slowest = Slowest::default();
        slowest.read_junit(&dir);
        std::fs::remove_file(&dir).unwrap();
        assert_eq!(slowest.to_string(), "\nslowest tests, seconds\n     1.2  overtake-lane pick::a_head\n");
    }
}

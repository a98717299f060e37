//! `cargo xtask tidy`: the guards. What ARCHITECTURE.md says is absent, something here looks for.
//!
//! A guard is a row in [`GUARDS`]: a pure function from the [`Repo`] to [`Finding`]s, with a test that shows it failing.

mod bans;
mod code;
mod dependencies;
mod direction;
mod licences;
mod places;
mod prose;
mod repo;
mod source;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::report::Done;
use crate::test::Run;
use repo::Repo;

/// Something a guard found, at a place a person can go to.
pub(crate) struct Finding {
    path: String,
    /// From 1; 0 is the whole file.
    line: usize,
    text: String,
    weight: Weight,
}

/// Whether a finding fails the run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Error,
    Warning,
}

struct Guard {
    name: &'static str,
    look: fn(&Repo) -> Vec<Finding>,
}

const GUARDS: &[Guard] = &[
    Guard { name: "crates depend downwards only", look: direction::downwards },
    Guard { name: "pure crates stay pure, all the way down", look: direction::purity },
    Guard { name: "every dependency is justified, no line is dead", look: dependencies::justified },
    Guard { name: "every licence is allowed", look: licences::allowed },
    Guard { name: "crates ban what they must not touch", look: bans::written },
    Guard { name: "no test is ignored", look: source::ignored },
    Guard { name: "no test sleeps", look: source::sleeps },
    Guard { name: "nothing is left to do", look: source::unfinished },
    Guard { name: "no assertion is empty", look: source::empty_assertions },
    Guard { name: "files fit the head", look: source::long_files },
    Guard { name: "no path of somebody's machine", look: places::machine_paths },
    Guard { name: "no registry but the public ones", look: places::registries },
    Guard { name: "links lead somewhere", look: prose::links },
    Guard { name: "tests that pages name exist", look: prose::named_tests },
    Guard { name: "the changelog is open", look: prose::changelog },
];

/// `cargo xtask tidy`
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    if let Some(arg) = args.first() {
        bail!("tidy takes no argument, not even `{arg}`");
    }
    look()?;
    Ok(ExitCode::SUCCESS)
}

/// The guards, as a step of the test run.
pub(crate) fn step(_: &mut Run) -> Result<Done> {
    look()?;
    Ok(Done::Ok)
}

fn look() -> Result<()> {
    let repo = Repo::load()?;
    let mut errors = 0;
    for guard in GUARDS {
        let found = (guard.look)(&repo);
        println!("   {:<48} {}", guard.name, summary(&found));
        found.iter().for_each(|finding| println!("      {finding}"));
        errors += count(&found, Weight::Error);
    }
    println!("   arrows that only tests draw: {}", direction::test_edges(&repo));
    if errors > 0 {
        bail!("{errors} to put right");
    }
    Ok(())
}

fn summary(found: &[Finding]) -> String {
    match (count(found, Weight::Error), count(found, Weight::Warning)) {
        (0, 0) => "ok".to_owned(),
        (0, warnings) => format!("ok, {warnings} to consider"),
        (errors, _) => format!("FAILED, {errors} to put right"),
    }
}

fn count(found: &[Finding], weight: Weight) -> usize {
    found.iter().filter(|finding| finding.weight == weight).count()
}

impl Finding {
    fn error(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into(), weight: Weight::Error }
    }

    fn warning(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { weight: Weight::Warning, ..Self::error(path, line, text) }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        let weight = if self.weight == Weight::Warning { "consider: " } else { "" };
        write!(f, ": {weight}{}", self.text)
    }
}

/// Shows a guard a repository and compares what it says, a line per finding.
#[cfg(test)]
fn check(look: fn(&Repo) -> Vec<Finding>, repo: Repo, said: &[&str]) {
    let found: Vec<String> = look(&repo).iter().map(Finding::to_string).collect();
    assert_eq!(found, said);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_its_place() {
        assert_eq!(Finding::error("a.rs", 3, "wrong").to_string(), "a.rs:3: wrong");
        assert_eq!(Finding::warning("a.rs", 0, "long").to_string(), "a.rs: consider: long");
    }

    #[test]
    fn a_warning_does_not_fail_and_an_error_does() {
        assert_eq!(summary(&[Finding::warning("a", 1, "")]), "ok, 1 to consider");
        assert_eq!(
            summary(&[Finding::warning("a", 1, ""), Finding::error("a", 1, "")]),
            "FAILED, 1 to put right"
        );
    }
}

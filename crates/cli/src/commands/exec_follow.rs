//! `overtake exec show --follow`

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::queue::text;
use super::{Ended, Session};
use crate::failure::{Exit, Failure};
use crate::table::one_line;

/// How often the broker is asked. Workers tell it of output once a second at most.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Prints what an execution prints until it has ended.
pub(crate) async fn run(id: &str, path: &str, session: &Session) -> Ended {
    let mut seen = Seen::default();
    let mut was_there = false;
    loop {
        let execution = match session.client.get(path).await {
            Err(failure) if was_there && failure.word() == Some("no-such-execution") => return Err(gone(id)),
            answer => answer?,
        };
        was_there = true;
        let output = [&execution["output"], &execution["progress"]["output"]];
        match output.into_iter().find_map(Value::as_str) {
            Some(output) => print(&seen.news(output), session)?,
            // Another attempt begins anew.
            None if execution["status"] != "running" => seen = Seen::default(),
            None => {}
        }
        if !matches!(execution["status"].as_str(), Some("queued" | "delayed" | "running")) {
            return end(id, &execution, session);
        }
        sleep(ASK_EVERY).await;
    }
}

/// What the end of an execution is for whoever waited for it.
fn end(id: &str, execution: &Value, session: &Session) -> Ended {
    if session.out.is_json() {
        session.out.json(execution)?;
    }
    let status = text(&execution["status"]);
    if status == "completed" {
        return Ok(Exit::Done);
    }
    let error = execution["error"].as_str().filter(|error| !error.is_empty() && *error != status);
    let why = error.map_or_else(String::new, |error| format!(": {}", one_line(error, usize::MAX)));
    Err(Failure::new(Exit::Error, format!("{id} ended as {status}{why}")))
}

fn gone(id: &str) -> Failure {
    let what = format!("{id} is not there any more, and how it ended is not known");
    let hint =
        "give the queue a history (`overtake exec create`) and the execution an id of its own, with --id";
    Failure::new(Exit::Error, what).hint(hint)
}

fn print(new: &str, session: &Session) -> Result<(), Failure> {
    if new.is_empty() {
        return Ok(());
    }
    if session.out.is_json() {
        return Ok(session.out.json(&json!({ "output": new }))?);
    }
    // What is printed must not steer the terminal.
    let safe: String = new.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    Ok(session.out.text(&safe)?)
}

/// The end of what was printed, as it was seen last.
#[derive(Debug, Default)]
struct Seen(String);

impl Seen {
    /// What is new in the end of it now: what comes behind the longest text that ends what was seen and begins what there is. Nothing
    /// is told of how much was printed in all, so a text that repeats itself and is longer than what is told may lose of that.
    fn news(&mut self, now: &str) -> String {
        let is_known =
            |len: &usize| now.is_char_boundary(*len) && self.0.as_bytes().ends_with(&now.as_bytes()[..*len]);
        let known = (0..=self.0.len().min(now.len())).rev().find(is_known).unwrap_or(0);
        let new = &now[known..];
        let is_cut = known == 0 && !self.0.is_empty() && !now.is_empty();
        let shown = if is_cut { format!("…\n{new}") } else { new.to_owned() };
        self.0 = now.to_owned();
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ends: &[&str], expect: &[&str]) {
        let mut seen = Seen::default();
        let new: Vec<String> = ends.iter().map(|end| seen.news(end)).collect();
        assert_eq!(new, expect, "{ends:?}");
    }

    #[test]
    fn only_what_is_new_is_printed() {
        check(&["", "a\n", "a\n", "a\nb\n"], &["", "a\n", "", "b\n"]);
        check(&["abcd", "cdef", "defg"], &["abcd", "ef", "g"]);
        check(&["äö", "öü"], &["äö", "ü"]);
    }

    #[test]
    fn what_was_missed_is_marked() {
        check(&["abcd", "efgh", "efgh"], &["abcd", "…\nefgh", ""]);
    }

    #[test]
    fn less_of_the_same_is_nothing_new() {
        check(&["abcd", "cd", "cde"], &["abcd", "", "e"]);
    }
}

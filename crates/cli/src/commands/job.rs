//! `overtake job`, and how commands that change many messages wait for theirs.

use clap::Subcommand;
use hyper::{Method, StatusCode};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::client::Client;
use crate::failure::{Exit, Failure};
use crate::out::{HEAD, RESET};
use crate::signals::Ending;
use crate::table::{Side, Table, count, number, one_line};

/// An answer comes at least so often, ms: so often the progress is shown anew.
const WAIT_MS: u64 = 1_000;

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// List changes of many messages: those that go on, and the last that are over.
    #[command(after_help = "\
Examples:
  overtake job list
  overtake job list --json | jq '.jobs[] | select(.state == \"running\")'")]
    List,
    /// Show how far a job is.
    #[command(after_help = "\
Examples:
  overtake job show 17
  overtake job show 17 --json")]
    Show {
        /// Its number.
        job: u64,
    },
    /// Cancel a job: it ends where it is, and what it has changed stays changed.
    #[command(after_help = "\
Examples:
  overtake job cancel 17")]
    Cancel {
        /// Its number.
        job: u64,
    },
}

/// Asks the broker about jobs.
pub(crate) async fn run(command: &JobCommand, session: &Session) -> Ended {
    match command {
        JobCommand::List => list(session).await?,
        JobCommand::Show { job } => {
            session.out.answer(&session.client.get(&path_of(&json!(job))).await?, shown)?;
        }
        JobCommand::Cancel { job } => {
            let ended = session.client.ask(Method::DELETE, &path_of(&json!(job)), None).await?.body;
            session
                .out
                .done(&ended, || format!("job {job} is {}: {}", text(&ended["state"]), come(&ended)))?;
        }
    }
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Result<(), Failure> {
    let answer = session.client.get("/v1/jobs").await?;
    session.out.answer(&answer, |answer| {
        let jobs = answer["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
        if jobs.is_empty() {
            return "no jobs\n".to_owned();
        }
        let mut table = Table::new(&[
            ("JOB", Side::Right),
            ("QUEUE", Side::Left),
            ("CHANGE", Side::Left),
            ("STATE", Side::Left),
            ("CHANGED", Side::Right),
            ("LOOKED AT", Side::Right),
            ("OF", Side::Right),
            ("BEGAN", Side::Left),
        ]);
        for job in jobs {
            let [queue, change, state, began] =
                ["queue", "change", "state", "began_at"].map(|key| text(&job[key]));
            let [changed, looked, total] =
                ["changed", "looked", "total"].map(|key| number(count_of(job, key)));
            table.row(vec![text(&job["id"]), queue, change, state, changed, looked, total, began]);
        }
        table.text()
    })?;
    Ok(())
}

fn shown(job: &Value) -> String {
    let mut shown = format!("{HEAD}job {}{RESET}\n", text(&job["id"]));
    let mut say =
        |key: &str, value: &str| shown.push_str(&format!("  {key}: {}\n", one_line(value, usize::MAX)));
    for (word, key) in [("queue", "queue"), ("change", "change"), ("priority", "priority")] {
        if !job[key].is_null() {
            say(word, &text(&job[key]));
        }
    }
    let filter = &job["filter"];
    say(
        "messages",
        &if filter.as_object().is_none_or(Map::is_empty) { "all".to_owned() } else { filter.to_string() },
    );
    say("state", &text(&job["state"]));
    say("so far", &come(job));
    for (word, key) in [("began", "began_at"), ("ended", "ended_at"), ("error", "error")] {
        if !job[key].is_null() {
            say(word, &text(&job[key]));
        }
    }
    shown
}

fn count_of(job: &Value, key: &str) -> u64 {
    job[key].as_u64().unwrap_or(0)
}

/// How far a job has come, in a sentence.
fn come(job: &Value) -> String {
    let [looked, total] = ["looked", "total"].map(|key| number(count_of(job, key)));
    format!("{} changed, {looked} of {total} looked at", count(count_of(job, "changed"), "message"))
}

fn path_of(job: &Value) -> String {
    path(&["v1", "jobs", &text(job)])
}

/// Asks for a change of many messages and waits until it is done. A bar shows how far it is; Ctrl-C cancels it.
pub(crate) async fn change(
    client: &Client,
    is_quiet: bool,
    to: &str,
    request: &Value,
) -> Result<Value, Failure> {
    let began = client.ask_waiting(WAIT_MS, &format!("{to}?wait_ms={WAIT_MS}"), request).await;
    let answer = match began {
        // A broker of an earlier version answers when it is done.
        Err(failure) if failure.word() == Some("parameter-unknown") => return client.post(to, request).await,
        answer => answer?,
    };
    if answer.status != StatusCode::ACCEPTED {
        return Ok(answer.body);
    }
    let (mut job, mut ending) = (answer.body, Ending::listen()?);
    let bar = Bar::new(is_quiet, &job);
    let (id, its_path) = (text(&job["id"]), path_of(&job["id"]));
    while job["state"] == "running" {
        bar.show(&job);
        let waiting = format!("{its_path}?wait_ms={WAIT_MS}");
        job = tokio::select! {
            job = client.get_waiting(WAIT_MS, &waiting) => job.map_err(|failure| {
                failure.hint(format!("the broker goes on with it; see how far it is: overtake job show {id}"))
            })?,
            () = ending.wait() => client.ask(Method::DELETE, &its_path, None).await?.body,
        };
    }
    drop(bar);
    match job["state"].as_str() {
        Some("done") => Ok(json!({ "count": job["changed"] })),
        Some("cancelled") => Err(Failure::new(Exit::Error, format!("job {id} is cancelled: {}", come(&job)))
            .hint("what was changed stays changed; the same command goes on with what is left")),
        _ => Err(Failure::new(
            Exit::Error,
            format!("job {id} failed: {}; {}", text(&job["error"]), come(&job)),
        )),
    }
}

/// How far a job is, where a terminal shows it.
struct Bar(Option<ProgressBar>);

impl Bar {
    fn new(is_quiet: bool, job: &Value) -> Self {
        if is_quiet {
            return Self(None);
        }
        let style = ProgressStyle::with_template(
            "{bar:30} {human_pos} of {human_len} looked at, {msg}, {eta} left; Ctrl-C cancels",
        );
        let bar = ProgressBar::with_draw_target(Some(count_of(job, "total")), ProgressDrawTarget::stderr());
        Self(Some(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))))
    }

    fn show(&self, job: &Value) {
        if let Some(bar) = &self.0 {
            bar.set_position(count_of(job, "looked"));
            bar.set_message(format!("{} changed", count(count_of(job, "changed"), "message")));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

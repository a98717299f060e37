//! `overtake job`, and how commands that change many messages wait for theirs.

use clap::Subcommand;
use hyper::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::client::Client;
use crate::failure::{Exit, Failure};
use crate::look_bar::LookBar;
use crate::out::{HEAD, RESET};
use crate::signals::Ending;
use crate::table::{Side, Table, count, number, one_line};

/// An answer comes at least so often, ms: so often the progress is shown anew.
const WAIT_MS: u64 = 1_000;
/// The first answer comes after this time, ms: until then the job has no number by which it could be cancelled.
const FIRST_WAIT_MS: u64 = 50;

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
    /// Cancel a job: it ends where it is, and what it has changed stays changed. A job that is over stays as it is.
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
            let its_path = path_of(&json!(job));
            let was_running = session.client.get(&its_path).await?["state"] == "running";
            let ended = session.client.ask(Method::DELETE, &its_path, None).await?.body;
            session.out.done(&ended, || {
                let state = text(&ended["state"]);
                let is =
                    if was_running { format!("is {state}") } else { format!("was over before ({state})") };
                format!("job {job} {is}: {}", come(&ended))
            })?;
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
    let mut ending = Ending::listen()?;
    let first = format!("{to}?wait_ms={FIRST_WAIT_MS}");
    let (began, mut is_ending) = ending.wait_with(client.ask_waiting(FIRST_WAIT_MS, &first, request)).await;
    let answer = match began.unwrap_or_else(|| Err(unheard())) {
        // A broker of an earlier version answers when it is done.
        Err(failure) if failure.word() == Some("parameter-unknown") => {
            return tokio::select! {
                answer = client.post(to, request) => answer,
                () = ending.wait() => Err(unheard()),
            };
        }
        answer => answer?,
    };
    if answer.status != StatusCode::ACCEPTED {
        return Ok(answer.body);
    }
    let mut job = answer.body;
    let bar = LookBar::new(!is_quiet, 30, "Ctrl-C cancels");
    let (id, its_path) = (text(&job["id"]), path_of(&job["id"]));
    while job["state"] == "running" {
        let (looked, total) = (count_of(&job, "looked"), count_of(&job, "total"));
        let changed = count(count_of(&job, "changed"), "message");
        let text = format!("{} of {} looked at, {changed} changed", number(looked), number(total));
        bar.show(looked, total, text + &bar.left());
        if std::mem::take(&mut is_ending) {
            job = client.ask(Method::DELETE, &its_path, None).await?.body;
            continue;
        }
        let waiting = format!("{its_path}?wait_ms={WAIT_MS}");
        job = tokio::select! {
            job = client.get_waiting(WAIT_MS, &waiting) => job.map_err(|failure| {
                failure.hint(format!("the broker goes on with it; see how far it is: overtake job show {id}"))
            })?,
            () = ending.wait() => {
                is_ending = true;
                continue;
            }
        };
    }
    drop(bar);
    match job["state"].as_str() {
        Some("done") => Ok(json!({ "count": job["changed"] })),
        Some("cancelled") => Err(Failure::new(Exit::Error, format!("job {id} is cancelled: {}", come(&job)))
            .hint("what was changed stays changed; the same command goes on with what is left")),
        _ => {
            let is_unchanged = count_of(&job, "changed") == 0;
            let come = if is_unchanged { "nothing was changed".to_owned() } else { come(&job) };
            Err(Failure::new(Exit::Error, format!("job {id} failed: {}; {come}", text(&job["error"]))))
        }
    }
}

/// The error of a command that is ended before the broker has said what it does with the change.
fn unheard() -> Failure {
    Failure::new(Exit::Error, "stopped before the broker answered: it may go on with the change")
        .hint("see whether it does: overtake job list")
}

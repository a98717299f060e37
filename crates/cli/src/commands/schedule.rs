//! `overtake schedule`

use clap::{Args, Subcommand};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use super::publish::{ContentArgs, read_body};
use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::body;
use crate::confirm::Yes;
use crate::failure::Exit;
use crate::out::{HEAD, RESET};
use crate::table::{Side, Table, one_line};

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Make a schedule, or change the one of this name: a message is published to a queue whenever a cron line says so.
    ///
    /// One occurrence ahead waits in the queue as a delayed message with the id NAME@2026-11-22T10:00:00Z; `overtake peek` shows it. After
    /// a time in which the broker was down the one that waited runs late, and those missed after it are left out. It takes the right to
    /// write the queue.
    #[command(after_help = "\
Examples:
  overtake schedule put nightly jobs '0 3 * * *' 'vacuum' --timezone Europe/Berlin
  overtake schedule put report executions '30 9 * * MON-FRI' 'report.sh' --priority low --key report
  overtake schedule put ping jobs @hourly - --content-type application/json < ping.json")]
    Put(Box<PutArgs>),
    /// List the schedules whose queues you may see.
    #[command(after_help = "\
Examples:
  overtake schedule list
  overtake --vhost tenant-7 schedule list --json")]
    List,
    /// Show a schedule, its next five occurrences, and what it publishes.
    #[command(after_help = "\
Examples:
  overtake schedule show nightly
  overtake schedule show nightly --json | jq -r '.next[]'")]
    Show {
        /// Its name.
        name: String,
    },
    /// Delete a schedule with the occurrence that waits; what is due already stays.
    #[command(after_help = "\
Examples:
  overtake schedule delete nightly
  overtake schedule delete nightly --yes")]
    Delete {
        /// Its name.
        name: String,
        #[command(flatten)]
        yes: Yes,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// Its name.
    name: String,
    /// The queue it publishes to.
    queue: String,
    /// When: minute, hour, day of month, month, day of week; or @hourly, @daily, @weekly, @monthly, @yearly.
    cron: String,
    /// The body; - or nothing reads it from stdin.
    body: Option<String>,
    /// The time zone in which the line is read.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    timezone: String,
    #[command(flatten)]
    message: ContentArgs,
}

/// Asks the broker about schedules.
pub(crate) async fn run(command: &ScheduleCommand, session: &Session) -> Ended {
    match command {
        ScheduleCommand::Put(args) => put(args, session).await,
        ScheduleCommand::List => list(session).await,
        ScheduleCommand::Show { name } => show(name, session).await,
        ScheduleCommand::Delete { name, yes } => {
            yes.or_ask(&format!("Delete the schedule `{name}`?"))?;
            session.client.ask(Method::DELETE, &path(&["v1", "schedules", name]), None).await?;
            session.out.done(&json!({ "deleted": name }), || format!("schedule {name} is deleted"))?;
            Ok(Exit::Done)
        }
    }
}

async fn put(args: &PutArgs, session: &Session) -> Ended {
    let PutArgs { name, queue, cron, body, timezone, message } = args;
    let mut message = message.json()?;
    body::put(&mut message, &read_body(body.as_deref())?);
    let schedule = json!({ "queue": queue, "cron": cron, "timezone": timezone, "message": message });
    let answer = session.client.ask(Method::PUT, &path(&["v1", "schedules", name]), Some(&schedule)).await?;
    session.out.done(&answer.body, || {
        let made = if answer.status == StatusCode::CREATED { "made" } else { "as you say" };
        match answer.body["error"].as_str() {
            Some(error) => format!("schedule {name} is {made}, but: {error}"),
            None => format!("schedule {name} is {made}; next: {}", text(&answer.body["next"][0])),
        }
    })?;
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Ended {
    let answer = session.client.get("/v1/schedules").await?;
    session.out.answer(&answer, |answer| {
        let schedules = answer["schedules"].as_array().map(Vec::as_slice).unwrap_or_default();
        if schedules.is_empty() {
            return "no schedules\n".to_owned();
        }
        let mut table = Table::new(&[
            ("NAME", Side::Left),
            ("QUEUE", Side::Left),
            ("CRON", Side::Left),
            ("TIME ZONE", Side::Left),
            ("NEXT", Side::Left),
            ("USER", Side::Left),
            ("ERROR", Side::Left),
        ]);
        for schedule in schedules {
            let [name, queue, cron, timezone] =
                ["name", "queue", "cron", "timezone"].map(|key| text(&schedule[key]));
            let [user, error] = ["user", "error"].map(|key| text(&schedule[key]));
            table.row(vec![name, queue, cron, timezone, text(&schedule["next"][0]), user, error]);
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

async fn show(name: &str, session: &Session) -> Ended {
    let answer = session.client.get(&path(&["v1", "schedules", name])).await?;
    session.out.answer(&answer, shown)?;
    Ok(Exit::Done)
}

fn shown(schedule: &Value) -> String {
    let line = |text: &str| one_line(text, usize::MAX);
    let mut shown = format!("{HEAD}{}{RESET}\n", line(&text(&schedule["name"])));
    let mut say = |key: &str, value: &Value| {
        if !value.is_null() && value.as_object().is_none_or(|object| !object.is_empty()) {
            shown.push_str(&format!("  {key}: {}\n", line(&text(value))));
        }
    };
    for (word, key) in [("queue", "queue"), ("cron", "cron"), ("time zone", "timezone"), ("user", "user")] {
        say(word, &schedule[key]);
    }
    say("error", &schedule["error"]);
    say("runs at", &schedule["broker"]);
    for (key, value) in schedule["message"].as_object().into_iter().flatten() {
        say(key, value);
    }
    shown.push_str("\nnext:\n");
    for at in schedule["next"].as_array().into_iter().flatten() {
        shown.push_str(&format!("  {}\n", text(at)));
    }
    shown
}

//! `overtake endpoint` and `overtake source`: two kinds of one thing.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hyper::{Method, StatusCode};
use overtake_redact::{json_reason, toml_error};
use serde_json::{Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::{Exit, Failure};
use crate::gauges::figures;
use crate::out::{HEAD, RESET};
use crate::table::{Side, Table, duration, number, one_line};
use crate::words;

#[derive(Debug, Subcommand)]
pub(crate) enum EndpointCommand {
    /// Make an endpoint, or change the one of this name: what waits in its queue is sent to another system, the most urgent first.
    ///
    /// The definition is a table as under [endpoints.NAME] of the configuration, in TOML or JSON. Secrets are named and never said: over the API as
    /// { env = "OVERTAKE_SECRET_…" }, a variable of the server. See docs/endpoints.md.
    #[command(after_help = "\
Examples:
  overtake endpoint put cloud cloud.toml
  overtake endpoint put cloud - < cloud.json")]
    Put(PutArgs),
    /// List the endpoints whose queues you may see.
    #[command(after_help = "\
Examples:
  overtake endpoint list
  overtake --vhost plant-7 endpoint list --json")]
    List,
    /// Show an endpoint: what it does, and what became of the messages of each lane.
    #[command(after_help = "\
Examples:
  overtake endpoint show cloud
  overtake endpoint show cloud --json | jq .lanes")]
    Show(NameArgs),
    /// Connect to the receiver as the endpoint does, and say what is wrong. Nothing is sent.
    #[command(after_help = "\
Examples:
  overtake endpoint test cloud
  overtake endpoint test cloud --with cloud.toml")]
    Test(TestArgs),
    /// Send nothing new until it is resumed; it stays so over a restart.
    #[command(after_help = "\
Examples:
  overtake endpoint pause cloud
  overtake --vhost plant-7 endpoint pause cloud")]
    Pause(NameArgs),
    /// Send again, at once and as if nothing had failed.
    #[command(after_help = "\
Examples:
  overtake endpoint resume cloud
  overtake --vhost plant-7 endpoint resume cloud")]
    Resume(NameArgs),
    /// Delete an endpoint; what waits in its queue stays there.
    #[command(after_help = "\
Examples:
  overtake endpoint delete cloud
  overtake endpoint delete cloud --yes")]
    Delete(DeleteArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// Make a source, or change the one of this name: what another system has is taken in, at least once.
    ///
    /// The definition is a table as under [sources.NAME] of the configuration, in TOML or JSON. Secrets are named and never said: over the API as
    /// { env = "OVERTAKE_SECRET_…" }, a variable of the server. See docs/endpoints.md.
    #[command(after_help = "\
Examples:
  overtake source put requests requests.toml
  overtake source put requests - < requests.json")]
    Put(PutArgs),
    /// List the sources that you may see.
    #[command(after_help = "\
Examples:
  overtake source list
  overtake --vhost plant-7 source list --json")]
    List,
    /// Show a source: what it does, and what it took in.
    #[command(after_help = "\
Examples:
  overtake source show requests
  overtake source show requests --json | jq .taken")]
    Show(NameArgs),
    /// Connect to the other system as the source does, and say what is wrong. Nothing is taken.
    #[command(after_help = "\
Examples:
  overtake source test requests
  overtake source test requests --with requests.toml")]
    Test(TestArgs),
    /// Take nothing until it is resumed; it stays so over a restart.
    #[command(after_help = "\
Examples:
  overtake source pause requests
  overtake --vhost plant-7 source pause requests")]
    Pause(NameArgs),
    /// Take messages in again.
    #[command(after_help = "\
Examples:
  overtake source resume requests
  overtake --vhost plant-7 source resume requests")]
    Resume(NameArgs),
    /// Delete a source; what it took in stays.
    #[command(after_help = "\
Examples:
  overtake source delete requests
  overtake source delete requests --yes")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// Its name.
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// Its name.
    name: String,
    /// The definition, TOML or JSON; `-` is standard input.
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Its name.
    name: String,
    /// A definition to test in place of the one that is there; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Its name.
    name: String,
    #[command(flatten)]
    yes: Yes,
}

/// Asks the broker about endpoints.
pub(crate) async fn endpoint(command: &EndpointCommand, session: &Session) -> Ended {
    match command {
        EndpointCommand::List => list(session, ENDPOINT, endpoints).await,
        EndpointCommand::Show(args) => show(args, session, ENDPOINT, endpoint_text).await,
        EndpointCommand::Put(args) => put(args, session, ENDPOINT).await,
        EndpointCommand::Test(args) => test(args, session, ENDPOINT).await,
        EndpointCommand::Pause(args) => tell(args, session, ENDPOINT, "pause").await,
        EndpointCommand::Resume(args) => tell(args, session, ENDPOINT, "resume").await,
        EndpointCommand::Delete(args) => delete(args, session, ENDPOINT).await,
    }
}

/// Asks the broker about sources.
pub(crate) async fn source(command: &SourceCommand, session: &Session) -> Ended {
    match command {
        SourceCommand::List => list(session, SOURCE, sources).await,
        SourceCommand::Show(args) => show(args, session, SOURCE, source_text).await,
        SourceCommand::Put(args) => put(args, session, SOURCE).await,
        SourceCommand::Test(args) => test(args, session, SOURCE).await,
        SourceCommand::Pause(args) => tell(args, session, SOURCE, "pause").await,
        SourceCommand::Resume(args) => tell(args, session, SOURCE, "resume").await,
        SourceCommand::Delete(args) => delete(args, session, SOURCE).await,
    }
}

/// One of them, and many.
type Words = (&'static str, &'static str);
const ENDPOINT: Words = ("endpoint", "endpoints");
const SOURCE: Words = ("source", "sources");

async fn list(session: &Session, (_, many): Words, rows: fn(&[Value]) -> String) -> Ended {
    let answer = session.client.get(&format!("/v1/{many}")).await?;
    session.out.answer(&answer, |answer| match answer[many].as_array().map(Vec::as_slice) {
        None | Some([]) => format!("no {many}\n"),
        Some(all) => rows(all),
    })?;
    Ok(Exit::Done)
}

async fn show(args: &NameArgs, session: &Session, (_, many): Words, shown: fn(&Value) -> String) -> Ended {
    let answer = session.client.get(&path(&["v1", many, &args.name])).await?;
    session.out.answer(&answer, shown)?;
    Ok(Exit::Done)
}

async fn put(args: &PutArgs, session: &Session, (one, many): Words) -> Ended {
    let definition = read(&args.file)?;
    let answer = session.client.ask(Method::PUT, &path(&["v1", many, &args.name]), Some(&definition)).await?;
    session.out.done(&answer.body, || {
        let made = if answer.status == StatusCode::CREATED { "made" } else { "as you say" };
        format!("{one} {} is {made}; see how it goes: overtake {one} show {}", args.name, args.name)
    })?;
    Ok(Exit::Done)
}

async fn test(args: &TestArgs, session: &Session, (one, many): Words) -> Ended {
    let test = match args.with.as_deref().map(read).transpose()? {
        Some(draft) => json!({ "definition": draft }),
        None => json!({}),
    };
    let asked = path(&["v1", many, &args.name, "test"]);
    let answer = session.client.ask(Method::POST, &asked, Some(&test)).await?.body;
    if answer["ok"] == true {
        session.out.done(&answer, || format!("{one} {} connects, in {} ms", args.name, answer["took_ms"]))?;
        return Ok(Exit::Done);
    }
    session.out.answer(&answer, |answer| {
        format!("{one} {} does not connect: {}\n", args.name, one_line(&text(&answer["why"]), usize::MAX))
    })?;
    Ok(Exit::Error)
}

async fn tell(args: &NameArgs, session: &Session, (one, many): Words, what: &str) -> Ended {
    let answer = session.client.ask(Method::POST, &path(&["v1", many, &args.name, what]), None).await?;
    session.out.done(&answer.body, || format!("{one} {} is {what}d", args.name))?;
    Ok(Exit::Done)
}

async fn delete(args: &DeleteArgs, session: &Session, (one, many): Words) -> Ended {
    args.yes.or_ask(&format!("Delete the {one} `{}`?", args.name))?;
    session.client.ask(Method::DELETE, &path(&["v1", many, &args.name]), None).await?;
    session.out.done(&json!({ "deleted": args.name }), || format!("{one} {} is deleted", args.name))?;
    Ok(Exit::Done)
}

/// A definition, in either form.
fn read(file: &Path) -> Result<Value, Failure> {
    let wrong = |why: String| {
        Failure::usage(format!("cannot use {}: {why}", file.display()))
            .hint("it is a table as in the configuration, in TOML or JSON: docs/endpoints.md has examples")
    };
    let mut written = String::new();
    let done = match file.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut written).map(drop),
        _ => std::fs::read_to_string(file).map(|read| written = read),
    };
    done.map_err(|error| wrong(error.to_string()))?;
    if written.trim_start().starts_with('{') {
        return words::json(written.as_bytes()).map_err(|error| wrong(json_reason(&error.to_string())));
    }
    toml::from_str(&written).map_err(|error| wrong(toml_error(&written, error.span(), error.message())))
}

fn endpoints(all: &[Value]) -> String {
    let mut table = Table::new(&[
        ("NAME", Side::Left),
        ("QUEUE", Side::Left),
        ("TO", Side::Left),
        ("STATE", Side::Left),
        ("WAITING", Side::Right),
        ("SENT", Side::Right),
        ("FAILED", Side::Right),
        ("LAST ERROR", Side::Left),
    ]);
    for one in all {
        let [name, queue, kind] = ["name", "queue", "kind"].map(|key| text(&one[key]));
        let state = state(one);
        let sum = |keys: &[&str]| {
            let lanes = one["lanes"].as_array().into_iter().flatten();
            number(lanes.flat_map(|lane| keys.iter().filter_map(|key| lane[*key].as_u64())).sum())
        };
        let (waiting, sent, failed) =
            (sum(&["ready", "delayed"]), sum(&["sent"]), sum(&["failed", "refused"]));
        let error = one_line(&text(&one["last_error"]["why"]), 60);
        table.row(vec![name, queue, kind, state, waiting, sent, failed, error]);
    }
    table.text()
}

fn sources(all: &[Value]) -> String {
    let mut table = Table::new(&[
        ("NAME", Side::Left),
        ("FROM", Side::Left),
        ("STATE", Side::Left),
        ("TAKEN", Side::Right),
        ("REFUSED", Side::Right),
        ("LAST ERROR", Side::Left),
    ]);
    for one in all {
        let ([name, kind], state) = (["name", "kind"].map(|key| text(&one[key])), state(one));
        let [taken, refused] = ["taken", "refused"].map(|key| number(one[key].as_u64().unwrap_or_default()));
        table.row(vec![name, kind, state, taken, refused, one_line(&text(&one["last_error"]["why"]), 60)]);
    }
    table.text()
}

/// What one does, or the other broker that runs it.
fn state(one: &Value) -> String {
    match (one["state"].as_str(), one["broker"].as_str()) {
        (Some("elsewhere"), Some(broker)) => format!("runs at {broker}"),
        _ => text(&one["state"]),
    }
}

/// What is known of one, key by key, without its definition.
fn head(one: &Value, keys: &[(&str, &str)]) -> String {
    let line = |text: &str| one_line(text, usize::MAX);
    let mut shown = format!("{HEAD}{}{RESET}\n", line(&text(&one["name"])));
    for (word, key) in keys {
        if !one[*key].is_null() {
            shown.push_str(&format!("  {word}: {}\n", line(&text(&one[*key]))));
        }
    }
    if let (Some(why), Some(at)) = (one["last_error"]["why"].as_str(), one["last_error"]["at"].as_str()) {
        shown.push_str(&format!("  last error: {}, at {at}\n", line(why)));
    }
    shown
}

fn definition(one: &Value) -> String {
    let pretty = serde_json::to_string_pretty(&one["definition"]).unwrap_or_default();
    format!("\ndefinition:\n{pretty}\n")
}

fn endpoint_text(one: &Value) -> String {
    let mut shown = head(
        one,
        &[
            ("queue", "queue"),
            ("to", "kind"),
            ("state", "state"),
            ("runs at", "broker"),
            ("connections", "connections"),
            ("next attempt", "next_attempt"),
            ("from", "provenance"),
        ],
    );
    if let Some(budget) = one["budget"].as_object() {
        let of = |key: &str| number(budget[key].as_u64().unwrap_or_default());
        let (used, daily, reserve) = (of("used_bytes"), of("daily_bytes"), of("reserve_bytes"));
        shown
            .push_str(&format!("  today: {used} of {daily} bytes, the last {reserve} for urgent messages\n"));
    }
    let mut table = Table::new(&[
        ("LANE", Side::Left),
        ("WAITING", Side::Right),
        ("OLDEST", Side::Right),
        ("ASIDE", Side::Right),
        ("ON ITS WAY", Side::Right),
        ("SENT", Side::Right),
        ("SENT/S", Side::Right),
        ("FAILED", Side::Right),
        ("REFUSED", Side::Right),
        ("EXPIRED", Side::Right),
        ("LEFT ALONE UNTIL", Side::Left),
    ]);
    for lane in one["lanes"].as_array().into_iter().flatten() {
        let of = |key: &str| number(lane[key].as_u64().unwrap_or_default());
        let oldest = lane["oldest_age_ms"].as_u64().filter(|ms| *ms > 0);
        let oldest = oldest.map_or_else(String::new, duration);
        table.row(vec![
            text(&lane["lane"]),
            of("ready"),
            oldest,
            of("delayed"),
            of("in_flight"),
            of("sent"),
            figures::rate(lane["sent_per_second"].as_f64()),
            of("failed"),
            of("refused"),
            of("expired"),
            text(&lane["open_until"]),
        ]);
    }
    shown + "\n" + &table.text() + &definition(one)
}

fn source_text(one: &Value) -> String {
    let keys = [
        ("from", "kind"),
        ("state", "state"),
        ("runs at", "broker"),
        ("taken", "taken"),
        ("bytes", "taken_bytes"),
        ("refused", "refused"),
        ("last taken", "last_taken"),
        ("configured in", "provenance"),
    ];
    head(one, &keys) + &definition(one)
}

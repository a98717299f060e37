//! `overtake routes`

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hyper::Method;
use overtake_routes::{Manifest, Reading, TTL_FOR_EVER};
use serde_json::{Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::failure::{Exit, Failure};
use crate::out::{HINT, Out, RESET};
use crate::table::{Side, Table, number};
use crate::words;

const ROUTES: &str = "/v1/routes";

#[derive(Debug, Subcommand)]
pub(crate) enum RoutesCommand {
    /// Set the routes of a manifest in place of those there are: whole or not at all.
    #[command(after_help = "\
Examples:
  overtake routes apply routes.toml
  overtake routes apply deployment.json --check
  overtake --vhost plant-7 routes apply routes.json")]
    Apply {
        #[command(flatten)]
        file: File,
        /// Only say what would change.
        #[arg(long)]
        check: bool,
    },
    /// Say what a manifest would change.
    #[command(after_help = "\
Examples:
  overtake routes diff routes.toml
  overtake routes diff - --json < deployment.json")]
    Diff {
        #[command(flatten)]
        file: File,
    },
    /// List routes, the most urgent first, with what they did.
    #[command(after_help = "\
Examples:
  overtake routes list
  overtake --vhost plant-7 routes list --json")]
    List,
    /// Print the routes there are as a manifest, which can be applied again.
    #[command(after_help = "\
Examples:
  overtake routes export > routes.json
  overtake --vhost plant-7 routes export")]
    Export,
    /// Say for a message which routes match, which do not and why, and which copies are made. Nothing is published.
    #[command(after_help = "\
Examples:
  overtake routes test /messages/modules/Cam/outputs/o
  overtake routes test /messages/modules/Cam/outputs/o --message alert.json
  overtake routes test /messages/modules/Cam/outputs/o --message alert.json --with routes.toml")]
    Test(TestArgs),
    /// Print a manifest in its one form. Asks no broker.
    #[command(after_help = "\
Examples:
  overtake routes fmt deployment.json
  overtake routes fmt - < routes.toml")]
    Fmt {
        #[command(flatten)]
        file: File,
    },
}

#[derive(Debug, Args)]
pub(crate) struct File {
    /// The manifest, JSON or TOML; `-` is standard input.
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The path that the message comes from.
    path: String,
    /// The message as it would be published over HTTP: a file with JSON, `body`, `headers` and so on; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    message: Option<PathBuf>,
    /// Another manifest than the one that holds.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

/// Prints a manifest in its one form.
pub(crate) fn fmt(file: &File, out: Out) -> Ended {
    let manifest = manifest(&file.file, out)?;
    out.text(&format!("{}\n", manifest.to_json()))?;
    Ok(Exit::Done)
}

/// Asks the broker about routes.
pub(crate) async fn run(command: &RoutesCommand, session: &Session) -> Ended {
    match command {
        RoutesCommand::Apply { file, check } => set(&file.file, *check, session).await,
        RoutesCommand::Diff { file } => set(&file.file, true, session).await,
        RoutesCommand::List => list(session).await,
        RoutesCommand::Export => export(session).await,
        RoutesCommand::Test(args) => test(args, session).await,
        RoutesCommand::Fmt { file } => fmt(file, session.out),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let done = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(path).map(|read| text = read)
    };
    done.map_err(|error| Failure::new(Exit::Error, format!("{} cannot be read: {error}", path.display())))?;
    Ok(text)
}

/// The manifest in a file. What was passed over in it is told on stderr.
fn manifest(path: &Path, out: Out) -> Result<Manifest, Failure> {
    let read = Reading::from_file(Some(path), &read(path)?);
    let Reading { manifest, notes } = read.map_err(|error| {
        Failure::new(Exit::Error, format!("{} {}\n{error}", path.display(), error.summary()))
            .hint("correct it; nothing was changed")
    })?;
    for note in notes.iter().filter(|_| !out.is_quiet()) {
        let _ = writeln!(anstream::stderr(), "{HINT}note:{RESET} {note}");
    }
    Ok(manifest)
}

/// A time to live of an answer, if it has one.
fn ttl(secs: &Value) -> Option<String> {
    let secs = secs.as_u64()?;
    Some(if secs == u64::from(TTL_FOR_EVER) { "for ever".to_owned() } else { format!("{secs}s") })
}

fn as_json(manifest: &Manifest) -> Result<Value, Failure> {
    serde_json::from_str(&manifest.to_json())
        .map_err(|error| Failure::new(Exit::Error, format!("the manifest is not written as JSON: {error}")))
}

async fn set(path: &Path, check: bool, session: &Session) -> Ended {
    let manifest = as_json(&manifest(path, session.out)?)?;
    let place = if check { format!("{ROUTES}?check=true") } else { ROUTES.to_owned() };
    let answer = session.client.ask(Method::PUT, &place, Some(&manifest)).await?.body;
    session.out.answer(&answer, |answer| {
        let changes: Vec<String> = answer["changes"].as_array().into_iter().flatten().map(text).collect();
        let end = match (changes.len(), check) {
            (0, _) => "nothing changes".to_owned(),
            (_, true) => "nothing was changed".to_owned(),
            (1, false) => "1 change is made".to_owned(),
            (many, false) => format!("{many} changes are made"),
        };
        changes.into_iter().chain([end]).map(|line| line + "\n").collect()
    })?;
    Ok(Exit::Done)
}

async fn export(session: &Session) -> Ended {
    let manifest = session.client.get(&format!("{ROUTES}/manifest")).await?;
    let manifest = Manifest::from_json(&manifest.to_string())
        .map_err(|error| Failure::new(Exit::Error, format!("the broker sent no manifest\n{error}")))?;
    session.out.text(&format!("{}\n", manifest.to_json()))?;
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Ended {
    let answer = session.client.get(ROUTES).await?;
    session.out.answer(&answer, |answer| {
        if answer["routes"].as_array().is_none_or(Vec::is_empty) {
            return "no routes; `overtake routes apply FILE` sets some\n".to_owned();
        }
        let mut table = Table::new(&[
            ("NAME", Side::Left),
            ("PRIORITY", Side::Right),
            ("TTL", Side::Right),
            ("MATCHED", Side::Right),
            ("UNDEFINED", Side::Right),
            ("COPIES", Side::Right),
            ("ROUTE", Side::Left),
        ]);
        let count = |value: &Value| number(value.as_u64().unwrap_or_default());
        let or_dash = |value: &Value| if value.is_null() { "-".to_owned() } else { value.to_string() };
        for route in answer["routes"].as_array().into_iter().flatten() {
            let fallback = if route["fallback"] == true { " (fallback)" } else { "" };
            let ttl = ttl(&route["ttl_secs"]).unwrap_or_else(|| "-".to_owned());
            table.row(vec![
                text(&route["name"]),
                or_dash(&route["priority"]),
                ttl,
                count(&route["matched"]),
                count(&route["undefined"]),
                count(&route["copies"]),
                text(&route["route"]) + fallback,
            ]);
        }
        let [published, unrouted, fallback] =
            ["published", "unrouted", "fallback"].map(|key| count(&answer[key]));
        let totals = format!("{published} published, {unrouted} unrouted, {fallback} by fallback routes\n");
        table.text() + &totals + "\n" + &endpoints(&answer["endpoints"])
    })?;
    Ok(Exit::Done)
}

/// Where copies wait: a line for each lane.
fn endpoints(endpoints: &Value) -> String {
    let mut table = Table::new(&[
        ("QUEUE", Side::Left),
        ("LANE", Side::Left),
        ("READY", Side::Right),
        ("LEASED", Side::Right),
        ("EXPIRED", Side::Right),
    ]);
    let count = |value: &Value| number(value.as_u64().unwrap_or_default());
    for endpoint in endpoints.as_array().into_iter().flatten() {
        let lanes = endpoint["lanes"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (at, lane) in lanes.iter().enumerate() {
            let name = if at == 0 { text(&endpoint["queue"]) } else { String::new() };
            let [ready, leased, expired] = ["ready", "leased", "expired"].map(|key| count(&lane[key]));
            table.row(vec![name, text(&lane["name"]), ready, leased, expired]);
        }
        if lanes.is_empty() {
            let why = if endpoint["exists"] == true { "-" } else { "not there: copies are left out" };
            let none = String::new;
            table.row(vec![text(&endpoint["queue"]), why.to_owned(), none(), none(), none()]);
        }
    }
    table.text()
}

async fn test(args: &TestArgs, session: &Session) -> Ended {
    let TestArgs { path, message, with } = args;
    let mut ask = json!({ "path": path });
    if let Some(file) = message {
        let text = read(file)?;
        ask["message"] = words::json(text.as_bytes()).map_err(|error| {
            Failure::new(Exit::Error, format!("{} is no message: {error}", file.display()))
                .hint("write it as it is published over HTTP: {\"body\": \"x\", \"headers\": {\"severity\": \"high\"}}")
        })?;
    }
    if let Some(file) = with {
        ask["manifest"] = as_json(&manifest(file, session.out)?)?;
    }
    let answer = session.client.post("/v1/routes/test", &ask).await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[
            ("ROUTE", Side::Left),
            ("SAYS", Side::Left),
            ("EXPRESSION", Side::Left),
            ("WHY", Side::Left),
        ]);
        for route in answer["routes"].as_array().into_iter().flatten() {
            table.row(["name", "says", "expression", "why"].map(|key| text(&route[key])).to_vec());
        }
        let copies = answer["copies"].as_array().into_iter().flatten().map(|copy| {
            let priority =
                copy["priority"].as_u64().map_or_else(String::new, |level| format!(" at priority {level}"));
            let ttl = ttl(&copy["ttl_secs"]).unwrap_or_default();
            let ttl = if ttl.is_empty() { ttl } else { format!(" for {}", ttl.trim_start_matches("for ")) };
            let (queue, route) = (text(&copy["queue"]), text(&copy["route"]));
            match copy["left_out"] == true {
                true => format!("no copy in {queue} by {route}: there is no such queue\n"),
                false => format!("a copy in {queue} by {route}{priority}{ttl}\n"),
            }
        });
        let copies: String = copies.collect();
        let none = if copies.is_empty() { "nobody gets a copy\n" } else { "" };
        table.text() + &copies + none
    })?;
    Ok(Exit::Done)
}

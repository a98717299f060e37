//! `overtake queue`

use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use hyper::{Method, StatusCode};
use overtake_redact::{json_reason, toml_error};
use serde_json::{Map, Value, json};

use super::{Ended, Session};
use crate::address::{path, query};
use crate::confirm::Yes;
use crate::failure::{Exit, Failure};
use crate::out::{HEAD, RESET};
use crate::selection::each;
use crate::table::{Side, Table, count, duration, number};
use crate::words;

/// Queues of one page: as many as the broker gives.
const PAGE: u64 = 1_000;

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Make a queue, or check that the one that is there has these settings.
    ///
    /// Settings are written as in the configuration file and over HTTP: KEY=VALUE with a TOML value, dots leading into
    /// tables; a name with a dot is in quotes. In a new queue a setting that is not given has its default. A queue that is there is never changed: a
    /// setting with another value is an error that shows both. `overtake queue set` changes settings.
    #[command(after_help = "\
Examples:
  overtake queue declare jobs
  overtake queue declare jobs scheme=named max_active=10 lanes.background.max_active=6
  overtake queue declare mail 'order={lanes=[{name=\"hot\",from=7},{name=\"cold\"}]}'
  overtake queue declare mail --from mail.toml --replace")]
    Declare(DeclareArgs),
    /// Change settings of a queue; those that are not given stay.
    ///
    /// KEY=VALUE with a TOML value, dots leading into tables; a name with a dot is in quotes. KEY= is the default again.
    /// Messages that wait stay, and go by the new settings from now on.
    #[command(after_help = "\
Examples:
  overtake queue set jobs max_active=20
  overtake queue set jobs backoff.initial=500ms delivery_limit=5
  overtake queue set jobs ttl= lanes.background=
  overtake queue set jobs key_weights.acme=3 'key_weights.\"acme.example\"=2'
  overtake queue set jobs order=priority --import-priority most-urgent")]
    Set(SetArgs),
    /// Pause a queue: nothing more is given to consumers until it is resumed.
    #[command(after_help = "\
Examples:
  overtake queue pause jobs")]
    Pause {
        /// Its name.
        queue: String,
    },
    /// Resume a queue that is paused.
    #[command(after_help = "\
Examples:
  overtake queue resume jobs")]
    Resume {
        /// Its name.
        queue: String,
    },
    /// List all queues.
    #[command(after_help = "\
Examples:
  overtake queue list
  overtake queue list --json | jq -r '.queues[].name'")]
    List,
    /// Show a queue: its settings, and what is in each lane.
    #[command(after_help = "\
Examples:
  overtake queue show jobs
  overtake queue show jobs --json | jq .totals.ready")]
    Show {
        /// Its name.
        queue: String,
    },
    /// Delete a queue with everything in it.
    #[command(after_help = "\
Examples:
  overtake queue delete jobs
  overtake queue delete jobs --if-empty --if-unused --yes")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DeclareArgs {
    /// Its name.
    queue: String,
    /// Settings, such as scheme=signed, ttl=60s or backoff.initial=500ms.
    #[arg(value_name = "KEY=VALUE", value_parser = words::setting)]
    settings: Vec<(String, String)>,
    /// Settings from a file, TOML or JSON; those given as KEY=VALUE win.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Give a queue that is there all of these settings, and the defaults of those that are not given.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    import: ImportPriority,
}

#[derive(Debug, Args)]
struct ImportPriority {
    /// Where a queue in publish order begins to be served by priority: the priority of messages that wait without one,
    /// or `most-urgent`. With such messages, such a change is refused without it.
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    import_priority: Option<String>,
}

impl ImportPriority {
    /// As a query parameter.
    fn pair(&self) -> Option<(String, String)> {
        self.import_priority.clone().map(|priority| ("import_priority".to_owned(), priority))
    }
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Its name.
    queue: String,
    /// Settings, such as scheme=signed, ttl=60s or backoff.initial=500ms; KEY= is the default again.
    #[arg(value_name = "KEY=VALUE", value_parser = words::setting, required = true)]
    settings: Vec<(String, String)>,
    #[command(flatten)]
    import: ImportPriority,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Its name.
    queue: String,
    /// Only when it holds no message.
    #[arg(long)]
    if_empty: bool,
    /// Only when it has no consumer.
    #[arg(long)]
    if_unused: bool,
    #[command(flatten)]
    yes: Yes,
}

/// Asks the broker about queues.
pub(crate) async fn run(command: &QueueCommand, session: &Session) -> Ended {
    match command {
        QueueCommand::Declare(args) => declare(args, session).await,
        QueueCommand::Set(args) => set(args, session).await,
        QueueCommand::Pause { queue } => {
            change(queue, None, json!({ "paused": true }), session, || format!("queue {queue} is paused"))
                .await
        }
        QueueCommand::Resume { queue } => {
            change(queue, None, json!({ "paused": false }), session, || format!("queue {queue} goes on"))
                .await
        }
        QueueCommand::List => list(session).await,
        QueueCommand::Show { queue } => show(queue, session).await,
        QueueCommand::Delete(args) => delete(args, session).await,
    }
}

async fn declare(args: &DeclareArgs, session: &Session) -> Ended {
    let mut settings = match &args.from {
        Some(file) => read_settings(file)?,
        None => Map::new(),
    };
    words::put_settings(&mut settings, &args.settings).map_err(Failure::usage)?;
    let replace = args.replace.then(|| ("replace".to_owned(), "true".to_owned()));
    let pairs: Vec<_> = replace.into_iter().chain(args.import.pair()).collect();
    let path = path(&["v1", "queues", &args.queue]) + &query(&pairs);
    let answer = session.client.ask(Method::PUT, &path, Some(&Value::Object(settings))).await?;
    session.out.done(&answer.body, || {
        let what = if answer.status == StatusCode::CREATED { "made" } else { "there, with these settings" };
        format!("queue {} is {what}", args.queue)
    })?;
    Ok(Exit::Done)
}

async fn set(args: &SetArgs, session: &Session) -> Ended {
    let settings = words::change_of_settings(&args.settings).map_err(Failure::usage)?;
    let new = |(key, value): &(String, String)| {
        if value.is_empty() { format!("{key} = its default") } else { format!("{key} = {value}") }
    };
    let said = || {
        let all: Vec<String> = args.settings.iter().map(new).collect();
        format!("queue {} is changed: {}", args.queue, all.join(", "))
    };
    change(&args.queue, args.import.pair(), Value::Object(settings), session, said).await
}

/// Changes the settings that `settings` names.
async fn change(
    queue: &str,
    import: Option<(String, String)>,
    settings: Value,
    session: &Session,
    said: impl Fn() -> String,
) -> Ended {
    let path = path(&["v1", "queues", queue]) + &query(import.as_slice());
    let answer = session.client.ask(Method::PATCH, &path, Some(&settings)).await?;
    session.out.done(&answer.body, said)?;
    Ok(Exit::Done)
}

fn read_settings(file: &Path) -> Result<Map<String, Value>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(Exit::Error, format!("cannot read {}: {error}", file.display())))?;
    let parsed = if text.trim_start().starts_with('{') {
        words::json(text.as_bytes()).map_err(|error| json_reason(&error.to_string()))
    } else {
        toml::from_str(&text).map_err(|error| toml_error(&text, error.span(), error.message()))
    };
    parsed.map_err(|why| Failure::new(Exit::Error, format!("{}: {}", file.display(), why.trim_end())))
}

/// Every queue, page by page.
async fn all(session: &Session) -> Result<Vec<Value>, Failure> {
    let (mut queues, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut pairs = vec![("limit".to_owned(), PAGE.to_string())];
        pairs.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
        let mut page = session.client.get(&(path(&["v1", "queues"]) + &query(&pairs))).await?;
        if let Value::Array(more) = page["queues"].take() {
            queues.extend(more);
        }
        cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
        if cursor.is_none() {
            return Ok(queues);
        }
    }
}

async fn list(session: &Session) -> Ended {
    let queues = all(session).await?;
    session.out.answer(&json!({ "queues": queues }), |answer| {
        let queues = answer["queues"].as_array().map(Vec::as_slice).unwrap_or_default();
        if queues.is_empty() {
            return "no queues\n".to_owned();
        }
        let mut table = Table::new(&[
            ("NAME", Side::Left),
            ("SCHEME", Side::Left),
            ("READY", Side::Right),
            ("DELAYED", Side::Right),
            ("LEASED", Side::Right),
            ("DEAD", Side::Right),
            ("OLDEST", Side::Right),
            ("CONSUMERS", Side::Right),
        ]);
        for queue in queues {
            let totals = &queue["totals"];
            table.row(vec![
                text(&queue["name"]),
                text(&queue["settings"]["scheme"]),
                amount(&totals["ready"]),
                amount(&totals["delayed"]),
                amount(&totals["leased"]),
                amount(&totals["dead"]),
                age(totals),
                number(queue["consumers"].as_u64().unwrap_or(0) + queue["waiting"].as_u64().unwrap_or(0)),
            ]);
        }
        let notes = queues.iter().filter_map(|queue| {
            let name = crate::table::one_line(&text(&queue["name"]), usize::MAX);
            Some(format!("{name}: {}\n", unreadable(queue)?))
        });
        table.text() + &notes.collect::<String>()
    })?;
    Ok(Exit::Done)
}

/// That messages of a queue are in quarantine, if any are.
fn unreadable(queue: &Value) -> Option<String> {
    let messages = queue["quarantined"].as_u64().filter(|messages| *messages > 0)?;
    Some(format!(
        "{} cannot be read: a part of the store is damaged, see `overtake health`",
        count(messages, "message")
    ))
}

async fn show(queue: &str, session: &Session) -> Ended {
    let answer = session.client.get(&path(&["v1", "queues", queue])).await?;
    session.out.answer(&answer, |queue| {
        let consumers = queue["consumers"].as_u64().unwrap_or(0);
        let waiting = queue["waiting"].as_u64().unwrap_or(0);
        let mut shown =
            format!("{HEAD}{}{RESET}\n", crate::table::one_line(&text(&queue["name"]), usize::MAX));
        shown.push_str(&format!("  consumers: {}, waiting: {}\n", number(consumers), number(waiting)));
        shown.push_str(&identity(&queue["identity"]));
        if let Some(unreadable) = unreadable(queue) {
            shown.push_str(&format!("  {unreadable}\n"));
        }
        for (key, value) in queue["settings"].as_object().into_iter().flatten() {
            shown
                .push_str(&format!("  {key} = {}\n", crate::table::one_line(&value.to_string(), usize::MAX)));
        }
        shown.push('\n');
        shown.push_str(&lanes(&queue["lanes"]));
        shown.push_str(&keys(&queue["keys"]));
        shown
    })?;
    Ok(Exit::Done)
}

/// What a queue is besides its settings, where it is not as most are.
fn identity(identity: &Value) -> String {
    let is = |key: &str| identity[key].as_bool();
    let words = [
        (is("durable") == Some(false), "gone after a restart"),
        (is("exclusive") == Some(true), "of one connection"),
        (is("auto_delete") == Some(true), "ends with its last consumer"),
    ];
    let words: Vec<&str> = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    if words.is_empty() { String::new() } else { format!("  {}\n", words.join(", ")) }
}

fn lanes(lanes: &Value) -> String {
    let Some(lanes) = lanes.as_array().filter(|lanes| !lanes.is_empty()) else {
        return "no lanes: nothing was published yet\n".to_owned();
    };
    let counts =
        ["ready", "delayed", "leased", "dead", "published", "delivered", "settled", "redelivered", "expired"];
    let mut table = Table::new(&[
        ("LANE", Side::Left),
        ("READY", Side::Right),
        ("DELAYED", Side::Right),
        ("LEASED", Side::Right),
        ("DEAD", Side::Right),
        ("PUBLISHED", Side::Right),
        ("DELIVERED", Side::Right),
        ("SETTLED", Side::Right),
        ("AGAIN", Side::Right),
        ("EXPIRED", Side::Right),
        ("BYTES", Side::Right),
        ("OLDEST", Side::Right),
    ]);
    for lane in lanes {
        let mut row = vec![text(&lane["lane"])];
        row.extend(counts.map(|key| amount(&lane[key])));
        row.extend([amount(&lane["bytes"]), age(lane)]);
        table.row(row);
    }
    table.text()
}

/// The keys with the most messages, if the settings speak of keys.
fn keys(keys: &Value) -> String {
    let Some(keys) = keys.as_array() else { return String::new() };
    let mut table = Table::new(&[
        ("KEY", Side::Left),
        ("READY", Side::Right),
        ("LEASED", Side::Right),
        ("WEIGHT", Side::Right),
        ("OLDEST", Side::Right),
    ]);
    for key in keys {
        let name = key["key"].as_str().filter(|name| !name.is_empty()).unwrap_or("(none)");
        let [ready, leased, weight] = ["ready", "leased", "weight"].map(|of| amount(&key[of]));
        table.row(vec![name.to_owned(), ready, leased, weight, age(key)]);
    }
    format!("\nkeys with the most messages\n{}", table.text())
}

async fn delete(args: &DeleteArgs, session: &Session) -> Ended {
    args.yes.or_ask(&format!("Delete queue `{}` with everything in it?", args.queue))?;
    let conditions = [(args.if_empty, "empty"), (args.if_unused, "unused")];
    let conditions = conditions
        .into_iter()
        .filter(|(asked, _)| *asked)
        .map(|(_, word)| ("if".to_owned(), word.to_owned()));
    let path = path(&["v1", "queues", &args.queue]) + &query(&conditions.collect::<Vec<_>>());
    session.client.ask(Method::DELETE, &path, None).await?;
    session.out.done(&json!({ "deleted": args.queue }), || format!("queue {} is deleted", args.queue))?;
    Ok(Exit::Done)
}

/// How many messages a command touched, in a sentence.
pub(crate) fn touched(answer: &Value, done: &str) -> String {
    format!("{} {done}", count(answer["count"].as_u64().unwrap_or(0), "message"))
}

/// Does the same to each message of these ids, also when another fails, and says how many it was done to.
pub(super) async fn touch_each(
    ids: &[String],
    done: &str,
    session: &Session,
    act: impl AsyncFn(&str) -> Result<Value, Failure>,
) -> Ended {
    let each = each(ids, session.out, |id, _| (ids.len() > 1).then(|| format!("{id} {done}")), act).await?;
    let answer = each.answer(json!({ "count": each.done.len() }));
    if session.out.is_json() || !each.done.is_empty() {
        session.out.done(&answer, || touched(&answer, done))?;
    }
    Ok(each.exit)
}

/// A text or a number as a cell.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A number as a cell.
pub(crate) fn amount(value: &Value) -> String {
    number(value.as_u64().unwrap_or(0))
}

/// The age of the oldest that is ready, as a cell.
pub(crate) fn age(of: &Value) -> String {
    match of["ready"].as_u64() {
        None | Some(0) => "-".to_owned(),
        Some(_) => duration(of["oldest_age_ms"].as_u64().unwrap_or(0)),
    }
}

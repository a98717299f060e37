//! `overtake category`

use clap::{Args, Subcommand};
use hyper::{Method, StatusCode};
use overtake_streams::{Lags, Lanes, RedisServer};
use serde_json::{Map, Value, json};

use super::queue::{age, amount, text};
use super::{Ended, Session};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::{Exit, Failure};
use crate::out::{HEAD, RESET};
use crate::redis::RedisArgs;
use crate::table::{Side, Table, one_line};
use crate::words;

#[derive(Debug, Subcommand)]
pub(crate) enum CategoryCommand {
    /// Make a category, and groups of consumers in it; or change settings of groups that are there.
    ///
    /// Each group has a copy of its own of all that is published to the exchange of the category's name, in the lanes that the server is configured
    /// with, and consumes from the queue CATEGORY@GROUP. Settings are those of a queue, as KEY=VALUE.
    #[command(after_help = "\
Examples:
  overtake category declare customer
  overtake category declare customer --group mails --group billing
  overtake category declare customer --group mails delivery_limit=5 max_active=10")]
    Declare(DeclareArgs),
    /// List all categories, with how far their groups are behind.
    #[command(after_help = "\
Examples:
  overtake category list
  overtake category list --json | jq -r '.categories[].name'")]
    List,
    /// Show a category: each group's lag in each lane.
    ///
    /// In Redis or Valkey that is a row for each lane, with all partitions in it; the dead letters there are of all groups.
    #[command(after_help = "\
Examples:
  overtake category show customer
  overtake category show customer --redis redis://127.0.0.1:6379/0
  overtake category show customer --json | jq '.groups[].streams[] | {stream, ready}'")]
    Show {
        /// Its name.
        category: String,
        /// The category in streams of Redis or Valkey, in place of the broker's: redis://HOST:PORT/DATABASE.
        #[arg(long, value_name = "URL", help_heading = "In Redis or Valkey")]
        redis: Option<String>,
        #[command(flatten)]
        streams: RedisArgs,
    },
    /// Delete a category that has no groups; or one of its groups, with all it has yet to do.
    #[command(after_help = "\
Examples:
  overtake category delete customer --group mails
  overtake category delete customer --yes")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DeclareArgs {
    /// Its name, without : and @.
    category: String,
    /// A group of consumers. May be given again.
    #[arg(long = "group", short = 'g', value_name = "NAME")]
    groups: Vec<String>,
    /// Settings of these groups, such as delivery_limit=5 or backoff.initial=500ms.
    #[arg(value_name = "KEY=VALUE", value_parser = words::setting)]
    settings: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Its name.
    category: String,
    /// Only this group.
    #[arg(long, short = 'g', value_name = "NAME")]
    group: Option<String>,
    #[command(flatten)]
    yes: Yes,
}

/// Asks the broker about categories.
pub(crate) async fn run(command: &CategoryCommand, session: &Session) -> Ended {
    match command {
        CategoryCommand::Declare(args) => declare(args, session).await,
        CategoryCommand::List => {
            let answer = session.client.get("/v1/categories").await?;
            session.out.answer(&answer, |answer| list(&answer["categories"]))?;
            Ok(Exit::Done)
        }
        CategoryCommand::Show { category, redis, streams } => {
            let answer = match redis {
                Some(url) => in_streams(category, &streams.server(url, session)?, &streams.lanes()?)
                    .await
                    .map_err(|why| Failure::new(Exit::Error, why))?,
                None => {
                    streams.none("name their server with --redis")?;
                    session.client.get(&path(&["v1", "categories", category])).await?
                }
            };
            let nobody = match redis {
                Some(_) => {
                    "no groups: nobody has read it; a group that begins at the oldest entry gets all of it\n"
                }
                None => "no groups: what is published to it goes nowhere\n",
            };
            session.out.answer(&answer, |answer| show(answer, nobody))?;
            Ok(Exit::Done)
        }
        CategoryCommand::Delete(args) => delete(args, session).await,
    }
}

/// A category of Redis, as the broker shows one; and the streams that cannot be read.
async fn in_streams(category: &str, server: &RedisServer, lanes: &Lanes) -> Result<Value, String> {
    let told = Lags::new(server).of_all(category, lanes).await?;
    let groups = told.groups.into_iter().map(|(group, lags)| {
        let streams = lags.into_iter().map(|lag| {
            json!({
                "stream": lanes.stream(category, lag.lane),
                "lane": lag.lane.to_string(),
                "ready": lag.waiting,
                "leased": lag.pending,
                "dead": lag.dead,
                "oldest_age_ms": (lag.waiting + lag.pending > 0).then_some(lag.oldest_s * 1_000),
            })
        });
        json!({ "group": group, "streams": streams.collect::<Vec<_>>() })
    });
    Ok(json!({ "name": category, "groups": groups.collect::<Vec<_>>(), "broken": told.broken }))
}

async fn declare(args: &DeclareArgs, session: &Session) -> Ended {
    let mut settings = Map::new();
    words::put_settings(&mut settings, &args.settings).map_err(Failure::usage)?;
    if args.groups.is_empty() {
        if !settings.is_empty() {
            return Err(Failure::usage("settings are a group's: name it with --group"));
        }
        let path = path(&["v1", "categories", &args.category]);
        let answer = session.client.ask(Method::PUT, &path, None).await?;
        session.out.done(&answer.body, || format!("category {} is there", args.category))?;
        return Ok(Exit::Done);
    }
    for group in &args.groups {
        let (is_new, joined) = join(&args.category, group, settings.clone(), session).await?;
        session.out.done(&joined, || {
            let what = if is_new { "made" } else { "there, with these settings" };
            format!("group {group} of {} is {what}: queue {}", args.category, text(&joined["queue"]))
        })?;
    }
    Ok(Exit::Done)
}

/// Makes a group, or changes those of its settings that are given. Answers whether it is new, and what it is.
pub(crate) async fn join(
    category: &str,
    group: &str,
    settings: Map<String, Value>,
    session: &Session,
) -> Result<(bool, Value), Failure> {
    let path = path(&["v1", "categories", category, "groups", group]);
    let answer = session.client.ask(Method::PUT, &path, Some(&Value::Object(settings))).await?;
    Ok((answer.status == StatusCode::CREATED, answer.body))
}

async fn delete(args: &DeleteArgs, session: &Session) -> Ended {
    let DeleteArgs { category, group, yes } = args;
    let (question, path) = match group {
        Some(group) => (
            format!("Delete group `{group}` of `{category}` with all it has yet to do?"),
            path(&["v1", "categories", category, "groups", group]),
        ),
        None => (format!("Delete category `{category}`?"), path(&["v1", "categories", category])),
    };
    yes.or_ask(&question)?;
    session.client.ask(Method::DELETE, &path, None).await?;
    session.out.done(&json!({ "deleted": category, "group": group }), || match group {
        Some(group) => format!("group {group} of {category} is deleted"),
        None => format!("category {category} is deleted"),
    })?;
    Ok(Exit::Done)
}

const COLUMNS: [(&str, Side); 7] = [
    ("GROUP", Side::Left),
    ("STREAM", Side::Left),
    ("READY", Side::Right),
    ("DELAYED", Side::Right),
    ("LEASED", Side::Right),
    ("DEAD", Side::Right),
    ("OLDEST", Side::Right),
];

fn list(categories: &Value) -> String {
    let all = categories.as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        return "no categories\n".to_owned();
    }
    let mut columns = vec![("CATEGORY", Side::Left)];
    columns.extend(COLUMNS);
    let mut table = Table::new(&columns);
    for category in all {
        let rows = rows(category);
        if rows.is_empty() {
            let mut row = vec![text(&category["name"]), "-".to_owned()];
            row.resize(columns.len(), String::new());
            table.row(row);
        }
        for mut row in rows {
            row.insert(0, text(&category["name"]));
            table.row(row);
        }
    }
    table.text()
}

/// `nobody` is what is said where there are no groups.
fn show(category: &Value, nobody: &str) -> String {
    let rows = rows(category);
    let mut told = format!("{HEAD}{}{RESET}\n", one_line(&text(&category["name"]), usize::MAX));
    let broken: Vec<_> = category["broken"].as_array().into_iter().flatten().map(text).collect();
    if !rows.is_empty() {
        let mut table = Table::new(&COLUMNS);
        rows.into_iter().for_each(|row| table.row(row));
        told.push_str(&table.text());
    } else if broken.is_empty() {
        told.push_str(nobody);
    }
    for stream in broken {
        told.push_str(&format!("not counted, since it cannot be read: {}\n", one_line(&stream, usize::MAX)));
    }
    told
}

/// A row for each stream of each group.
fn rows(category: &Value) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for group in category["groups"].as_array().into_iter().flatten() {
        for stream in group["streams"].as_array().into_iter().flatten() {
            let mut row = vec![text(&group["group"]), text(&stream["stream"])];
            row.extend(["ready", "delayed", "leased", "dead"].map(|key| amount(&stream[key])));
            row.push(age(stream));
            rows.push(row);
        }
    }
    rows
}

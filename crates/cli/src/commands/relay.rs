//! `overtake relay`

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use overtake_outbox::{Config, Database, Filter, GroupLag, Init, Shown, Status};
use overtake_server::config::{LogFilter, LogFormat, Value as _};
use overtake_streams::Lanes;
use serde_json::{Map, Value, json};

use super::Ended;
use crate::failure::{Exit, Failure};
use crate::out::{HEAD, Out, RESET};
use crate::redis::variables;
use crate::relay;
use crate::table::{Side, Table, count, duration, number, one_line};
use crate::words;

/// The file that is read when none is named.
const FILE: &str = "relay.toml";

/// Publish what applications have written into an outbox table, the most urgent first.
///
/// Rows are claimed by priority, published, and marked; what cannot be published is tried again later, and in the end set aside with the reason. Any number of relays may
/// share a table. SIGTERM and SIGINT end it: what is being published is marked, what is claimed and not tried is given back. A second signal ends it at once: then claims come back when
/// their lock is over. Databases, sinks and mapped tables: docs/outbox.md.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake relay --config relay.toml
  overtake relay --config relay.toml --metrics 127.0.0.1:9188 --log-format json
  overtake relay init --config relay.toml --print")]
pub(crate) struct RelayArgs {
    #[command(subcommand)]
    command: Option<RelayCommand>,
    /// Which database, which sink, and how.
    #[arg(
        long,
        short,
        global = true,
        value_name = "FILE",
        env = "OVERTAKE_RELAY_CONFIG",
        hide_env_values = true,
        default_value = FILE
    )]
    config: PathBuf,
    /// Serve what is counted at this address, under /metrics, for Prometheus; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT")]
    metrics: Option<SocketAddr>,
    /// What to log: error, warn, info, debug or trace, also per part as in `info,overtake_outbox=debug`.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = LogFilter::read)]
    log_level: LogFilter,
    /// How to log: text for people, json for machines.
    #[arg(long, value_name = "text|json", default_value = "text", value_parser = LogFormat::read)]
    log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
enum RelayCommand {
    /// Make the table and its indexes, and the file of a SQLite database; a table that is there is looked at, and never changed.
    #[command(after_help = "\
Examples:
  overtake relay init
  overtake relay init --config relay.toml --print > outbox.sql")]
    Init {
        /// Only print the statements, for a migration of your own. The database is not asked.
        #[arg(long)]
        print: bool,
    },
    /// Show what waits by priority, who has claimed rows, why rows failed, and which groups of consumers never read the backfill lane.
    #[command(after_help = "\
Examples:
  overtake relay status
  overtake relay status --json | jq .lag")]
    Status,
    /// Show rows as they stand in the table.
    #[command(after_help = "\
Examples:
  overtake relay show 0194a1f2-7c1e-7d3a-9c55-0d6a3b0f8e11
  overtake relay show --abandoned --limit 5 --json")]
    Show {
        #[command(flatten)]
        rows: Rows,
        /// At most so many.
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = words::whole(1_u64..=10_000))]
        limit: u64,
    },
    /// Have rows that failed, or were abandoned, tried again at once, with a fresh count of attempts.
    #[command(after_help = "\
Examples:
  overtake relay retry 0194a1f2-7c1e-7d3a-9c55-0d6a3b0f8e11
  overtake relay retry --abandoned --stream customer
  overtake relay retry --all")]
    Retry {
        #[command(flatten)]
        rows: Rows,
        /// All that failed or were abandoned. Must be said.
        #[arg(long)]
        all: bool,
    },
    /// Look for what relays that died left behind, and for rows that should have been cleaned.
    #[command(after_help = "\
Examples:
  overtake relay reconcile
  overtake relay reconcile --fix")]
    Reconcile {
        /// Put back what nobody has, or whose time has come, and clean what is old.
        #[arg(long)]
        fix: bool,
    },
}

/// Which rows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which rows")]
struct Rows {
    /// Ids of messages.
    #[arg(value_name = "MESSAGE_ID")]
    ids: Vec<String>,
    /// Those that wait for another attempt.
    #[arg(long)]
    failed: bool,
    /// Those that were set aside.
    #[arg(long)]
    abandoned: bool,
    /// Those of this stream.
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// Those of this priority.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = words::whole(i32::MIN..=i32::MAX))]
    priority: Option<i32>,
    /// Those whose last error has this text in it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Rows {
    fn filter(&self) -> Filter {
        let status = [(self.failed, Status::Failed), (self.abandoned, Status::Abandoned)];
        Filter {
            status: status.into_iter().filter(|(asked, _)| *asked).map(|(_, status)| status).collect(),
            message_ids: self.ids.clone(),
            stream: self.stream.clone(),
            priority: self.priority,
            reason: self.reason.clone(),
        }
    }
}

/// Relays, or asks about the table.
pub(crate) fn run(args: &RelayArgs, out: Out) -> Ended {
    let config = read(&args.config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(async {
        match &args.command {
            None => {
                overtake_server::start_logs(&args.log_level, args.log_format);
                let for_people = args.log_format == LogFormat::Text && !out.is_quiet();
                relay::run(&config, args.metrics, for_people).await
            }
            Some(RelayCommand::Init { print: true }) => {
                out.text(&statements(&config.schema().map_err(failed)?))?;
                Ok(Exit::Done)
            }
            Some(command) => {
                if matches!(command, RelayCommand::Init { .. }) {
                    config.address().and_then(|address| address.make()).map_err(failed)?;
                }
                let mut database = config.database().await.map_err(failed)?;
                let ended = ask(command, &config, &mut database, out).await;
                database.close().await;
                ended
            }
        }
    });
    runtime.shutdown_background();
    ended
}

fn read(path: &PathBuf) -> Result<Config, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(Exit::Config, format!("cannot read {}: {error}", path.display())).hint(
            "name the file with --config or OVERTAKE_RELAY_CONFIG; docs/outbox.md has one to begin with",
        )
    })?;
    Config::parse_with(&text, path, &variables())
        .map_err(|error| Failure::new(Exit::Config, error.to_string()))
}

/// What the database or the settings say against it.
pub(crate) fn failed(error: overtake_outbox::Error) -> Failure {
    let exit = match &error {
        overtake_outbox::Error::Lost(_) => Exit::Unreachable,
        overtake_outbox::Error::Declined(_) => Exit::Error,
        overtake_outbox::Error::Invalid(_) => Exit::Config,
    };
    Failure::new(exit, error.to_string())
}

async fn ask(command: &RelayCommand, config: &Config, database: &mut Database, out: Out) -> Ended {
    if !matches!(command, RelayCommand::Init { .. }) {
        let wrong = database.wrong();
        if !wrong.is_empty() {
            return Err(Failure::new(Exit::Config, wrong.join("; ")));
        }
    }
    match command {
        RelayCommand::Init { .. } => init(config, database, out).await,
        RelayCommand::Status => status(config, database, out).await,
        RelayCommand::Show { rows, limit } => {
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            show(&database.show(&rows.filter(), limit).await.map_err(failed)?, out)
        }
        RelayCommand::Retry { rows, all } => {
            let filter = rows.filter();
            if (filter == Filter::default()) != *all {
                return Err(Failure::usage("say which rows, or --all: one of them")
                    .hint("give ids, or conditions such as --abandoned or --stream"));
            }
            let many = database.retry(&filter).await.map_err(failed)?;
            out.done(&json!({ "count": many }), || format!("{} will be tried again", count(many, "row")))?;
            Ok(Exit::Done)
        }
        RelayCommand::Reconcile { fix } => reconcile(config, database, *fix, out).await,
    }
}

fn statements(all: &[String]) -> String {
    all.iter().map(|statement| format!("{statement};\n")).collect()
}

async fn init(config: &Config, database: &mut Database, out: Out) -> Ended {
    let table = config.table.name.clone();
    match database.init(config.notify).await.map_err(failed)? {
        Init::Made => out.done(&json!({ "table": table, "made": true }), || {
            format!("table {table} is made, with its indexes")
        })?,
        Init::Complete => out.done(&json!({ "table": table, "made": false }), || {
            format!("table {table} is there, and has all it wants")
        })?,
        Init::Lacks(lacks) => {
            let told = json!({ "table": table, "made": false, "lacks": lacks });
            out.answer(&told, |_| {
                let all = statements(&lacks);
                format!("-- table {table} is there; it is never changed from here. It lacks what these would make:\n{all}")
            })?;
        }
    }
    Ok(Exit::Done)
}

/// The groups of consumers that never read a lane where entries wait, in the categories of the newest rows; and what keeps that from being known.
async fn unread(config: &Config, database: &Database) -> Result<(Vec<GroupLag>, Vec<String>), Failure> {
    if !config.lanes().is_some_and(Lanes::is_enabled) {
        return Ok((Vec::new(), Vec::new()));
    }
    // The status of the table needs no secrets of the sink.
    let sink = match config.sink() {
        Ok(sink) => sink,
        Err(error) => return Ok((Vec::new(), vec![error.to_string()])),
    };
    let Some(groups) = sink.groups() else { return Ok((Vec::new(), Vec::new())) };
    let (mut all, faults) = groups.count(&database.streams().await.map_err(failed)?).await;
    all.retain(|lag| lag.is_unread);
    Ok((all, faults))
}

async fn status(config: &Config, database: &Database, out: Out) -> Ended {
    let standing = database.status().await.map_err(failed)?;
    let (unread, faults) = unread(config, database).await?;
    let lag = standing.lag.iter().map(|lag| {
        json!({
            "priority": lag.priority, "pending": lag.pending, "processing": lag.processing, "failed": lag.failed,
            "oldest_seconds": lag.oldest_s,
        })
    });
    let held = standing
        .held
        .iter()
        .map(|held| json!({ "by": held.by, "rows": held.rows, "left_seconds": held.left_s }));
    let answer = json!({
        "lag": lag.collect::<Vec<_>>(),
        "held": held.collect::<Vec<_>>(),
        "reasons": reasons(&standing.reasons),
        "unread": unread.iter().map(|lag| {
            json!({ "category": lag.category, "group": lag.group, "stream": lag.stream, "entries": lag.waiting })
        }).collect::<Vec<_>>(),
        "not_counted": faults,
    });
    out.answer(&answer, |_| {
        let mut text = String::new();
        if standing.lag.is_empty() && standing.reasons.is_empty() {
            text.push_str("nothing waits\n");
        }
        if !standing.lag.is_empty() {
            let mut table = Table::new(&[
                ("PRIORITY", Side::Right),
                ("PENDING", Side::Right),
                ("PROCESSING", Side::Right),
                ("FAILED", Side::Right),
                ("OLDEST", Side::Right),
            ]);
            for lag in &standing.lag {
                let mut row = vec![lag.priority.to_string()];
                row.extend([lag.pending, lag.processing, lag.failed].map(number));
                row.push(lag.oldest_s.map_or("-".to_owned(), seconds));
                table.row(row);
            }
            text.push_str(&table.text());
        }
        if !standing.held.is_empty() {
            let mut table =
                Table::new(&[("CLAIM", Side::Left), ("ROWS", Side::Right), ("LOCK", Side::Right)]);
            for held in &standing.held {
                table.row(vec![held.by.clone(), number(held.rows), lock(held.left_s)]);
            }
            text.push_str(&format!("\n{}", table.text()));
        }
        text.push_str(&reasons_table(&standing.reasons));
        for lag in &unread {
            let group = one_line(lag.group.as_deref().unwrap_or_default(), usize::MAX);
            let (stream, waiting) = (one_line(&lag.stream, usize::MAX), number(lag.waiting));
            text.push_str(&format!(
                "group {group} never reads {stream}, where entries wait ({waiting}): give its reader the priority lanes of this relay, with the same suffix\n"
            ));
        }
        for fault in &faults {
            text.push_str(&format!("not known of all groups of consumers: {}\n", one_line(fault, usize::MAX)));
        }
        text
    })?;
    Ok(Exit::Done)
}

async fn reconcile(config: &Config, database: &Database, fix: bool, out: Out) -> Ended {
    let found = database.reconcile(&config.settings.cleaning, fix).await.map_err(failed)?;
    let gone: Vec<Value> =
        found.gone.iter().map(|held| json!({ "by": held.by, "rows": held.rows })).collect();
    let answer = json!({
        "gone": gone,
        "reasons": reasons(&found.reasons),
        "published_to_clean": found.published,
        "abandoned_to_clean": found.abandoned,
        "returned": found.returned,
        "cleaned": found.cleaned,
        "fixed": fix,
    });
    out.answer(&answer, |_| {
        let rows = found.gone.iter().map(|held| held.rows).sum::<u64>();
        let mut lines = Vec::new();
        let mut say = |many: u64, what: &str| {
            if many > 0 {
                lines.push(format!("{} {what}", count(many, "row")));
            }
        };
        say(rows, "claimed by relays whose lock is over");
        say(found.published + found.abandoned, "old enough to be cleaned");
        say(found.returned, "put back");
        say(found.cleaned, "cleaned");
        let is_left = !fix && (rows > 0 || found.published + found.abandoned > 0);
        let mut text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        if is_left {
            text.push_str("a running relay does all this by itself; --fix does it now\n");
        }
        text.push_str(&reasons_table(&found.reasons));
        if text.is_empty() { "all is as it should be\n".to_owned() } else { text }
    })?;
    Ok(Exit::Done)
}

fn reasons(all: &[overtake_outbox::Reason]) -> Vec<Value> {
    all.iter()
        .map(|one| json!({ "status": one.status.name(), "reason": one.reason, "rows": one.rows }))
        .collect()
}

fn reasons_table(all: &[overtake_outbox::Reason]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[("ROWS", Side::Right), ("STATUS", Side::Left), ("REASON", Side::Left)]);
    for one in all {
        table.row(vec![number(one.rows), one.status.name().to_owned(), one_line(&one.reason, 100)]);
    }
    format!("\n{}", table.text())
}

fn seconds(time: f64) -> String {
    duration((time.max(0.0) * 1_000.0) as u64)
}

fn lock(left: Option<f64>) -> String {
    match left {
        None => "none".to_owned(),
        Some(left) if left <= 0.0 => "over".to_owned(),
        Some(left) => seconds(left),
    }
}

fn show(rows: &[Shown], out: Out) -> Ended {
    if rows.is_empty() && !out.is_json() {
        return Err(Failure::new(Exit::Empty, "no such row"));
    }
    let told: Vec<Value> = rows.iter().map(as_json).collect();
    out.answer(&json!({ "rows": told }), |_| {
        let shown = rows.iter().map(|row| {
            let lines = row.columns.iter().filter_map(|(name, value)| {
                value.as_ref().map(|value| format!("  {name}: {}\n", one_line(value, usize::MAX)))
            });
            let id = row.get("message_id").unwrap_or_default();
            format!("{HEAD}{}{RESET}\n{}", one_line(id, usize::MAX), lines.collect::<String>())
        });
        shown.collect::<Vec<_>>().join("\n")
    })?;
    Ok(if rows.is_empty() { Exit::Empty } else { Exit::Done })
}

fn as_json(row: &Shown) -> Value {
    let columns = row.columns.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
    Value::Object(columns.collect::<Map<_, _>>())
}

/// What a relay that runs says first.
pub(crate) fn banner(config: &Config, metrics: Option<SocketAddr>) {
    let mut text = format!(
        "{HEAD}overtake relay {}{RESET}\n  table  {} in {}\n  sink   {}\n",
        env!("CARGO_PKG_VERSION"),
        config.table.name,
        config.database_name(),
        config.sink_name(),
    );
    if let Some(address) = metrics {
        text.push_str(&format!("  http   http://{address}/metrics\n"));
    }
    text.push_str("ready\n");
    // Without a stderr there is nobody to greet.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

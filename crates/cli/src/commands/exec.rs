//! `overtake exec`

use clap::{Args, Subcommand, ValueEnum};
use hyper::Method;
use serde_json::{Value, json};

use super::queue::text;
use super::{Ended, Session, exec_create, exec_follow, exec_submit};
use crate::address::{path, query};
use crate::failure::Exit;
use crate::holder;
use crate::out::{HEAD, RESET};
use crate::selection::each;
use crate::table::{Side, Table, count, number, one_line};
use crate::words;

/// Executions of one page: as many as the broker gives.
const PAGE: u64 = 200;
/// Characters of an error that a table shows.
const ERROR_CHARS: usize = 40;
/// The levels of the scheme `named`, the most urgent first.
const LEVELS: [&str; 5] = ["critical", "high", "normal", "low", "background"];

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct ExecArgs {
    /// The queue.
    #[arg(long, global = true, default_value = "executions", value_name = "NAME")]
    queue: String,
    #[command(subcommand)]
    command: ExecCommand,
}

#[derive(Debug, Subcommand)]
enum ExecCommand {
    Create(exec_create::CreateArgs),
    Submit(exec_submit::SubmitArgs),
    /// List executions: first those that wait or run, the last submitted first; then what is finished, the last finished first.
    #[command(after_help = "\
Examples:
  overtake exec list
  overtake exec list --status failed --for ann
  overtake exec list --priority critical --limit 500 --json | jq -r '.executions[].execution_id'")]
    List(ListArgs),
    /// Show one execution, with what it printed at the end.
    #[command(after_help = "\
Examples:
  overtake exec show order-4711
  overtake exec show order-4711 --follow
  overtake exec show order-4711 --json | jq -r .output")]
    Show {
        /// Its id.
        id: String,
        /// Wait for its end, and print what it prints as that comes. Exit code 1 unless it completes.
        #[arg(long, short)]
        follow: bool,
    },
    /// Take executions back: what waits is cancelled at once, what runs is asked to end.
    #[command(after_help = "\
Examples:
  overtake exec cancel order-4711
  overtake exec cancel order-4711 order-4712 --queue renders")]
    Cancel(IdArgs),
    /// Have executions that are finished done once more, as new.
    #[command(after_help = "\
Examples:
  overtake exec retry order-4711
  overtake exec retry order-4711 order-4712 --queue renders")]
    Retry(IdArgs),
    /// Give an execution that waits another priority; it keeps its age.
    #[command(
        visible_alias = "reprioritize",
        after_help = "\
Examples:
  overtake exec reprioritise order-4711 critical
  overtake exec reprioritise order-4711 low --queue renders"
    )]
    Reprioritise {
        /// Its id.
        id: String,
        /// The new priority: critical, high, normal, low or background, or what the queue's scheme takes.
        #[arg(allow_hyphen_values = true)]
        priority: String,
    },
    /// Show how many wait and run, and how many may run at once.
    #[command(after_help = "\
Examples:
  overtake exec status
  overtake exec status --json | jq .queue_depth")]
    Status,
    /// From now on none begins; what runs goes on.
    #[command(after_help = "\
Examples:
  overtake exec pause
  overtake exec pause --queue renders")]
    Pause,
    /// Let executions begin again.
    #[command(after_help = "\
Examples:
  overtake exec resume
  overtake exec resume --queue renders")]
    Resume,
    /// Say how many may run at once. What runs already goes on.
    #[command(after_help = "\
Examples:
  overtake exec limit 20
  overtake exec limit 0 --queue renders")]
    Limit {
        /// So many; 0: as many as workers take.
        #[arg(value_name = "N", value_parser = words::whole(0_u32..=u32::MAX))]
        most: u32,
    },
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only what is so far.
    #[arg(long, value_name = "STATUS")]
    status: Option<Status>,
    /// Only of this priority, in the words of the queue's scheme.
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true)]
    priority: Option<String>,
    /// Only of this user.
    #[arg(long = "for", value_name = "NAME")]
    user_id: Option<String>,
    /// At most so many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = words::whole(1_u64..))]
    limit: u64,
    /// Leave out so many first.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = words::whole(0_u64..))]
    skip: u64,
}

#[derive(Debug, Args)]
struct IdArgs {
    /// Their ids. Each is tried, also when another fails; the exit code is that of the first failure.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// How far an execution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Status {
    /// It waits for its turn.
    Queued,
    /// It is not to begin yet.
    Delayed,
    /// Somebody works on it.
    Running,
    /// It was done.
    Completed,
    /// It was rejected, or failed too often.
    Failed,
    /// It took too long, or expired.
    Timeout,
    /// Somebody took it back.
    Cancelled,
}

/// Asks the broker about executions.
pub(crate) async fn run(args: &ExecArgs, session: &Session) -> Ended {
    let on = On { queue: &args.queue, session };
    match &args.command {
        ExecCommand::Create(args) => exec_create::run(args, on.queue, session).await,
        ExecCommand::Submit(args) => exec_submit::run(args, on.queue, session).await,
        ExecCommand::List(args) => on.list(args).await,
        ExecCommand::Show { id, follow: false } => on.show(id).await,
        ExecCommand::Show { id, follow: true } => exec_follow::run(id, &on.path_of(id), session).await,
        ExecCommand::Cancel(IdArgs { ids }) => on.each(ids, "cancel").await,
        ExecCommand::Retry(IdArgs { ids }) => on.each(ids, "retry").await,
        ExecCommand::Reprioritise { id, priority } => on.reprioritise(id, priority).await,
        ExecCommand::Status => on.status().await,
        ExecCommand::Pause => on.change(Method::POST, "pause", None).await,
        ExecCommand::Resume => on.change(Method::POST, "resume", None).await,
        ExecCommand::Limit { most } => {
            let body = json!({ "max_concurrent": most });
            on.change(Method::PUT, "max_concurrent", Some(&body)).await
        }
    }
}

/// What to do when there is no such queue.
pub(crate) fn hint_to_create(queue: &str) -> String {
    format!("make it with `overtake exec create --queue {queue}`, or name another with --queue")
}

/// The executions of one queue.
struct On<'a> {
    queue: &'a str,
    session: &'a Session,
}

impl On<'_> {
    /// A path below that of executions, in this queue.
    fn path(&self, rest: &[&str], more: &[(String, String)]) -> String {
        let mut pairs = vec![("queue".to_owned(), self.queue.to_owned())];
        pairs.extend_from_slice(more);
        path(&[&["api", "v1", "admin", "executions"], rest].concat()) + &query(&pairs)
    }

    /// The path of one execution.
    fn path_of(&self, id: &str) -> String {
        match id {
            // By its name it would be the queue that is asked for.
            "queue" => self.path(&[id], &[]).replacen("/queue", "/%71ueue", 1),
            _ => self.path(&[id], &[]),
        }
    }

    async fn list(&self, args: &ListArgs) -> Ended {
        let (mut executions, mut total, mut has_more) = (Vec::new(), Value::Null, true);
        while has_more && (executions.len() as u64) < args.limit {
            let got = executions.len() as u64;
            let mut pairs = args.pairs();
            pairs.push(("limit".to_owned(), (args.limit - got).min(PAGE).to_string()));
            pairs.push(("skip".to_owned(), args.skip.saturating_add(got).to_string()));
            let mut page = self.session.client.get(&self.path(&[], &pairs)).await?;
            has_more = page["has_more"] == true;
            total = page["total"].take();
            match page["executions"].take() {
                Value::Array(more) if !more.is_empty() => executions.extend(more),
                _ => break,
            }
        }
        let answer = json!({ "executions": executions, "total": total, "has_more": has_more });
        self.session.out.answer(&answer, table)?;
        Ok(Exit::Done)
    }

    async fn show(&self, id: &str) -> Ended {
        let answer = self.session.client.get(&self.path_of(id)).await?;
        self.session.out.answer(&answer, picture)?;
        Ok(Exit::Done)
    }

    /// Does the same to each.
    async fn each(&self, ids: &[String], what: &str) -> Ended {
        let one = async |id: &str| {
            let asked = self.session.client.ask(Method::POST, &self.path(&[id, what], &[]), None).await;
            let answer = asked?.body;
            Ok(if answer.is_null() { json!({ "status": "queued" }) } else { answer })
        };
        let out = self.session.out;
        let each = each(ids, out, |id, now| Some(format!("{id} {}", standing(now))), one).await?;
        if out.is_json() {
            out.json(&each.answer(json!({ "executions": each.done })))?;
        }
        Ok(each.exit)
    }

    async fn reprioritise(&self, id: &str, priority: &str) -> Ended {
        let body = json!({ "priority": words::priority(priority) });
        let path = self.path(&[id, "priority"], &[]);
        let answer = self.session.client.ask(Method::PUT, &path, Some(&body)).await?.body;
        self.session.out.done(&answer, || {
            format!("{id} has priority {} now{}", text(&answer["priority"]), ahead(&answer))
        })?;
        Ok(Exit::Done)
    }

    async fn status(&self) -> Ended {
        let answer = self.session.client.get(&self.path(&["queue"], &[])).await?;
        self.session.out.answer(&answer, |answer| {
            let mut shown =
                format!("{HEAD}{}{RESET}\n  {}\n", one_line(self.queue, usize::MAX), load(answer));
            let waiting = answer["by_priority"].as_object();
            if let Some(waiting) = waiting.filter(|waiting| !waiting.is_empty()) {
                shown.push('\n');
                shown.push_str(&by_priority(waiting));
            }
            shown
        })?;
        Ok(Exit::Done)
    }

    async fn change(&self, method: Method, what: &str, body: Option<&Value>) -> Ended {
        let answer = self.session.client.ask(method, &self.path(&["queue", what], &[]), body).await?.body;
        self.session.out.done(&answer, || format!("{}: {}", self.queue, load(&answer)))?;
        Ok(Exit::Done)
    }
}

impl ListArgs {
    /// What is asked for, as query parameters.
    fn pairs(&self) -> Vec<(String, String)> {
        let status = self.status.and_then(|status| status.to_possible_value());
        let status = status.map(|status| status.get_name().to_owned());
        let named =
            [("status", status), ("priority", self.priority.clone()), ("user_id", self.user_id.clone())];
        named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// How full a queue is, in a sentence.
fn load(queue: &Value) -> String {
    let count = |key: &str| number(queue[key].as_u64().unwrap_or(0));
    let most = match queue["max_concurrent"].as_u64() {
        None | Some(0) => "as many as workers take".to_owned(),
        Some(most) => format!("at most {}", number(most)),
    };
    let paused = if queue["paused"] == true { "; paused: none begins" } else { "" };
    format!("{} waiting, {} running of {most}{paused}", count("queue_depth"), count("active_count"))
}

/// How far one is, in words.
fn standing(execution: &Value) -> String {
    let status = text(&execution["status"]);
    if execution["cancel_asked"] == true {
        return format!("is {status}, and asked to end");
    }
    format!("is {status}{}", ahead(execution))
}

fn ahead(execution: &Value) -> String {
    execution["position"]
        .as_u64()
        .map_or_else(String::new, |ahead| format!(", {} ahead of it", number(ahead)))
}

fn by_priority(waiting: &serde_json::Map<String, Value>) -> String {
    let mut levels: Vec<_> = waiting.iter().collect();
    levels.sort_by_key(|(name, _)| LEVELS.iter().position(|level| level == name).unwrap_or(LEVELS.len()));
    let mut table = Table::new(&[("PRIORITY", Side::Left), ("WAITING", Side::Right)]);
    for (name, count) in levels {
        table.row(vec![name.clone(), number(count.as_u64().unwrap_or(0))]);
    }
    table.text()
}

fn table(answer: &Value) -> String {
    let executions = answer["executions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if executions.is_empty() {
        return "no executions\n".to_owned();
    }
    let is_held = executions.iter().any(|execution| execution["holder"].is_object());
    let mut columns = vec![
        ("ID", Side::Left),
        ("STATUS", Side::Left),
        ("PRIORITY", Side::Left),
        ("USER", Side::Left),
        ("ATTEMPTS", Side::Right),
        ("QUEUED", Side::Left),
        ("STARTED", Side::Left),
        ("FINISHED", Side::Left),
        ("EXIT", Side::Right),
        ("ERROR", Side::Left),
    ];
    if is_held {
        columns.push(("HOLDER", Side::Left));
    }
    let mut table = Table::new(&columns);
    let keys = [
        "execution_id",
        "status",
        "priority",
        "user_id",
        "attempts",
        "queued_at",
        "started_at",
        "finished_at",
    ];
    for execution in executions {
        // An execution that waits or runs again shows how its last attempt ended.
        let of = |key: &str| {
            let own = text(&execution[key]);
            if own.is_empty() { text(&execution["last_attempt"][key]) } else { own }
        };
        let mut row: Vec<String> = keys.iter().map(|key| text(&execution[*key])).collect();
        row[1] = holder::status(execution);
        row.push(of("exit_code"));
        row.push(one_line(&of("error"), ERROR_CHARS));
        if is_held {
            row.push(holder::text(&execution["holder"]));
        }
        table.row(row);
    }
    let shown = executions.len() as u64;
    let left = answer["total"].as_u64().unwrap_or(0).saturating_sub(shown);
    let more = if answer["has_more"] == true && left > 0 {
        format!("{} of {}: see more with --limit and --skip\n", number(shown), number(shown + left))
    } else {
        String::new()
    };
    table.text() + &more
}

/// One execution, a line for each thing it says.
fn picture(execution: &Value) -> String {
    let of = |key: &str| one_line(&text(&execution[key]), usize::MAX);
    let mut shown = format!("{HEAD}{}{RESET}\n", of("execution_id"));
    for (key, value) in execution.as_object().into_iter().flatten() {
        match &**key {
            "execution_id" | "output" | "progress" | "last_attempt" | "past_attempts"
            | "forgotten_attempts" => {}
            "holder" => shown.push_str(&format!("  holder: {}\n", holder::text(value))),
            _ if value.is_null() => {}
            _ => shown.push_str(&format!("  {key}: {}\n", of(key))),
        }
    }
    for (name, output) in
        [("output", &execution["output"]), ("output so far", &execution["progress"]["output"])]
    {
        if !text(output).is_empty() {
            shown.push_str(&format!("  {name}:\n{}", indented(output)));
        }
    }
    if let Some(forgotten) = execution["forgotten_attempts"].as_u64() {
        let are = if forgotten == 1 { "is" } else { "are" };
        shown.push_str(&format!("  {} {are} not kept\n", count(forgotten, "older attempt")));
    }
    for attempt in execution["past_attempts"].as_array().into_iter().flatten() {
        shown.push_str(&past_attempt(attempt));
    }
    shown
}

/// An attempt that did not end the execution, in a line, and what it printed below that.
fn past_attempt(attempt: &Value) -> String {
    let mut said = vec![text(&attempt["ending"]).replace('_', " ")];
    let code = attempt["exit_code"].as_i64();
    said.extend(code.map(|code| format!("exit code {code}")));
    // `exit 3` says no more than the exit code.
    let error = attempt["error"].as_str().map(|error| one_line(error, usize::MAX));
    said.extend(error.filter(|error| {
        !error.trim().is_empty() && code.is_none_or(|code| *error != format!("exit {code}"))
    }));
    format!(
        "  earlier attempt, ended {}: {}\n{}",
        text(&attempt["finished_at"]),
        said.join(", "),
        indented(&attempt["output"])
    )
}

/// The lines of a text that a program printed, indented.
fn indented(output: &Value) -> String {
    let lines = output.as_str().unwrap_or_default().lines();
    lines.map(|line| format!("    {}\n", one_line(line, usize::MAX))).collect()
}

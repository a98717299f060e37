//! `overtake exec create`

use clap::Args;
use hyper::Method;
use serde_json::{Value, json};

use super::{Ended, Session};
use crate::address::path;
use crate::failure::{Exit, Failure};
use crate::words;

/// Make a queue of executions, and the queue of what is finished, its history.
///
/// Both are queues like any other, and may be changed like them; the history is called NAME.history. What is there already, and is so, is
/// left as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake exec create
  overtake exec create --max-concurrent 20 --history 7d
  overtake exec create --queue renders --run-timeout 10m --attempts 1")]
pub(crate) struct CreateArgs {
    /// Most executions that run at once; 0: as many as workers take. [default: 10]
    #[arg(long, value_name = "N", value_parser = words::whole(0_u32..=u32::MAX))]
    max_concurrent: Option<u32>,
    /// Forget what has been finished for so long: 24h, 7d; 0: never. [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = words::duration_ms)]
    history: Option<u64>,
    /// Remember at most so many of them; 0: no limit. [default: 10000]
    #[arg(long, value_name = "N", value_parser = words::whole(0_u64..))]
    history_count: Option<u64>,
    /// Begin one that fails at most so often; 0: no limit. [default: 3]
    #[arg(long, value_name = "N", value_parser = words::whole(0_u32..=u32::MAX))]
    attempts: Option<u32>,
    /// Wait so long before the second attempt, and twice as long before each further one, up to a minute. [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = words::duration_ms)]
    backoff: Option<u64>,
    /// End one that runs for longer; 0: none. [default: 0]
    #[arg(long, value_name = "DURATION", value_parser = words::duration_ms)]
    run_timeout: Option<u64>,
}

/// A setting of a queue of the pair.
struct Setting {
    /// The option that sets it; `None`: it is always so.
    option: Option<&'static str>,
    key: &'static str,
    value: Value,
    /// Whether it must be so in a queue that is there.
    is_meant: bool,
}

impl Setting {
    fn fixed(key: &'static str, value: impl Into<Value>) -> Self {
        Self { option: None, key, value: value.into(), is_meant: true }
    }

    /// The value of an option, else a default, which a queue that is there need not have.
    fn of<T: Copy>(
        option: &'static str,
        key: &'static str,
        given: Option<T>,
        default: T,
        value: impl Fn(T) -> Value,
    ) -> Self {
        Self { option: Some(option), key, value: value(given.unwrap_or(default)), is_meant: given.is_some() }
    }
}

/// The longest backoff, ms.
const BACKOFF_MS_MAX: u64 = 60_000;

/// Makes both, the history first: a queue never names one that is not there.
pub(crate) async fn run(args: &CreateArgs, queue: &str, session: &Session) -> Ended {
    let history = format!("{queue}.history");
    let past = [
        Setting::fixed("scheme", "named"),
        Setting::fixed("order", "fifo"),
        Setting::of("--history", "ttl_ms", args.history, 86_400_000, Value::from),
        Setting::of("--history-count", "max_length", args.history_count, 10_000, Value::from),
    ];
    let backoff = |ms: u64| json!({ "initial_ms": ms, "multiplier": 2, "max_ms": BACKOFF_MS_MAX.max(ms) });
    let work = [
        Setting::fixed("scheme", "named"),
        Setting::fixed("history", history.as_str()),
        Setting::of("--max-concurrent", "max_active", args.max_concurrent, 10, Value::from),
        Setting::of("--attempts", "delivery_limit", args.attempts, 3, Value::from),
        Setting::of("--backoff", "backoff", args.backoff, 1_000, backoff),
        Setting::of("--run-timeout", "run_timeout_ms", args.run_timeout, 0, Value::from),
    ];
    let pair = [(history.as_str(), &past[..]), (queue, &work[..])];
    for (name, settings) in pair {
        check(name, settings, session).await?;
    }
    let mut made = false;
    for (name, settings) in pair {
        made |= declare(name, settings, session).await?;
    }
    session.out.done(&json!({ "queue": queue, "history": history, "made": made }), || {
        let what = if made { "made" } else { "there already, and stays as it is" };
        format!("queue {queue} is {what}; what is finished goes to {history}")
    })?;
    Ok(Exit::Done)
}

/// The settings of a queue that is there.
async fn there(name: &str, session: &Session) -> Result<Option<Value>, Failure> {
    match session.client.get(&path(&["v1", "queues", name])).await {
        Ok(mut queue) => Ok(Some(queue["settings"].take())),
        Err(failure) if failure.word() == Some("no-such-queue") => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Whether what is there is as the options say; it may be otherwise where they say nothing.
async fn check(name: &str, settings: &[Setting], session: &Session) -> Result<(), Failure> {
    let Some(there) = there(name, session).await? else { return Ok(()) };
    let differs: Vec<&Setting> = settings
        .iter()
        .filter(|setting| setting.is_meant && !is_same(&there[setting.key], &setting.value))
        .collect();
    if differs.is_empty() {
        return Ok(());
    }
    let each = differs.iter().map(|Setting { option, key, value, .. }| {
        let option = option.map_or_else(String::new, |option| format!(" ({option})"));
        format!("its `{key}`{option} is {} and not {value}", there[*key])
    });
    let what = format!("queue {name} is there already: {}", each.collect::<Vec<_>>().join(", "));
    let changed = differs.iter().filter(|setting| setting.option.is_some());
    let changes: Vec<String> = changed.map(|Setting { key, value, .. }| format!("'{key}={value}'")).collect();
    let hint = if changes.len() == differs.len() {
        let changes = changes.join(" ");
        format!("change it with `overtake queue set {name} {changes}`, or make another pair with --queue")
    } else {
        "make another pair with --queue".to_owned()
    };
    Err(Failure::new(Exit::Error, what).hint(hint))
}

/// Whether a setting has this value, whatever more the broker says of it.
fn is_same(there: &Value, meant: &Value) -> bool {
    match (there, meant) {
        (Value::Object(there), Value::Object(meant)) => {
            meant.iter().all(|(key, value)| there.get(key).is_some_and(|there| is_same(there, value)))
        }
        (Value::Number(there), Value::Number(meant)) => there.as_f64() == meant.as_f64(),
        _ => there == meant,
    }
}

/// Makes one that is not there. Answers whether it did.
async fn declare(name: &str, settings: &[Setting], session: &Session) -> Result<bool, Failure> {
    if there(name, session).await?.is_some() {
        return Ok(false);
    }
    let all = settings.iter().map(|setting| (setting.key.to_owned(), setting.value.clone()));
    let settings = Value::Object(all.collect());
    session.client.ask(Method::PUT, &path(&["v1", "queues", name]), Some(&settings)).await?;
    Ok(true)
}

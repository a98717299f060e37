//! Which messages a command is about: by id, by filter, or all of them when that is said.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::confirm::Yes;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::words;

/// Where in its life a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Status {
    /// In its lane.
    Ready,
    /// Out of the lanes until due.
    Delayed,
    /// Lent to a consumer.
    Leased,
    /// A dead letter.
    Dead,
}

impl Status {
    /// The word on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Delayed => "delayed",
            Self::Leased => "leased",
            Self::Dead => "dead",
        }
    }
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which messages")]
pub(crate) struct FilterArgs {
    /// Only messages that stand so.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<Status>,
    /// Only messages of this priority, in the words of the queue's scheme.
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true)]
    pub(crate) priority: Option<String>,
    /// Only messages that were published without a priority.
    #[arg(long)]
    pub(crate) without_priority: bool,
    /// Only messages with this key.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Only messages with this header. May be given again.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = words::pair)]
    pub(crate) headers: Vec<(String, String)>,
}

impl FilterArgs {
    fn is_empty(&self) -> bool {
        let Self { status, priority, without_priority, key, headers } = self;
        status.is_none() && priority.is_none() && !without_priority && key.is_none() && headers.is_empty()
    }

    /// As query parameters.
    ///
    /// # Errors
    /// A usage error for a header that is given twice.
    pub(crate) fn query(&self) -> Result<Vec<(String, String)>, Failure> {
        words::headers(&self.headers)?;
        let mut pairs = Vec::new();
        let mut put = |name: &str, value: &str| pairs.push((name.to_owned(), value.to_owned()));
        if let Some(status) = self.status {
            put("status", status.word());
        }
        if let Some(priority) = &self.priority {
            put("priority", priority);
        }
        if self.without_priority {
            put("without_priority", "true");
        }
        if let Some(key) = &self.key {
            put("key", key);
        }
        for (name, value) in &self.headers {
            put(&format!("header.{name}"), value);
        }
        Ok(pairs)
    }

    /// In words, such as `status=dead key=acme`.
    fn words(&self) -> Result<String, Failure> {
        let pairs: Vec<_> =
            self.query()?.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        Ok(format!("`{}`", pairs.join(" ")))
    }

    fn json(&self) -> Result<Value, Failure> {
        let mut filter = Map::new();
        if let Some(status) = self.status {
            filter.insert("status".into(), status.word().into());
        }
        if let Some(priority) = &self.priority {
            filter.insert("priority".into(), words::priority(priority));
        }
        if self.without_priority {
            filter.insert("without_priority".into(), true.into());
        }
        if let Some(key) = &self.key {
            filter.insert("key".into(), key.as_str().into());
        }
        if !self.headers.is_empty() {
            filter.insert("headers".into(), words::headers(&self.headers)?);
        }
        Ok(Value::Object(filter))
    }
}

/// Ids, conditions, or all.
#[derive(Clone, Debug, Args)]
pub(crate) struct Selection {
    /// Ids of messages: their own, or seq-N. Each is tried, also when another fails; the exit code is that of the first failure.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Every message. Must be said.
    #[arg(long, help_heading = "Which messages")]
    all: bool,
    /// Do it only if conditions or --all select exactly so many messages, such as those a look showed before.
    #[arg(long, value_name = "N", value_parser = words::whole(0_u64..), help_heading = "Which messages")]
    expect: Option<u64>,
}

/// Which messages were chosen.
pub(crate) enum Chosen<'a> {
    /// These.
    Ids(&'a [String]),
    /// Those the broker finds: what to put into the request.
    Matching(Map<String, Value>),
    /// All.
    All(Map<String, Value>),
}

impl Selection {
    /// Asks a person at a terminal before the messages that conditions select are changed for good, unless `--expect` says how many they are.
    pub(crate) fn ask(&self, yes: Yes, verb: &str, queue: &str) -> Result<(), Failure> {
        match self.expect {
            Some(_) => Ok(()),
            None => yes.or_ask_at_terminal(&format!(
                "{verb} each message of queue `{queue}` that matches {}?",
                self.filter.words()?
            )),
        }
    }

    /// What was chosen, if it is exactly one thing.
    pub(crate) fn chosen(&self) -> Result<Chosen<'_>, Failure> {
        let object = |mut value: Value| {
            if let Some(expect) = self.expect {
                value["expect"] = expect.into();
            }
            value.as_object().cloned().unwrap_or_default()
        };
        match (self.ids.is_empty(), self.filter.is_empty(), self.all) {
            (false, true, false) if self.expect.is_some() => Err(Failure::usage(
                "--expect counts what conditions or --all select: leave it out where ids are given",
            )),
            (false, true, false) => Ok(Chosen::Ids(&self.ids)),
            (true, false, false) => Ok(Chosen::Matching(object(json!({ "filter": self.filter.json()? })))),
            (true, true, true) => Ok(Chosen::All(object(json!({ "all": true })))),
            (true, true, false) => Err(Failure::usage("no messages were named")
                .hint("give ids, or conditions such as --key or --status, or --all")),
            _ => Err(Failure::usage("give ids, or conditions, or --all: one of them")),
        }
    }
}

/// The outcome for each of several ids.
#[derive(Debug)]
pub(crate) struct Each {
    /// The answer about each that was done.
    pub(crate) done: Vec<Value>,
    failed: Vec<Value>,
    /// The exit code of the first failure.
    pub(crate) exit: Exit,
}

impl Each {
    /// An answer for programs, with what failed if anything did.
    pub(crate) fn answer(&self, mut answer: Value) -> Value {
        if !self.failed.is_empty() {
            answer["failed"] = self.failed.clone().into();
        }
        answer
    }
}

/// Does the same to each id, also when another fails, and tells at once what became of it: what was done in the words of `say`, what failed as an error.
/// The loop ends early only where the broker cannot be reached.
///
/// # Errors
/// When nobody reads the output any more.
pub(crate) async fn each(
    ids: &[String],
    out: Out,
    say: impl Fn(&str, &Value) -> Option<String>,
    act: impl AsyncFn(&str) -> Result<Value, Failure>,
) -> Result<Each, Failure> {
    let mut each = Each { done: Vec::new(), failed: Vec::new(), exit: Exit::Done };
    for (at, id) in ids.iter().enumerate() {
        match act(id).await {
            Ok(answer) => {
                if let Some(said) = say(id, &answer).filter(|_| !out.is_json() && !out.is_quiet()) {
                    out.text(&format!("{said}\n"))?;
                }
                each.done.push(answer);
            }
            Err(failure) => {
                let mut failed = json!({ "id": id, "error": failure.what() });
                if let Some(word) = failure.word() {
                    failed["code"] = word.into();
                }
                each.failed.push(failed);
                let exit = failure.exit();
                failure.during(id).print(out.is_json());
                if each.exit == Exit::Done {
                    each.exit = exit;
                }
                if exit == Exit::Unreachable {
                    let rest = ids[at + 1..].iter().map(|id| json!({ "id": id, "error": "not tried" }));
                    each.failed.extend(rest);
                    if at + 1 < ids.len() {
                        let what = format!("not tried: {}", ids[at + 1..].join(", "));
                        Failure::new(exit, what).print(out.is_json());
                    }
                    break;
                }
            }
        }
    }
    Ok(each)
}

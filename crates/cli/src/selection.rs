//! Which messages a command is about: by id, by filter, or all of them when that is said.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
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
    /// Ids of messages: their own, or seq-N.
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

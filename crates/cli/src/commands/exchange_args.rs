//! What `overtake exchange` is told, and what it makes of it.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::publish::MessageArgs;
use crate::address::path;
use crate::failure::Failure;
use crate::words;

/// How an exchange chooses queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The binding's key is the routing key.
    Direct,
    /// Always.
    Fanout,
    /// The binding's key is a pattern of words between dots: * is one word, # any number of them.
    Topic,
    /// The binding's headers are among the message's.
    Headers,
    /// One binding of all, always the same for the same key; the binding's key is its weight.
    ConsistentHash,
}

#[derive(Debug, Args)]
pub(crate) struct DeclareArgs {
    /// Its name.
    pub(super) exchange: String,
    /// How it chooses queues.
    pub(super) kind: Kind,
    /// It is gone after a restart.
    #[arg(long)]
    transient: bool,
    /// It goes with its last binding.
    #[arg(long)]
    auto_delete: bool,
    /// Nobody publishes to it: it gets what other exchanges give it.
    #[arg(long)]
    internal: bool,
    /// The exchange that gets what this one has no binding for.
    #[arg(long, value_name = "EXCHANGE")]
    alternate: Option<String>,
    /// What comes through it waits as long as its header x-delay says, in ms.
    #[arg(long)]
    delayed: bool,
    /// Share out by this header, not by the routing key.
    #[arg(long, value_name = "NAME", conflicts_with = "hash_property")]
    hash_header: Option<String>,
    /// Share out by this property: message_id, correlation_id or timestamp.
    #[arg(long, value_name = "NAME")]
    hash_property: Option<String>,
}

/// How many of its headers a binding wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Match {
    /// All of them; those whose name begins with x- do not count.
    All,
    /// One of them; those whose name begins with x- do not count.
    Any,
    /// All of them, whatever their name.
    AllWithX,
    /// One of them, whatever its name.
    AnyWithX,
}

#[derive(Debug, Args)]
pub(crate) struct BindingArgs {
    /// The exchange.
    pub(super) exchange: String,
    /// The queue; with --to-exchange the exchange.
    pub(super) queue: String,
    /// It leads to an exchange, not to a queue.
    #[arg(long)]
    pub(super) to_exchange: bool,
    /// The routing key, for a topic exchange the pattern, for a consistent-hash exchange the weight.
    #[arg(long, value_name = "KEY", default_value = "", hide_default_value = true)]
    key: String,
    /// For a headers exchange: what must be there. May be given again.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = words::pair)]
    headers: Vec<(String, String)>,
    /// For a headers exchange: one of the headers is enough.
    #[arg(long, conflicts_with = "matching")]
    any: bool,
    /// For a headers exchange: how many of the headers must be there.
    #[arg(long = "match", value_name = "HOW")]
    matching: Option<Match>,
}

#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// The exchange.
    pub(super) exchange: String,
    /// The routing key.
    pub(super) routing_key: String,
    /// The body; - or nothing reads it from stdin.
    pub(super) body: Option<String>,
    /// A further routing key. May be given again.
    #[arg(long = "more-key", value_name = "KEY")]
    pub(super) more_keys: Vec<String>,
    /// Refuse it when no queue gets it.
    #[arg(long)]
    pub(super) mandatory: bool,
    #[command(flatten)]
    pub(super) message: MessageArgs,
}

impl BindingArgs {
    pub(super) fn path(&self) -> String {
        path(&["v1", "exchanges", &self.exchange, "bindings"])
    }

    pub(super) fn json(&self) -> Result<Value, Failure> {
        let to = if self.to_exchange { "to_exchange" } else { "queue" };
        let headers = words::headers(&self.headers)?;
        let mut json =
            json!({ to: self.queue, "routing_key": self.key, "headers": headers, "any": self.any });
        if let Some(matching) = self.matching {
            json["match"] = word(matching).into();
        }
        Ok(json)
    }
}

impl DeclareArgs {
    pub(super) fn json(&self) -> Value {
        let mut json = json!({
            "kind": word(self.kind),
            "durable": !self.transient,
            "auto_delete": self.auto_delete,
            "internal": self.internal,
            "alternate": self.alternate,
            "delayed": self.delayed,
        });
        if let Some(name) = &self.hash_header {
            json["hash_on"] = json!({ "header": name });
        }
        if let Some(name) = &self.hash_property {
            json["hash_on"] = json!({ "property": name });
        }
        json
    }
}

/// What a choice is called, here and in JSON.
pub(super) fn word(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map(|word| word.get_name().to_owned()).unwrap_or_default()
}

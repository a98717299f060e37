//! `overtake exchange`

use clap::{Args, Subcommand, ValueEnum};
use hyper::Method;
use serde_json::{Value, json};

use super::publish::{MessageArgs, published, read_body};
use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::body;
use crate::confirm::Yes;
use crate::failure::Exit;
use crate::table::{Side, Table, number};
use crate::words;

#[derive(Debug, Subcommand)]
pub(crate) enum ExchangeCommand {
    /// Make an exchange, or find the one of the same kind that is there.
    #[command(after_help = "\
Examples:
  overtake exchange declare events topic
  overtake exchange declare copies fanout")]
    Declare {
        /// Its name.
        exchange: String,
        /// How it chooses queues.
        kind: Kind,
    },
    /// List all exchanges, or the bindings of one.
    #[command(after_help = "\
Examples:
  overtake exchange list
  overtake exchange list events")]
    List {
        /// Show the bindings of this one.
        exchange: Option<String>,
    },
    /// Delete an exchange with its bindings. Queues and messages stay.
    #[command(after_help = "\
Examples:
  overtake exchange delete events
  overtake exchange delete events --yes")]
    Delete {
        /// Its name.
        exchange: String,
        #[command(flatten)]
        yes: Yes,
    },
    /// Bind a queue to an exchange.
    #[command(after_help = "\
Examples:
  overtake exchange bind events jobs --key 'job.#'
  overtake exchange bind amq.headers alerts --header severity=high --header page=true --any")]
    Bind(BindingArgs),
    /// Take a binding away: the one that is the same in everything.
    #[command(after_help = "\
Examples:
  overtake exchange unbind events jobs --key 'job.#'
  overtake exchange unbind copies archive")]
    Unbind(BindingArgs),
    /// Publish a message through an exchange.
    #[command(after_help = "\
Examples:
  overtake exchange publish events job.created '{\"id\":1}' --priority 7
  overtake exchange publish events job.created --mandatory - < job.json")]
    Publish(PublishArgs),
}

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
}

#[derive(Debug, Args)]
pub(crate) struct BindingArgs {
    /// The exchange.
    exchange: String,
    /// The queue.
    queue: String,
    /// The routing key, or for a topic exchange the pattern.
    #[arg(long, value_name = "KEY", default_value = "", hide_default_value = true)]
    key: String,
    /// For a headers exchange: what must be there. May be given again.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = words::pair)]
    headers: Vec<(String, String)>,
    /// For a headers exchange: one of the headers is enough.
    #[arg(long)]
    any: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// The exchange.
    exchange: String,
    /// The routing key.
    routing_key: String,
    /// The body; - or nothing reads it from stdin.
    body: Option<String>,
    /// Refuse it when no queue gets it.
    #[arg(long)]
    mandatory: bool,
    #[command(flatten)]
    message: MessageArgs,
}

impl BindingArgs {
    fn path(&self) -> String {
        path(&["v1", "exchanges", &self.exchange, "bindings"])
    }

    fn json(&self) -> Value {
        let headers = words::headers(&self.headers);
        json!({ "queue": self.queue, "routing_key": self.key, "headers": headers, "any": self.any })
    }
}

/// Asks the broker about exchanges.
pub(crate) async fn run(command: &ExchangeCommand, session: &Session) -> Ended {
    match command {
        ExchangeCommand::Declare { exchange, kind } => declare(exchange, *kind, session).await,
        ExchangeCommand::List { exchange: None } => list(session).await,
        ExchangeCommand::List { exchange: Some(exchange) } => bindings(exchange, session).await,
        ExchangeCommand::Delete { exchange, yes } => {
            yes.or_ask(&format!("Delete exchange `{exchange}` with its bindings?"))?;
            session.client.ask(Method::DELETE, &path(&["v1", "exchanges", exchange]), None).await?;
            session
                .out
                .done(&json!({ "deleted": exchange }), || format!("exchange {exchange} is deleted"))?;
            Ok(Exit::Done)
        }
        ExchangeCommand::Bind(binding) => {
            let answer = session.client.post(&binding.path(), &binding.json()).await?;
            session.out.done(&answer, || format!("{} is bound to {}", binding.queue, binding.exchange))?;
            Ok(Exit::Done)
        }
        ExchangeCommand::Unbind(binding) => {
            session.client.ask(Method::DELETE, &binding.path(), Some(&binding.json())).await?;
            session.out.done(&binding.json(), || {
                format!("{} is unbound from {}", binding.queue, binding.exchange)
            })?;
            Ok(Exit::Done)
        }
        ExchangeCommand::Publish(args) => publish(args, session).await,
    }
}

async fn declare(exchange: &str, kind: Kind, session: &Session) -> Ended {
    let kind = kind.to_possible_value().map(|kind| kind.get_name().to_owned()).unwrap_or_default();
    let path = path(&["v1", "exchanges", exchange]);
    let answer = session.client.ask(Method::PUT, &path, Some(&json!({ "kind": kind }))).await?;
    session.out.done(&answer.body, || format!("exchange {exchange} is there ({kind})"))?;
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Ended {
    let answer = session.client.get("/v1/exchanges").await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[("NAME", Side::Left), ("KIND", Side::Left), ("BINDINGS", Side::Right)]);
        for exchange in answer["exchanges"].as_array().into_iter().flatten() {
            let bindings = number(exchange["bindings"].as_u64().unwrap_or(0));
            table.row(vec![text(&exchange["name"]), text(&exchange["kind"]), bindings]);
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

async fn bindings(exchange: &str, session: &Session) -> Ended {
    let answer = session.client.get(&path(&["v1", "exchanges", exchange, "bindings"])).await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[("QUEUE", Side::Left), ("KEY", Side::Left), ("HEADERS", Side::Left)]);
        for binding in answer["bindings"].as_array().into_iter().flatten() {
            let headers = binding["headers"].as_object().into_iter().flatten();
            let headers: Vec<_> = headers.map(|(name, value)| format!("{name}={}", text(value))).collect();
            let between = if binding["any"] == true { " or " } else { " and " };
            table.row(vec![text(&binding["queue"]), text(&binding["routing_key"]), headers.join(between)]);
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

async fn publish(args: &PublishArgs, session: &Session) -> Ended {
    let mut message = args.message.json();
    message.insert("routing_key".to_owned(), args.routing_key.as_str().into());
    message.insert("mandatory".to_owned(), args.mandatory.into());
    body::put(&mut message, &read_body(args.body.as_deref())?);
    let path = path(&["v1", "exchanges", &args.exchange, "messages"]);
    let answer = session.client.post(&path, &Value::Object(message)).await?;
    session.out.done(&answer, || {
        let copies = answer["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let copies: Vec<_> = copies.iter().map(|copy| published(copy, &text(&copy["queue"]))).collect();
        if copies.is_empty() { "no queue is bound for it: dropped".to_owned() } else { copies.join("\n") }
    })?;
    Ok(Exit::Done)
}

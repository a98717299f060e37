//! `overtake exchange`

use clap::Subcommand;
use hyper::Method;
use serde_json::{Value, json};

use super::exchange_args::{BindingArgs, DeclareArgs, PublishArgs, word};
use super::publish::{published, read_body};
use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::body;
use crate::confirm::Yes;
use crate::failure::Exit;
use crate::table::{Side, Table, number};

#[derive(Debug, Subcommand)]
pub(crate) enum ExchangeCommand {
    /// Make an exchange, or find the one that is there and is the same.
    #[command(after_help = "\
Examples:
  overtake exchange declare events topic --alternate unrouted
  overtake exchange declare later direct --delayed
  overtake exchange declare shards consistent-hash --hash-header user")]
    Declare(DeclareArgs),
    /// List all exchanges, or the bindings of one.
    #[command(after_help = "\
Examples:
  overtake exchange list
  overtake exchange list events")]
    List {
        /// Show the bindings of this one.
        exchange: Option<String>,
    },
    /// Delete an exchange with the bindings of it and to it. Queues and messages stay.
    #[command(after_help = "\
Examples:
  overtake exchange delete events
  overtake exchange delete events --if-unused --yes")]
    Delete {
        /// Its name.
        exchange: String,
        /// Only when it has no bindings of its own.
        #[arg(long)]
        if_unused: bool,
        #[command(flatten)]
        yes: Yes,
    },
    /// Bind a queue, or another exchange, to an exchange.
    #[command(after_help = "\
Examples:
  overtake exchange bind events jobs --key 'job.#'
  overtake exchange bind events copies --to-exchange --key '#'
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

/// Asks the broker about exchanges.
pub(crate) async fn run(command: &ExchangeCommand, session: &Session) -> Ended {
    match command {
        ExchangeCommand::Declare(args) => declare(args, session).await,
        ExchangeCommand::List { exchange: None } => list(session).await,
        ExchangeCommand::List { exchange: Some(exchange) } => bindings(exchange, session).await,
        ExchangeCommand::Delete { exchange, if_unused, yes } => {
            yes.or_ask(&format!("Delete exchange `{exchange}` with its bindings?"))?;
            let only = if *if_unused { "?if=unused" } else { "" };
            let path = format!("{}{only}", path(&["v1", "exchanges", exchange]));
            session.client.ask(Method::DELETE, &path, None).await?;
            session
                .out
                .done(&json!({ "deleted": exchange }), || format!("exchange {exchange} is deleted"))?;
            Ok(Exit::Done)
        }
        ExchangeCommand::Bind(binding) => {
            let answer = session.client.post(&binding.path(), &binding.json()?).await?;
            session.out.done(&answer, || format!("{} is bound to {}", binding.queue, binding.exchange))?;
            Ok(Exit::Done)
        }
        ExchangeCommand::Unbind(binding) => {
            let json = binding.json()?;
            session.client.ask(Method::DELETE, &binding.path(), Some(&json)).await?;
            session.out.done(&json, || format!("{} is unbound from {}", binding.queue, binding.exchange))?;
            Ok(Exit::Done)
        }
        ExchangeCommand::Publish(args) => publish(args, session).await,
    }
}

async fn declare(args: &DeclareArgs, session: &Session) -> Ended {
    let path = path(&["v1", "exchanges", &args.exchange]);
    let answer = session.client.ask(Method::PUT, &path, Some(&args.json())).await?;
    session
        .out
        .done(&answer.body, || format!("exchange {} is there ({})", args.exchange, word(args.kind)))?;
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Ended {
    let answer = session.client.get("/v1/exchanges").await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[
            ("NAME", Side::Left),
            ("KIND", Side::Left),
            ("BINDINGS", Side::Right),
            ("ATTRIBUTES", Side::Left),
        ]);
        for exchange in answer["exchanges"].as_array().into_iter().flatten() {
            let bindings = number(exchange["bindings"].as_u64().unwrap_or(0));
            table.row(vec![text(&exchange["name"]), text(&exchange["kind"]), bindings, attributes(exchange)]);
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

/// What is not as it is by default.
fn attributes(exchange: &Value) -> String {
    let mut words = Vec::new();
    if exchange["durable"] == false {
        words.push("transient".to_owned());
    }
    for flag in ["auto_delete", "internal", "delayed"] {
        if exchange[flag] == true {
            words.push(flag.replace('_', "-"));
        }
    }
    if !exchange["alternate"].is_null() {
        words.push(format!("alternate={}", text(&exchange["alternate"])));
    }
    for by in ["header", "property"] {
        if !exchange["hash_on"][by].is_null() {
            words.push(format!("hash-{by}={}", text(&exchange["hash_on"][by])));
        }
    }
    words.join(" ")
}

async fn bindings(exchange: &str, session: &Session) -> Ended {
    let answer = session.client.get(&path(&["v1", "exchanges", exchange, "bindings"])).await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[("TO", Side::Left), ("KEY", Side::Left), ("HEADERS", Side::Left)]);
        for binding in answer["bindings"].as_array().into_iter().flatten() {
            let headers = binding["headers"].as_object().into_iter().flatten();
            let headers: Vec<_> = headers.map(|(name, value)| format!("{name}={}", text(value))).collect();
            let between = if binding["any"] == true { " or " } else { " and " };
            let to = match &binding["to_exchange"] {
                Value::Null => text(&binding["queue"]),
                exchange => format!("exchange {}", text(exchange)),
            };
            table.row(vec![to, text(&binding["routing_key"]), headers.join(between)]);
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

async fn publish(args: &PublishArgs, session: &Session) -> Ended {
    let mut message = args.message.json()?;
    message.insert("routing_key".to_owned(), args.routing_key.as_str().into());
    message.insert("mandatory".to_owned(), args.mandatory.into());
    if !args.more_keys.is_empty() {
        message.insert("more_keys".to_owned(), args.more_keys.clone().into());
    }
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

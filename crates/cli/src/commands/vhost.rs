//! `overtake vhost`

use clap::{Args, Subcommand};
use hyper::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::Exit;
use crate::table::{Side, Table, number};
use crate::words;

#[derive(Debug, Subcommand)]
pub(crate) enum VhostCommand {
    /// Make a virtual host, or change what is said of it: what is not said is empty, or has no limit. What is in it stays.
    #[command(after_help = "\
Examples:
  overtake vhost put tenant-7 --description 'Tenant 7' --max-queues 100
  overtake vhost put tenant-7 --max-connections 50")]
    Put(PutArgs),
    /// List the virtual hosts that you may enter.
    #[command(after_help = "\
Examples:
  overtake vhost list
  overtake vhost list --json")]
    List,
    /// Delete a virtual host with its queues, their messages, its exchanges, and all rights in it.
    #[command(after_help = "\
Examples:
  overtake vhost delete tenant-7
  overtake vhost delete tenant-7 --yes")]
    Delete {
        /// Its name.
        name: String,
        #[command(flatten)]
        yes: Yes,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// Its name.
    name: String,
    /// What it is for.
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// A word to find it by; again for more.
    #[arg(long, value_name = "WORD")]
    tag: Vec<String>,
    /// At most so many queues.
    #[arg(long, value_name = "N", value_parser = words::whole(0_u64..))]
    max_queues: Option<u64>,
    /// At most so many AMQP connections.
    #[arg(long, value_name = "N", value_parser = words::whole(0_u64..))]
    max_connections: Option<u64>,
}

/// Asks the broker about virtual hosts.
pub(crate) async fn run(command: &VhostCommand, session: &Session) -> Ended {
    match command {
        VhostCommand::Put(args) => put(args, session).await,
        VhostCommand::List => list(session).await,
        VhostCommand::Delete { name, yes } => {
            yes.or_ask(&format!("Delete the virtual host `{name}` with all that is in it?"))?;
            session.client.ask(Method::DELETE, &path(&["v1", "vhosts", name]), None).await?;
            session.out.done(&json!({ "deleted": name }), || format!("virtual host {name} is deleted"))?;
            Ok(Exit::Done)
        }
    }
}

async fn put(args: &PutArgs, session: &Session) -> Ended {
    let mut vhost = Map::new();
    vhost.insert("description".to_owned(), args.description.as_str().into());
    vhost.insert("tags".to_owned(), args.tag.clone().into());
    let limits = [("max_queues", args.max_queues), ("max_connections", args.max_connections)];
    vhost.extend(limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?.into()))));
    let path = path(&["v1", "vhosts", &args.name]);
    let answer = session.client.ask(Method::PUT, &path, Some(&Value::Object(vhost))).await?;
    session.out.done(&answer.body, || {
        let name = &args.name;
        if answer.status == StatusCode::CREATED {
            format!("virtual host {name} is made, and you have all rights in it")
        } else {
            format!("virtual host {name} is changed")
        }
    })?;
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Ended {
    let answer = session.client.get("/v1/vhosts").await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[
            ("NAME", Side::Left),
            ("QUEUES", Side::Right),
            ("MAX QUEUES", Side::Right),
            ("MAX CONNECTIONS", Side::Right),
            ("DESCRIPTION", Side::Left),
        ]);
        let limit = |limit: &Value| limit.as_u64().map_or_else(|| "–".to_owned(), number);
        for vhost in answer["vhosts"].as_array().into_iter().flatten() {
            let queues = number(vhost["queues"].as_u64().unwrap_or(0));
            let [most_queues, most_connections] =
                ["max_queues", "max_connections"].map(|key| limit(&vhost[key]));
            let row =
                [text(&vhost["name"]), queues, most_queues, most_connections, text(&vhost["description"])];
            table.row(row.to_vec());
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

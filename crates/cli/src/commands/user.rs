//! `overtake user`

use clap::{Args, Subcommand};
use hyper::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::Exit;
use crate::login;
use crate::table::{Side, Table};
use crate::words;

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Make a user, or change one. What is not said stays as it is.
    #[command(after_help = "\
Examples:
  overtake user put ann --new-password --tag administrator
  overtake user put worker --new-password < worker.secret
  overtake user put sensor-7 --no-password --max-connections 1")]
    Put(PutArgs),
    /// List all users.
    #[command(after_help = "\
Examples:
  overtake user list
  overtake user list --json")]
    List,
    /// Show a user with tags, limits and rights.
    #[command(after_help = "\
Examples:
  overtake user show ann
  overtake user show ann --json")]
    Show {
        /// The name.
        name: String,
    },
    /// Delete a user with all rights and tokens; AMQP connections of the user are closed.
    #[command(after_help = "\
Examples:
  overtake user delete ann
  overtake user delete ann --yes")]
    Delete {
        /// The name.
        name: String,
        #[command(flatten)]
        yes: Yes,
    },
    /// Give a user rights in a virtual host, in place of those that were.
    ///
    /// Each is a regular expression over names of queues and exchanges, which matches anywhere unless it is anchored. The exchange
    /// without a name is amq.default. What is not said is no name at all.
    #[command(after_help = "\
Examples:
  overtake user allow ann --all
  overtake user allow worker --write '^amq\\.default$' --read '^jobs$'
  overtake user allow tenant --in tenant-7 --configure '.*' --write '.*' --read '.*'")]
    Allow(AllowArgs),
    /// Take all rights of a user in a virtual host away.
    #[command(after_help = "\
Examples:
  overtake user deny worker
  overtake user deny tenant --in tenant-7")]
    Deny {
        /// The name.
        name: String,
        /// The virtual host [default: that of --vhost].
        #[arg(id = "in", long = "in", value_name = "VHOST")]
        place: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// The name.
    name: String,
    /// A new password: it is asked for, or is the first line of what is piped in.
    #[arg(long)]
    new_password: bool,
    /// No password: the user comes in by a certificate or a token.
    #[arg(long, conflicts_with = "new_password")]
    no_password: bool,
    /// administrator, monitoring, policymaker, management or impersonator; again for more. All tags: those that were and are not said are gone.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// No tags.
    #[arg(long, conflicts_with = "tag")]
    no_tags: bool,
    /// Most AMQP connections at once; sets both limits.
    #[arg(long, value_name = "N", value_parser = words::whole(0_u32..=u32::MAX))]
    max_connections: Option<u32>,
    /// Most channels of all AMQP connections; sets both limits.
    #[arg(long, value_name = "N", value_parser = words::whole(0_u32..=u32::MAX))]
    max_channels: Option<u32>,
    /// No limits.
    #[arg(long, conflicts_with_all = ["max_connections", "max_channels"])]
    no_limits: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// The name.
    name: String,
    /// The virtual host [default: that of --vhost].
    #[arg(id = "in", long = "in", value_name = "VHOST")]
    place: Option<String>,
    /// All rights to everything.
    #[arg(long, conflicts_with_all = ["configure", "write", "read"])]
    all: bool,
    /// What may be declared and deleted.
    #[arg(long, value_name = "PATTERN", default_value = "")]
    configure: String,
    /// What may be published to and bound.
    #[arg(long, value_name = "PATTERN", default_value = "")]
    write: String,
    /// What may be consumed, browsed, purged.
    #[arg(long, value_name = "PATTERN", default_value = "")]
    read: String,
}

/// Asks the broker about users.
pub(crate) async fn run(command: &UserCommand, session: &Session) -> Ended {
    match command {
        UserCommand::Put(args) => put(args, session).await,
        UserCommand::List => list(session).await,
        UserCommand::Show { name } => {
            let answer = session.client.get(&path(&["v1", "users", name])).await?;
            session.out.answer(&answer, shown)?;
            Ok(Exit::Done)
        }
        UserCommand::Delete { name, yes } => {
            yes.or_ask(&format!("Delete the user `{name}` with all rights and tokens?"))?;
            session.client.ask(Method::DELETE, &path(&["v1", "users", name]), None).await?;
            session.out.done(&json!({ "deleted": name }), || format!("user {name} is deleted"))?;
            Ok(Exit::Done)
        }
        UserCommand::Allow(args) => allow(args, session).await,
        UserCommand::Deny { name, place } => {
            let vhost = place.as_deref().unwrap_or(session.client.vhost());
            let path = path(&["v1", "users", name, "permissions", vhost]);
            session.client.ask(Method::DELETE, &path, None).await?;
            let said = json!({ "user": name, "vhost": vhost });
            session.out.done(&said, || format!("user {name} may not enter {vhost} any more"))?;
            Ok(Exit::Done)
        }
    }
}

async fn put(args: &PutArgs, session: &Session) -> Ended {
    let mut user = Map::new();
    if args.new_password {
        user.insert("password".to_owned(), login::new_password(&args.name)?.into());
    } else if args.no_password {
        user.insert("password_hash".to_owned(), "".into());
    }
    if args.no_tags || !args.tag.is_empty() {
        user.insert("tags".to_owned(), args.tag.clone().into());
    }
    let limits = [("max_connections", args.max_connections), ("max_channels", args.max_channels)];
    let limits: Map<String, Value> =
        limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?.into()))).collect();
    if args.no_limits || !limits.is_empty() {
        user.insert("limits".to_owned(), Value::Object(limits));
    }
    let path = path(&["v1", "users", &args.name]);
    let answer = session.client.ask(Method::PUT, &path, Some(&Value::Object(user))).await?;
    session.out.done(&answer.body, || {
        let is_new = answer.status == StatusCode::CREATED;
        let name = &args.name;
        match (is_new, answer.body["has_password"] == true) {
            (true, true) => format!("user {name} is made; give rights with `overtake user allow {name}`"),
            (true, false) => {
                format!(
                    "user {name} is made, without a password; give rights with `overtake user allow {name}`"
                )
            }
            (false, _) => format!("user {name} is changed"),
        }
    })?;
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Ended {
    let answer = session.client.get("/v1/users").await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[
            ("NAME", Side::Left),
            ("PASSWORD", Side::Left),
            ("TAGS", Side::Left),
            ("VIRTUAL HOSTS", Side::Left),
        ]);
        for user in answer["users"].as_array().into_iter().flatten() {
            let vhosts = user["permissions"].as_array().into_iter().flatten();
            let vhosts: Vec<_> = vhosts.map(|permission| text(&permission["vhost"])).collect();
            let password = if user["has_password"] == true { "yes" } else { "no" };
            table.row(vec![text(&user["name"]), password.to_owned(), words(&user["tags"]), vhosts.join(" ")]);
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

fn words(list: &Value) -> String {
    list.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(" ")
}

fn shown(user: &Value) -> String {
    let limits = user["limits"].as_object().into_iter().flatten();
    let limits: Vec<_> = limits.map(|(name, limit)| format!("{}={limit}", name.replace('_', "-"))).collect();
    let password = if user["has_password"] == true { "yes" } else { "no" };
    let mut facts = Table::new(&[("USER", Side::Left), ("", Side::Left)]);
    facts.row(vec!["name".to_owned(), text(&user["name"])]);
    facts.row(vec!["password".to_owned(), password.to_owned()]);
    facts.row(vec!["tags".to_owned(), words(&user["tags"])]);
    facts.row(vec!["limits".to_owned(), limits.join(" ")]);
    let mut rights = Table::new(&[
        ("VIRTUAL HOST", Side::Left),
        ("CONFIGURE", Side::Left),
        ("WRITE", Side::Left),
        ("READ", Side::Left),
    ]);
    for permission in user["permissions"].as_array().into_iter().flatten() {
        rights.row(["vhost", "configure", "write", "read"].map(|key| text(&permission[key])).to_vec());
    }
    format!("{}\n{}", facts.text(), rights.text())
}

async fn allow(args: &AllowArgs, session: &Session) -> Ended {
    let AllowArgs { name, place, all, configure, write, read } = args;
    let vhost = place.as_deref().unwrap_or(session.client.vhost());
    let permission = if *all {
        json!({ "configure": ".*", "write": ".*", "read": ".*" })
    } else {
        json!({ "configure": configure, "write": write, "read": read })
    };
    let path = path(&["v1", "users", name, "permissions", vhost]);
    session.client.ask(Method::PUT, &path, Some(&permission)).await?;
    session.out.done(&permission, || format!("user {name} has these rights in {vhost} from now on"))?;
    Ok(Exit::Done)
}

//! `overtake token`

use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Map, Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::failure::Exit;
use crate::table::{Side, Table};
use crate::words;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, and print it: this once, and never again.
    ///
    /// Whoever shows it (OVERTAKE_TOKEN, `Authorization: Bearer`) may do what its user may, within what is said here, until it ends,
    /// is revoked, or the user goes.
    #[command(after_help = "\
Examples:
  overtake token make --label ci --expires-in 30d
  overtake token make --label worker --read '^jobs$' --write '' --configure '' > worker.token
  overtake token make --for prometheus --tag monitoring")]
    Make(MakeArgs),
    /// List tokens: your own, and for administrators all. What they say is not shown.
    #[command(after_help = "\
Examples:
  overtake token list
  overtake token list --json")]
    List,
    /// Revoke a token: nobody may do anything with it any more.
    #[command(after_help = "\
Examples:
  overtake token revoke 5c1f0a9be2d34476
  overtake token revoke 5c1f0a9be2d34476 --quiet")]
    Revoke {
        /// Its number, as `overtake token list` shows it.
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct MakeArgs {
    /// What it is for.
    #[arg(long, default_value = "", value_name = "TEXT")]
    label: String,
    /// Whose it is, if not your own; administrators make others'.
    #[arg(id = "for", long = "for", value_name = "NAME")]
    user: Option<String>,
    /// It ends after so long: 30d, 12h; else never.
    #[arg(long, value_name = "DURATION")]
    #[arg(value_parser = words::more_than_0("the token would end as it begins: say 1ms or more, or leave --expires-in out for one that does not end"))]
    expires_in: Option<u64>,
    /// Only in this virtual host.
    #[arg(id = "in", long = "in", value_name = "VHOST")]
    vhost: Option<String>,
    /// Only what this matches may be declared and deleted.
    #[arg(long, value_name = "PATTERN")]
    configure: Option<String>,
    /// Only what this matches may be published to and bound.
    #[arg(long, value_name = "PATTERN")]
    write: Option<String>,
    /// Only what this matches may be consumed, browsed, purged.
    #[arg(long, value_name = "PATTERN")]
    read: Option<String>,
    /// Of the user's tags this one; again for more. None unless it is said.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

/// Asks the broker about tokens.
pub(crate) async fn run(command: &TokenCommand, session: &Session) -> Ended {
    match command {
        TokenCommand::Make(args) => make(args, session).await,
        TokenCommand::List => list(session).await,
        TokenCommand::Revoke { id } => {
            session.client.ask(Method::DELETE, &path(&["v1", "tokens", id]), None).await?;
            session.out.done(&json!({ "revoked": id }), || format!("token {id} is revoked"))?;
            Ok(Exit::Done)
        }
    }
}

async fn make(args: &MakeArgs, session: &Session) -> Ended {
    let mut ask = Map::new();
    ask.insert("label".to_owned(), args.label.as_str().into());
    ask.insert("tags".to_owned(), args.tag.clone().into());
    if let Some(ms) = args.expires_in {
        ask.insert("expires_in_ms".to_owned(), ms.into());
    }
    let texts = [
        ("user", &args.user),
        ("vhost", &args.vhost),
        ("configure", &args.configure),
        ("write", &args.write),
        ("read", &args.read),
    ];
    for (name, value) in texts {
        ask.extend(value.as_deref().map(|value| (name.to_owned(), value.into())));
    }
    let answer = session.client.post("/v1/tokens", &Value::Object(ask)).await?;
    session.out.answer(&answer, |answer| format!("{}\n", text(&answer["secret"])))?;
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Ended {
    let answer = session.client.get("/v1/tokens").await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[
            ("ID", Side::Left),
            ("USER", Side::Left),
            ("MADE", Side::Left),
            ("ENDS", Side::Left),
            ("SCOPE", Side::Left),
            ("LABEL", Side::Left),
        ]);
        for token in answer["tokens"].as_array().into_iter().flatten() {
            let ends =
                if token["expires_at"].is_null() { "never".to_owned() } else { text(&token["expires_at"]) };
            let [id, user, label] = ["id", "user", "label"].map(|key| text(&token[key]));
            table.row(vec![id, user, text(&token["created_at"]), ends, scope(token), label]);
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

/// What it may do less than its user.
fn scope(token: &Value) -> String {
    let mut words = Vec::new();
    if !token["vhost"].is_null() {
        words.push(format!("in={}", text(&token["vhost"])));
    }
    for (right, pattern) in token["permission"].as_object().into_iter().flatten() {
        words.push(format!("{right}={}", text(pattern)));
    }
    words.extend(token["tags"].as_array().into_iter().flatten().map(|tag| format!("tag={}", text(tag))));
    words.join(" ")
}

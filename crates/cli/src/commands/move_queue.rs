//! `overtake move`

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use hyper::Method;
use serde_json::json;

use super::{Ended, Session};
use crate::address::{Base, path};
use crate::args::Global;
use crate::client::Client;
use crate::failure::Exit;
use crate::login::LoginThere;
use crate::moving::{self, End, Moved};
use crate::words::priority;

/// Move what waits in a queue to another broker, each message once and in order.
///
/// Between a broker with a store of its own and one on Redis or Valkey, either way, or any two. A queue that is not there yet is made with the
/// settings of the one here. What is ready goes as a consumer takes it, so others may consume meanwhile; for what is delayed the queue is
/// paused for a moment. What others hold, and dead letters, stay here. What is under way is kept in a file: a move that was cut off goes on
/// where it stopped when it is run again, and nothing comes twice.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake move jobs --to http://cluster.internal:15672
  overtake --vhost plant-7 move jobs --to https://cluster.internal:15671 --to-user mover --delete
  overtake move jobs --to http://127.0.0.1:25672 --as jobs-2027")]
pub(crate) struct MoveArgs {
    /// The queue.
    queue: String,
    /// The broker it goes to: the address of its HTTP API.
    #[arg(long, value_name = "URL")]
    to: String,
    /// The name of the queue there, if it is another.
    #[arg(long = "as", value_name = "QUEUE")]
    named: Option<String>,
    /// The virtual host there, if it is another.
    #[arg(long, value_name = "NAME")]
    to_vhost: Option<String>,
    #[command(flatten)]
    login: LoginThere,
    /// For https: a PEM file with the authorities that may sign the certificate there, in place of the system's.
    #[arg(long, value_name = "FILE")]
    to_ca_file: Option<PathBuf>,
    /// The file that keeps what is under way: overtake-move.QUEUE.json in this directory. It is removed at the end.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// The priority of messages published without one, where the queue here is served in publish order and the one there by priority:
    /// `most-urgent`, or a priority of the queue there. Such messages are not moved without it.
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    import_priority: Option<String>,
    /// Delete the queue here when nothing is in it any more.
    #[arg(long)]
    delete: bool,
}

/// Moves, and says what is left.
pub(crate) async fn run(args: &MoveArgs, global: &Global, session: &Session) -> Ended {
    let base = Base::parse(&args.to)?;
    let login = args.login.header(&base)?;
    let there = Global {
        vhost: args.to_vhost.clone().or_else(|| global.vhost.clone()),
        ca_file: args.to_ca_file.clone(),
        ..global.clone()
    };
    let from = End { client: session.client.clone(), queue: args.queue.clone() };
    let to = End {
        client: Client::of(base, login, &there)?,
        queue: args.named.clone().unwrap_or_else(|| args.queue.clone()),
    };
    let name = path(&[&args.queue]);
    let state = args.state.clone();
    let state =
        state.unwrap_or_else(|| format!("overtake-move.{}.json", name.trim_start_matches('/')).into());
    let import = args.import_priority.as_deref().map(priority);
    let Moved { leased, cut_off, dead, known, moved } =
        moving::run(&from, &to, state, import.as_ref()).await?;
    let is_deleted = args.delete && leased + cut_off + dead == 0;
    if is_deleted {
        let query = "?if=empty";
        session.client.ask(Method::DELETE, &(path(&["v1", "queues", &args.queue]) + query), None).await?;
    }
    let answer = json!({
        "moved": moved, "known": known, "leased": leased, "leased_by_move": cut_off, "dead": dead, "deleted": is_deleted,
    });
    session.out.done(&answer, || sentence(args, &to.queue, &answer))?;
    Ok(if args.delete && !is_deleted { Exit::Error } else { Exit::Done })
}

fn sentence(args: &MoveArgs, queue: &str, answer: &serde_json::Value) -> String {
    let count = |field: &str| answer[field].as_u64().unwrap_or_default();
    let messages =
        |count: u64, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let mut text =
        format!("{} moved to {queue} at {}", messages(count("moved"), "message", "messages"), args.to);
    let further = [
        (count("known"), "was there already", "were there already"),
        (
            count("leased"),
            "is leased here by others: run it again when it came back",
            "are leased here by others: run it again when they came back",
        ),
        (
            count("leased_by_move"),
            "is leased here by a move that was cut off: run it again in 5 minutes, when it is ready",
            "are leased here by a move that was cut off: run it again in 5 minutes, when they are ready",
        ),
        (count("dead"), "dead letter stays here", "dead letters stay here"),
    ];
    for (count, one, more) in further.into_iter().filter(|(count, ..)| *count > 0) {
        text.push_str(&format!("; {}", messages(count, one, more)));
    }
    if answer["deleted"] == json!(true) {
        text.push_str(&format!("; {} is deleted here", args.queue));
    } else if args.delete {
        text.push_str(&format!("; {} is not deleted: it is not empty", args.queue));
    }
    text
}

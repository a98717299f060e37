//! `overtake peek`

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::{path, query};
use crate::body;
use crate::failure::{Exit, Failure};
use crate::holder;
use crate::look_bar::LookBar;
use crate::selection::FilterArgs;
use crate::signals::Ending;
use crate::table::{Side, Table, count, number, one_line};
use crate::words;

/// Most messages of one page.
const PAGE: u64 = 500;
/// Characters of a body that a table shows.
const BODY_CHARS: usize = 60;

/// Look at messages and leave them where they are.
///
/// The broker looks at up to 100,000 messages a request; this goes on until it has as many as it may print, or is at the end of the queue. A bar on stderr
/// shows how far it is. Ctrl-C stops it: what was found by then is printed, and the exit code is 1.
///
/// Exit code 75 when no message matches.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake peek jobs
  overtake peek jobs --status dead --limit 100
  overtake peek jobs --priority HIGH --header tenant=acme --json
  overtake peek jobs --id seq-17")]
pub(crate) struct PeekArgs {
    /// The queue.
    queue: String,
    /// Only the message with this id, with its position.
    #[arg(long, value_name = "ID", conflicts_with_all = ["status", "priority", "key", "headers", "order", "limit"])]
    id: Option<String>,
    /// At most so many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = words::whole(1_u64..))]
    limit: u64,
    /// In which order.
    #[arg(long, value_enum, default_value_t = Order::Dispatch)]
    order: Order,
    #[command(flatten)]
    filter: FilterArgs,
}

/// The order of browsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    /// As they will be leased.
    Dispatch,
    /// As they were published.
    Published,
    /// The last published first.
    Newest,
}

/// Messages that were found, and how far the look came.
#[derive(Default)]
struct Found {
    messages: Vec<Value>,
    looked_at: u64,
    in_queue: u64,
    /// Ctrl-C ended it before it was at its end.
    is_stopped: bool,
}

/// Browses page by page.
pub(crate) async fn run(args: &PeekArgs, session: &Session) -> Ended {
    let found = match &args.id {
        Some(id) => {
            let message = session.client.get(&path(&["v1", "queues", &args.queue, "messages", id])).await?;
            Found { messages: vec![message], ..Found::default() }
        }
        None => browse(args, session).await?,
    };
    let is_empty = found.messages.is_empty();
    if is_empty && !session.out.is_json() && !found.is_stopped {
        return Err(Failure::new(Exit::Empty, format!("no such message in {}", args.queue)));
    }
    let stopped = found.is_stopped.then(|| found.stopped());
    if !is_empty || session.out.is_json() {
        session.out.answer(&json!({ "messages": found.messages }), |answer| table(&answer["messages"]))?;
    }
    match stopped {
        Some(failure) => Err(failure),
        None if is_empty => Ok(Exit::Empty),
        None => Ok(Exit::Done),
    }
}

async fn browse(args: &PeekArgs, session: &Session) -> Result<Found, Failure> {
    let order = match args.order {
        Order::Dispatch => "dispatch",
        Order::Published => "published",
        Order::Newest => "newest",
    };
    let (mut found, mut cursor) = (Found::default(), None::<String>);
    let (mut ending, bar) = (Ending::listen()?, LookBar::of_look(session));
    loop {
        let left = args.limit - found.messages.len() as u64;
        let mut pairs = args.filter.query()?;
        pairs.push(("order".to_owned(), order.to_owned()));
        pairs.push(("limit".to_owned(), left.min(PAGE).to_string()));
        pairs.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
        let asked = path(&["v1", "queues", &args.queue, "messages"]) + &query(&pairs);
        let mut page = tokio::select! {
            page = session.client.get(&asked) => page?,
            () = ending.wait() => {
                found.is_stopped = true;
                return Ok(found);
            }
        };
        found.add(&mut page);
        cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
        if cursor.is_none() || found.messages.len() as u64 >= args.limit {
            return Ok(found);
        }
        bar.show_found(found.looked_at, found.in_queue, found.messages.len() as u64);
    }
}

impl Found {
    fn add(&mut self, page: &mut Value) {
        if let Value::Array(more) = page["messages"].take() {
            self.messages.extend(more);
        }
        // A broker of an earlier version does not say how far it came.
        let [looked_at, in_queue] = ["looked_at", "in_queue"].map(|key| page[key].as_u64().unwrap_or(0));
        self.looked_at += looked_at;
        // Some are looked at twice: those that come again on another page.
        self.in_queue = in_queue.max(self.looked_at);
    }

    fn stopped(&self) -> Failure {
        if self.in_queue == 0 {
            return Failure::new(Exit::Error, "stopped before the first page came");
        }
        let found = count(self.messages.len() as u64, "message");
        let come = format!("{} of {} looked at", number(self.looked_at), number(self.in_queue));
        Failure::new(Exit::Error, format!("stopped: {come}, {found} found"))
    }
}

fn table(messages: &Value) -> String {
    // Mostly nothing is leased, and the line is long enough.
    let is_held = messages.as_array().into_iter().flatten().any(|message| message["holder"].is_object());
    let mut columns = vec![
        ("ID", Side::Left),
        ("PRIORITY", Side::Left),
        ("LANE", Side::Left),
        ("STATUS", Side::Left),
        ("PUBLISHED", Side::Left),
        ("LEASED", Side::Right),
        ("BYTES", Side::Right),
        ("KEY", Side::Left),
    ];
    if is_held {
        columns.push(("HOLDER", Side::Left));
    }
    columns.push(("BODY", Side::Left));
    let mut table = Table::new(&columns);
    for message in messages.as_array().into_iter().flatten() {
        let keys = ["id", "priority", "lane", "status", "published_at", "delivery_count", "bytes", "key"];
        let mut row: Vec<String> = keys.iter().map(|key| text(&message[*key])).collect();
        row[3] = holder::status(message);
        if is_held {
            row.push(holder::text(&message["holder"]));
        }
        let body = body::of(message).unwrap_or_default();
        row.push(one_line(&String::from_utf8_lossy(&body), BODY_CHARS));
        table.row(row);
    }
    table.text()
}

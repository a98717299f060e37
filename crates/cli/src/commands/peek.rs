//! `overtake peek`

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::{path, query};
use crate::body;
use crate::failure::{Exit, Failure};
use crate::holder;
use crate::selection::FilterArgs;
use crate::table::{Side, Table, one_line};
use crate::words;

/// Most messages of one page.
const PAGE: u64 = 500;
/// Characters of a body that a table shows.
const BODY_CHARS: usize = 60;

/// Look at messages and leave them where they are.
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

/// Browses page by page.
pub(crate) async fn run(args: &PeekArgs, session: &Session) -> Ended {
    let messages = match &args.id {
        Some(id) => vec![session.client.get(&path(&["v1", "queues", &args.queue, "messages", id])).await?],
        None => browse(args, session).await?,
    };
    if messages.is_empty() && !session.out.is_json() {
        return Err(Failure::new(Exit::Empty, format!("no such message in {}", args.queue)));
    }
    let exit = if messages.is_empty() { Exit::Empty } else { Exit::Done };
    session.out.answer(&json!({ "messages": messages }), |answer| table(&answer["messages"]))?;
    Ok(exit)
}

async fn browse(args: &PeekArgs, session: &Session) -> Result<Vec<Value>, Failure> {
    let order = match args.order {
        Order::Dispatch => "dispatch",
        Order::Published => "published",
        Order::Newest => "newest",
    };
    let (mut messages, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let left = args.limit - messages.len() as u64;
        let mut pairs = args.filter.query()?;
        pairs.push(("order".to_owned(), order.to_owned()));
        pairs.push(("limit".to_owned(), left.min(PAGE).to_string()));
        pairs.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
        let mut page =
            session.client.get(&(path(&["v1", "queues", &args.queue, "messages"]) + &query(&pairs))).await?;
        if let Value::Array(more) = page["messages"].take() {
            messages.extend(more);
        }
        cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
        if cursor.is_none() || messages.len() as u64 >= args.limit {
            return Ok(messages);
        }
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

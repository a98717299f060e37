//! One session: publishes one by one, of which so many are unconfirmed; one consumer that acknowledges what it gets.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use overtake_engine::core::Request;
use overtake_engine::{
    Ask, ConsumeRequest, Content, Engine, Event, LocalEngine, NewMessage, Session, Target,
};
use overtake_lane::{Command, Given, Outcome, Receipt, Settings};
use overtake_properties::Properties;

use super::{BODY_LEN, QUEUE};
use crate::Plan;
use crate::reference::Dice;
use crate::report::Row;

/// Most publishes asked at once: about what one read from a socket brings.
const BATCH: usize = 128;
const UNCONFIRMED: usize = 1_000;

pub(super) async fn run(dir: &Path, plan: Plan) -> Vec<Row> {
    let engine = LocalEngine::open(dir).expect("a new store");
    engine.declare_queue(QUEUE, Settings::default()).await.expect("a new queue");
    let messages = plan.times(1_000_000);
    let mut rows = Vec::new();
    for window in [100, 1] {
        let count = if window == 1 { messages / 10 } else { messages };
        let start = Instant::now();
        publish(engine.session(), count, &Properties::default()).await;
        let what = format!("session: publish, durable: 1 by 1, {UNCONFIRMED} unconfirmed");
        rows.push(Row::new(what, "messages", count, start.elapsed()));
        let start = Instant::now();
        consume(engine.session(), window, count).await;
        let what = format!("session: consume + ack, window {window}");
        rows.push(Row::new(what, "messages", count, start.elapsed()));
    }
    // The second fill is only there to be consumed.
    rows.remove(2);
    engine.close();
    rows
}

/// All with the same properties.
pub(super) async fn publish(mut session: Session, messages: usize, properties: &Properties) {
    let mut dice = Dice::new();
    let body = Bytes::from(vec![7_u8; BODY_LEN]);
    let queue: Arc<str> = Arc::from(QUEUE);
    let (mut asked, mut confirmed) = (0, 0);
    while confirmed < messages {
        let room = (UNCONFIRMED - (asked - confirmed)).min(messages - asked).min(BATCH);
        let ask = |token| Ask {
            token: Some(token as u64),
            request: Request::PublishOne(Box::new(NewMessage {
                to: Target::Queue(Arc::clone(&queue)),
                priority: Given::Number(dice.roll(10) as i64),
                content: Content { body: body.clone(), properties: properties.clone(), ..Content::default() },
                ..NewMessage::default()
            })),
        };
        if room > 0 {
            let batch = (asked..asked + room).map(ask).collect();
            session.asks.ask(batch).await;
            asked += room;
            // The other threads have a turn on a machine of few cores.
            tokio::task::yield_now().await;
        }
        if asked - confirmed == UNCONFIRMED || asked == messages {
            confirmed += confirms(session.events.next().await.expect("the engine runs"), confirmed);
        }
    }
}

/// How many there are. They come in the order in which they were asked.
fn confirms(events: Vec<Event>, next: usize) -> usize {
    for (at, event) in events.iter().enumerate() {
        let Event::Answer { token, result } = event else { panic!("only publishes are asked") };
        assert!(*token == (next + at) as u64 && result.is_ok(), "there is room, and answers come in order");
    }
    events.len()
}

pub(super) async fn consume(mut session: Session, window: u32, messages: usize) {
    let consume = ConsumeRequest { window: Some(window), ..ConsumeRequest::new(QUEUE.into()) };
    let request = Request::Consume { consumer: session.asks.next_consumer(), consume };
    session.asks.ask(vec![Ask { token: Some(0), request }]).await;
    let mut consumed = 0;
    while consumed < messages {
        let events = session.events.next().await.expect("the engine runs");
        let receipts: Vec<Receipt> = events.iter().filter_map(receipt).collect();
        consumed += receipts.len();
        if !receipts.is_empty() {
            let request = Request::Do(Command::Settle { receipts, outcome: Outcome::Ack });
            session.asks.ask(vec![Ask { token: None, request }]).await;
        }
    }
}

fn receipt(event: &Event) -> Option<Receipt> {
    if let Event::Deliver { message, .. } = event { Some(message.receipt) } else { None }
}

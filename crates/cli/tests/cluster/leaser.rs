//! Leases over HTTP, from one queue after the other, and settles what it has of the one before; at any broker, since a receipt is good at all of them. Now and then it lets the time
//! of a lease go by.

use std::io::Result;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::history::{Event, Holder};
use crate::stage::{Dice, QUEUES, Stage, queue};
use crate::wire::named;

/// Messages that are asked for at once.
const MOST: u32 = 4;
/// How long a lease lasts, milliseconds.
const LEASE_MS: u64 = 5_000;
/// Of so many batches one is forgotten.
const FORGETS_ONE_OF: u64 = 200;

/// What was leased together.
struct Batch {
    queue: String,
    receipts: Vec<String>,
    holders: Vec<Holder>,
}

/// Until all is over.
pub(crate) fn lease(stage: &Stage, number: u64) {
    let mut dice = Dice::new(200 + number);
    let mut before: Option<Batch> = None;
    let mut queues = (0..QUEUES).cycle();
    while !stage.is_over() || before.is_some() {
        let number = queues.next().expect("it goes round");
        let batch = if stage.is_over() { Ok(None) } else { lease_at(stage, &mut dice, &queue(number)) };
        if let Some(before) = before.take().filter(|_| dice.below(FORGETS_ONE_OF) > 0) {
            // What is not settled comes again.
            let _ = settle(stage, &mut dice, &before);
        }
        match batch {
            Ok(batch) => before = batch,
            Err(_) => stage.rest(),
        }
    }
}

fn any(stage: &Stage, dice: &mut Dice) -> usize {
    usize::try_from(dice.below(stage.brokers.len() as u64)).expect("there are few")
}

fn lease_at(stage: &Stage, dice: &mut Dice, queue: &str) -> Result<Option<Batch>> {
    let broker = any(stage, dice);
    let ask = json!({ "max": MOST, "wait_ms": 5, "visibility_timeout_ms": LEASE_MS });
    let path = format!("/v1/queues/{queue}/leases");
    let reply = stage.brokers[broker].ask("POST", &path, &ask)?;
    let leased = reply.json["messages"].as_array().cloned().unwrap_or_default();
    if leased.is_empty() {
        return Ok(None);
    }
    let text = |message: &Value, what: &str| message[what].as_str().expect("a text").to_owned();
    let deliver = |message: &Value| {
        let named = named(text(message, "body").as_bytes());
        // It may have been leased for whoever asked before, and is that much older.
        let over: Timestamp = text(message, "deadline").parse().expect("a time");
        let left = over.as_microsecond() - Timestamp::now().as_microsecond();
        let over_us = stage.book.now_us().saturating_add_signed(left);
        stage.book.deliver(named, broker, Some(over_us))
    };
    let receipts = leased.iter().map(|message| text(message, "receipt")).collect();
    let holders = leased.iter().map(deliver).collect();
    Ok(Some(Batch { queue: queue.to_owned(), receipts, holders }))
}

fn settle(stage: &Stage, dice: &mut Dice, batch: &Batch) -> Result<()> {
    for holder in &batch.holders {
        stage.book.write(Event::SettleAsked { holder: *holder });
    }
    let path = format!("/v1/queues/{}/settle", batch.queue);
    let ask = json!({ "receipts": batch.receipts, "how": "ack" });
    let reply = stage.brokers[any(stage, dice)].ask("POST", &path, &ask)?;
    let results = reply.json["results"].as_array().cloned().unwrap_or_default();
    for (holder, result) in batch.holders.iter().zip(results) {
        if result["ok"] == true {
            stage.book.write(Event::Settled { holder: *holder });
        }
    }
    Ok(())
}

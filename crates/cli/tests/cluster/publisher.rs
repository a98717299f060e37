//! Publishes messages until all are confirmed, at whichever broker there is.
//!
//! What is not confirmed is published again, by another broker if need be. Each message has its number, by which the broker takes it once, whatever has become of it.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Result};
use std::time::{Duration, Instant};

use overtake_properties::{Fields, Properties, Short, TableBuilder, Value};

use crate::history::{Event, Message};
use crate::stage::{Dice, LEVELS, Stage, queue, queue_of};
use crate::wire::{Heard, Wire, body};

/// Bytes of a body.
const BODY_LEN: usize = 256;
/// Publishers.
pub(crate) const PUBLISHERS: u32 = 4;
/// Publishes of one that may be unconfirmed.
const WINDOW: usize = 256;
/// Who hears nothing for so long goes to another broker.
const PATIENCE: Duration = Duration::from_secs(5);

/// Publishes every message whose turn is this publisher's.
pub(crate) fn publish(stage: &Stage, number: u32) {
    let dice = Dice::new(u64::from(number) + 1);
    let mut publisher = Publisher { stage, number, dice, next: number, open: BTreeMap::new() };
    while !publisher.is_done() {
        let brokers = stage.brokers.len() as u64;
        let broker = usize::try_from(publisher.dice.below(brokers)).expect("there are few");
        if publisher.publish_at(broker).is_err() {
            stage.rest();
        }
    }
}

struct Publisher<'s> {
    stage: &'s Stage,
    number: u32,
    dice: Dice,
    next: u32,
    /// What is not confirmed, and how urgent it is.
    open: BTreeMap<Message, u8>,
}

impl Publisher<'_> {
    fn is_done(&self) -> bool {
        self.open.is_empty() && self.next >= self.stage.messages()
    }

    /// The next message that may be published by now.
    fn take(&mut self) -> Option<Message> {
        if self.next >= self.stage.released() {
            return None;
        }
        let message = Message(self.next);
        self.next += PUBLISHERS;
        let level = u8::try_from(self.dice.below(LEVELS.into())).expect("there are few");
        self.open.insert(message, level);
        Some(message)
    }

    /// Until all is confirmed, or the connection is gone.
    fn publish_at(&mut self, broker: usize) -> Result<()> {
        let mut wire = Wire::open(self.stage.brokers[broker].connect()?)?;
        wire.confirm();
        let mut flights = Flights { numbers: 0, open: BTreeMap::new() };
        let open: Vec<_> = self.open.keys().copied().collect();
        for message in open {
            self.send(&mut wire, &mut flights, message);
        }
        let mut heard_at = Instant::now();
        while !self.is_done() {
            while flights.open.len() < WINDOW {
                let Some(message) = self.take() else { break };
                self.send(&mut wire, &mut flights, message);
            }
            for heard in wire.exchange()? {
                heard_at = Instant::now();
                match heard {
                    Heard::Confirmed { tag, multiple } => {
                        for message in flights.end(tag, multiple) {
                            if self.open.remove(&message).is_some() {
                                self.stage.book.write(Event::Confirmed { message });
                            }
                        }
                    }
                    Heard::Refused { tag, multiple } => {
                        for message in flights.end(tag, multiple) {
                            self.send(&mut wire, &mut flights, message);
                        }
                    }
                    other => panic!("nobody asked for {other:?}"),
                }
            }
            if flights.open.is_empty() {
                heard_at = Instant::now();
            } else if heard_at.elapsed() > PATIENCE {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    fn send(&self, wire: &mut Wire, flights: &mut Flights, message: Message) {
        let (level, number) = (self.open[&message], queue_of(message.0));
        self.stage.book.write(Event::Published { message, queue: number, level });
        let properties = self.properties(message, level);
        wire.publish(&queue(number), properties.view(), &body(message, BODY_LEN));
        flights.begin(message);
    }

    fn properties(&self, message: Message, level: u8) -> Properties {
        let (id, producer) = (format!("m{}", message.0), format!("publisher-{}", self.number));
        let headers = TableBuilder::new()
            .entry(Short::literal("x-overtake-id"), Value::String(id.as_bytes()))
            .entry(Short::literal("x-overtake-producer"), Value::String(producer.as_bytes()))
            .entry(Short::literal("x-overtake-sequence"), Value::I64(message.0.into()));
        let fields = Fields {
            headers: Some(headers.view()),
            delivery_mode: Some(2),
            priority: Some(level),
            ..Fields::default()
        };
        fields.encode()
    }
}

/// What was published over one connection and is not told.
struct Flights {
    numbers: u64,
    open: BTreeMap<u64, Message>,
}

impl Flights {
    /// Publishes of a channel are counted from 1.
    fn begin(&mut self, message: Message) {
        self.numbers += 1;
        self.open.insert(self.numbers, message);
    }

    /// What is told.
    fn end(&mut self, tag: u64, multiple: bool) -> Vec<Message> {
        if !multiple {
            return self.open.remove(&tag).into_iter().collect();
        }
        let later = self.open.split_off(&(tag + 1));
        std::mem::replace(&mut self.open, later).into_values().collect()
    }
}

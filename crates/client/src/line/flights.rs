//! What was published and is not told: on its way, or waiting for a connection.
//!
//! A server that refuses a publish closes the channel and does not say which one it was. So whatever was on its way then goes again one by one,
//! until one is refused alone.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use bytes::Bytes;
use overtake_amqp::client::{Client, Unsent};
use overtake_amqp::method::basic;
use overtake_properties::{Properties, Short, TableRef, Value};
use tokio::sync::oneshot;

use crate::error::Error;

/// Whose numbers, and which message of theirs it is, and below which there come no more (`docs/amqp.md`).
const ORIGIN: [Short<'static>; 3] = [
    Short::literal("x-overtake-producer"),
    Short::literal("x-overtake-sequence"),
    Short::literal("x-overtake-floor"),
];

/// A message that is published.
pub(crate) struct Flight {
    pub(crate) exchange: Box<str>,
    pub(crate) routing_key: Box<str>,
    pub(crate) mandatory: bool,
    pub(crate) properties: Properties,
    pub(crate) body: Bytes,
    pub(crate) told: oneshot::Sender<Result<(), Error>>,
}

/// The numbers of a producer, by which a broker takes what is published again once.
pub(crate) struct Numbers {
    /// The name of the producer; nobody else has it.
    pub(crate) producer: String,
}

struct Numbered {
    sequence: u64,
    /// Why no queue gets it.
    returned: Option<String>,
    flight: Flight,
}

/// What is not told.
#[derive(Default)]
pub(super) struct Flights {
    /// On their way, in the order in which the server counts them from `first` on; `None`: told.
    sent: VecDeque<Option<Numbered>>,
    first: u64,
    waiting: VecDeque<Numbered>,
    /// One by one.
    is_careful: bool,
    numbers: Option<Numbers>,
    next_sequence: u64,
    /// Told since [`Flights::take_room`].
    told: usize,
}

impl Flights {
    pub(super) fn new(numbers: Option<Numbers>) -> Self {
        Self { numbers, first: 1, ..Self::default() }
    }

    /// Takes a message in. It goes with [`Flights::go`].
    pub(super) fn take(&mut self, flight: Flight) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.waiting.push_back(Numbered { sequence, returned: None, flight });
    }

    /// Sends what waits, as far as the connection takes it.
    pub(super) fn go(&mut self, amqp: &mut Client, channel: u16) {
        while !amqp.is_blocked() && (!self.is_careful || self.sent.is_empty()) {
            let Some(next) = self.waiting.pop_front() else { break };
            match self.put_out(amqp, channel, &next) {
                Ok(()) => self.sent.push_back(Some(next)),
                Err(Unsent::TooLarge { len }) => {
                    self.tell(
                        next,
                        Err(Error::Invalid(format!(
                            "the headers of a message are too long: {len} bytes fit no frame"
                        ))),
                    );
                }
                Err(_) => return self.waiting.push_front(next),
            }
        }
        self.is_careful &= !self.is_empty();
    }

    fn put_out(&self, amqp: &mut Client, channel: u16, next: &Numbered) -> Result<(), Unsent> {
        let Flight { exchange, routing_key, mandatory, properties, body, .. } = &next.flight;
        let publish = basic::Publish {
            exchange: Short::new(exchange.as_bytes()).expect("it was checked"),
            routing_key: Short::new(routing_key.as_bytes()).expect("it was checked"),
            mandatory: *mandatory,
            ..Default::default()
        };
        let numbered = self.numbers.as_ref().map(|numbers| self.with_numbers(numbers, next));
        let properties = numbered.as_ref().unwrap_or(properties);
        amqp.publish(channel, publish, properties.view(), body).map(drop)
    }

    fn with_numbers(&self, numbers: &Numbers, next: &Numbered) -> Properties {
        let number = |number: u64| Value::I64(i64::try_from(number).unwrap_or(i64::MAX));
        let oldest = self.sent.iter().flatten().next().map_or(next.sequence, |oldest| oldest.sequence);
        let said = next.flight.properties.view();
        let [producer, sequence, floor] = ORIGIN;
        let headers = said.headers().unwrap_or(TableRef::EMPTY);
        let headers = headers.with(producer, Value::from(&numbers.producer));
        let headers = headers.view().with(sequence, number(next.sequence));
        let headers = headers.view().with(floor, number(oldest.min(next.sequence)));
        said.with_headers(Some(headers.view()))
    }

    // ---- what is heard ----

    /// No queue gets this one. Its confirm follows.
    pub(super) fn returned(&mut self, tag: u64, why: String) {
        let at = tag.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        if let Some(Some(one)) = at.and_then(|at| self.sent.get_mut(at)) {
            one.returned = Some(why);
        }
    }

    /// These are told.
    pub(super) fn confirmed(&mut self, tags: RangeInclusive<u64>, is_accepted: bool) {
        for tag in tags {
            let at = tag.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
            let Some(mut one) = at.and_then(|at| self.sent.get_mut(at)).and_then(Option::take) else {
                continue;
            };
            let result = match (is_accepted, one.returned.take()) {
                (false, _) => Err(Error::NotConfirmed),
                (true, Some(why)) => Err(Error::Unroutable(why)),
                (true, None) => Ok(()),
            };
            self.tell(one, result);
        }
        while let Some(None) = self.sent.front() {
            self.sent.pop_front();
            self.first += 1;
        }
    }

    /// The channel is gone, and with it the server's count. What was on its way waits again, ahead of the rest.
    pub(super) fn lost(&mut self) {
        for mut one in std::mem::take(&mut self.sent).into_iter().flatten().rev() {
            one.returned = None;
            self.waiting.push_front(one);
        }
        self.first = 1;
    }

    /// The server has closed the channel because of one that was on its way.
    pub(super) fn refused(&mut self, code: u16, text: &str) {
        let mut on_their_way = self.sent.iter_mut().filter(|one| one.is_some());
        if let (Some(only), None) = (on_their_way.next(), on_their_way.next()) {
            let culprit = only.take().expect("it was there");
            self.tell(culprit, Err(Error::Refused { code, text: text.to_owned() }));
            self.is_careful = false;
        } else {
            self.is_careful = true;
        }
        self.lost();
    }

    /// Nothing of it will ever be known.
    pub(super) fn give_up(&mut self, why: &Error) {
        self.lost();
        for one in std::mem::take(&mut self.waiting) {
            self.tell(one, Err(why.clone()));
        }
    }

    fn tell(&mut self, one: Numbered, result: Result<(), Error>) {
        self.told += 1;
        // Who does not listen any more does not want to know.
        let _ = one.flight.told.send(result);
    }

    /// How many were told since the last time.
    pub(super) fn take_room(&mut self) -> usize {
        std::mem::take(&mut self.told)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.waiting.is_empty()
    }
}

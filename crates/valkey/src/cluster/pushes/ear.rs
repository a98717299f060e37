//! A connection to a node on which channels are heard, until it is lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use overtake_peer::redis::{Fault, Line};
use redis::{Value, cmd};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::super::map::Place;
use super::super::roads::{Roads, lock};

/// What an ear hears, with the ear's number.
pub(super) struct Event {
    pub(super) ear: u64,
    pub(super) what: What,
}

pub(super) enum What {
    /// The channel is heard from here on.
    Live(Bytes),
    Message(Bytes, Bytes),
    /// The server ended it: the slot goes elsewhere.
    Off(Bytes),
    Refused(Bytes, Fault),
    /// The connection, and why.
    Lost(String),
}

/// What to do next, in this order.
#[derive(Default)]
pub(super) struct Orders {
    waiting: Mutex<VecDeque<Order>>,
    given: Notify,
}

pub(super) enum Order {
    Hear(Bytes),
    Leave(Bytes),
}

impl Orders {
    /// Never waits: there are as many as channels, twice.
    pub(super) fn give(&self, order: Order) {
        lock(&self.waiting).push_back(order);
        self.given.notify_one();
    }
}

pub(super) struct Ear {
    pub(super) number: u64,
    pub(super) place: Place,
    pub(super) orders: Arc<Orders>,
    pub(super) events: mpsc::Sender<Event>,
}

impl Ear {
    pub(super) async fn run(self, roads: Arc<Roads>) {
        let why = self.hear(&roads).await;
        self.tell(What::Lost(why)).await;
    }

    async fn tell(&self, what: What) {
        // Nobody listens any more where the cluster is closed.
        let _ = self.events.send(Event { ear: self.number, what }).await;
    }

    /// Why it is lost.
    async fn hear(&self, roads: &Roads) -> String {
        let patience = roads.nodes.patience;
        let connected = match roads.server(&self.place) {
            Ok(server) => timeout(patience.connect(), server.line()).await,
            Err(why) => return why,
        };
        let Line { mut answers, mut commands } = match connected {
            Ok(Ok(line)) => line,
            Ok(Err(why)) => return why,
            Err(_) => return format!("{} does not answer within {} ms", self.place, patience.connect_ms),
        };
        let mut asked = VecDeque::new();
        let (mut out, mut written, mut is_flushed) = (Vec::new(), 0, true);
        // Two of them without a word in between, and it is lost.
        let mut pings = interval_at(Instant::now() + patience.answer() / 2, patience.answer() / 2);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_silent = false;
        loop {
            if is_flushed {
                out.clear();
                (written, is_flushed) = (0, !self.write_orders(&mut out, &mut asked));
            }
            tokio::select! {
                answer = answers.next() => {
                    is_silent = false;
                    match answer {
                        Ok(answer) => self.heard(answer, &mut asked).await,
                        Err(why) => return why,
                    }
                }
                wrote = commands.write(&out[written..]), if !is_flushed => match wrote {
                    Ok(len) => {
                        is_flushed = written == out.len();
                        written += len;
                    }
                    Err(why) => return why,
                },
                () = self.orders.given.notified(), if is_flushed => {}
                _ = pings.tick() => {
                    if is_silent {
                        return format!("{} does not answer within {} ms", self.place, patience.answer_ms);
                    }
                    is_silent = true;
                    cmd("PING").write_packed_command(&mut out);
                    is_flushed = false;
                }
            }
        }
    }

    /// Whether there is something.
    fn write_orders(&self, out: &mut Vec<u8>, asked: &mut VecDeque<Bytes>) -> bool {
        for order in lock(&self.orders.waiting).drain(..) {
            match order {
                Order::Hear(channel) => {
                    cmd("SSUBSCRIBE").arg(&channel[..]).write_packed_command(out);
                    asked.push_back(channel);
                }
                Order::Leave(channel) => cmd("SUNSUBSCRIBE").arg(&channel[..]).write_packed_command(out),
            }
        }
        !out.is_empty()
    }

    async fn heard(&self, answer: Result<Value, Fault>, asked: &mut VecDeque<Bytes>) {
        match answer {
            // Only a subscription is refused, and answers keep the order of what is asked.
            Err(fault) => {
                if let Some(channel) = asked.pop_front() {
                    self.tell(What::Refused(channel, fault)).await;
                }
            }
            Ok(answer) => match pushed(answer) {
                Some((kind, channel, _)) if kind == b"ssubscribe" => {
                    if asked.front() == Some(&channel) {
                        asked.pop_front();
                    }
                    self.tell(What::Live(channel)).await;
                }
                Some((kind, channel, Some(message))) if kind == b"smessage" => {
                    self.tell(What::Message(channel, message)).await;
                }
                Some((kind, channel, _)) if kind == b"sunsubscribe" => self.tell(What::Off(channel)).await,
                _ => {}
            },
        }
    }
}

/// What kind of word it is, the channel, and what was said there.
fn pushed(answer: Value) -> Option<(Vec<u8>, Bytes, Option<Bytes>)> {
    let Value::Array(parts) = answer else { return None };
    let mut parts = parts.into_iter().map(|part| match part {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    });
    let (kind, channel) = (parts.next()??, parts.next()??);
    Some((kind, channel.into(), parts.next().flatten().map(Bytes::from)))
}

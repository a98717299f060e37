//! JetStream's protocol, messages of NATS that carry JSON: <https://docs.nats.io/reference/reference-protocols/nats_api_reference>.
//!
//! JetStream has no priorities, so a queue is what its users make of it: a stream that drops what is acknowledged, with a subject
//! and a durable pull consumer for each level. A taker asks one consumer after the other, the most urgent first, for as many
//! messages as there are, and begins again with the most urgent once it has all that its prefetch allows.
//!
//! Where no consumer has any, the taker sleeps for 1 ms. A request with a deadline would be better, but 2.9.10 may drop one that
//! expires while it is served, and sends no status for it.

mod said;

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::confirms::Confirms;
use super::line::{Line, number};
use super::{Delivery, Source, Taker};
use crate::amqp::LEVELS;
use said::{Said, said, words};

/// A message that is not acknowledged for so long is delivered again, ns: an hour, longer than any run.
const ACK_WAIT_NS: u64 = 3_600_000_000_000;
/// Between two rounds in which no consumer had a message.
const NAP: Duration = Duration::from_millis(1);

/// A connection, and the subject under which answers come to it.
struct Client {
    wire: Line,
    inbox: String,
}

impl Client {
    fn open(address: SocketAddr) -> Result<Self> {
        let mut wire = Line::open(address)?;
        let inbox = format!("_INBOX.{}", wire.socket.local_addr()?.port());
        let options = json!({"verbose": false, "pedantic": false, "headers": true, "no_responders": true});
        wire.say(format_args!("CONNECT {options}\r\nSUB {inbox}.* 1"));
        Ok(Self { wire, inbox })
    }

    /// Appends a message. Its answer comes to the inbox under this number.
    fn publish(&mut self, subject: std::fmt::Arguments<'_>, number: u64, body: &[u8]) {
        self.wire.say(format_args!("PUB {subject} {}.{number} {}", self.inbox, body.len()));
        self.wire.body(body);
    }

    /// Calls JetStream and waits for its answer.
    fn call(&mut self, method: &str, what: &Value) -> Result<Value> {
        self.publish(format_args!("$JS.API.{method}"), 0, what.to_string().as_bytes());
        let answer = |bytes: &[u8]| {
            let Some((said, len)) = said(bytes)? else { return Ok(None) };
            let answer = match said {
                Said::Message { body, .. } => Some(serde_json::from_slice::<Value>(body)?),
                Said::Status(status) => bail!("{method}: NATS says {}", status.escape_ascii()),
                Said::Ping | Said::Pong | Said::Nothing => None,
            };
            Ok(Some((answer, len)))
        };
        loop {
            if let Some(answer) = self.wire.answer(answer)? {
                ensure!(answer["error"].is_null(), "{method}: NATS says {}", answer["error"]);
                return Ok(answer);
            }
        }
    }
}

/// Creates the stream and its consumers.
pub(crate) fn declare(address: SocketAddr, queue: &str) -> Result<()> {
    let mut client = Client::open(address)?;
    let subjects = [format!("{queue}.*")];
    let stream = json!({"name": queue, "subjects": subjects, "retention": "workqueue", "storage": "file"});
    client.call(&format!("STREAM.CREATE.{queue}"), &stream)?;
    for level in 0..LEVELS {
        let config = json!({
            "durable_name": level.to_string(),
            "filter_subject": format!("{queue}.{level}"),
            "ack_policy": "explicit",
            "ack_wait": ACK_WAIT_NS,
        });
        let consumer = json!({"stream_name": queue, "config": config});
        client.call(&format!("CONSUMER.DURABLE.CREATE.{queue}.{level}"), &consumer)?;
    }
    Ok(())
}

/// Messages in the stream, delivered or not.
pub(crate) fn depth(address: SocketAddr, queue: &str) -> Result<u64> {
    let info = Client::open(address)?.call(&format!("STREAM.INFO.{queue}"), &Value::Null)?;
    info["state"]["messages"].as_u64().context("a count is missing")
}

/// Publishes; JetStream confirms each message once it is stored.
pub(crate) struct Publisher {
    client: Client,
    queue: String,
    confirms: Confirms,
}

impl Publisher {
    pub(crate) fn open(address: SocketAddr, queue: &str) -> Result<Self> {
        Ok(Self { client: Client::open(address)?, queue: queue.to_owned(), confirms: Confirms::default() })
    }
}

impl Source for Publisher {
    fn put(&mut self, level: u8, body: &[u8]) -> u64 {
        let number = self.confirms.published();
        self.client.publish(format_args!("{}.{level}", self.queue), number, body);
        number
    }

    fn flush(&mut self) -> Result<()> {
        self.client.wire.flush()
    }

    fn hear(&mut self, confirmed: &mut dyn FnMut(u64)) -> Result<()> {
        let wire = &mut self.client.wire;
        wire.input.fill(&mut wire.socket)?;
        while let Some((said, len)) = said(wire.input.unread())? {
            match said {
                Said::Message { subject, body, .. } if body.starts_with(br#"{"stream":"#) => {
                    self.confirms.ack(number(words(subject).next_back())? + 1, false, confirmed)?;
                }
                Said::Ping => wire.say(format_args!("PONG")),
                Said::Pong | Said::Nothing => {}
                said => bail!("NATS does not confirm: {said:?}"),
            }
            wire.input.consume(len);
        }
        Ok(())
    }

    fn socket(&self) -> &TcpStream {
        &self.client.wire.socket
    }
}

/// Asks the consumers of a stream in turn, one at a time.
pub(crate) struct Puller {
    client: Client,
    queue: String,
    /// Messages that may still be asked for.
    expected: u64,
    /// Messages that may be delivered before any is acknowledged.
    free: u64,
    /// Messages that the request under way may still bring; 0 where there is no request.
    asked: u64,
    /// The level of the consumer that is asked now, or next.
    level: u8,
    /// Consumers in a row that had no more messages.
    in_vain: u8,
    taken: u64,
    /// Subjects of the acknowledgements, by tag.
    acks: HashMap<u64, String>,
}

impl Puller {
    pub(crate) fn open(address: SocketAddr, queue: &str, prefetch: u16) -> Result<Self> {
        Ok(Self {
            client: Client::open(address)?,
            queue: queue.to_owned(),
            expected: 0,
            free: prefetch.into(),
            asked: 0,
            level: LEVELS - 1,
            in_vain: 0,
            taken: 0,
            acks: HashMap::new(),
        })
    }

    /// Asks the next consumer for as many as the prefetch allows, unless a request is under way.
    fn pull(&mut self) {
        let batch = self.free.min(self.expected);
        if self.asked > 0 || batch == 0 {
            return;
        }
        if self.in_vain >= LEVELS {
            std::thread::sleep(NAP);
            self.in_vain = 0;
        }
        let subject = format_args!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", self.queue, self.level);
        let how = format!(r#"{{"batch":{batch},"no_wait":true}}"#);
        self.client.publish(subject, 0, how.as_bytes());
        self.asked = batch;
    }
}

impl Taker for Puller {
    fn take(&mut self, each: &mut dyn FnMut(Delivery<'_>)) -> Result<()> {
        let Line { socket, input, out } = &mut self.client.wire;
        input.fill(socket)?;
        let (bytes, mut at) = (input.unread(), 0);
        while let Some((said, len)) = said(&bytes[at..])? {
            at += len;
            match said {
                Said::Message { subject, reply, body } => {
                    // $JS.ACK.STREAM.CONSUMER.DELIVERED and more.
                    let redelivered = words(reply).nth(4) != Some(b"1");
                    let level = number(words(subject).next_back())? as u8;
                    each(Delivery {
                        tag: self.taken,
                        level: Some(level),
                        redelivered,
                        body,
                        ..Delivery::default()
                    });
                    self.acks.insert(self.taken, String::from_utf8(reply.to_vec())?);
                    self.taken += 1;
                    self.free -= 1;
                    self.expected -= 1;
                    self.asked -= 1;
                    self.in_vain = 0;
                    if self.asked == 0 {
                        self.level = LEVELS - 1;
                    }
                }
                // The consumer has no messages, or no more, or another taker has asked for them.
                Said::Status(status) if matches!(status.get(..3), Some(b"404" | b"408")) => {
                    self.asked = 0;
                    self.in_vain += 1;
                    self.level = self.level.checked_sub(1).unwrap_or(LEVELS - 1);
                }
                Said::Status(status) => bail!("NATS says {}", status.escape_ascii()),
                Said::Ping => out.extend_from_slice(b"PONG\r\n"),
                Said::Pong | Said::Nothing => {}
            }
        }
        input.consume(at);
        Ok(())
    }

    fn ack(&mut self, tag: u64) {
        let subject = self.acks.remove(&tag).expect("a message is acknowledged once");
        self.client.wire.say(format_args!("PUB {subject} 0\r\n"));
        self.free += 1;
    }

    fn flush(&mut self) -> Result<()> {
        // Acknowledgements do not wait for a nap.
        self.client.wire.flush()?;
        self.pull();
        self.client.wire.flush()
    }

    fn expect(&mut self, more: u64) {
        self.expected = self.expected.saturating_add(more);
    }

    fn holds_part(&self) -> bool {
        !self.client.wire.input.unread().is_empty()
    }

    /// The server answers no acknowledgement, but reads a connection in order: it has heard all before it answers `PING`.
    fn close(mut self: Box<Self>) -> Result<()> {
        self.client.wire.say(format_args!("PING"));
        let is_pong = |bytes: &[u8]| Ok(said(bytes)?.map(|(said, len)| (said == Said::Pong, len)));
        while !self.client.wire.answer(is_pong)? {}
        Ok(())
    }

    fn socket(&self) -> &TcpStream {
        &self.client.wire.socket
    }
}

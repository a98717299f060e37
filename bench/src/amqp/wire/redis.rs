//! Redis's protocol, RESP 2, <https://redis.io/docs/latest/develop/reference/protocol-spec/>, and the queue with priorities that its
//! users write with it: a sorted set of ready messages by level and number, a sorted set of leased ones by deadline, a hash of
//! bodies, and scripts. Requeueing expired leases is another process's work, and left out.
//!
//! A worker that finds nothing waits on a list (`BLPOP`), to which a put pushes a word unless there is one. Replies come in the
//! order of the commands, so a `BLPOP` delays the acknowledgements behind it; a worker sends one only while nothing is ready.

use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};

use super::line::{Line, body, line, number};
use super::{Delivery, Source, Taker};
use crate::amqp::LEVELS;

/// How long a worker waits for a word before it looks again, s.
const WAIT_S: &[u8] = b"1";

/// Puts the body `ARGV[2]`; the lowest `ARGV[1]` goes first. Scores are exact up to 2^53.
const PUT: &str = "\
local id = redis.call('INCR', KEYS[1] .. ':last')
redis.call('HSET', KEYS[1] .. ':bodies', id, ARGV[2])
redis.call('ZADD', KEYS[1] .. ':ready', ARGV[1] * 1e12 + id, id)
if redis.call('EXISTS', KEYS[1] .. ':word') == 0 then redis.call('LPUSH', KEYS[1] .. ':word', 1) end
return id";

/// Leases up to `ARGV[1]` messages for an hour. Answers with id, body, id, body and so on.
const TAKE: &str = "\
local taken = redis.call('ZPOPMIN', KEYS[1] .. ':ready', ARGV[1])
local deadline = redis.call('TIME')[1] + 3600
for at = 1, #taken, 2 do
  redis.call('ZADD', KEYS[1] .. ':leased', deadline, taken[at])
  taken[at + 1] = redis.call('HGET', KEYS[1] .. ':bodies', taken[at])
end
return taken";

/// Acknowledges the message `ARGV[1]`. Answers 1 if it was leased.
const ACK: &str = "\
redis.call('HDEL', KEYS[1] .. ':bodies', ARGV[1])
return redis.call('ZREM', KEYS[1] .. ':leased', ARGV[1])";

/// A reply of Redis.
#[derive(Debug, PartialEq, Eq)]
enum Reply<'a> {
    Number(u64),
    Text(&'a [u8]),
    List(Vec<Self>),
    Nothing,
}

/// The next reply and its length, once it is all there.
fn reply(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>> {
    let Some((first, mut at)) = line(bytes) else { return Ok(None) };
    let (kind, rest) = first.split_first().context("Redis says nothing")?;
    let reply = match (kind, rest) {
        (b'$' | b'*', b"-1") => Reply::Nothing,
        (b':', digits) => Reply::Number(number(Some(digits))?),
        (b'$', digits) => {
            let Some((text, len)) = body(bytes, at, number(Some(digits))? as usize) else { return Ok(None) };
            at = len;
            Reply::Text(text)
        }
        (b'*', digits) => {
            let mut all = Vec::new();
            for _ in 0..number(Some(digits))? {
                let Some((one, len)) = reply(&bytes[at..])? else { return Ok(None) };
                at += len;
                all.push(one);
            }
            Reply::List(all)
        }
        _ => bail!("Redis says {}", first.escape_ascii()),
    };
    Ok(Some((reply, at)))
}

/// Appends a command.
fn say(wire: &mut Line, words: &[&[u8]]) {
    wire.say(format_args!("*{}", words.len()));
    for word in words {
        wire.say(format_args!("${}", word.len()));
        wire.body(word);
    }
}

/// A script that the server has loaded, for one queue.
struct Script {
    hash: Vec<u8>,
    queue: Vec<u8>,
}

impl Script {
    fn load(wire: &mut Line, queue: &str, text: &str) -> Result<Self> {
        say(wire, &[b"SCRIPT", b"LOAD", text.as_bytes()]);
        let hash = wire.answer(|bytes| match reply(bytes)? {
            Some((Reply::Text(hash), len)) => Ok(Some((hash.to_vec(), len))),
            Some((other, _)) => bail!("Redis answers {other:?} to a script"),
            None => Ok(None),
        })?;
        Ok(Self { hash, queue: queue.as_bytes().to_vec() })
    }

    /// Appends a call.
    fn call(&self, wire: &mut Line, arguments: &[&[u8]]) {
        say(wire, &[&[b"EVALSHA", &self.hash[..], b"1", &self.queue], arguments].concat());
    }
}

/// Entries of a queue: ready messages, leased ones, and bodies.
pub(crate) fn depth(address: SocketAddr, queue: &str) -> Result<u64> {
    let (mut wire, mut depth) = (Line::open(address)?, 0);
    for (command, what) in [("ZCARD", "ready"), ("ZCARD", "leased"), ("HLEN", "bodies")] {
        say(&mut wire, &[command.as_bytes(), format!("{queue}:{what}").as_bytes()]);
        depth += wire.answer(|bytes| match reply(bytes)? {
            Some((Reply::Number(count), len)) => Ok(Some((count, len))),
            Some((other, _)) => bail!("Redis answers {other:?} to {command}"),
            None => Ok(None),
        })?;
    }
    Ok(depth)
}

/// Puts messages; the reply to a put is its confirm.
pub(crate) struct Putter {
    wire: Line,
    script: Script,
    put: u64,
    answered: u64,
}

impl Putter {
    pub(crate) fn open(address: SocketAddr, queue: &str) -> Result<Self> {
        let mut wire = Line::open(address)?;
        let script = Script::load(&mut wire, queue, PUT)?;
        Ok(Self { wire, script, put: 0, answered: 0 })
    }
}

impl Source for Putter {
    fn put(&mut self, level: u8, body: &[u8]) -> u64 {
        let order = (LEVELS - 1 - level).to_string();
        self.script.call(&mut self.wire, &[order.as_bytes(), body]);
        self.put += 1;
        self.put - 1
    }

    fn flush(&mut self) -> Result<()> {
        self.wire.flush()
    }

    fn hear(&mut self, confirmed: &mut dyn FnMut(u64)) -> Result<()> {
        self.wire.input.fill(&mut self.wire.socket)?;
        while let Some((reply, len)) = reply(self.wire.input.unread())? {
            let Reply::Number(_) = reply else { bail!("Redis answers {reply:?} to a put") };
            self.wire.input.consume(len);
            confirmed(self.answered);
            self.answered += 1;
        }
        Ok(())
    }

    fn socket(&self) -> &TcpStream {
        &self.wire.socket
    }
}

/// Takes messages and acknowledges them.
pub(crate) struct Worker {
    wire: Line,
    take: Script,
    ack: Script,
    /// The list on which the worker waits.
    word: String,
    /// Messages that may still be asked for.
    expected: u64,
    /// Messages that may be taken before any is acknowledged.
    free: u64,
    /// Whether a take is under way.
    is_asking: bool,
    /// Whether a `BLPOP` goes before that take and is not answered.
    is_waiting: bool,
    /// Whether the last take came back empty.
    found_nothing: bool,
    /// Acknowledgements that are not answered yet.
    acking: u64,
}

impl Worker {
    pub(crate) fn open(address: SocketAddr, queue: &str, prefetch: u16) -> Result<Self> {
        let mut wire = Line::open(address)?;
        let (take, ack) = (Script::load(&mut wire, queue, TAKE)?, Script::load(&mut wire, queue, ACK)?);
        Ok(Self {
            wire,
            take,
            ack,
            word: format!("{queue}:word"),
            expected: 0,
            free: prefetch.into(),
            is_asking: false,
            is_waiting: false,
            found_nothing: false,
            acking: 0,
        })
    }

    /// Asks for as many as the prefetch allows, unless a take is under way.
    fn ask(&mut self) {
        let most = self.free.min(self.expected);
        if self.is_asking || most == 0 {
            return;
        }
        if self.found_nothing {
            say(&mut self.wire, &[b"BLPOP", self.word.as_bytes(), WAIT_S]);
        }
        self.take.call(&mut self.wire, &[most.to_string().as_bytes()]);
        (self.is_asking, self.is_waiting) = (true, self.found_nothing);
    }
}

impl Taker for Worker {
    fn take(&mut self, each: &mut dyn FnMut(Delivery<'_>)) -> Result<()> {
        self.wire.input.fill(&mut self.wire.socket)?;
        let (bytes, mut at) = (self.wire.input.unread(), 0);
        while let Some((reply, len)) = reply(&bytes[at..])? {
            at += len;
            match reply {
                Reply::Number(1) => self.acking -= 1,
                Reply::List(_) | Reply::Nothing if self.is_waiting => self.is_waiting = false,
                Reply::List(taken) => {
                    let count = taken.len() as u64 / 2;
                    (self.is_asking, self.found_nothing) = (false, count == 0);
                    self.free -= count;
                    self.expected -= count;
                    for pair in taken.chunks(2) {
                        let [Reply::Text(id), Reply::Text(body)] = *pair else { bail!("a body is missing") };
                        each(Delivery { tag: number(Some(id))?, body, ..Delivery::default() });
                    }
                }
                reply => bail!("Redis answers {reply:?} to a consumer"),
            }
        }
        self.wire.input.consume(at);
        Ok(())
    }

    fn ack(&mut self, tag: u64) {
        self.ack.call(&mut self.wire, &[tag.to_string().as_bytes()]);
        self.acking += 1;
        self.free += 1;
    }

    fn flush(&mut self) -> Result<()> {
        self.ask();
        self.wire.flush()
    }

    fn expect(&mut self, more: u64) {
        self.expected = self.expected.saturating_add(more);
    }

    fn holds_part(&self) -> bool {
        !self.wire.input.unread().is_empty()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.wire.flush()?;
        while self.acking > 0 {
            self.take(&mut |_| ())?;
        }
        Ok(())
    }

    fn socket(&self) -> &TcpStream {
        &self.wire.socket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_once_they_are_whole() {
        let check = |text: &str, expected: Reply<'_>| {
            assert_eq!(reply(text.as_bytes()).expect("right"), Some((expected, text.len())));
            assert_eq!(reply(&text.as_bytes()[..text.len() - 1]).expect("right"), None, "a byte is missing");
        };
        check(":17\r\n", Reply::Number(17));
        check("*-1\r\n", Reply::Nothing);
        check("*0\r\n", Reply::List(Vec::new()));
        check(
            "*2\r\n$1\r\n7\r\n$4\r\na\r\nb\r\n",
            Reply::List(vec![Reply::Text(b"7"), Reply::Text(b"a\r\nb")]),
        );
        assert!(reply(b"-NOSCRIPT No matching script.\r\n").is_err());
    }
}

//! beanstalkd's protocol, as lines of text: <https://github.com/beanstalkd/beanstalkd/blob/master/doc/protocol.txt>.
//!
//! Replies come in the order of the commands, so they may be sent ahead: a prefetch is so many reservations at once. One that
//! waits holds up the commands behind it, `delete` as well; so only the first waits, and not for long.

use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};

use super::line::{Line, body, line, number};
use super::{Delivery, Source, Taker};
use crate::amqp::LEVELS;

/// A consumer that says nothing for so long loses what it took, s; none does.
const TIME_TO_RUN_S: u32 = 3_600;

/// Waits for one line that must begin like this; what follows there.
fn expect(wire: &mut Line, start: &str) -> Result<String> {
    let said = wire.answer(|bytes| {
        Ok(line(bytes).map(|(said, len)| (String::from_utf8_lossy(said).into_owned(), len)))
    })?;
    let rest = said.strip_prefix(start).with_context(|| format!("beanstalkd says {said}"))?;
    Ok(rest.trim().to_owned())
}

/// How many jobs of a tube are there, whoever has them.
pub(crate) fn depth(address: SocketAddr, tube: &str) -> Result<u64> {
    let mut wire = Line::open(address)?;
    wire.say(format_args!("stats-tube {tube}"));
    let said = expect(&mut wire, "")?;
    if said == "NOT_FOUND" {
        return Ok(0);
    }
    let len = number(said.strip_prefix("OK ").map(str::as_bytes))? as usize;
    while wire.input.unread().len() < len {
        wire.input.fill(&mut wire.socket)?;
    }
    let stats = String::from_utf8_lossy(wire.input.unread()).into_owned();
    let of = |name: &str| -> Result<u64> {
        let value = stats.lines().find_map(|line| line.strip_prefix(name)).context("a count is missing")?;
        number(Some(value.trim().as_bytes()))
    };
    Ok(of("current-jobs-ready:")? + of("current-jobs-reserved:")?)
}

/// `put`, answered once it is written.
pub(crate) struct Putter {
    wire: Line,
    put: u64,
    answered: u64,
}

impl Putter {
    pub(crate) fn open(address: SocketAddr, tube: &str) -> Result<Self> {
        let mut wire = Line::open(address)?;
        wire.say(format_args!("use {tube}"));
        expect(&mut wire, "USING")?;
        Ok(Self { wire, put: 0, answered: 0 })
    }
}

impl Source for Putter {
    fn put(&mut self, level: u8, body: &[u8]) -> u64 {
        // 0 is the most urgent there.
        let (priority, len) = (LEVELS - 1 - level, body.len());
        self.wire.say(format_args!("put {priority} 0 {TIME_TO_RUN_S} {len}"));
        self.wire.body(body);
        self.put += 1;
        self.put - 1
    }

    fn flush(&mut self) -> Result<()> {
        self.wire.flush()
    }

    fn hear(&mut self, confirmed: &mut dyn FnMut(u64)) -> Result<()> {
        self.wire.input.fill(&mut self.wire.socket)?;
        while let Some((said, len)) = line(self.wire.input.unread()) {
            if !said.starts_with(b"INSERTED ") {
                bail!("beanstalkd says {}", said.escape_ascii());
            }
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

/// `reserve` and `delete`.
pub(crate) struct Reserver {
    wire: Line,
    /// How many more may be asked for.
    expected: u64,
    /// How many may be asked for before any is deleted.
    free: u64,
    /// How many are asked for.
    asked: u64,
    /// Deletions that were not answered.
    deleting: u64,
}

impl Reserver {
    pub(crate) fn open(address: SocketAddr, tube: &str, prefetch: u16) -> Result<Self> {
        let mut wire = Line::open(address)?;
        wire.say(format_args!("watch {tube}\r\nignore default"));
        expect(&mut wire, "WATCHING")?;
        expect(&mut wire, "WATCHING")?;
        Ok(Self { wire, expected: 0, free: prefetch.into(), asked: 0, deleting: 0 })
    }

    /// Asks for as many as there may be.
    fn reserve(&mut self) {
        while self.free > 0 && self.expected > 0 {
            let wait_s = u8::from(self.asked == 0);
            self.wire.say(format_args!("reserve-with-timeout {wait_s}"));
            self.free -= 1;
            self.expected -= 1;
            self.asked += 1;
        }
    }
}

/// An answer to a consumer.
enum Answer<'a> {
    Reserved(Delivery<'a>),
    TimedOut,
    Deleted,
}

/// The next answer and its length, once it is all there.
fn answer(bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>> {
    let Some((said, len)) = line(bytes) else { return Ok(None) };
    match said {
        b"DELETED" => return Ok(Some((Answer::Deleted, len))),
        b"TIMED_OUT" => return Ok(Some((Answer::TimedOut, len))),
        _ => {}
    }
    let mut words = said.split(|byte| *byte == b' ');
    if words.next() != Some(b"RESERVED") {
        bail!("beanstalkd says {}", said.escape_ascii());
    }
    let (tag, body_len) = (number(words.next())?, number(words.next())? as usize);
    let Some((body, len)) = body(bytes, len, body_len) else { return Ok(None) };
    let delivery = Delivery { tag, body, ..Delivery::default() };
    Ok(Some((Answer::Reserved(delivery), len)))
}

impl Taker for Reserver {
    fn take(&mut self, each: &mut dyn FnMut(Delivery<'_>)) -> Result<()> {
        self.wire.input.fill(&mut self.wire.socket)?;
        let (bytes, mut at) = (self.wire.input.unread(), 0);
        while let Some((answer, len)) = answer(&bytes[at..])? {
            at += len;
            match answer {
                Answer::Deleted => self.deleting -= 1,
                Answer::TimedOut => {
                    self.asked -= 1;
                    self.free += 1;
                    self.expected += 1;
                }
                Answer::Reserved(delivery) => {
                    self.asked -= 1;
                    each(delivery);
                }
            }
        }
        self.wire.input.consume(at);
        if self.asked == 0 {
            self.reserve();
            self.wire.flush()?;
        }
        Ok(())
    }

    fn ack(&mut self, tag: u64) {
        self.wire.say(format_args!("delete {tag}"));
        self.deleting += 1;
        self.free += 1;
        self.reserve();
    }

    fn flush(&mut self) -> Result<()> {
        self.wire.flush()
    }

    fn expect(&mut self, more: u64) {
        self.expected = self.expected.saturating_add(more);
        self.reserve();
    }

    fn holds_part(&self) -> bool {
        !self.wire.input.unread().is_empty()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.expected = 0;
        self.wire.flush()?;
        while self.deleting > 0 {
            self.take(&mut |_| ())?;
        }
        Ok(())
    }

    fn socket(&self) -> &TcpStream {
        &self.wire.socket
    }
}

//! As fast as it goes: publishing with a window, and taking with an acknowledgement for each.

use std::time::Duration;

use anyhow::Result;

use super::letter::{Ledger, Letter, Post};
use super::tally::thread_busy;
use super::wire::{Source, Taker};
use super::{LEVELS, WINDOW};

/// Which level the next message is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Level {
    Any,
    Always(u8),
}

/// Publishes so many, and ends when each is confirmed. Answers how long this thread was busy.
pub(super) fn publish(
    source: &mut dyn Source,
    post: &mut Post,
    level: Level,
    count: u64,
) -> Result<Duration> {
    let busy = thread_busy();
    let (mut sent, mut confirmed) = (0, 0);
    while confirmed < count {
        while sent < count && sent - confirmed < WINDOW {
            let level = match level {
                Level::Any => post.draw(),
                Level::Always(level) => level.min(LEVELS - 1),
            };
            source.put(level, post.write(level));
            sent += 1;
        }
        source.flush()?;
        source.hear(&mut |_| confirmed += 1)?;
    }
    Ok(thread_busy() - busy)
}

/// Takes and acknowledges so many, and ends when the broker has heard it. What comes in one read is acknowledged in one
/// write, message by message. Answers how long this thread was busy.
pub(super) fn drain(mut taker: Box<dyn Taker>, ledger: &mut Ledger, count: u64) -> Result<Duration> {
    let busy = thread_busy();
    taker.expect(count);
    taker.flush()?;
    while ledger.count() < count {
        take(&mut *taker, &mut |letter| ledger.enter(letter))?;
    }
    taker.close()?;
    Ok(thread_busy() - busy)
}

/// What comes in one read.
pub(super) fn take(taker: &mut dyn Taker, each: &mut dyn FnMut(Letter) -> Result<()>) -> Result<()> {
    let (mut tags, mut all) = (Vec::with_capacity(128), Ok(()));
    taker.take(&mut |delivery| {
        tags.push(delivery.tag);
        if all.is_ok() {
            all = Letter::read(&delivery).and_then(&mut *each);
        }
    })?;
    all?;
    tags.into_iter().for_each(|tag| taker.ack(tag));
    taker.flush()
}

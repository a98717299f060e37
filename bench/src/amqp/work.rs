//! As fast as it goes: publishing with a window, and taking with an acknowledgement for each.

use std::time::Duration;

use anyhow::Result;

use super::letter::{Letter, Post, now_ns};
use super::tally::thread_busy;
use super::wire::{Source, Taker};
use super::{LEVELS, WINDOW};
use crate::spread::Spread;

/// Which level the next message is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Level {
    Any,
    Always(u8),
}

/// What a publisher did.
pub(super) struct Published {
    /// How long its thread was on a processor.
    pub(super) busy: Duration,
    /// How long each message waited for its confirm.
    pub(super) waits: Spread,
}

/// Publishes so many with at most [`WINDOW`] unconfirmed, and ends when each is confirmed.
pub(super) fn publish(
    source: &mut dyn Source,
    post: &mut Post,
    level: Level,
    count: u64,
) -> Result<Published> {
    publish_while(source, post, level, WINDOW, &mut |sent| sent < count)
}

/// Publishes with at most `window` unconfirmed until `goes_on`, which is told how many were published, says no; and ends when
/// each is confirmed.
pub(super) fn publish_while(
    source: &mut dyn Source,
    post: &mut Post,
    level: Level,
    window: u64,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Published> {
    let busy = thread_busy();
    // When each was put, then how long it waited: from the message with the number `first` on.
    let (mut waits, mut first, mut confirmed) = (Vec::new(), 0, 0);
    loop {
        while waits.len() as u64 - confirmed < window && goes_on(waits.len() as u64) {
            let level = match level {
                Level::Any => post.draw(),
                Level::Always(level) => level.min(LEVELS - 1),
            };
            let number = source.put(level, post.write(level));
            if waits.is_empty() {
                first = number;
            }
            waits.push(post.sent_ns());
        }
        if confirmed == waits.len() as u64 {
            return Ok(Published { busy: thread_busy() - busy, waits: Spread::of(waits) });
        }
        source.flush()?;
        let mut heard_ns = None;
        source.hear(&mut |number| {
            let wait = &mut waits[(number - first) as usize];
            *wait = *heard_ns.get_or_insert_with(now_ns) - *wait;
            confirmed += 1;
        })?;
    }
}

/// Takes and acknowledges so many, and ends when the broker has heard it. What comes in one read is acknowledged in one
/// write, message by message. Answers how long this thread was busy.
pub(super) fn drain(
    mut taker: Box<dyn Taker>,
    count: u64,
    each: &mut dyn FnMut(Letter) -> Result<()>,
) -> Result<Duration> {
    let (busy, mut taken) = (thread_busy(), 0);
    taker.expect(count);
    taker.flush()?;
    while taken < count {
        take(&mut *taker, &mut |letter| {
            taken += 1;
            each(letter)
        })?;
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

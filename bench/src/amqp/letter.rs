//! What a message says, so that whoever gets it knows which it is, when it was sent, and that it is whole; and the list of
//! those that came.
//!
//! ```text
//!   0  8  number within its stream, from 0
//!   8  8  when it was published, ns since this program began
//!  16  1  level
//!  17  1  stream: who published it
//!  18     noise from a place that follows from the number
//! ```

use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::wire::Delivery;
use super::{BODY_LEN, LEVELS};
use crate::reference::Dice;

const HEAD_LEN: usize = 18;
/// A prime, so that neighbours differ.
const NOISE_SHIFTS: usize = 1_021;

/// Nanoseconds since the first time somebody asked.
pub(super) fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn noise() -> &'static [u8] {
    static NOISE: OnceLock<Vec<u8>> = OnceLock::new();
    NOISE.get_or_init(|| {
        let mut dice = Dice::new();
        (0..NOISE_SHIFTS + BODY_LEN).map(|_| dice.roll(256) as u8).collect()
    })
}

fn noise_of(number: u64) -> &'static [u8] {
    let at = (number % NOISE_SHIFTS as u64) as usize;
    &noise()[at..at + BODY_LEN - HEAD_LEN]
}

/// What is known of a message once it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) number: u64,
    pub(super) sent_ns: u64,
    pub(super) level: u8,
    pub(super) stream: u8,
}

impl Letter {
    pub(super) fn write(&self, body: &mut [u8; BODY_LEN]) {
        body[..8].copy_from_slice(&self.number.to_le_bytes());
        body[8..16].copy_from_slice(&self.sent_ns.to_le_bytes());
        (body[16], body[17]) = (self.level, self.stream);
        body[HEAD_LEN..].copy_from_slice(noise_of(self.number));
    }

    /// # Errors
    /// When it is not what was published.
    pub(super) fn read(delivery: &Delivery<'_>) -> Result<Self> {
        let body: &[u8; BODY_LEN] = delivery
            .body
            .try_into()
            .ok()
            .with_context(|| format!("a body of {} bytes came", delivery.body.len()))?;
        let number = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().expect("eight bytes"));
        let this = Self { number: number(0), sent_ns: number(8), level: body[16], stream: body[17] };
        if body[HEAD_LEN..] != *noise_of(this.number) {
            bail!("the body of message {} is not what was published", this.number);
        }
        if this.level >= LEVELS || delivery.level.is_some_and(|level| level != this.level) {
            bail!("message {} of level {} came as one of {:?}", this.number, this.level, delivery.level);
        }
        if delivery.redelivered {
            bail!("message {} came as one that had been delivered before", this.number);
        }
        Ok(this)
    }
}

/// Writes the letters of one stream.
pub(super) struct Post {
    stream: u8,
    next: u64,
    dice: Dice,
    body: [u8; BODY_LEN],
}

impl Post {
    pub(super) fn new(stream: u8) -> Self {
        Self { stream, next: 0, dice: Dice::new(), body: [0; BODY_LEN] }
    }

    /// Any level.
    pub(super) fn draw(&mut self) -> u8 {
        self.dice.roll(LEVELS.into()) as u8
    }

    /// The body of the next one, published now.
    pub(super) fn write(&mut self, level: u8) -> &[u8; BODY_LEN] {
        let letter = Letter { number: self.next, sent_ns: now_ns(), level, stream: self.stream };
        letter.write(&mut self.body);
        self.next += 1;
        &self.body
    }

    /// When the last one was published, ns since this program began.
    pub(super) fn sent_ns(&self) -> u64 {
        u64::from_le_bytes(self.body[8..16].try_into().expect("eight bytes"))
    }
}

/// What must hold of the order in which one consumer gets messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// They all waited before the first was taken: the most urgent first, within a level the oldest.
    All,
    /// Some were published meanwhile: within a level the oldest first.
    WithinLevels,
}

/// The messages of one stream that came to one consumer.
pub(super) struct Ledger {
    order: Order,
    seen: Vec<u64>,
    count: u64,
    /// The last of each level.
    last: [Option<u64>; LEVELS as usize],
    /// Of the last message.
    level: u8,
}

impl Ledger {
    pub(super) fn new(order: Order) -> Self {
        Self { order, seen: Vec::new(), count: 0, last: [None; LEVELS as usize], level: LEVELS - 1 }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// # Errors
    /// When it came before, or out of order.
    pub(super) fn enter(&mut self, letter: Letter) -> Result<()> {
        let Letter { number, level, .. } = letter;
        if !self.mark(number) {
            bail!("message {number} came twice");
        }
        let last = &mut self.last[usize::from(level)];
        if let Some(last) = last.filter(|last| *last > number) {
            bail!("of level {level}, message {number} came after message {last}");
        }
        *last = Some(number);
        if self.order == Order::All && level > self.level {
            bail!("message {number} of level {level} came after one of level {}", self.level);
        }
        self.level = level;
        Ok(())
    }

    /// Whether it is new.
    fn mark(&mut self, number: u64) -> bool {
        let (at, bit) = ((number / 64) as usize, 1 << (number % 64));
        if at >= self.seen.len() {
            self.seen.resize(at + 1, 0);
        }
        let is_new = self.seen[at] & bit == 0;
        self.seen[at] |= bit;
        self.count += u64::from(is_new);
        is_new
    }

    /// What came to either of two consumers.
    ///
    /// # Errors
    /// When a message came to both.
    pub(super) fn join(mut self, other: &Self) -> Result<Self> {
        self.seen.resize(self.seen.len().max(other.seen.len()), 0);
        for (at, (ours, theirs)) in self.seen.iter_mut().zip(&other.seen).enumerate() {
            if *ours & theirs != 0 {
                bail!(
                    "message {} came to both consumers",
                    at * 64 + (*ours & theirs).trailing_zeros() as usize
                );
            }
            *ours |= theirs;
        }
        self.count += other.count;
        Ok(self)
    }

    /// # Errors
    /// When not exactly the first so many came.
    pub(super) fn is_complete(&self, published: u64) -> Result<()> {
        if self.count == published && self.seen.len() as u64 <= published.div_ceil(64) {
            return Ok(());
        }
        let missing = (0..published).find(|number| {
            self.seen.get((number / 64) as usize).is_none_or(|word| word & (1 << (number % 64)) == 0)
        });
        bail!("of {published} messages {} came; the first that is missing: {missing:?}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(number: u64, level: u8) -> Letter {
        Letter { number, sent_ns: 7, level, stream: 0 }
    }

    fn came(order: Order, letters: &[(u64, u8)]) -> Result<Ledger> {
        let mut ledger = Ledger::new(order);
        letters.iter().try_for_each(|(number, level)| ledger.enter(letter(*number, *level)))?;
        Ok(ledger)
    }

    #[test]
    fn a_letter_is_read_as_it_was_written_and_a_damaged_one_is_found() {
        let mut body = [0; BODY_LEN];
        letter(1_022, 9).write(&mut body);
        let read = |body: &[u8], level| Letter::read(&Delivery { level, body, ..Delivery::default() });
        assert_eq!(read(&body, Some(9)).expect("whole"), letter(1_022, 9));
        assert_eq!(read(&body, None).expect("whole"), letter(1_022, 9));
        assert!(read(&body, Some(8)).is_err(), "another level");
        assert!(read(&body[1..], None).is_err(), "a byte is missing");
        body[BODY_LEN - 1] ^= 1;
        assert!(read(&body, None).is_err(), "a bit is wrong");
    }

    #[test]
    fn order_is_by_level_where_all_waited_and_by_age_within_levels() {
        assert!(came(Order::All, &[(2, 9), (0, 5), (1, 5)]).is_ok());
        assert!(came(Order::All, &[(0, 5), (2, 9)]).is_err());
        assert!(came(Order::WithinLevels, &[(0, 5), (2, 9)]).is_ok());
        assert!(came(Order::WithinLevels, &[(1, 5), (0, 5)]).is_err());
        assert!(came(Order::WithinLevels, &[(1, 5), (1, 5)]).is_err(), "twice");
    }

    #[test]
    fn what_is_missing_or_came_to_two_is_found() {
        let ledger = |letters| came(Order::WithinLevels, letters).expect("in order");
        let whole = ledger(&[(0, 1), (64, 1)]).join(&ledger(&[(1, 1)])).expect("apart");
        assert!(whole.is_complete(3).is_err(), "64 is beyond 3");
        assert!(ledger(&[(0, 1), (1, 1)]).is_complete(2).is_ok());
        assert!(ledger(&[(0, 1)]).is_complete(2).is_err());
        assert!(ledger(&[(0, 1)]).join(&ledger(&[(0, 1)])).is_err());
    }
}

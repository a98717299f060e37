//! What is published, the same in every run and in every process of a run; and the ledger that says what must come next.

use bytes::Bytes;

use super::queue::Message;
use crate::reference::Dice;

/// Levels of the backlog: 0 to 9, mixed.
pub(super) const LEVELS: u8 = 10;
/// More urgent than the whole backlog.
pub(super) const URGENT: u8 = LEVELS;

const POOL_BYTES: usize = 1 << 20;
/// A body starts with its number (8 bytes), its place in the pool (4) and its priority (4), little endian.
const HEAD: usize = 16;

/// Messages, one after the other.
pub(super) struct Traffic {
    dice: Dice,
    published: u64,
    body_bytes: usize,
    /// Bodies are pieces of this, so that compression finds nothing and a body costs a copy.
    pool: Vec<u8>,
    ledger: Ledger,
}

impl Traffic {
    pub(super) fn new(body_bytes: usize) -> Self {
        assert!(body_bytes >= HEAD, "a body says which one it is");
        let mut dice = Dice::new();
        let pool = (0..POOL_BYTES + body_bytes).map(|_| dice.roll(256) as u8).collect();
        Self { dice, published: 0, body_bytes, pool, ledger: Ledger::default() }
    }

    /// So many messages have been published in an earlier life.
    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.roll();
        }
    }

    /// The next messages of the mix.
    pub(super) fn batch(&mut self, count: usize) -> Vec<Message> {
        (0..count)
            .map(|_| {
                let (priority, at) = self.roll();
                self.message(priority, at)
            })
            .collect()
    }

    pub(super) fn urgent(&mut self) -> Message {
        self.enter(URGENT);
        self.message(URGENT, 0)
    }

    fn roll(&mut self) -> (u8, u32) {
        let priority = self.dice.roll(u64::from(LEVELS)) as u8;
        let at = self.dice.roll(POOL_BYTES as u64) as u32;
        self.enter(priority);
        (priority, at)
    }

    fn enter(&mut self, priority: u8) {
        self.ledger.enter(priority, self.published);
        self.published += 1;
    }

    fn message(&self, priority: u8, at: u32) -> Message {
        let mut body = Vec::with_capacity(self.body_bytes);
        body.extend_from_slice(&(self.published - 1).to_le_bytes());
        body.extend_from_slice(&at.to_le_bytes());
        body.extend_from_slice(&u32::from(priority).to_le_bytes());
        body.extend_from_slice(self.rest(at));
        Message { priority, body: body.into() }
    }

    fn rest(&self, at: u32) -> &[u8] {
        &self.pool[at as usize..][..self.body_bytes - HEAD]
    }

    /// A message came: it must be the next one, whole.
    pub(super) fn came(&mut self, priority: u8, body: &Bytes) {
        let (head, rest) = body.split_at(HEAD);
        let number = u64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
        let at = u32::from_le_bytes(head[8..12].try_into().expect("four bytes"));
        assert!(rest == self.rest(at), "the body of message {number} is not what was published");
        self.ledger.leave(priority, number);
    }

    pub(super) fn waiting(&self) -> u64 {
        self.ledger.waiting()
    }

    /// Nothing is left, and it was all that was published.
    pub(super) fn close(&self) {
        self.ledger.close();
    }
}

/// What waits on each level, in a few numbers however much it is.
#[derive(Default)]
struct Ledger {
    levels: [Level; URGENT as usize + 1],
}

#[derive(Clone, Copy, Default)]
struct Level {
    waiting: u64,
    /// The number after the last one that came: what comes later must be larger.
    next: u64,
    /// The numbers that wait, added up. With the count and the order it leaves no room for a mistake.
    sum: u64,
}

impl Ledger {
    fn enter(&mut self, priority: u8, number: u64) {
        let level = &mut self.levels[usize::from(priority)];
        level.waiting += 1;
        level.sum = level.sum.wrapping_add(number);
    }

    fn leave(&mut self, priority: u8, number: u64) {
        let most_urgent = self.levels.iter().rposition(|level| level.waiting > 0);
        assert_eq!(
            most_urgent,
            Some(usize::from(priority)),
            "message {number} came before its turn, or twice"
        );
        let level = &mut self.levels[usize::from(priority)];
        assert!(number >= level.next, "message {number} came late, or twice");
        level.next = number + 1;
        level.waiting -= 1;
        level.sum = level.sum.wrapping_sub(number);
    }

    fn waiting(&self) -> u64 {
        self.levels.iter().map(|level| level.waiting).sum()
    }

    fn close(&self) {
        assert_eq!(self.waiting(), 0, "messages were lost");
        assert!(self.levels.iter().all(|level| level.sum == 0), "another message came instead");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(order: &[(u8, u64)]) {
        let mut ledger = Ledger::default();
        for (number, priority) in [1, 5, 1, 1].into_iter().enumerate() {
            ledger.enter(priority, number as u64);
        }
        order.iter().for_each(|(priority, number)| ledger.leave(*priority, *number));
        ledger.close();
    }

    #[test]
    fn the_right_order_is_let_through() {
        came(&[(5, 1), (1, 0), (1, 2), (1, 3)]);
    }

    #[test]
    #[should_panic(expected = "came before its turn")]
    fn a_less_urgent_one_first_is_found() {
        came(&[(1, 0)]);
    }

    #[test]
    #[should_panic(expected = "message 0 came late, or twice")]
    fn a_swap_within_a_level_is_found() {
        came(&[(5, 1), (1, 2), (1, 0)]);
    }

    #[test]
    #[should_panic(expected = "lost")]
    fn one_that_never_came_is_found() {
        came(&[(5, 1), (1, 0), (1, 2)]);
    }

    #[test]
    #[should_panic(expected = "another message came instead")]
    fn a_stranger_in_the_place_of_one_is_found() {
        came(&[(5, 1), (1, 0), (1, 2), (1, 7)]);
    }

    #[test]
    fn a_later_life_expects_what_an_earlier_one_published() {
        let (mut first, mut later) = (Traffic::new(100), Traffic::new(100));
        let mut published = first.batch(50);
        later.skip(50);
        published.sort_by_key(|message| LEVELS - message.priority);
        published.iter().for_each(|message| later.came(message.priority, &message.body));
        later.close();
    }
}

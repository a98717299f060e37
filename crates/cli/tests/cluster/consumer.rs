//! Consumes over AMQP, from all queues of one broker: holds each message for a while, then acknowledges it, or now and then puts it back; and leaves without a word sometimes.
//!
//! One kind acknowledges plainly, and never hears whether it was settled; the other does so in transactions, and knows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Result;

use crate::history::{Event, Holder};
use crate::stage::{Dice, QUEUES, Stage, queue};
use crate::wire::{Heard, Wire};

/// Messages of one queue that one may have.
const WINDOW: u16 = 6;
/// For how long a message is held, at most.
const HELD_US: u64 = 20_000;
/// Of so many first deliveries one is put back.
const PUT_BACK_ONE_OF: u64 = 50;
/// After how many deliveries one leaves without a word, at most; and at least half of that.
const LEAVES_AFTER: u64 = 8_000;

/// Who consumes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consumer {
    pub(crate) number: u64,
    pub(crate) broker: usize,
    /// It acknowledges in transactions.
    pub(crate) is_transactional: bool,
}

/// Until all is over, at this broker whenever it is there.
pub(crate) fn consume(stage: &Stage, consumer: Consumer) {
    let mut dice = Dice::new(100 + consumer.number);
    while !stage.is_over() {
        let mut hands = Hands::default();
        // Why it ended says nothing that the book does not.
        let _ = consume_at(stage, consumer, &mut dice, &mut hands);
        for (holder, _) in hands.held.into_values() {
            stage.book.write(Event::Lost { holder });
        }
        stage.rest();
    }
}

/// What one has, over one connection.
#[derive(Default)]
struct Hands {
    /// By tag; and whether it is to be put back.
    held: BTreeMap<u64, (Holder, bool)>,
    /// When each is to be settled, and its tag.
    due: BTreeSet<(u64, u64)>,
    /// Acknowledged, and not committed.
    asked: Vec<Holder>,
    /// Whether there is anything to commit.
    is_changed: bool,
    /// What is being committed.
    committing: Option<Vec<Holder>>,
}

fn consume_at(stage: &Stage, consumer: Consumer, dice: &mut Dice, hands: &mut Hands) -> Result<()> {
    let mut wire = Wire::open(stage.brokers[consumer.broker].connect()?)?;
    if consumer.is_transactional {
        wire.transact();
    }
    for number in 0..QUEUES {
        wire.consume(&queue(number), WINDOW);
    }
    let mut left = LEAVES_AFTER / 2 + dice.below(LEAVES_AFTER / 2);
    while left > 0 && !(stage.is_over() && hands.held.is_empty()) {
        for heard in wire.exchange()? {
            match heard {
                Heard::Delivered { tag, is_again, message } => {
                    left = left.saturating_sub(1);
                    let holder = stage.book.deliver(message, consumer.broker, None);
                    let is_put_back = !is_again && dice.below(PUT_BACK_ONE_OF) == 0;
                    hands.held.insert(tag, (holder, is_put_back));
                    hands.due.insert((stage.book.now_us() + dice.below(HELD_US), tag));
                }
                Heard::Committed => {
                    for holder in hands.committing.take().expect("it was asked for") {
                        stage.book.write(Event::Settled { holder });
                    }
                }
                other => panic!("nobody asked for {other:?}"),
            }
        }
        hands.settle_due(stage, &mut wire);
        if consumer.is_transactional && hands.is_changed && hands.committing.is_none() {
            wire.commit();
            hands.committing = Some(std::mem::take(&mut hands.asked));
            hands.is_changed = false;
        }
    }
    Ok(())
}

impl Hands {
    fn settle_due(&mut self, stage: &Stage, wire: &mut Wire) {
        let now = stage.book.now_us();
        while let Some((_, tag)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.pop_first();
            let (holder, is_put_back) = self.held.remove(&tag).expect("what is due is held");
            self.is_changed = true;
            if is_put_back {
                stage.book.write(Event::PutBack { holder });
                wire.put_back(tag);
            } else {
                stage.book.write(Event::SettleAsked { holder });
                wire.ack(tag);
                self.asked.push(holder);
            }
        }
    }
}

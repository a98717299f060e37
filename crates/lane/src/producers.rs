//! Producers that number what they publish, so that what one publishes again is known, however long ago it came.
//!
//! A producer gives each of its messages a sequence, in any order, and says below which it will publish nothing more: its floor. What
//! was taken of it is kept as metadata, in the same step as the message itself, so both are durable or neither is:
//!
//! | key | value |
//! |---|---|
//! | `producers/VHOST/NAME` | the floor; when it was last used, ms since 1970; then the runs of blocks of which everything is taken, each as its first block and how many: numbers of 8 bytes, the lowest byte first |
//! | `producers/VHOST/NAME/BLOCK` | which sequences of a block of 4,096 are taken: 0, then each run of them as two numbers of 2 bytes, first and last in the block; or 1, then a bit for each, from the lowest bit on |
//!
//! So it takes little: a producer whose messages all come takes one key, and each that is left out for a while parts a run in two.
//! Invariant: what is forgotten too early, for want of room or after [`IDLE_MS`], is taken once more; nothing is ever left out that was not taken.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::broker::Broker;
use crate::command::{Publish, Step};
use crate::fact::Fact;
use crate::ids::{Time, VhostId};
use crate::metadata::METADATA_BYTES_MAX;
use crate::refusal::Refusal;

/// Longest name of a producer, bytes.
pub const PRODUCER_NAME_LEN_MAX: usize = 64;
/// Bytes of metadata that what is kept of producers may take: half of all. Beyond it what was not used for longest is forgotten.
pub const PRODUCERS_BYTES_MAX: u64 = METADATA_BYTES_MAX / 2;
/// Bytes of a record that a numbered publish takes more than another, at most: a producer, a block, and what goes.
pub const ORIGIN_LEN_MAX: usize = 4_096;
/// A producer is forgotten after so long, ms: 14 days.
const IDLE_MS: u64 = 14 * 24 * 3_600_000;
/// It is noted so often at most that one is used, ms.
const USED_MS: u64 = 3_600_000;
/// Sequences of a block.
const BLOCK: u64 = 4_096;
/// Most runs of whole blocks of a producer; of more the lowest is forgotten.
const RUNS_MAX: usize = 64;
/// So many keys go at once at most.
const GOES_MAX: usize = 8;
/// Before the keys of all producers.
pub(crate) const ROOM: &str = "producers/";

/// Which message of which producer a publish is. One that was taken before is not published again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    producer: Box<str>,
    sequence: u64,
    floor: u64,
}

impl Origin {
    /// `None`: the name is not one of 1 to [`PRODUCER_NAME_LEN_MAX`] letters, digits, `-`, `_` and `.` of ASCII.
    #[must_use]
    pub fn new(producer: &str, sequence: u64, floor: u64) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let len = producer.len();
        ((1..=PRODUCER_NAME_LEN_MAX).contains(&len) && producer.bytes().all(fits)).then(|| Self {
            producer: producer.into(),
            sequence,
            floor: floor.min(sequence),
        })
    }

    /// A name that no other producer in the virtual host ever has.
    #[must_use]
    pub fn producer(&self) -> &str {
        &self.producer
    }

    /// The number of the message, which no other of the producer's ever has.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The producer publishes nothing below this any more. No more than the sequence.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.floor
    }
}

/// What is kept of a producer beside its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Head {
    floor: u64,
    used: Time,
    /// Of blocks of which everything is taken: the first, and how many. In order, apart from each other.
    whole: Vec<(u64, u64)>,
}

impl Head {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let (floor, used) = (numbers.next()?, Time(numbers.next()?));
        let mut whole = Vec::new();
        while let Some(first) = numbers.next() {
            whole.push((first, numbers.next()?));
        }
        rest.is_empty().then_some(Self { floor, used, whole })
    }

    fn encode(&self) -> Arc<[u8]> {
        let runs = self.whole.iter().flat_map(|(first, count)| [*first, *count]);
        let numbers = [self.floor, self.used.0].into_iter().chain(runs);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    fn has_whole(&self, block: u64) -> bool {
        self.whole.iter().any(|(first, count)| (*first..first.saturating_add(*count)).contains(&block))
    }

    /// Everything of a block is taken.
    fn add_whole(&mut self, block: u64) {
        let at = self.whole.partition_point(|(first, _)| *first < block);
        self.whole.insert(at, (block, 1));
        if self.whole.get(at + 1).is_some_and(|(next, _)| *next == block + 1) {
            self.whole[at].1 += self.whole.remove(at + 1).1;
        }
        if at > 0 && self.whole[at - 1].0.saturating_add(self.whole[at - 1].1) == block {
            self.whole[at - 1].1 += self.whole.remove(at).1;
        }
        if self.whole.len() > RUNS_MAX {
            self.whole.remove(0);
        }
    }

    fn raise(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
        let least = self.floor / BLOCK;
        self.whole.retain(|(first, count)| first.saturating_add(*count) > least);
    }
}

/// Which sequences of a block are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Taken([u64; (BLOCK / 64) as usize]);

impl Taken {
    fn none() -> Self {
        Self([0; (BLOCK / 64) as usize])
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut taken = Self::none();
        match bytes.split_first()? {
            (0, runs) => {
                let (numbers, rest) = runs.as_chunks::<4>();
                for [a, b, c, d] in numbers {
                    let (first, last) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
                    taken.set_all(first.into(), u64::from(last).min(BLOCK - 1));
                }
                rest.is_empty().then_some(taken)
            }
            (1, bits) => {
                let (words, rest) = bits.as_chunks::<8>();
                for (word, bytes) in taken.0.iter_mut().zip(words) {
                    *word = u64::from_le_bytes(*bytes);
                }
                (rest.is_empty() && words.len() == taken.0.len()).then_some(taken)
            }
            _ => None,
        }
    }

    fn encode(&self) -> Arc<[u8]> {
        let bits = self.0.len() * 8;
        let mut bytes = Vec::with_capacity(bits + 1);
        bytes.push(0);
        for (first, last) in self.runs() {
            if bytes.len() + 4 > bits {
                bytes.clear();
                bytes.push(1);
                bytes.extend(self.0.iter().flat_map(|word| word.to_le_bytes()));
                break;
            }
            bytes.extend_from_slice(&(first as u16).to_le_bytes());
            bytes.extend_from_slice(&(last as u16).to_le_bytes());
        }
        bytes.into()
    }

    /// The runs of what is taken: first and last of each.
    fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < BLOCK && self.from(at) == 0 {
                at = (at / 64 + 1) * 64;
            }
            if at >= BLOCK {
                return None;
            }
            at += u64::from(self.from(at).trailing_zeros());
            let first = at;
            while at < BLOCK && self.has(at) {
                at += u64::from(self.from(at).trailing_ones());
            }
            Some((first, at - 1))
        })
    }

    /// The rest of the word in which this one is, from it on.
    fn from(&self, at: u64) -> u64 {
        self.0[(at / 64) as usize] >> (at % 64)
    }

    fn has(&self, at: u64) -> bool {
        self.0[(at / 64) as usize] & (1 << (at % 64)) != 0
    }

    fn set(&mut self, at: u64) {
        self.0[(at / 64) as usize] |= 1 << (at % 64);
    }

    fn set_all(&mut self, first: u64, last: u64) {
        let mut at = first;
        while at <= last {
            let end = last.min(at | 63);
            self.0[(at / 64) as usize] |= (u64::MAX >> (63 - (end - at))) << (at % 64);
            at = end + 1;
        }
    }

    fn is_whole(&self) -> bool {
        self.0.iter().all(|word| *word == u64::MAX)
    }
}

fn head_key(vhost: VhostId, producer: &str) -> String {
    format!("{ROOM}{}/{producer}", vhost.0)
}

fn block_key(head: &str, block: u64) -> String {
    format!("{head}/{block:016x}")
}

/// The key of the producer of whose blocks this is one.
fn block_of(key: &str) -> Option<&str> {
    let name = key.strip_prefix(ROOM)?.find('/')? + ROOM.len() + 1;
    Some(&key[..name + key[name..].find('/')?])
}

impl Broker {
    /// Whether a publish was taken before: by what is kept, or, within one command, by what came before in it.
    pub(crate) fn was_taken<'p>(
        &self,
        publish: &'p Publish,
        before: &mut BTreeSet<(&'p str, u64)>,
    ) -> Result<bool, Refusal> {
        let Some(Origin { producer, sequence, .. }) = publish.origin.as_deref() else { return Ok(false) };
        if self.metadata_size().cost() + ORIGIN_LEN_MAX as u64 > METADATA_BYTES_MAX {
            return Err(Refusal::MetadataFull);
        }
        Ok(!before.insert((producer, *sequence)) || self.has_of(producer, *sequence))
    }

    fn has_of(&self, producer: &str, sequence: u64) -> bool {
        let key = head_key(self.asking.vhost, producer);
        let Some(head) = self.metadata_of(&key).and_then(|bytes| Head::decode(bytes)) else { return false };
        let block = sequence / BLOCK;
        sequence < head.floor
            || head.has_whole(block)
            || self.taken_of(&block_key(&key, block)).is_some_and(|taken| taken.has(sequence % BLOCK))
    }

    fn taken_of(&self, key: &str) -> Option<Taken> {
        Taken::decode(self.metadata_of(key)?)
    }

    /// A publish is taken: it is not taken again.
    pub(crate) fn take_of(&mut self, publish: &Publish, step: &mut Step) {
        let Some(Origin { producer, sequence, floor }) = publish.origin.as_deref() else { return };
        let key = head_key(self.asking.vhost, producer);
        let before = self.metadata_of(&key).and_then(|bytes| Head::decode(bytes));
        let is_new = before.is_none();
        let mut head = before.clone().unwrap_or_default();
        head.raise(*floor);
        let (block, at) = (sequence / BLOCK, sequence % BLOCK);
        let own = block_key(&key, block);
        let mut taken = self.taken_of(&own).unwrap_or_else(Taken::none);
        taken.set(at);
        if taken.is_whole() {
            head.add_whole(block);
            self.drop_key(&own, step);
        } else {
            self.keep_value(&own, taken.encode(), step);
        }
        if head.used.after(USED_MS) <= self.now || is_new {
            head.used = self.now;
        }
        if before.as_ref() != Some(&head) {
            self.keep_value(&key, head.encode(), step);
        }
        self.drop_below(&key, head.floor / BLOCK, step);
        if is_new || self.metadata.producers() > PRODUCERS_BYTES_MAX {
            self.forget_idle(&key, step);
        }
    }

    /// What is below the floor of a producer goes.
    fn drop_below(&mut self, key: &str, least: u64, step: &mut Step) {
        let (from, to) = (block_key(key, 0), block_key(key, least));
        let all = self.metadata.range(&from, &to);
        let gone: Vec<Arc<str>> = all.take(GOES_MAX).map(|(key, _)| Arc::clone(key)).collect();
        for key in gone {
            self.drop_key(&key, step);
        }
    }

    /// Some of whoever was not used for longest goes, if that is long ago or there is no room; with nobody else, what is lowest of this one.
    fn forget_idle(&mut self, own: &str, step: &mut Step) {
        let is_full = self.metadata.producers() > PRODUCERS_BYTES_MAX;
        let others = self.producers().filter(|(key, _)| ***key != *own);
        let used = others.map(|(key, value)| (Head::decode(value).unwrap_or_default().used, Arc::clone(key)));
        let idlest = used.min().filter(|(used, _)| is_full || used.after(IDLE_MS) <= self.now);
        let (key, has_head) = match idlest {
            Some((_, key)) => (key, true),
            None if is_full => (Arc::from(own), false),
            None => return,
        };
        let room = format!("{key}/");
        let blocks = self.metadata.of_room(&room);
        let gone: Vec<Arc<str>> = blocks.take(GOES_MAX).map(|(key, _)| Arc::clone(key)).collect();
        let is_all = gone.len() < GOES_MAX;
        for key in gone {
            self.drop_key(&key, step);
        }
        if is_all && has_head {
            self.drop_key(&key, step);
        }
    }

    /// What is kept of each producer beside its blocks, which are passed over.
    fn producers(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<[u8]>)> {
        let mut from = ROOM.to_owned();
        std::iter::from_fn(move || {
            loop {
                let (key, value) =
                    self.metadata.first_from(&from).filter(|(key, _)| key.starts_with(ROOM))?;
                match block_of(key) {
                    None => {
                        from = format!("{key}\0");
                        return Some((key, value));
                    }
                    // What follows the slash before the numbers of blocks.
                    Some(head) => from = format!("{head}0"),
                }
            }
        })
    }

    /// The keys of the producers of a virtual host go with it.
    pub(crate) fn forget_producers(&mut self, vhost: VhostId, step: &mut Step) {
        let room = format!("{ROOM}{}/", vhost.0);
        let gone: Vec<Arc<str>> = self.metadata.of_room(&room).map(|(key, _)| Arc::clone(key)).collect();
        for key in gone {
            self.drop_key(&key, step);
        }
    }

    fn keep_value(&mut self, key: &str, value: Arc<[u8]>, step: &mut Step) {
        let key: Arc<str> = key.into();
        self.metadata.store(Arc::clone(&key), Arc::clone(&value));
        step.facts.push(Fact::MetadataStored { key, value });
    }

    fn drop_key(&mut self, key: &str, step: &mut Step) {
        if self.metadata_of(key).is_some() {
            self.metadata.remove(key);
            step.facts.push(Fact::MetadataRemoved { key: key.into() });
        }
    }
}

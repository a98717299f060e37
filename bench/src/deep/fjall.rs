//! fjall as a queue: one keyspace whose key is the order, most urgent and oldest first.
//!
//! | key | bytes |
//! |---|---|
//! | 255 − priority | 1 |
//! | sequence, big endian | 8 |
//!
//! What was deleted at the front of a log-structured tree is passed over again by each reader that starts there. So it is
//! remembered for each level where the next lease starts, and nothing is read twice.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::queue::{Leased, Message, MinimalQueue};

/// The documentation recommends 20 to 25 % of the memory; this is as much as the other reference gets.
const CACHE_BYTES: u64 = 256 << 20;

pub(super) struct Fjall {
    database: Database,
    messages: Keyspace,
    next_seq: u64,
    /// By inverted priority: the least sequence that may be there and not leased. A level without an entry is empty.
    fronts: BTreeMap<u8, u64>,
}

pub(super) type Key = [u8; 9];

fn key(level: u8, seq: u64) -> Key {
    let mut key = [level; 9];
    key[1..].copy_from_slice(&seq.to_be_bytes());
    key
}

fn take_apart(key: &[u8]) -> (u8, u64) {
    let (level, seq) = key.split_first().expect("a key has nine bytes");
    (*level, u64::from_be_bytes(seq.try_into().expect("a key has nine bytes")))
}

impl Fjall {
    /// One step from level to level, not one per message.
    fn find_fronts(&mut self) {
        let mut level = 0;
        loop {
            let Some(first) = self.messages.range(key(level, 0)..).next() else { return };
            let (found, front) = take_apart(&first.key().expect("it can be read"));
            let last =
                self.messages.range(key(found, 0)..=key(found, u64::MAX)).next_back().expect("it has one");
            let (_, last) = take_apart(&last.key().expect("it can be read"));
            self.fronts.insert(found, front);
            self.next_seq = self.next_seq.max(last + 1);
            match found.checked_add(1) {
                Some(next) => level = next,
                None => return,
            }
        }
    }

    /// Adds to what is leased from one level; whether that leaves nothing.
    fn lease_level(&mut self, level: u8, max: usize, leased: &mut Vec<Leased<Key>>) -> bool {
        let front = self.fronts[&level];
        for pair in self.messages.range(key(level, front)..=key(level, u64::MAX)) {
            if leased.len() == max {
                return false;
            }
            let (found, body) = pair.into_inner().expect("it can be read");
            let (_, seq) = take_apart(&found);
            // Copied, since a slice of a block keeps the whole block in memory.
            let body = Bytes::copy_from_slice(&body);
            leased.push(Leased { ticket: key(level, seq), priority: u8::MAX - level, body });
            self.fronts.insert(level, seq + 1);
        }
        true
    }
}

impl MinimalQueue for Fjall {
    type Ticket = Key;
    const IS_PIPELINED: bool = false;

    fn create(dir: &Path) -> Self {
        Self::open(dir)
    }

    fn open(dir: &Path) -> Self {
        let builder = Database::builder(dir).cache_size(CACHE_BYTES).manual_journal_persist(true);
        let database = builder.open().expect("the database opens");
        let messages = database.keyspace("messages", KeyspaceCreateOptions::default).expect("a keyspace");
        let mut found = Self { database, messages, next_seq: 1, fronts: BTreeMap::new() };
        found.find_fronts();
        found
    }

    fn publish_batch(&mut self, batch: Vec<Message>) {
        let mut writes = self.database.batch();
        for message in batch {
            let level = u8::MAX - message.priority;
            writes.insert(&self.messages, key(level, self.next_seq), &*message.body);
            self.fronts.entry(level).or_insert(self.next_seq);
            self.next_seq += 1;
        }
        writes.commit().expect("there is room");
    }

    fn lease_batch(&mut self, max: usize) -> Vec<Leased<Key>> {
        let mut leased = Vec::with_capacity(max);
        while leased.len() < max
            && let Some((&level, _)) = self.fronts.first_key_value()
        {
            if self.lease_level(level, max, &mut leased) {
                self.fronts.remove(&level);
            }
        }
        leased
    }

    fn ack_batch(&mut self, tickets: Vec<Key>) {
        let mut writes = self.database.batch();
        for ticket in tickets {
            writes.remove(&self.messages, ticket);
        }
        writes.commit().expect("there is room");
    }

    fn sync(&mut self) {
        self.database.persist(PersistMode::SyncData).expect("a sync");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_keeps_order_and_what_was_not_acknowledged() {
        super::super::queue::check::<super::Fjall>("e:9 c:1 f:1");
    }
}

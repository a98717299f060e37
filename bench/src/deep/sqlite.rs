//! SQLite as a queue: one table and one index, as is usual; write-ahead log and `synchronous=FULL`, so that a commit is
//! on the disk (<https://www.sqlite.org/pragma.html#pragma_synchronous>).

use std::path::Path;

use rusqlite::{Connection, params};

use super::queue::{Leased, Message, MinimalQueue};

/// The page cache, in negative KiB as SQLite has it: as much as the other reference gets.
const TUNING: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA cache_size = -262144;
";
const TABLE: &str = "
    CREATE TABLE messages (
        seq INTEGER PRIMARY KEY, priority INTEGER NOT NULL, leased INTEGER NOT NULL, body BLOB NOT NULL
    ) STRICT;
    CREATE INDEX turn ON messages (leased, priority DESC, seq);
";
const PUBLISH: &str = "INSERT INTO messages (priority, leased, body) VALUES (?1, 0, ?2)";
const LEASE: &str = "
    UPDATE messages SET leased = 1
    WHERE seq IN (SELECT seq FROM messages WHERE leased = 0 ORDER BY priority DESC, seq LIMIT ?1)
    RETURNING seq, priority, body
";
const ACK: &str = "DELETE FROM messages WHERE seq = ?1";
const PUT_BACK: &str = "UPDATE messages SET leased = 0 WHERE leased = 1";

pub(super) struct Sqlite {
    database: Connection,
}

impl Sqlite {
    fn connect(dir: &Path) -> Self {
        let database = Connection::open(dir.join("queue.sqlite")).expect("the database opens");
        database.execute_batch(TUNING).expect("it can be tuned");
        Self { database }
    }

    /// Everything between two syncs is one transaction.
    fn begin(&self) {
        if self.database.is_autocommit() {
            self.database.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
        }
    }
}

impl MinimalQueue for Sqlite {
    type Ticket = i64;
    const IS_PIPELINED: bool = false;

    fn create(dir: &Path) -> Self {
        let new = Self::connect(dir);
        new.database.execute_batch(TABLE).expect("a new table");
        new
    }

    fn open(dir: &Path) -> Self {
        let found = Self::connect(dir);
        found.database.execute(PUT_BACK, []).expect("the leases of the last life end");
        found
    }

    fn publish_batch(&mut self, batch: Vec<Message>) {
        self.begin();
        let mut publish = self.database.prepare_cached(PUBLISH).expect("it is SQL");
        for message in batch {
            publish.execute(params![message.priority, &*message.body]).expect("there is room");
        }
    }

    fn lease_batch(&mut self, max: usize) -> Vec<Leased<i64>> {
        self.begin();
        let mut lease = self.database.prepare_cached(LEASE).expect("it is SQL");
        let rows = lease
            .query_map([max as i64], |row| {
                let body: Vec<u8> = row.get(2)?;
                Ok(Leased { ticket: row.get(0)?, priority: row.get(1)?, body: body.into() })
            })
            .expect("a lease");
        let mut leased: Vec<_> = rows.map(|row| row.expect("a row")).collect();
        // RETURNING promises no order.
        leased.sort_unstable_by_key(|one| (u8::MAX - one.priority, one.ticket));
        leased
    }

    fn ack_batch(&mut self, tickets: Vec<i64>) {
        self.begin();
        let mut ack = self.database.prepare_cached(ACK).expect("it is SQL");
        for seq in tickets {
            assert_eq!(ack.execute([seq]).expect("a row goes"), 1, "it was there");
        }
    }

    fn sync(&mut self) {
        if !self.database.is_autocommit() {
            self.database.execute_batch("COMMIT").expect("a commit");
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_keeps_order_and_what_was_not_acknowledged() {
        super::super::queue::check::<super::Sqlite>("e:9 c:1 f:1");
    }
}

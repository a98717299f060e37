//! Everything that is asked of a table, as text, made once.
//!
//! Only `pending` rows may be claimed, and an index holds just those, in the order of the claim; so a claim reads what it takes and nothing else. What may be
//! claimed later, failed rows and those of relays that died, is put back among them by statements with small indexes of their own.
//!
//! A claim writes its own token into `locked_by`, and every later statement about its rows asks for that token: whoever was too slow changes nothing any more.

use overtake_client::outbox::Dialect;

use super::grammar::Grammar;
use super::pool::Sql;
use crate::table::{Status, StreamOf};

/// How many rows one statement puts back at most.
pub(crate) const PUT_BACK_MAX: usize = 1_000;

/// The statements of one table. Arguments in the order that is said.
#[derive(Clone, Debug)]
pub(crate) struct Statements {
    /// Token, lock in ms (PostgreSQL); nothing (others, which only find them).
    pub(crate) claim: Sql,
    /// Batch, lock in ms, token.
    #[cfg_attr(
        not(any(feature = "mysql", feature = "sqlite")),
        expect(dead_code, reason = "PostgreSQL does both in one")
    )]
    pub(crate) lock: Sql,
    /// Batch, token.
    pub(crate) publish: Sql,
    /// Batch, token.
    pub(crate) fail: Sql,
    /// Batch, token.
    pub(crate) abandon: Sql,
    /// Batch, token.
    pub(crate) release: Sql,
    /// Rows of locks that are over.
    pub(crate) put_back_expired: Sql,
    /// Rows that are being processed without a lock.
    pub(crate) put_back_unlocked: Sql,
    /// Failed rows whose time has come.
    pub(crate) put_back_due: Sql,
    /// Failed rows without a time.
    pub(crate) put_back_undated: Sql,
    /// Priority, state, rows, seconds of the oldest: of all rows that are to be published.
    pub(crate) lag: Sql,
    /// Token, rows, seconds until the lock is over.
    pub(crate) held: Sql,
    /// State, reason, rows.
    pub(crate) reasons: Sql,
}

impl Statements {
    pub(crate) fn of(grammar: &Grammar, limit: usize, keeps_key_order: bool) -> Self {
        let say = Sayer { grammar };
        Self {
            claim: say.claim(limit, keeps_key_order).into(),
            lock: say.lock().into(),
            publish: say.publish().into(),
            fail: say.fail().into(),
            abandon: say.abandon().into(),
            release: say.of_claim(&[say.set_pending()]).into(),
            put_back_expired: say.put_back(Status::Processing, &say.over(&say.columns().locked_until)).into(),
            put_back_unlocked: say
                .put_back(Status::Processing, &say.missing(&say.columns().locked_until))
                .into(),
            put_back_due: say.put_back(Status::Failed, &say.over(&say.columns().next_attempt_at)).into(),
            put_back_undated: say
                .put_back(Status::Failed, &say.missing(&say.columns().next_attempt_at))
                .into(),
            lag: say.lag().into(),
            held: say.held().into(),
            reasons: say.reasons().into(),
        }
    }
}

struct Sayer<'g> {
    grammar: &'g Grammar,
}

impl Sayer<'_> {
    fn columns(&self) -> &crate::table::Columns {
        &self.grammar.table.columns
    }

    // ---- claiming ----

    /// What is read of a row, in the order in which [`super::row`] takes it.
    fn row(&self) -> String {
        let g = self.grammar;
        let c = self.columns();
        let text = |name: &Option<String>| name.as_ref().map_or("NULL".to_owned(), |name| g.text(name));
        let number = |name: &Option<String>| name.as_ref().map_or("NULL".to_owned(), |name| g.number(name));
        let stream = match &c.stream {
            StreamOf::Column(name) => g.text(name),
            StreamOf::Pointer { column, .. } => g.object(column),
            StreamOf::Fixed(_) => "NULL".to_owned(),
        };
        [
            g.key(),
            text(&c.message_id),
            stream,
            text(&c.kind),
            g.body(&c.data),
            c.metadata.as_ref().map_or("NULL".to_owned(), |name| g.object(name)),
            number(&c.priority),
            text(&c.partition_key),
            g.number(&c.attempts),
            number(&c.max_attempts),
        ]
        .join(", ")
    }

    fn claim(&self, limit: usize, keeps_key_order: bool) -> String {
        let g = self.grammar;
        let (table, id) = (g.table(), g.quote(&self.columns().id));
        let free = if keeps_key_order { self.free() } else { String::new() };
        let next = format!(
            "FROM {table} AS o WHERE {}{free} ORDER BY {} LIMIT {limit}",
            g.is(Status::Pending),
            g.urgency()
        );
        match g.dialect {
            Dialect::Postgres => {
                let c = self.columns();
                let (status, by, until) =
                    (g.quote(&c.status), g.quote(&c.locked_by), g.quote(&c.locked_until));
                // Columns that are returned are the table's: what was found has other names.
                format!(
                    "WITH found AS MATERIALIZED (SELECT {id} AS found_id {next} FOR UPDATE SKIP LOCKED), \
                     placed AS MATERIALIZED (SELECT found_id, row_number() OVER () AS found_place FROM found) \
                     UPDATE {table} AS o SET {status} = {}, {by} = $1, {until} = {} FROM placed WHERE o.{id} = found_id \
                     RETURNING {}, found_place",
                    g.word(Status::Processing),
                    g.after(&c.locked_until, "$2::bigint"),
                    self.row(),
                )
            }
            Dialect::MySql => format!("SELECT {} {next} FOR UPDATE SKIP LOCKED", self.row()),
            Dialect::Sqlite => format!("SELECT {} {next}", self.row()),
        }
    }

    /// No earlier row of the same key and priority is under way or waits for another attempt.
    fn free(&self) -> String {
        let g = self.grammar;
        let c = self.columns();
        let Some(key) = c.partition_key.as_ref().map(|name| g.quote(name)) else { return String::new() };
        let status = g.quote(&c.status);
        let tuple = |of: &str| {
            let all: Vec<_> = g.table.order().iter().map(|name| format!("{of}.{}", g.quote(name))).collect();
            format!("({})", all.join(", "))
        };
        let same = c.priority.as_ref().map_or(String::new(), |name| {
            let priority = g.quote(name);
            format!(" AND e.{priority} = o.{priority}")
        });
        format!(
            " AND (o.{key} IS NULL OR NOT EXISTS (SELECT 1 FROM {} AS e WHERE e.{key} = o.{key}{same} AND e.{status} IN ({}, {}) AND {} < {}))",
            g.table(),
            g.word(Status::Processing),
            g.word(Status::Failed),
            tuple("e"),
            tuple("o"),
        )
    }

    /// Takes what a claim found, where finding and taking are two statements.
    fn lock(&self) -> String {
        let g = self.grammar;
        let c = self.columns();
        let until = g.after(&c.locked_until, "?");
        let set = [
            (&c.status, g.word(Status::Processing)),
            (&c.locked_until, until),
            (&c.locked_by, "?".to_owned()),
        ];
        self.of_batch(&set.map(|(name, value)| (name.clone(), value)), "")
    }

    // ---- marking ----

    fn publish(&self) -> String {
        let g = self.grammar;
        let mut set = vec![(self.columns().status.clone(), g.word(Status::Published))];
        set.extend(self.columns().published_at.iter().map(|name| (name.clone(), g.now(name))));
        set.extend(self.columns().last_error.iter().map(|name| (name.clone(), "NULL".to_owned())));
        self.of_claim(&[set])
    }

    fn fail(&self) -> String {
        let g = self.grammar;
        let due = &self.columns().next_attempt_at;
        let set = vec![
            (self.columns().status.clone(), g.word(Status::Failed)),
            (due.clone(), g.after(due, "b.wait")),
        ];
        self.of_claim(&[set, self.set_tried()])
    }

    fn abandon(&self) -> String {
        let g = self.grammar;
        let mut set = vec![
            (self.columns().status.clone(), g.word(Status::Abandoned)),
            (self.columns().next_attempt_at.clone(), "NULL".to_owned()),
        ];
        set.extend(self.columns().abandoned_at.iter().map(|name| (name.clone(), g.now(name))));
        self.of_claim(&[set, self.set_tried()])
    }

    fn set_tried(&self) -> Vec<(String, String)> {
        let g = self.grammar;
        let attempts = &self.columns().attempts;
        let mut set = vec![(attempts.clone(), format!("o.{} + 1", g.quote(attempts)))];
        set.extend(self.columns().last_error.iter().map(|name| (name.clone(), g.error(name, "b.error"))));
        set
    }

    fn set_pending(&self) -> Vec<(String, String)> {
        vec![(self.columns().status.clone(), self.grammar.word(Status::Pending))]
    }

    fn set_unlocked(&self) -> Vec<(String, String)> {
        let c = self.columns();
        [&c.locked_by, &c.locked_until].map(|name| (name.clone(), "NULL".to_owned())).into()
    }

    /// Changes the rows of a batch that a claim still has, and unlocks them.
    fn of_claim(&self, set: &[Vec<(String, String)>]) -> String {
        let g = self.grammar;
        let mut all = set.concat();
        all.extend(self.set_unlocked());
        // Neither of these finds the rows: that is the key's to do.
        let plus = if g.dialect == Dialect::Sqlite { "+" } else { "" };
        let still = format!(
            " AND {plus}o.{} = {} AND {plus}o.{} = {}",
            g.quote(&self.columns().status),
            g.word(Status::Processing),
            g.quote(&self.columns().locked_by),
            g.dialect.placeholder(2),
        );
        self.of_batch(&all, &still)
    }

    /// Changes the rows of a batch.
    fn of_batch(&self, set: &[(String, String)], and: &str) -> String {
        let g = self.grammar;
        let (table, batch, same) = (g.table(), g.batch(&g.dialect.placeholder(1)), g.same());
        let of = if g.dialect == Dialect::MySql { "o." } else { "" };
        let set: Vec<_> =
            set.iter().map(|(name, value)| format!("{of}{} = {value}", g.quote(name))).collect();
        let set = set.join(", ");
        match g.dialect {
            // Straight: the batch is read, and its rows looked up, never the other way round.
            Dialect::MySql => {
                format!("UPDATE {batch} STRAIGHT_JOIN {table} AS o ON {same} SET {set} WHERE TRUE{and}")
            }
            Dialect::Sqlite => {
                // In the order of the placeholders: the batch is named first, above what is set.
                format!(
                    "WITH b AS MATERIALIZED (SELECT * FROM {batch}) UPDATE {table} AS o SET {set} FROM b WHERE {same}{and}"
                )
            }
            Dialect::Postgres => format!("UPDATE {table} AS o SET {set} FROM {batch} WHERE {same}{and}"),
        }
    }

    // ---- putting back ----

    fn over(&self, column: &str) -> String {
        format!("{} <= {}", self.grammar.quote(column), self.grammar.since(column))
    }

    fn missing(&self, column: &str) -> String {
        format!("{} IS NULL", self.grammar.quote(column))
    }

    fn put_back(&self, from: Status, when: &str) -> String {
        let g = self.grammar;
        let set = [self.set_pending(), self.set_unlocked()].concat();
        let set: Vec<_> = set.iter().map(|(name, value)| format!("{} = {value}", g.quote(name))).collect();
        limited(
            g,
            &format!("UPDATE {} SET {}", g.table(), set.join(", ")),
            &format!("{} AND {when}", g.is(from)),
            PUT_BACK_MAX,
        )
    }

    // ---- looking ----

    fn lag(&self) -> String {
        let g = self.grammar;
        let c = self.columns();
        let priority = c.priority.as_ref().map_or("0".to_owned(), |name| g.number(name));
        let oldest = c.created_at.as_ref();
        let oldest =
            oldest.map_or("NULL".to_owned(), |name| g.age_s(name, &format!("MIN({})", g.quote(name))));
        let status = g.quote(&c.status);
        let words =
            [Status::Pending, Status::Processing, Status::Failed].map(|status| g.word(status)).join(", ");
        let grouped = c.priority.as_ref().map_or(String::new(), |name| format!("{}, ", g.quote(name)));
        format!(
            "SELECT {priority}, {}, COUNT(*), {oldest} FROM {} WHERE {status} IN ({words}){} GROUP BY {grouped}{status}",
            g.text(&c.status),
            g.table(),
            g.only(),
        )
    }

    fn held(&self) -> String {
        let g = self.grammar;
        let c = self.columns();
        let left = g.age_s(&c.locked_until, &format!("MAX({})", g.quote(&c.locked_until)));
        let by = g.text(&c.locked_by);
        format!(
            "SELECT {by}, COUNT(*), -({left}) FROM {} WHERE {} GROUP BY {by} ORDER BY 2 DESC LIMIT 1000",
            g.table(),
            g.is(Status::Processing)
        )
    }

    fn reasons(&self) -> String {
        let g = self.grammar;
        let c = self.columns();
        let reason = c.last_error.as_ref().map_or("NULL".to_owned(), |name| g.text(name));
        let status = g.quote(&c.status);
        let words = [Status::Failed, Status::Abandoned].map(|status| g.word(status)).join(", ");
        format!(
            "SELECT status, reason, COUNT(*) FROM (SELECT {} AS status, {reason} AS reason FROM {} WHERE {status} IN ({words}){}) AS stuck \
             GROUP BY status, reason ORDER BY 3 DESC LIMIT 1000",
            g.text(&c.status),
            g.table(),
            g.only(),
        )
    }
}

/// Does something to so many rows at most.
pub(crate) fn limited(g: &Grammar, does: &str, to: &str, limit: usize) -> String {
    let id = g.quote(&g.table.columns.id);
    match g.dialect {
        Dialect::MySql => format!("{does} WHERE {to} LIMIT {limit}"),
        Dialect::Sqlite => {
            format!("{does} WHERE {id} IN (SELECT {id} FROM {} WHERE {to} LIMIT {limit})", g.table())
        }
        Dialect::Postgres => {
            let found =
                format!("SELECT {id} FROM {} WHERE {to} LIMIT {limit} FOR UPDATE SKIP LOCKED", g.table());
            format!("{does} WHERE {id} = ANY(ARRAY({found}))")
        }
    }
}

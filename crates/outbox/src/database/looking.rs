//! What people ask of an outbox, and what they may change.

use std::collections::BTreeSet;
use std::time::Duration;

use overtake_client::outbox::Dialect;

use super::pool::{Argument, Sql};
use super::statements::{PUT_BACK_MAX, limited};
use super::{Cell, Database};
use crate::error::Error;
use crate::row::{stream_of, text_of};
use crate::table::{Status, StreamOf};

/// What of one priority waits to be published.
#[derive(Clone, Debug, PartialEq)]
pub struct Lag {
    /// Larger is more urgent.
    pub priority: i32,
    /// Rows that may be claimed.
    pub pending: u64,
    /// Rows that a relay has.
    pub processing: u64,
    /// Rows that are tried again later.
    pub failed: u64,
    /// Seconds since the oldest of them was written; nothing where the table does not say.
    pub oldest_s: Option<f64>,
}

/// What a claim has.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The claim's token: relay, slash, number.
    pub by: String,
    /// How many rows.
    pub rows: u64,
    /// Seconds until its lock is over; negative: it is over. Nothing: there is no lock.
    pub left_s: Option<f64>,
}

/// Why rows are not published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Failed or abandoned.
    pub status: Status,
    /// As it was written down.
    pub reason: String,
    /// How many rows.
    pub rows: u64,
}

/// Which rows are meant. What is not said is not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// In one of these states; none: in any.
    pub status: Vec<Status>,
    /// With one of these message ids; none: with any.
    pub message_ids: Vec<String>,
    /// Of this stream, where streams stand in a column.
    pub stream: Option<String>,
    /// Of this priority.
    pub priority: Option<i32>,
    /// Whose last error has this text in it.
    pub reason: Option<String>,
}

/// A row as it stands in the table; times as the database writes them, values that Python has pickled as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Each column that is mapped, by the name of its setting, in the order of the settings.
    pub columns: Vec<(&'static str, Option<String>)>,
}

impl Shown {
    /// What stands in a column, by the name of its setting.
    #[must_use]
    pub fn get(&self, setting: &str) -> Option<&str> {
        let (_, text) = self.columns.iter().find(|(name, _)| *name == setting)?;
        text.as_deref()
    }
}

impl Database {
    /// What waits to be published, the most urgent first. It reads all of it: a million rows take a good part of a second.
    ///
    /// # Errors
    /// Of the database.
    pub async fn lag(&self) -> Result<Vec<Lag>, Error> {
        let mut lags: Vec<Lag> = Vec::new();
        for line in self.others.lines(&self.statements.lag, &[]).await? {
            let priority = i32::try_from(line[0].number().unwrap_or_default()).unwrap_or(i32::MAX);
            let at = lags.iter().position(|lag| lag.priority == priority).unwrap_or_else(|| {
                lags.push(Lag { priority, pending: 0, processing: 0, failed: 0, oldest_s: None });
                lags.len() - 1
            });
            let lag = &mut lags[at];
            let rows = count(&line[2]);
            match self.state_of(&line[1]) {
                Some(Status::Pending) => lag.pending = rows,
                Some(Status::Processing) => lag.processing = rows,
                _ => lag.failed = rows,
            }
            let oldest = line[3].real().map(|age| age.max(0.0));
            lag.oldest_s = lag.oldest_s.into_iter().chain(oldest).reduce(f64::max);
        }
        lags.sort_by_key(|lag| std::cmp::Reverse(lag.priority));
        Ok(lags)
    }

    /// The streams of the newest rows by their keys, each once: of ten thousand rows, or a thousand where a stream stands inside another column. A row that names none is passed over.
    ///
    /// # Errors
    /// Of the database.
    pub async fn streams(&self) -> Result<Vec<String>, Error> {
        let g = &self.grammar;
        let from = &g.table.columns.stream;
        let (column, rows) = match from {
            StreamOf::Fixed(stream) => return Ok(vec![stream.clone()]),
            StreamOf::Column(name) => (g.text(name), 10_000),
            StreamOf::Pointer { column, .. } => (g.object(column), 1_000),
        };
        let newest = format!(
            "SELECT {column} AS named FROM {} WHERE 1 = 1{} ORDER BY {} DESC LIMIT {rows}",
            g.table(),
            g.only(),
            g.quote(&g.table.columns.id),
        );
        let sql = match from {
            StreamOf::Column(_) => format!("SELECT DISTINCT named FROM ({newest}) AS newest"),
            _ => newest,
        };
        let found = self.others.lines(&sql.into(), &[]).await?;
        let streams: BTreeSet<_> = found.iter().filter_map(|line| stream_of(from, &line[0]).ok()).collect();
        Ok(streams.into_iter().collect())
    }

    /// Which claims have rows, those with the most first, a thousand at most.
    ///
    /// # Errors
    /// Of the database.
    pub async fn held(&self) -> Result<Vec<Held>, Error> {
        let found = self.others.lines(&self.statements.held, &[]).await?;
        let held = found.iter().map(|line| Held {
            by: line[0].text().unwrap_or_default(),
            rows: count(&line[1]),
            left_s: line[2].real(),
        });
        Ok(held.collect())
    }

    /// Why rows failed or were given up, the commonest first, a thousand at most.
    ///
    /// # Errors
    /// Of the database.
    pub async fn reasons(&self) -> Result<Vec<Reason>, Error> {
        let found = self.others.lines(&self.statements.reasons, &[]).await?;
        let reasons = found.iter().filter_map(|line| {
            Some(Reason {
                status: self.state_of(&line[0])?,
                reason: line[1].text().unwrap_or_default(),
                rows: count(&line[2]),
            })
        });
        Ok(reasons.collect())
    }

    /// How many rows were published, or given up, longer ago than this, and are there still.
    ///
    /// # Errors
    /// Of the database.
    pub async fn uncleaned(&self, status: Status, older_than: Duration) -> Result<u64, Error> {
        let c = &self.grammar.table.columns;
        let time = match status {
            Status::Abandoned => c.abandoned_at.as_ref().or(c.created_at.as_ref()),
            _ => c.published_at.as_ref(),
        };
        let Some(time) = time else { return Ok(0) };
        let g = &self.grammar;
        let older = older_than.as_secs_f64();
        let age = g.age_s(time, &g.quote(time));
        let sql = format!("SELECT COUNT(*) FROM {} WHERE {} AND {age} >= {older}", g.table(), g.is(status));
        let found = self.others.lines(&sql.into(), &[]).await?;
        Ok(found.first().map_or(0, |line| count(&line[0])))
    }

    /// Rows as they stand in the table, in the order of the claim.
    ///
    /// # Errors
    /// Of the database.
    pub async fn show(&self, filter: &Filter, limit: usize) -> Result<Vec<Shown>, Error> {
        let g = &self.grammar;
        let named = g.table.columns.named();
        let columns: Vec<_> = named.iter().map(|(_, name)| g.object(name)).collect();
        let mut arguments = Vec::new();
        let to = self.those(filter, &mut arguments)?;
        let (table, urgency) = (g.table(), g.urgency());
        let sql =
            format!("SELECT {} FROM {table} WHERE {to} ORDER BY {urgency} LIMIT {limit}", columns.join(", "));
        let found = self.others.lines(&sql.into(), &arguments).await?;
        let shown = found.iter().map(|line| Shown {
            columns: named.iter().zip(line).map(|((setting, _), cell)| (*setting, text_of(cell))).collect(),
        });
        Ok(shown.collect())
    }

    /// Lets failed and abandoned rows be claimed at once, with all their attempts before them: how many.
    ///
    /// # Errors
    /// Of the database; some may be claimable by then.
    pub async fn retry(&self, filter: &Filter) -> Result<u64, Error> {
        let g = &self.grammar;
        let c = &g.table.columns;
        let stuck = [Status::Failed, Status::Abandoned];
        let mut meant = filter.clone();
        meant.status.retain(|status| stuck.contains(status));
        if meant.status.is_empty() {
            if !filter.status.is_empty() {
                return Ok(0);
            }
            meant.status = stuck.into();
        }
        let mut arguments = Vec::new();
        let to = self.those(&meant, &mut arguments)?;
        let mut set = vec![
            format!("{} = {}", g.quote(&c.status), g.word(Status::Pending)),
            format!("{} = 0", g.quote(&c.attempts)),
        ];
        let cleared = [&c.next_attempt_at, &c.locked_by, &c.locked_until].into_iter().chain(&c.abandoned_at);
        set.extend(cleared.map(|name| format!("{} = NULL", g.quote(name))));
        let does = format!("UPDATE {} SET {}", g.table(), set.join(", "));
        let sql = Sql::from(limited(g, &does, &to, PUT_BACK_MAX));
        let mut all = 0;
        loop {
            let some = self.others.change(&sql, &arguments).await?;
            all += some;
            if some < PUT_BACK_MAX as u64 {
                return Ok(all);
            }
        }
    }

    /// What makes a row one that is meant.
    fn those(&self, filter: &Filter, arguments: &mut Vec<Argument>) -> Result<String, Error> {
        let g = &self.grammar;
        let c = &g.table.columns;
        let status = if filter.status.is_empty() { &Status::ALL[..] } else { &filter.status };
        let words: Vec<_> = status.iter().map(|status| g.word(*status)).collect();
        let mut to = format!("{} IN ({}){}", g.quote(&c.status), words.join(", "), g.only());
        let mut argument = |text: &str| {
            arguments.push(text.into());
            g.dialect.placeholder(arguments.len())
        };
        if !filter.message_ids.is_empty() {
            let name = c.message_id.as_ref().unwrap_or(&c.id);
            let ids: Vec<_> = filter.message_ids.iter().map(|id| argument(id)).collect();
            to.push_str(&format!(" AND {} IN ({})", g.text(name), ids.join(", ")));
        }
        if let Some(stream) = &filter.stream {
            let StreamOf::Column(name) = &c.stream else {
                return Err(Error::Invalid(
                    "only streams that stand in a column can be asked for".to_owned(),
                ));
            };
            to.push_str(&format!(" AND {} = {}", g.text(name), argument(stream)));
        }
        if let Some(reason) = &filter.reason {
            let Some(name) = &c.last_error else {
                return Err(Error::Invalid("the table has no column for errors".to_owned()));
            };
            let (text, wanted) = (g.text(name), argument(reason));
            to.push_str(&match g.dialect {
                Dialect::Postgres => format!(" AND strpos({text}, {wanted}) > 0"),
                _ => format!(" AND instr({text}, {wanted}) > 0"),
            });
        }
        if let Some(priority) = filter.priority {
            match &c.priority {
                Some(name) => to.push_str(&format!(" AND {} = {priority}", g.quote(name))),
                None if priority == 0 => (),
                None => to.push_str(" AND 1 = 0"),
            }
        }
        Ok(to)
    }

    fn state_of(&self, cell: &Cell) -> Option<Status> {
        let word = cell.text()?;
        Status::ALL.into_iter().find(|status| self.grammar.table.words.of(*status) == word)
    }
}

fn count(cell: &Cell) -> u64 {
    cell.number().and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
}

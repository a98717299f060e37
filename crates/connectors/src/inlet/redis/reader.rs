//! One connection that reads.
//!
//! An entry is acknowledged when it is settled here, whatever became of it; until then it is pending under our name, and comes again after whatever
//! happens. At most one read is under way, and it stays so when nobody waits for it any more: what it brings is kept for whoever asks next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use overtake_engine::Clock;
use overtake_peer::redis::{Wire, entries};
use redis::{Cmd, Pipeline, Value, cmd};
use tokio::time::Instant;

use super::RedisSource;
use crate::inlet::{Fate, Incoming, Inlet};
use crate::redis::fields;
use crate::sink::{LinkError, Work};

/// A read waits for new entries for so long at least and at most, ms; in between as long as until the next look at what others have left.
const BLOCK_MS: (u64, u64) = (100, 5_000);
/// A server that says nothing for so long after that is gone.
const GRACE: Duration = Duration::from_secs(30);

/// A stream, and after which entry to go on; `None`: there is no more.
type Cursor = (String, Option<String>);

pub(super) struct Reader {
    wire: Wire,
    source: Arc<RedisSource>,
    clock: Arc<dyn Clock>,
    /// What was ours before this connection.
    own: Vec<Cursor>,
    /// What others have left.
    left: Vec<Cursor>,
    /// When to look for that again.
    claim_at: Instant,
    /// The read that is under way.
    waiting: Option<Work<'static, Result<Value, String>>>,
    /// What is here and was not handed over: each stream brings as much as was asked for of all.
    here: VecDeque<Entry>,
    /// What was handed over and is not settled.
    handed: Vec<(String, String)>,
}

/// An entry and its stream.
type Entry = (String, entries::Entry);

impl Inlet for Reader {
    fn receive(&mut self, max: usize) -> Work<'_, Result<Vec<Incoming>, LinkError>> {
        Box::pin(async move {
            while self.here.is_empty() {
                self.read(max).await?;
            }
            let now = self.clock.now();
            let taken = self.here.drain(..max.min(self.here.len()));
            let mut all = Vec::with_capacity(taken.len());
            for (stream, entries::Entry { id, fields }) in taken {
                all.push(fields::read(&stream, &id, fields, now));
                self.handed.push((stream, id));
            }
            Ok(all)
        })
    }

    /// A server wants no signs of life, but where its own `timeout` says so.
    fn lost(&mut self) -> Work<'_, LinkError> {
        Box::pin(async { self.wire.lost().await.into() })
    }

    fn settle(&mut self, fates: Vec<Fate>) -> Work<'_, Result<(), LinkError>> {
        Box::pin(async move {
            assert_eq!(fates.len(), self.handed.len(), "all that was handed over is settled together");
            let handed = std::mem::take(&mut self.handed);
            self.acknowledge(&handed).await
        })
    }
}

impl Reader {
    pub(super) fn new(wire: Wire, source: Arc<RedisSource>, clock: Arc<dyn Clock>) -> Self {
        let cursors = source.streams.iter().map(|stream| (stream.clone(), Some("0".to_owned())));
        let [own, left] = [cursors.clone().collect(), cursors.collect()];
        Self {
            wire,
            clock,
            own,
            left,
            claim_at: Instant::now(),
            waiting: None,
            here: VecDeque::new(),
            handed: Vec::new(),
            source,
        }
    }

    async fn read(&mut self, max: usize) -> Result<(), LinkError> {
        if let Some(at) = open(&self.own) {
            return self.read_own(at, max).await;
        }
        if self.waiting.is_none() {
            if let Some(at) = open(&self.left) {
                return self.claim(at, max).await;
            }
            if self.claim_at <= Instant::now() {
                self.claim_at = Instant::now() + Duration::from_millis(self.source.claim_idle_ms);
                self.left.iter_mut().for_each(|(_, cursor)| *cursor = Some("0".to_owned()));
                return Ok(());
            }
        }
        self.read_new(max).await
    }

    async fn read_own(&mut self, at: usize, max: usize) -> Result<(), LinkError> {
        let (stream, cursor) = &self.own[at];
        let (stream, after) = (stream.clone(), cursor.clone().expect("it is open"));
        let command = self.group_read(max, None, &[(&stream, &after)]);
        let answer = self.wire.ask(&command).await?.map_err(|fault| self.wire.says(fault))?;
        let found = entries::of_streams(answer);
        let last = found.iter().flat_map(|(_, entries)| entries).next_back();
        self.own[at].1 = last.map(|entry| entry.id().to_owned());
        self.keep(found).await
    }

    async fn claim(&mut self, at: usize, max: usize) -> Result<(), LinkError> {
        let (stream, cursor) = &self.left[at];
        let (stream, from) = (stream.clone(), cursor.clone().expect("it is open"));
        let mut command = cmd("XAUTOCLAIM");
        command.arg(&stream).arg(self.source.group()).arg(self.source.consumer());
        command.arg(self.source.claim_idle_ms).arg(from).arg("COUNT").arg(max);
        let answer = self.wire.ask(&command).await?.map_err(|fault| self.wire.says(fault))?;
        let (next, found) = entries::of_claim(answer);
        self.left[at].1 = next;
        self.keep(vec![(stream, found)]).await
    }

    async fn read_new(&mut self, max: usize) -> Result<(), LinkError> {
        if self.waiting.is_none() {
            let streams: Vec<_> = self.source.streams.iter().map(|stream| (stream.as_str(), ">")).collect();
            let block_ms = self.source.claim_idle_ms.clamp(BLOCK_MS.0, BLOCK_MS.1);
            let command = self.group_read(max, Some(block_ms), &streams);
            self.waiting = Some(self.wire.ask_alone(command, Duration::from_millis(block_ms) + GRACE));
        }
        let waiting = self.waiting.as_mut().expect("it has just begun");
        let answer = waiting.await;
        self.waiting = None;
        self.keep(entries::of_streams(answer?)).await
    }

    fn group_read(&self, max: usize, block_ms: Option<u64>, streams: &[(&str, &str)]) -> Cmd {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(self.source.group()).arg(self.source.consumer()).arg("COUNT").arg(max);
        if let Some(ms) = block_ms {
            command.arg("BLOCK").arg(ms);
        }
        command.arg("STREAMS");
        for (stream, _) in streams {
            command.arg(*stream);
        }
        for (_, after) in streams {
            command.arg(*after);
        }
        command
    }

    /// What was pending and has been deleted from the stream meanwhile is let go of.
    async fn keep(&mut self, found: Vec<(String, Vec<entries::Found>)>) -> Result<(), LinkError> {
        let mut deleted = Vec::new();
        for (stream, entries) in found {
            for entry in entries {
                match entry {
                    entries::Found::Entry(entry) => self.here.push_back((stream.clone(), entry)),
                    entries::Found::Deleted(id) => deleted.push((stream.clone(), id)),
                }
            }
        }
        self.acknowledge(&deleted).await
    }

    async fn acknowledge(&mut self, entries: &[(String, String)]) -> Result<(), LinkError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut commands = Pipeline::new();
        for stream in &self.source.streams {
            let ids: Vec<&str> =
                entries.iter().filter(|(of, _)| of == stream).map(|(_, id)| id.as_str()).collect();
            if !ids.is_empty() {
                let mut ack = cmd("XACK");
                ack.arg(stream).arg(self.source.group()).arg(ids);
                commands.add_command(ack);
            }
        }
        let answers = self.wire.ask_all(&commands).await?;
        match answers.into_iter().find_map(Result::err) {
            Some(fault) => Err(self.wire.says(format!("it does not take acknowledgements: {fault}")).into()),
            None => Ok(()),
        }
    }
}

fn open(cursors: &[Cursor]) -> Option<usize> {
    cursors.iter().position(|(_, cursor)| cursor.is_some())
}

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
    /// The streams that can be read.
    streams: Vec<String>,
    /// The others, such as a key that holds something else: tried again, between two reads.
    aside: Vec<String>,
    /// When.
    aside_at: Instant,
    /// Why those cannot be read, as found last.
    known: String,
    /// The same, until the intake asks for it.
    fault: Option<String>,
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
                if self.fault.is_some() {
                    return Ok(Vec::new());
                }
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

    fn fault(&mut self) -> Option<String> {
        self.fault.take()
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
        Self {
            wire,
            clock,
            streams: Vec::new(),
            aside: source.streams.clone(),
            aside_at: Instant::now(),
            known: String::new(),
            fault: None,
            own: Vec::new(),
            left: Vec::new(),
            claim_at: Instant::now(),
            waiting: None,
            here: VecDeque::new(),
            handed: Vec::new(),
            source,
        }
    }

    /// Makes the groups of the streams.
    ///
    /// # Errors
    /// None of them can be read.
    pub(super) async fn begin(&mut self) -> Result<(), LinkError> {
        self.try_aside().await?;
        match self.streams.is_empty() {
            true => Err(std::mem::take(&mut self.known).into()),
            false => Ok(()),
        }
    }

    /// Takes up those of the streams set aside that can be read now.
    async fn try_aside(&mut self) -> Result<(), LinkError> {
        self.aside_at = Instant::now() + self.block();
        let (mut faults, mut at) = (Vec::new(), 0);
        while let Some(stream) = self.aside.get(at).cloned() {
            if let Err(why) = self.source.make_group(&mut self.wire, &stream).await? {
                faults.push(why);
                at += 1;
                continue;
            }
            self.aside.remove(at);
            let cursor = (stream.clone(), Some("0".to_owned()));
            self.own.push(cursor.clone());
            self.left.push(cursor);
            self.streams.push(stream);
        }
        let found = faults.join("; ");
        if self.known != found {
            self.known.clone_from(&found);
            self.fault = (!found.is_empty()).then_some(found);
        }
        Ok(())
    }

    async fn read(&mut self, max: usize) -> Result<(), LinkError> {
        if let Some(at) = open(&self.own) {
            return self.read_own(at, max).await;
        }
        if self.waiting.is_none() {
            if !self.aside.is_empty() && self.aside_at <= Instant::now() {
                return self.try_aside().await;
            }
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
            let streams: Vec<_> = self.streams.iter().map(|stream| (stream.as_str(), ">")).collect();
            let block = self.block();
            let command = self.group_read(max, Some(block), &streams);
            self.waiting = Some(self.wire.ask_alone(command, block + GRACE));
        }
        let waiting = self.waiting.as_mut().expect("it has just begun");
        let answer = waiting.await;
        self.waiting = None;
        self.keep(entries::of_streams(answer?)).await
    }

    /// How long a read waits for new entries.
    fn block(&self) -> Duration {
        Duration::from_millis(self.source.claim_idle_ms.clamp(BLOCK_MS.0, BLOCK_MS.1))
    }

    fn group_read(&self, max: usize, block: Option<Duration>, streams: &[(&str, &str)]) -> Cmd {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(self.source.group()).arg(self.source.consumer()).arg("COUNT").arg(max);
        if let Some(block) = block {
            command.arg("BLOCK").arg(block.as_millis() as u64);
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
        for stream in &self.streams {
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

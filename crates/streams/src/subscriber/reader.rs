//! The one who reads: an entry for whoever wants one, and nothing where nobody does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use overtake_peer::redis::entries::{self, Field};
use overtake_peer::redis::{Asked, Fault, RedisServer, Wire};
use redis::{Cmd, Value, cmd};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::held::{Doom, Later};
use super::partitions::Partitions;
use super::{Shared, SubscribeOptions, WAKE};
use crate::entry::Entry;
use crate::lanes::Lane;
use crate::link::{Backoff, PATIENCE};
use crate::scripts;

/// Who waits for an entry.
pub(super) type Want = oneshot::Sender<Result<Entry, String>>;

/// What was pending is asked for in pages of so many.
const PAGE: usize = 1_000;
/// An entry that was handed over so often beyond its attempts, and that nobody has settled, ends whoever has it.
const UNSETTLED_MAX: u64 = 10;
/// The longest wait between two looks for what others left.
const CLAIM: Duration = Duration::from_secs(30);
/// A lane that the server does not let us read is tried again after so long at first, twice as long each time, and so long at most.
pub(super) const BROKEN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Why there is no entry.
pub(super) enum Stop {
    /// The connection is lost, or the server can do nothing now.
    Lost(String),
    /// The stream of a lane or its group is gone, and is to be made again.
    NoGroup(String),
    /// The server has no memory for what a lane needs.
    Full(String),
    /// The server declines.
    Declined(String),
}

/// A lane that is not read for now.
struct Broken {
    /// When it is tried again.
    at: Instant,
    /// The wait after the next failure.
    wait: Duration,
    /// The fault that the lane was broken by; `None` where only the group is to be made again, at once.
    why: Option<String>,
    /// The fault passes by itself.
    passes: bool,
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::Lost(why)
    }
}

pub(super) struct Reader {
    server: RedisServer,
    pub(super) shared: Arc<Shared>,
    pub(super) wire: Option<Wire>,
    pub(super) parts: Partitions,
    /// A read that waits.
    pub(super) blocked: Option<Asked<Result<Result<Value, Fault>, String>>>,
    /// The read that waits leaves out the backfill lane, which had no free slot.
    is_narrow: bool,
    /// Of each lane: when to look again for what others left.
    claim_at: [Instant; 2],
    /// The lanes that the server does not let us read.
    broken: [Option<Broken>; 2],
    was_begun: bool,
}

impl Reader {
    pub(super) fn new(server: RedisServer, shared: Arc<Shared>) -> Self {
        let (broken, claim_at) = ([None, None], [Instant::now(); 2]);
        let parts = Partitions::default();
        Self {
            server,
            shared,
            wire: None,
            parts,
            blocked: None,
            is_narrow: false,
            claim_at,
            broken,
            was_begun: false,
        }
    }

    /// Until nobody can want anything any more, and no read is under way.
    pub(super) async fn run(mut self, mut wants: mpsc::Receiver<Want>) -> Self {
        while let Some(want) = wants.recv().await {
            let next = self.next(&wants).await;
            let Some(next) = next else { break };
            if let Err(Ok(entry)) = want.send(next) {
                self.shared.held().put_back(entry);
            }
        }
        if let Some(blocked) = self.blocked.take()
            && !self.shared.options.partitions
            && let Ok(Ok(answer)) = blocked.await
        {
            let _ = self.keep_new(answer).await;
        }
        self
    }

    /// `None`: it is over.
    async fn next(&mut self, wants: &mpsc::Receiver<Want>) -> Option<Result<Entry, String>> {
        let mut backoff = Backoff::new();
        let mut is_told = false;
        loop {
            let next = match self.shared.options.partitions {
                true => self.partition_ladder(wants).await,
                false => self.ladder(wants).await,
            };
            let stop = match next {
                Ok(entry) => return entry.map(Ok),
                Err(stop) => stop,
            };
            self.blocked = None;
            self.wire = None;
            match stop {
                Stop::Declined(why) => return Some(Err(why)),
                Stop::Lost(why) | Stop::NoGroup(why) | Stop::Full(why) => {
                    if !is_told {
                        tracing::warn!(%why, "reading streams is interrupted");
                        is_told = true;
                    }
                    backoff.wait().await;
                }
            }
            if wants.is_closed() {
                return None;
            }
        }
    }

    /// Up to the first rung that has an entry.
    async fn ladder(&mut self, wants: &mpsc::Receiver<Want>) -> Result<Option<Entry>, Stop> {
        loop {
            if self.wire.is_none() {
                self.begin_again().await?;
            }
            if self.blocked.is_none() {
                self.look_at_broken().await?;
            }
            if let Some(entry) = self.of_lane(Lane::Primary).await? {
                return Ok(Some(entry));
            }
            if self.blocked.is_none() {
                // Entries that dead consumers hold are older than new ones.
                if self.look_for_left(Lane::Primary).await? {
                    continue;
                }
                let read = self.read_primary().await;
                if self.unless_broken(Lane::Primary, read, false)? {
                    continue;
                }
            }
            if let Some(entry) = self.of_lane(Lane::Backfill).await? {
                return Ok(Some(entry));
            }
            if self.blocked.is_none() && self.look_for_left(Lane::Backfill).await? {
                continue;
            }
            self.wait().await?;
            if wants.is_closed() {
                return Ok(None);
            }
        }
    }

    /// Takes the result of something that concerns one lane. When the lane fails, the other one goes on; when both have failed, that is the result.
    fn unless_broken<T>(&mut self, lane: Lane, done: Result<T, Stop>, otherwise: T) -> Result<T, Stop> {
        let (why, passes) = match done {
            Err(Stop::NoGroup(_)) if !self.is_broken(lane) => {
                let (at, wait) = (Instant::now(), BROKEN.0);
                self.broken[lane as usize] = Some(Broken { at, wait, why: None, passes: true });
                return Ok(otherwise);
            }
            Err(Stop::NoGroup(why) | Stop::Full(why)) => (why, true),
            Err(Stop::Declined(why)) => (why, false),
            done => return done,
        };
        let wait = self.broken[lane as usize].as_ref().map_or(BROKEN.0, |broken| broken.wait);
        let (at, next) = (Instant::now() + wait, (wait * 2).min(BROKEN.1));
        self.broken[lane as usize] = Some(Broken { at, wait: next, why: Some(why.clone()), passes });
        let failed = |lane: &Lane| self.broken[*lane as usize].as_ref().filter(|broken| broken.why.is_some());
        let all: Option<Vec<&Broken>> = self.shared.options.lanes.all().iter().map(failed).collect();
        if let Some(all) = all {
            let passes = all.iter().any(|broken| broken.passes);
            self.broken = [None, None];
            self.tell_broken();
            return Err(if passes { Stop::Lost(why) } else { Stop::Declined(why) });
        }
        tracing::error!(%why, retry_s = wait.as_secs(), "a lane is not read for now; the other lane is");
        self.tell_broken();
        Ok(otherwise)
    }

    fn tell_broken(&self) {
        self.shared.tell_broken(self.broken.each_ref().map(|broken| broken.as_ref()?.why.clone()));
    }

    async fn look_at_broken(&mut self) -> Result<(), Stop> {
        for &lane in self.shared.options.lanes.all() {
            if self.broken[lane as usize].as_ref().is_some_and(|broken| broken.at <= Instant::now()) {
                let begun = self.begin_lane(lane).await;
                self.unless_broken(lane, begun, ())?;
            }
        }
        Ok(())
    }

    /// Whether more may be fetched of a lane now.
    fn may_read(&self, lane: Lane) -> bool {
        let held = self.shared.held();
        !self.is_broken(lane) && held.has_slot(lane) && held.has_room(&self.shared.stream(lane))
    }

    fn is_broken(&self, lane: Lane) -> bool {
        self.broken[lane as usize].is_some()
    }

    /// What is here of a lane, or is due again.
    async fn of_lane(&mut self, lane: Lane) -> Result<Option<Entry>, Stop> {
        if self.is_broken(lane) || !self.shared.held().has_slot(lane) {
            return Ok(None);
        }
        let found = self.of_sound_lane(lane).await;
        self.unless_broken(lane, found, None)
    }

    async fn of_sound_lane(&mut self, lane: Lane) -> Result<Option<Entry>, Stop> {
        loop {
            if let Some(entry) = self.shared.held().take(lane) {
                return Ok(Some(entry));
            }
            let due = self.shared.held().due(lane, Instant::now());
            let Some((stream, Later { id, attempts, doom })) = due else { return Ok(None) };
            match doom {
                Some(doom) => drop(self.shared.bury(lane, &stream, id, attempts, doom).await?),
                None => self.shared.again(lane, &stream, id, attempts).await?,
            }
        }
    }

    /// Whether there was something.
    async fn read_primary(&mut self) -> Result<bool, Stop> {
        if !self.may_read(Lane::Primary) {
            return Ok(false);
        }
        self.read_at_once(Lane::Primary).await
    }

    /// Reads new entries of one lane, without waiting.
    async fn read_at_once(&mut self, lane: Lane) -> Result<bool, Stop> {
        let command = self.read_new(&[lane], self.batch(lane), None);
        let answer = ask(self.wire.as_ref(), &self.shared.stream(lane), command).await?;
        self.keep_new(answer).await
    }

    fn batch(&self, lane: Lane) -> u16 {
        let options = &self.shared.options;
        if lane == Lane::Primary { options.batch } else { options.batch_backfill }
    }

    /// Finds the lane for which one read of several lanes was declined.
    async fn find_broken(&mut self, fault: &Fault) -> Result<(), Stop> {
        let declined = stop(&self.shared.options.category, fault);
        if matches!(declined, Stop::Lost(_)) {
            return Err(declined);
        }
        let mut is_found = false;
        for &lane in self.shared.options.lanes.all() {
            if !self.is_broken(lane) {
                let read = self.read_at_once(lane).await;
                self.unless_broken(lane, read, false)?;
                is_found |= self.is_broken(lane);
            }
        }
        // A group that was gone may have been made again by another consumer.
        if is_found || matches!(declined, Stop::NoGroup(_)) { Ok(()) } else { Err(declined) }
    }

    /// Takes over a batch of what others left in a lane, when it is time to look. Whether there was something.
    async fn look_for_left(&mut self, lane: Lane) -> Result<bool, Stop> {
        let is_wanted = self.shared.options.lanes.all().contains(&lane) && self.may_read(lane);
        if !is_wanted || self.claim_at[lane as usize] > Instant::now() {
            return Ok(false);
        }
        let claimed = self.claim_left(lane).await;
        self.unless_broken(lane, claimed, false)
    }

    async fn claim_left(&mut self, lane: Lane) -> Result<bool, Stop> {
        let (options, stream, asked_at) = (&self.shared.options, self.shared.stream(lane), Instant::now());
        let idle_ms = u64::try_from(options.claim_idle.as_millis()).unwrap_or(u64::MAX);
        let SubscribeOptions { group, consumer, .. } = options;
        let claim = scripts::claim(&stream, group, consumer, idle_ms, self.batch(lane).into());
        let Value::Array(parts) = ask(self.wire.as_ref(), &stream, claim).await? else { return Ok(false) };
        let mut parts = parts.into_iter();
        let Some(Value::Int(wait_ms)) = parts.next() else { return Ok(false) };
        let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).min(CLAIM);
        self.claim_at[lane as usize] = asked_at + wait;
        let Some(Value::Array(all)) = parts.next() else { return Ok(false) };
        let has_some = !all.is_empty();
        for (id, fields, count) in all.into_iter().filter_map(counted) {
            self.shared.take_in(lane, &stream, id, fields, count).await?;
        }
        Ok(has_some)
    }

    /// For something new, or something that is due.
    async fn wait(&mut self) -> Result<(), Stop> {
        let due = self.shared.held().next_due();
        let due = async move {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        if self.is_narrow && self.shared.held().has_slot(Lane::Backfill) {
            self.is_narrow = false;
            return match self.end_wait().await? {
                Some(answer) => self.keep_waited(answer).await,
                None => Ok(()),
            };
        }
        if self.blocked.is_none() {
            self.block();
        }
        let shared = Arc::clone(&self.shared);
        let answer = match &mut self.blocked {
            Some(blocked) => tokio::select! {
                answer = blocked => answer,
                () = due => return Ok(()),
                () = shared.changed.notified() => return Ok(()),
            },
            // Nothing more may be fetched until something is due, or settled, or a lane is to be looked at again.
            None => tokio::select! {
                () = due => return Ok(()),
                () = shared.changed.notified() => return Ok(()),
                () = tokio::time::sleep(self.until_broken()) => return Ok(()),
            },
        };
        self.blocked = None;
        self.keep_waited(answer?).await
    }

    async fn keep_waited(&mut self, answer: Result<Value, Fault>) -> Result<(), Stop> {
        match answer {
            Ok(answer) => self.keep_new(answer).await.map(drop),
            Err(fault) => self.find_broken(&fault).await,
        }
    }

    /// Ends the read that waits, and returns what it brings. The read may reach the server after the command that ends it.
    pub(super) async fn end_wait(&mut self) -> Result<Option<Result<Value, Fault>>, Stop> {
        while let Some(blocked) = &mut self.blocked {
            self.shared.unblock().await?;
            if let Ok(answer) = timeout(WAKE, blocked).await {
                self.blocked = None;
                return Ok(Some(answer?));
            }
        }
        Ok(None)
    }

    /// How long until a lane is looked at again.
    fn until_broken(&self) -> Duration {
        let next = self.broken.iter().flatten().map(|broken| broken.at).min();
        next.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }

    /// Begins to wait for both lanes.
    fn block(&mut self) {
        let options = &self.shared.options;
        let lanes: Vec<Lane> =
            options.lanes.all().iter().copied().filter(|&lane| self.may_read(lane)).collect();
        let Some(wire) = self.wire.as_ref().filter(|_| !lanes.is_empty()) else { return };
        let claim_at = lanes.iter().map(|&lane| self.claim_at[lane as usize]).min();
        let until_claim = claim_at.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        let block = options.block.min(until_claim).min(self.until_broken());
        // 0 would be for ever.
        let block_ms = u64::try_from(block.as_millis()).unwrap_or(u64::MAX).max(1);
        // As much of either lane comes as is asked for of both.
        let batch = if lanes.contains(&Lane::Backfill) { options.batch_backfill } else { options.batch };
        let command = self.read_new(&lanes, batch, Some(block_ms));
        self.blocked = Some(wire.ask_apart(command, block + PATIENCE));
        self.is_narrow = !lanes.contains(&Lane::Backfill) && !self.shared.held().has_slot(Lane::Backfill);
    }

    fn read_new(&self, lanes: &[Lane], batch: u16, block_ms: Option<u64>) -> Cmd {
        let options = &self.shared.options;
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(&options.group).arg(&options.consumer).arg("COUNT").arg(batch);
        if let Some(ms) = block_ms {
            read.arg("BLOCK").arg(ms);
        }
        read.arg("STREAMS");
        for &lane in lanes {
            read.arg(self.shared.stream(lane));
        }
        for _ in lanes {
            read.arg(">");
        }
        read
    }

    /// Whether there was something.
    async fn keep_new(&mut self, answer: Value) -> Result<bool, Stop> {
        let mut has_some = false;
        for (stream, found) in entries::of_streams(answer) {
            let lane = if stream == self.shared.options.category { Lane::Primary } else { Lane::Backfill };
            for found in found {
                if let entries::Found::Entry(entries::Entry { id, fields }) = found {
                    has_some = true;
                    self.shared.take_in(lane, &stream, id, fields, 1).await?;
                }
            }
        }
        Ok(has_some)
    }

    /// The first time: what goes wrong is told, except for the backfill lane, which fails alone then, too.
    pub(super) async fn begin(&mut self) -> Result<(), String> {
        self.begin_again().await.map_err(|stop| match stop {
            Stop::Lost(why) | Stop::NoGroup(why) | Stop::Full(why) | Stop::Declined(why) => why,
        })
    }

    pub(super) async fn begin_again(&mut self) -> Result<(), Stop> {
        self.wire = Some(self.server.connect().await?);
        let own = ask_plainly(self.wire.as_ref(), cmd("CLIENT").arg("ID").to_owned()).await?;
        self.shared.reads_as.store(number(own), Ordering::Relaxed);
        if self.shared.options.partitions {
            self.begin_partitions(!self.was_begun).await?;
            self.was_begun = true;
            return Ok(());
        }
        for &lane in self.shared.options.lanes.all() {
            let begun = self.begin_lane(lane).await;
            match self.was_begun || lane == Lane::Backfill {
                true => self.unless_broken(lane, begun, ())?,
                false => begun?,
            }
        }
        self.was_begun = true;
        Ok(())
    }

    async fn begin_lane(&mut self, lane: Lane) -> Result<(), Stop> {
        self.make_group(lane).await?;
        self.recall(lane).await?;
        if self.broken[lane as usize].take().is_some_and(|broken| broken.why.is_some()) {
            self.tell_broken();
            tracing::info!(stream = self.shared.stream(lane), "a lane can be read again");
        }
        Ok(())
    }

    async fn make_group(&mut self, lane: Lane) -> Result<(), Stop> {
        let (stream, options) = (self.shared.stream(lane), &self.shared.options);
        let mut make = cmd("XGROUP");
        make.arg("CREATE").arg(&stream).arg(&options.group).arg(options.start.id()).arg("MKSTREAM");
        match ask_plainly(self.wire.as_ref(), make).await? {
            Err(fault) if !fault.is_group_there() => Err(stop(&stream, &fault)),
            _ => Ok(()),
        }
    }

    /// What is pending under our name and not known here: it was ours before we ended, or it was on its way when the connection was lost.
    async fn recall(&mut self, lane: Lane) -> Result<(), Stop> {
        let mut from = "-".to_owned();
        loop {
            let (stream, options) = (self.shared.stream(lane), &self.shared.options);
            let mut pending = cmd("XPENDING");
            pending.arg(&stream).arg(&options.group).arg(&from).arg("+").arg(PAGE).arg(&options.consumer);
            let Value::Array(all) = ask(self.wire.as_ref(), &stream, pending).await? else { return Ok(()) };
            let is_last = all.len() < PAGE;
            for (id, idle, attempts) in all.into_iter().filter_map(pending_of) {
                from = format!("({id}");
                if !self.shared.held().has(&stream, &id) {
                    let wait = self.shared.options.retry.wait_after(attempts).saturating_sub(idle);
                    let later = Later { id, attempts, doom: None };
                    self.shared.held().postpone(lane, &stream, Instant::now() + wait, later);
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

impl Shared {
    /// Over the other connection: on this one a read may wait.
    pub(super) async fn again(
        &self,
        lane: Lane,
        stream: &str,
        id: String,
        attempts: u64,
    ) -> Result<(), Stop> {
        let options = &self.options;
        let again = scripts::again(stream, &options.group, &options.consumer, &id);
        match self.settling.ask(&again).await {
            Ok(Ok(answer)) => {
                if let Some((id, fields, count)) = counted(answer) {
                    self.take_in(lane, stream, id, fields, count).await?;
                }
                Ok(())
            }
            Ok(Err(fault)) => {
                self.postpone(lane, stream, Later { id, attempts, doom: None });
                Err(stop(stream, &fault))
            }
            Err(lost) => {
                self.postpone(lane, stream, Later { id, attempts, doom: None });
                Err(lost.into())
            }
        }
    }

    /// What can be read is ready; the rest is laid aside at once.
    pub(super) async fn take_in(
        &self,
        lane: Lane,
        stream: &str,
        id: String,
        fields: Vec<Field>,
        attempt: u64,
    ) -> Result<(), Stop> {
        if self.held().has(stream, &id) {
            return Ok(());
        }
        let attempts_max = u64::from(self.options.retry.attempts) + UNSETTLED_MAX;
        let why = if attempt > attempts_max {
            format!("it was handed over {} times and never settled: see what ends its consumers", attempt - 1)
        } else {
            match Entry::read(lane, stream.to_owned(), id.clone(), &fields, attempt) {
                Ok(entry) => {
                    self.held().fetch(entry);
                    return Ok(());
                }
                Err(why) => format!("it cannot be read: {why}"),
            }
        };
        self.bury(lane, stream, id, attempt, Doom { why, fields }).await?;
        Ok(())
    }
}

async fn ask_plainly(wire: Option<&Wire>, command: Cmd) -> Result<Result<Value, Fault>, Stop> {
    let Some(wire) = wire else { return Err(Stop::Lost("there is no connection".to_owned())) };
    Ok(wire.ask_apart(command, PATIENCE).await?)
}

async fn ask(wire: Option<&Wire>, stream: &str, command: Cmd) -> Result<Value, Stop> {
    ask_plainly(wire, command).await?.map_err(|fault| stop(stream, &fault))
}

pub(super) fn stop(stream: &str, fault: &Fault) -> Stop {
    match fault.code() {
        // A read that waits ends with the second where its stream or group is deleted.
        "NOGROUP" | "UNBLOCKED" => Stop::NoGroup(format!("{stream}: {fault}")),
        // Only what needs memory is declined, such as making one lane's stream again; the other lane can be read.
        "OOM" => Stop::Full(format!("{stream}: {fault}")),
        // As where no connection can be made for such a reason: somebody may be changing the password.
        "NOAUTH" | "WRONGPASS" => Stop::Lost(fault.to_string()),
        _ if fault.is_busy() => Stop::Lost(fault.to_string()),
        _ => Stop::Declined(format!("{stream}: {fault}")),
    }
}

/// `[id, fields, count]`.
pub(super) fn counted(value: Value) -> Option<(String, Vec<Field>, u64)> {
    let Value::Array(parts) = value else { return None };
    let [id, fields, count]: [Value; 3] = parts.try_into().ok()?;
    let Value::Int(count) = count else { return None };
    let entry = Value::Array(vec![id, fields]);
    match entries::of_entries(Value::Array(vec![entry])).pop()? {
        entries::Found::Entry(entries::Entry { id, fields }) => {
            Some((id, fields, u64::try_from(count).ok()?))
        }
        entries::Found::Deleted(_) => None,
    }
}

/// `[id, consumer, idle in ms, count]`.
fn pending_of(value: Value) -> Option<(String, Duration, u64)> {
    let Value::Array(parts) = value else { return None };
    let [id, _, Value::Int(idle), Value::Int(count)]: [Value; 4] = parts.try_into().ok()? else {
        return None;
    };
    Some((text(id)?, Duration::from_millis(u64::try_from(idle).ok()?), u64::try_from(count).ok()?))
}

/// 0 where the server does not say.
fn number(answer: Result<Value, Fault>) -> i64 {
    match answer {
        Ok(Value::Int(number)) => number,
        _ => 0,
    }
}

pub(super) fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    }
}

//! A category that is parted by keys: each lane of each partition is a stream, of which the whole group has one entry at a time.
//!
//! ```text
//!              ┌──────────────── news ────────────────┐
//!              ▼                                      │
//!  found ──▶ ready ── nothing new ──────────────▶ drained: one read waits for all of these
//!            ▲ ▲ │ └─ another consumer has one,
//!            │ │ │    or it cannot be read ─────▶ away, for a while
//!            │ │ └─── an entry ─▶ held             │
//!            │ └───── settled ─────┘               │
//!            └─────────────────────────────────────┘
//! ```
//!
//! Invariant: a stream is in the ring of its lane exactly where it is ready. The pending entries of the group are the lock: a script takes an entry only of a stream of which
//! nothing is pending, or where whoever holds the oldest is dead.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use overtake_peer::redis::{Fault, entries};
use redis::{Cmd, Value, cmd};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Shared;
use super::held::{Held, Later};
use super::options::Start;
use super::reader::{BROKEN, Reader, Stop, Want, counted, stop, text};
use crate::category::{CHUNK, streams_with};
use crate::entry::Entry;
use crate::lanes::Lane;
use crate::layout::partitions_of;
use crate::link::PATIENCE;
use crate::scripts;

/// How often the set of keys is read.
const DISCOVER: Duration = Duration::from_secs(1);
/// A stream of which another consumer has an entry is tried again after so long at first, twice as long each time, and so long at most.
const BUSY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// Of so many streams it is always asked whether they have urgent news before something is taken of a backfill lane; of more, in a tenth of the time at most.
const LOOK: usize = 256;

#[derive(Debug, PartialEq)]
enum State {
    Ready,
    /// Nothing is behind this id.
    Drained(String),
    Away,
    Held,
}

struct Unit {
    lane: Lane,
    state: State,
    /// How long it is away the next time.
    wait: Duration,
    /// Why it cannot be read.
    why: Option<String>,
}

/// The streams of a category.
#[derive(Default)]
pub(super) struct Partitions {
    units: HashMap<String, Unit>,
    ready: [VecDeque<String>; 2],
    held: HashSet<String>,
    away: BinaryHeap<Reverse<(Instant, String)>>,
    /// When the set of keys is read, and when urgent news are looked for; none: now.
    discover_at: Option<Instant>,
    look_at: Option<Instant>,
    /// A stream is drained that the read under way does not wait for.
    is_stale: bool,
    /// Other streams are broken than was told, or for other reasons.
    is_other: bool,
    /// How many streams are still to be tried one by one, after the server declined to try them together.
    one_by_one: usize,
    /// How many were broken when a read of several was declined.
    suspects: Option<usize>,
}

impl Partitions {
    /// Takes in the streams that there are now. A stream of which something is held stays in any case.
    fn found(&mut self, all: HashMap<String, Lane>) {
        self.units.retain(|stream, unit| all.contains_key(stream) || unit.state == State::Held);
        for (stream, lane) in all {
            if !self.units.contains_key(&stream) {
                let unit = Unit { lane, state: State::Ready, wait: BUSY.0, why: None };
                self.ready[lane as usize].push_back(stream.clone());
                self.units.insert(stream, unit);
            }
        }
    }

    /// Forgets how the streams are, except for those of which something is held.
    fn forget(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.units.retain(|stream, _| held.contains(stream));
        *self = Self { units: std::mem::take(&mut self.units), held, ..Self::default() };
    }

    fn set_ready(&mut self, stream: String) {
        if let Some(unit) = self.units.get_mut(&stream)
            && unit.state != State::Ready
        {
            unit.state = State::Ready;
            self.ready[unit.lane as usize].push_back(stream);
        }
    }

    fn set_held(&mut self, stream: &str) {
        if let Some(unit) = self.units.get_mut(stream) {
            (unit.state, unit.wait) = (State::Held, BUSY.0);
            self.is_other |= unit.why.take().is_some();
            self.held.insert(stream.to_owned());
        }
    }

    fn set_drained(&mut self, stream: &str, after: String) {
        if let Some(unit) = self.units.get_mut(stream) {
            (unit.state, unit.wait) = (State::Drained(after), BUSY.0);
            self.is_other |= unit.why.take().is_some();
            self.is_stale = true;
        }
    }

    /// Another has an entry of it, which nobody can take over before `left` has passed.
    fn set_busy(&mut self, stream: &str, left: Duration, now: Instant) {
        let Some(unit) = self.units.get_mut(stream) else { return };
        let wait = unit.wait.min(left.max(BUSY.0));
        (unit.state, unit.wait) = (State::Away, (unit.wait * 2).min(BUSY.1));
        self.is_other |= unit.why.take().is_some();
        self.away.push(Reverse((now + wait, stream.to_owned())));
    }

    fn set_broken(&mut self, stream: &str, why: String, now: Instant) {
        let Some(unit) = self.units.get_mut(stream) else { return };
        let wait = if unit.why.is_some() { unit.wait } else { BROKEN.0 };
        tracing::error!(%why, retry_s = wait.as_secs(), "a partition is not read for now; the others are");
        (unit.state, unit.wait, unit.why) = (State::Away, (wait * 2).min(BROKEN.1), Some(why));
        self.is_other = true;
        self.away.push(Reverse((now + wait, stream.to_owned())));
    }

    /// Makes ready the streams whose entry was settled or that were away for long enough.
    fn wake(&mut self, held: &Held, now: Instant) {
        for stream in self.held.extract_if(|stream| !held.has_any(stream)).collect::<Vec<_>>() {
            self.set_ready(stream);
        }
        while let Some(Reverse((at, _))) = self.away.peek()
            && *at <= now
        {
            if let Some(Reverse((_, stream))) = self.away.pop()
                && self.units.get(&stream).is_some_and(|unit| unit.state == State::Away)
            {
                self.set_ready(stream);
            }
        }
    }

    /// Up to so many of a lane that are ready, the longest first, taken out of the ring.
    fn next_ready(&mut self, lane: Lane) -> Vec<String> {
        let at_once = if self.one_by_one > 0 { 1 } else { CHUNK };
        self.one_by_one = self.one_by_one.saturating_sub(1);
        let mut some = Vec::new();
        while some.len() < at_once
            && let Some(stream) = self.ready[lane as usize].pop_front()
        {
            if self.units.get(&stream).is_some_and(|unit| unit.state == State::Ready) {
                some.push(stream);
            }
        }
        some
    }

    /// The read of what comes behind what is known, of these lanes.
    fn read(&self, lanes: &[Lane], block: Option<Duration>) -> Option<(Cmd, usize)> {
        let drained = self.units.iter().filter_map(|(stream, unit)| match &unit.state {
            State::Drained(after) if lanes.contains(&unit.lane) => Some((stream, after)),
            _ => None,
        });
        let (streams, after): (Vec<&String>, Vec<&String>) = drained.unzip();
        let mut read = cmd("XREAD");
        read.arg("COUNT").arg(1);
        if let Some(block) = block {
            // 0 would be for ever.
            read.arg("BLOCK").arg(u64::try_from(block.as_millis()).unwrap_or(u64::MAX).max(1));
        }
        read.arg("STREAMS").arg(&streams).arg(&after);
        (!streams.is_empty()).then_some((read, streams.len()))
    }

    fn broken(&self) -> [Option<String>; 2] {
        [Lane::Primary, Lane::Backfill].map(|lane| {
            let broken = self.units.values().filter(|unit| unit.lane == lane);
            broken.filter_map(|unit| unit.why.clone()).min()
        })
    }

    /// When something changes without an answer of the server.
    fn next_change(&self) -> Option<Instant> {
        self.away.peek().map(|Reverse((at, _))| *at).into_iter().chain(self.discover_at).min()
    }
}

impl Reader {
    /// The first urgent entry there is, else the first of the backfill lanes, else what comes first.
    pub(super) async fn partition_ladder(
        &mut self,
        wants: &mpsc::Receiver<Want>,
    ) -> Result<Option<Entry>, Stop> {
        loop {
            if self.wire.is_none() {
                self.begin_again().await?;
            }
            self.parts.wake(&self.shared.held(), Instant::now());
            if self.parts.discover_at.is_none_or(|at| at <= Instant::now()) {
                self.discover().await?;
            }
            if let Some(entry) = self.of_partitions(Lane::Primary).await? {
                return Ok(Some(entry));
            }
            if self.look_for_urgent().await? {
                continue;
            }
            if let Some(entry) = self.of_partitions(Lane::Backfill).await? {
                return Ok(Some(entry));
            }
            self.wait_for_partitions().await?;
            if wants.is_closed() {
                return Ok(None);
            }
        }
    }

    /// Begins on a new connection.
    pub(super) async fn begin_partitions(&mut self, is_first: bool) -> Result<(), Stop> {
        self.parts.forget();
        let options = &self.shared.options;
        let mut is_new = false;
        if is_first && options.start == Start::New {
            // This group is made once, so it tells whether the others are to be made: what comes into a partition while nobody reads is new, too.
            let mut make = cmd("XGROUP");
            make.arg("CREATE").arg(&options.category).arg(&options.group).arg("$").arg("MKSTREAM");
            is_new = match self.shared.settling.ask(&make).await? {
                Ok(_) => true,
                Err(fault) if fault.is_group_there() => false,
                Err(fault) => return Err(stop(&options.category, &fault)),
            };
        }
        self.discover().await?;
        if is_new {
            let streams: Vec<&String> = self.parts.units.keys().collect();
            for some in streams.chunks(CHUNK) {
                let make = scripts::make_groups(some, &self.shared.options.group);
                self.shared.ask_of_all(&make).await?;
            }
        }
        Ok(())
    }

    /// Reads which keys there are.
    async fn discover(&mut self) -> Result<(), Stop> {
        let options = &self.shared.options;
        let (category, set) = (&options.category, partitions_of(&options.category));
        let keys = self.shared.ask_of_all(cmd("SMEMBERS").arg(&set)).await?;
        let streams = streams_with(category, &options.lanes, keys);
        self.parts.found(streams.into_iter().map(|(lane, stream)| (stream, lane)).collect());
        self.parts.discover_at = Some(Instant::now() + DISCOVER);
        Ok(())
    }

    /// The next entry of a lane: one that is here, or is due again, or can be taken.
    async fn of_partitions(&mut self, lane: Lane) -> Result<Option<Entry>, Stop> {
        while self.shared.held().has_slot(lane) {
            if let Some(entry) = self.shared.held().take(lane) {
                return Ok(Some(entry));
            }
            let due = self.shared.held().due(lane, Instant::now());
            if let Some((stream, Later { id, attempts, doom })) = due {
                match doom {
                    Some(doom) => drop(self.shared.bury(lane, &stream, id, attempts, doom).await?),
                    None => match self.shared.again(lane, &stream, id.clone(), attempts).await {
                        // The group is made again when something is taken.
                        Err(Stop::NoGroup(_)) => self.shared.held().forget(&stream, &id),
                        Err(Stop::Declined(why) | Stop::Full(why)) => {
                            tracing::error!(%why, "an entry waits longer for its next attempt");
                        }
                        done => done?,
                    },
                }
                self.parts.wake(&self.shared.held(), Instant::now());
                continue;
            }
            let some = self.parts.next_ready(lane);
            if some.is_empty() {
                return Ok(None);
            }
            self.take_of(lane, some).await?;
        }
        Ok(None)
    }

    /// Takes an entry of the first of these streams that has one for us.
    async fn take_of(&mut self, lane: Lane, some: Vec<String>) -> Result<(), Stop> {
        let options = &self.shared.options;
        let idle_ms = u64::try_from(options.claim_idle.as_millis()).unwrap_or(u64::MAX);
        let take = scripts::take(&some, &options.group, &options.consumer, idle_ms);
        let told = match self.shared.settling.ask(&take).await? {
            Ok(Value::Array(told)) => told,
            Ok(_) => Vec::new(),
            Err(fault) => {
                let declined = stop(&some[0], &fault);
                let (Stop::Declined(why) | Stop::Full(why) | Stop::NoGroup(why)) = declined else {
                    return Err(declined);
                };
                if let [one] = &some[..] {
                    self.parts.set_broken(one, why, Instant::now());
                    self.tell_broken_partitions();
                    return Ok(());
                }
                // A stream among them is out of bounds.
                self.parts.one_by_one = some.len();
                return self.put_back(lane, some);
            }
        };
        let now = Instant::now();
        let mut some = some.into_iter();
        for (told, stream) in told.into_iter().zip(&mut some) {
            match Told::read(told) {
                Some(Told::Entry(entry)) => {
                    let (id, fields, count) = counted(entry).unwrap_or_default();
                    self.parts.set_held(&stream);
                    self.shared.take_in(lane, &stream, id, fields, count).await?;
                }
                Some(Told::Empty(after)) => self.parts.set_drained(&stream, after),
                Some(Told::Busy(left)) => self.parts.set_busy(&stream, left, now),
                Some(Told::Fault(fault)) => match stop(&stream, &fault) {
                    Stop::Lost(why) => return Err(Stop::Lost(why)),
                    Stop::Declined(why) | Stop::Full(why) | Stop::NoGroup(why) => {
                        self.parts.set_broken(&stream, why, now);
                    }
                },
                None => self.parts.set_broken(&stream, format!("{stream}: no answer of a script"), now),
            }
        }
        self.tell_broken_partitions();
        self.put_back(lane, some.collect())
    }

    /// Puts those that were not tried to the front of the ring again.
    fn put_back(&mut self, lane: Lane, some: Vec<String>) -> Result<(), Stop> {
        for stream in some.into_iter().rev() {
            self.parts.ready[lane as usize].push_front(stream);
        }
        Ok(())
    }

    fn tell_broken_partitions(&mut self) {
        if std::mem::take(&mut self.parts.is_other) {
            self.shared.tell_broken(self.parts.broken());
        }
    }

    /// Whether a primary lane has news, where a backfill lane would be next.
    async fn look_for_urgent(&mut self) -> Result<bool, Stop> {
        let now = Instant::now();
        let is_wanted = !self.parts.ready[Lane::Backfill as usize].is_empty()
            || self.shared.held().has_next(Lane::Backfill, now);
        let has_slot = self.shared.held().has_slot(Lane::Backfill);
        if !is_wanted || !has_slot || self.parts.look_at.is_some_and(|at| at > now) {
            return Ok(false);
        }
        let Some((read, count)) = self.parts.read(&[Lane::Primary], None) else { return Ok(false) };
        let answer = self.shared.settling.ask(&read).await?;
        if count > LOOK {
            self.parts.look_at = Some(Instant::now() + now.elapsed() * 9);
        }
        self.keep_news(answer)
    }

    /// Whether there are news.
    fn keep_news(&mut self, answer: Result<Value, Fault>) -> Result<bool, Stop> {
        let fault = match answer {
            Ok(answer) => {
                self.parts.suspects = None;
                let news = entries::of_streams(answer);
                let has_some = !news.is_empty();
                news.into_iter().for_each(|(stream, _)| self.parts.set_ready(stream));
                return Ok(has_some);
            }
            Err(fault) if fault.code() == "UNBLOCKED" => return Ok(false),
            Err(fault) => fault,
        };
        let declined = stop(&self.shared.options.category, &fault);
        let broken = self.parts.units.values().filter(|unit| unit.why.is_some()).count();
        if matches!(declined, Stop::Lost(_)) || self.parts.suspects == Some(broken) {
            return Err(declined);
        }
        // Trying all shows which of them it is.
        self.parts.suspects = Some(broken);
        let drained = self.parts.units.iter().filter(|(_, unit)| matches!(unit.state, State::Drained(_)));
        for stream in drained.map(|(stream, _)| stream.clone()).collect::<Vec<_>>() {
            self.parts.set_ready(stream);
        }
        Ok(true)
    }

    /// For news of any stream, or for something that changes by itself.
    async fn wait_for_partitions(&mut self) -> Result<(), Stop> {
        if self.parts.is_stale && self.blocked.is_some() {
            if let Some(answer) = self.end_wait().await? {
                self.keep_news(answer)?;
            }
            return Ok(());
        }
        let block = self.shared.options.block;
        if self.blocked.is_none()
            && let Some(wire) = &self.wire
            && let Some((read, _)) = self.parts.read(self.shared.options.lanes.all(), Some(block))
        {
            self.blocked = Some(wire.ask_apart(read, block + PATIENCE));
            self.parts.is_stale = false;
        }
        let next = self.shared.held().next_due().into_iter().chain(self.parts.next_change()).min();
        let next = async move {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let news = async {
            match &mut self.blocked {
                Some(blocked) => blocked.await,
                None => std::future::pending().await,
            }
        };
        let answer = tokio::select! {
            answer = news => answer,
            () = next => return Ok(()),
            () = self.shared.changed.notified() => return Ok(()),
        };
        self.blocked = None;
        self.keep_news(answer?).map(drop)
    }
}

impl Shared {
    async fn ask_of_all(&self, command: &Cmd) -> Result<Value, Stop> {
        let answer = self.settling.ask(command).await?;
        answer.map_err(|fault| stop(&self.options.category, &fault))
    }
}

/// The server's answer about one stream of which an entry was to be taken.
enum Told {
    /// `[id, fields, count]`.
    Entry(Value),
    /// Nothing is behind this id.
    Empty(String),
    /// Another consumer has one; nobody can take it over before so long has passed.
    Busy(Duration),
    Fault(Fault),
}

impl Told {
    fn read(value: Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let [word, of]: [Value; 2] = parts.try_into().ok()?;
        Some(match (text(word)?.as_str(), of) {
            ("entry", entry) => Self::Entry(entry),
            ("busy", Value::Int(ms)) => Self::Busy(Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
            ("empty", last) => Self::Empty(text(last)?),
            ("fault", why) => {
                let why = text(why)?;
                let (code, details) = why.split_once(' ').unwrap_or((&why, ""));
                Self::Fault(Fault::new(code, details))
            }
            _ => return None,
        })
    }
}

//! What a place answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    Attempt, Attempts, Death, DeathReason, Deaths, Ending, Extras, Head, LeaseId, Message, Original, Place,
    Priority, Record, Refusal, Report, Route, Seq, State, Time, Work,
};
use redis::Value;

use super::slots::Slots;

/// An answer that is none of this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the server's answer is none of this version's functions")
    }
}

impl std::error::Error for Malformed {}

/// Where a message that is ready stands: the less, the sooner it goes. The level inverted and the sequence, eight bytes each, the greatest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Where(pub [u8; 16]);

impl Where {
    /// Of this level and sequence.
    #[must_use]
    pub fn new(level: i32, seq: Seq) -> Self {
        let rank = (i64::from(i32::MAX) - i64::from(level)) as u64;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&rank.to_be_bytes());
        bytes[8..].copy_from_slice(&seq.0.to_be_bytes());
        Self(bytes)
    }

    /// The level of its lane.
    #[must_use]
    pub fn level(self) -> i32 {
        let (rank, _) = self.halves();
        (i64::from(i32::MAX) - rank as i64) as i32
    }

    /// Its sequence.
    #[must_use]
    pub fn seq(self) -> Seq {
        Seq(self.halves().1)
    }

    fn halves(self) -> (u64, u64) {
        let both = u128::from_be_bytes(self.0);
        ((both >> 64) as u64, both as u64)
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told<T> {
    /// It is done.
    Done {
        /// The time there.
        now: Time,
        /// When something happens there by itself next, if anything does.
        wakes_at: Option<Time>,
        /// What goes next; of a place that is one of several, in each lane.
        heads: Vec<Head>,
        /// The answer.
        what: T,
        /// The number of the call there: what another one says is older or newer.
        calls: u64,
        /// Something has left and is to go elsewhere ([`Leaving`](super::Leaving)).
        leaving: bool,
        /// What there is to say of slots: of a place that is one of several, and limited in what is out at once.
        slots: Vec<Slots>,
    },
    /// It is of another queue, which is this; nothing was done.
    Another(String),
    /// There is no such place.
    Gone,
}

impl<T> Told<T> {
    /// What an answer says; `read` knows what came of it.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(
        value: &Value,
        read: impl FnOnce(Part<'_>) -> Result<T, Malformed>,
    ) -> Result<Self, Malformed> {
        match Part(value).parts()? {
            [word] if Part(word).bytes()? == b"gone" => Ok(Self::Gone),
            [word, of] if Part(word).bytes()? == b"another" => Ok(Self::Another(Part(of).text()?.to_owned())),
            [word, now, wakes_at, head, what, calls, leaving, slots] if Part(word).bytes()? == b"ok" => {
                let now = Time(Part(now).count()?);
                Ok(Self::Done {
                    now,
                    wakes_at: Part(wakes_at).time()?.some(),
                    heads: read_heads(Part(head).bytes()?)?,
                    what: read(Part(what))?,
                    calls: Part(calls).count()?,
                    leaving: Part(leaving).number()? == 1,
                    slots: Part(slots)
                        .parts()?
                        .iter()
                        .map(|one| Slots::read(Part(one)))
                        .collect::<Result<_, _>>()?,
                })
            }
            _ => Err(Malformed),
        }
    }
}

/// What a place shows: one that is alone where something stands, one of several that and when it was published, 8 bytes, for each lane.
pub(crate) fn read_heads(shown: &[u8]) -> Result<Vec<Head>, Malformed> {
    let head = |place: [u8; 16], since| Head { level: Where(place).level(), seq: Where(place).seq(), since };
    if let Ok(alone) = shown.try_into() {
        return Ok(vec![head(alone, Time(0))]);
    }
    let (all, []) = shown.as_chunks::<24>() else { return Err(Malformed) };
    let of_lane = |one: &[u8; 24]| {
        let (place, since) = one.split_first_chunk::<16>()?;
        Some(head(*place, Time(u64::from_be_bytes(since.try_into().ok()?))))
    };
    all.iter().map(|one| of_lane(one).ok_or(Malformed)).collect()
}

/// A part of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Part<'v>(pub &'v Value);

impl<'v> Part<'v> {
    pub(super) fn parts(self) -> Result<&'v [Value], Malformed> {
        if let Value::Array(parts) = self.0 { Ok(parts) } else { Err(Malformed) }
    }

    pub(super) fn bytes(self) -> Result<&'v [u8], Malformed> {
        match self.0 {
            Value::BulkString(bytes) => Ok(bytes),
            Value::SimpleString(text) => Ok(text.as_bytes()),
            _ => Err(Malformed),
        }
    }

    pub(super) fn text(self) -> Result<&'v str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    pub(super) fn number(self) -> Result<i64, Malformed> {
        match self.0 {
            Value::Int(number) => Ok(*number),
            _ => self.text()?.parse().map_err(|_| Malformed),
        }
    }

    pub(super) fn count(self) -> Result<u64, Malformed> {
        u64::try_from(self.number()?).map_err(|_| Malformed)
    }

    fn small<T: TryFrom<i64>>(self) -> Result<T, Malformed> {
        T::try_from(self.number()?).map_err(|_| Malformed)
    }

    pub(super) fn time(self) -> Result<Time, Malformed> {
        Ok(u64::try_from(self.number()?).map_or(Time::NEVER, Time))
    }

    pub(super) fn is(self) -> bool {
        !matches!(self.0, Value::Nil | Value::Boolean(false))
    }

    /// What is there, unless it is nothing.
    pub(super) fn some<T>(
        self,
        read: impl FnOnce(Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if self.is() { read(self).map(Some) } else { Ok(None) }
    }

    pub(super) fn declined(self) -> Result<Declined, Malformed> {
        Declined::of(self.text()?).ok_or(Malformed)
    }

    /// One part that is a refusal, or what its first part says.
    pub(super) fn or_declined<T>(
        self,
        read: impl FnOnce(Part<'v>) -> Result<T, Malformed>,
    ) -> Result<Result<T, Declined>, Malformed> {
        let first = self.parts()?.first().ok_or(Malformed)?;
        match first {
            Value::BulkString(_) => Ok(Err(Part(first).declined()?)),
            _ => read(Part(first)).map(Ok),
        }
    }

    /// One part that is a refusal, or what all parts say.
    pub(super) fn or_declined_all<T>(
        self,
        read: impl FnOnce(&[Value]) -> Result<T, Malformed>,
    ) -> Result<Result<T, Declined>, Malformed> {
        match self.parts()? {
            [why @ Value::BulkString(_)] => Ok(Err(Part(why).declined()?)),
            parts => read(parts).map(Ok),
        }
    }
}

/// Why a place declines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declined(pub Refusal);

impl Declined {
    /// A lease does not hold any more.
    pub const STALE: Self = Self(Refusal::StaleReceipt);

    fn of(word: &str) -> Option<Self> {
        let refusal = match word {
            "key_missing" => Refusal::KeyMissing,
            "message_too_large" => Refusal::MessageTooLarge,
            "too_many_lanes" => Refusal::TooManyLanes,
            "below_priority" => Refusal::BelowPriority,
            "queue_full" => Refusal::QueueFull,
            "no_such_message" => Refusal::NoSuchMessage,
            "leased" => Refusal::Leased,
            "dead" => Refusal::Dead,
            "not_dead" => Refusal::NotDead,
            "stale_receipt" => Refusal::StaleReceipt,
            "id_pending" => Refusal::IdPending,
            "consumer_exclusive" => Refusal::ConsumerExclusive,
            "scheme" => Refusal::SettingFixed("scheme"),
            "last_value" => Refusal::SettingFixed("last_value"),
            _ => return None,
        };
        Some(Self(refusal))
    }
}

/// A message that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its sequence.
    pub seq: Seq,
    /// It was there before.
    pub duplicate: bool,
    /// Messages ahead of it, in all and in its lane, where that was asked for and is known.
    pub position: (Option<u64>, Option<u64>),
}

impl Admitted {
    pub(super) fn read_some(parts: &[Value]) -> Result<Option<Self>, Malformed> {
        if parts.is_empty() { Ok(None) } else { Self::read(parts).map(Some) }
    }

    fn read(parts: &[Value]) -> Result<Self, Malformed> {
        let [seq, duplicate, ahead, in_lane] = parts else { return Err(Malformed) };
        let known = |part| Ok(u64::try_from(Part(part).number()?).ok());
        Ok(Self {
            seq: Seq(Part(seq).count()?),
            duplicate: Part(duplicate).number()? == 1,
            position: (known(ahead)?, known(in_lane)?),
        })
    }
}

/// A message as a place keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The message. A way that it came is empty where its content says it.
    pub message: Message,
    /// With whom its lease ends.
    pub holder: Option<String>,
}

/// A message, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The message.
    pub stored: Stored,
    /// What it says, where that was asked for.
    pub content: Option<Vec<u8>>,
}

impl Shown {
    pub(super) fn read(part: &Part<'_>) -> Result<Self, Malformed> {
        let [seq, message, content, ..] = part.parts()? else { return Err(Malformed) };
        let stored = Stored::read(Seq(Part(seq).count()?), &Part(message))?;
        Ok(Self { stored, content: Part(content).some(|content| Ok(content.bytes()?.to_vec()))? })
    }
}

const READY: i64 = 0;
const DELAYED: i64 = 1;
const LEASED: i64 = 2;
const DEAD: i64 = 3;

impl Stored {
    fn read(seq: Seq, part: &Part<'_>) -> Result<Self, Malformed> {
        let [
            priority,
            given,
            since,
            expires,
            bytes,
            count,
            state,
            at,
            lease,
            id,
            key,
            holder,
            work,
            deaths,
            record,
            later @ ..,
        ] = part.parts()?
        else {
            return Err(Malformed);
        };
        // Few messages have attempts, and fewer a weight: those that end before have none.
        let [_outdated, _prepared, later @ ..] = later else { return Err(Malformed) };
        let (attempts, key_weight) = (later.first(), later.get(4));
        let at = Part(at).time()?;
        let state = match Part(state).number()? {
            READY => State::Ready,
            DELAYED => State::Delayed { due: at },
            LEASED => State::Leased { lease: LeaseId(Part(lease).count()?), deadline: at },
            DEAD => State::Dead,
            _ => return Err(Malformed),
        };
        let boxed = |part| Part(part).some(|part| Ok(Box::<str>::from(part.text()?)));
        let extras = Extras {
            id: boxed(id)?,
            key: boxed(key)?,
            key_weight: key_weight.map_or(Ok(None), |weight| Part(weight).some(|weight| weight.small()))?,
            deaths: Part(deaths).some(|deaths| read_deaths(&deaths))?.map(Arc::new),
            work: Part(work).some(|work| read_work(&work))?.map(Box::new),
            record: Part(record).some(|record| read_record(&record))?.map(Arc::new),
            attempts: attempts.map_or(Ok(None), |attempts| Part(attempts).some(read_attempts))?.map(Arc::new),
        };
        let message = Message {
            seq,
            priority: Priority(Part(priority).small()?),
            original: original(Part(given).text()?).ok_or(Malformed)?,
            since: Part(since).time()?,
            expires: Part(expires).time()?,
            bytes: Part(bytes).small()?,
            count: Part(count).small()?,
            place: Place::default(),
            state,
            extras: (extras != Extras::default()).then(|| Box::new(extras)),
        };
        Ok(Self { message, holder: Part(holder).some(|holder| Ok(holder.text()?.to_owned()))? })
    }
}

fn original(word: &str) -> Option<Original> {
    match word {
        "m" => Some(Original::Missing),
        "w" => Some(Original::Name),
        _ => Some(Original::Number(word.strip_prefix('n')?.parse().ok()?)),
    }
}

fn read_work(part: &Part<'_>) -> Result<Work, Malformed> {
    let [started, ends, cancelled] = part.parts()? else { return Err(Malformed) };
    let is_cancelled = match cancelled {
        Value::Int(number) => *number == 1,
        other => Part(other).is(),
    };
    Ok(Work { started: Part(started).time()?, ends: Part(ends).time()?, is_cancelled })
}

pub(super) fn read_record(part: &Part<'_>) -> Result<Record, Malformed> {
    let [ending, queue, lane, queued, started, finished, attempts, exit_code, error, output] =
        part.parts()?
    else {
        return Err(Malformed);
    };
    Ok(Record {
        ending: read_ending(&Part(ending))?,
        queue: Part(queue).text()?.into(),
        lane: Part(lane).text()?.into(),
        queued: Part(queued).time()?,
        started: Part(started).some(Part::time)?,
        finished: Part(finished).time()?,
        attempts: Part(attempts).small()?,
        report: read_report(exit_code, error, output)?,
    })
}

fn read_attempts(part: Part<'_>) -> Result<Attempts, Malformed> {
    let mut forgotten = 0;
    let one = |part| {
        // The first also says how many before it are not kept, if any.
        let [ending, started, finished, exit_code, error, output, dropped @ ..] = Part(part).parts()? else {
            return Err(Malformed);
        };
        if let [dropped] = dropped {
            forgotten = Part(dropped).small()?;
        }
        Ok(Attempt {
            ending: read_ending(&Part(ending))?,
            started: Part(started).some(Part::time)?,
            finished: Part(finished).time()?,
            report: read_report(exit_code, error, output)?,
        })
    };
    let all: Result<Vec<Attempt>, Malformed> = part.parts()?.iter().map(one).collect();
    Attempts::new(all?, forgotten).ok_or(Malformed)
}

fn read_ending(part: &Part<'_>) -> Result<Ending, Malformed> {
    let endings =
        [Ending::Completed, Ending::Failed, Ending::Timeout, Ending::Cancelled, Ending::LeaseExpired];
    let word = part.text()?;
    endings.into_iter().find(|ending| ending.word() == word).ok_or(Malformed)
}

fn read_report(exit_code: &Value, error: &Value, output: &Value) -> Result<Report, Malformed> {
    let said = |part| Part(part).some(|part| Ok(Box::<str>::from(part.text()?)));
    Ok(Report { exit_code: Part(exit_code).some(Part::small)?, error: said(error)?, output: said(output)? })
}

fn read_deaths(part: &Part<'_>) -> Result<Deaths, Malformed> {
    let [first, list, from, route] = part.parts()? else { return Err(Malformed) };
    let list: Vec<Death> =
        Part(list).parts()?.iter().map(|death| read_death(&Part(death))).collect::<Result<_, _>>()?;
    let first = usize::try_from(Part(first).count()?).ok().and_then(|first| first.checked_sub(1));
    Deaths::new(list, first.ok_or(Malformed)?, read_route(&Part(from))?, read_route(&Part(route))?)
        .ok_or(Malformed)
}

/// A way that the content of the message says is empty.
fn read_route(part: &Part<'_>) -> Result<Route, Malformed> {
    if !part.is() {
        return Ok(Route::default());
    }
    let [exchange, keys @ ..] = part.parts()? else { return Err(Malformed) };
    let keys = keys.iter().map(|key| Ok(Arc::from(Part(key).text()?))).collect::<Result<_, Malformed>>()?;
    Ok(Route { exchange: Part(exchange).text()?.into(), keys })
}

/// Reasons as functions call them.
pub(super) const REASONS: [(DeathReason, &str); 5] = [
    (DeathReason::Rejected, "rejected"),
    (DeathReason::DeliveryLimit, "delivery_limit"),
    (DeathReason::Expired, "expired"),
    (DeathReason::Maxlen, "maxlen"),
    (DeathReason::Timeout, "timeout"),
];

pub(super) fn read_reason(part: Part<'_>) -> Result<DeathReason, Malformed> {
    let word = part.text()?;
    REASONS.iter().find(|(_, name)| *name == word).map(|(reason, _)| *reason).ok_or(Malformed)
}

fn read_death(part: &Part<'_>) -> Result<Death, Malformed> {
    let [reason, queue, lane, first_at, at, times, count, route, _lost] = part.parts()? else {
        return Err(Malformed);
    };
    Ok(Death {
        reason: read_reason(Part(reason))?,
        queue: Part(queue).text()?.into(),
        lane: Part(lane).text()?.into(),
        first_at: Part(first_at).time()?,
        at: Part(at).time()?,
        times: Part(times).small()?,
        count: Part(count).small()?,
        route: read_route(&Part(route))?,
        ttl_ms: None,
    })
}

/// The gauges and counters of a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// By level, then by name.
    pub lanes: BTreeMap<i32, BTreeMap<String, u64>>,
    /// Names of the lanes that are being left, by level: lanes from before a change, from which messages go to those of now step by step.
    pub left: BTreeMap<i32, String>,
    /// Of each lane with something ready, when its oldest message was published.
    pub oldest: BTreeMap<i32, Time>,
    /// No message has a lesser sequence.
    pub first_seq: Seq,
    /// The last sequence that was given.
    pub last_seq: Seq,
    /// Consumers that other processes have, said by the first place.
    pub consumers_of_others: u64,
    /// When the place was made, or a message last came, was leased, was returned or left; zero where that is not known.
    pub active_at: Time,
}

impl Seen {
    pub(super) fn read(part: &Part<'_>) -> Result<Self, Malformed> {
        let [gauges, oldest, first_seq, last_seq, others, active_at] = part.parts()? else {
            return Err(Malformed);
        };
        let mut seen = Self {
            first_seq: Seq(Part(first_seq).count()?),
            last_seq: Seq(Part(last_seq).count()?),
            consumers_of_others: Part(others).count()?,
            active_at: Part(active_at).time()?,
            ..Self::default()
        };
        for pair in Part(gauges).parts()?.chunks_exact(2) {
            let field = Part(&pair[0]).text()?;
            let (level, what) = field.split_once(':').ok_or(Malformed)?;
            let level = level.parse().map_err(|_| Malformed)?;
            if let Some(name) = what.strip_prefix("name=") {
                seen.left.insert(level, name.to_owned());
                continue;
            }
            seen.lanes.entry(level).or_default().insert(what.to_owned(), Part(&pair[1]).count()?);
        }
        for one in Part(oldest).parts()? {
            let [level, since] = Part(one).parts()? else { return Err(Malformed) };
            seen.oldest.insert(Part(level).small()?, Part(since).time()?);
        }
        Ok(seen)
    }
}

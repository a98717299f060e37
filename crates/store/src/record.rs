//! Facts as bytes: what a record of the journal says.
//!
//! A record is one or more facts, one after the other, that happened together. Each begins with a byte for its kind.
//! Numbers are unsigned LEB128; signed ones are zigzag first; text and bytes have their length before them; an optional
//! time is 0 for none, else one more than its milliseconds. Settings, which are rare and grow, are JSON.
//!
//! | kind | fact | fields |
//! |---|---|---|
//! | 1 | queue stored, that stays and is for everybody | queue, next sequence, name, settings |
//! | 2 | queue deleted | queue |
//! | 3 | exchange stored | name, settings, arguments |
//! | 4 | exchange deleted | name |
//! | 5, 6 | bound, unbound | binding |
//! | 7 | stored | queue, message, content |
//! | 8 | leased | queue, sequence, lease, deadline, count |
//! | 9 | put back | queue, sequence, count, due |
//! | 10 | reprioritised | queue, sequence, priority, original |
//! | 11 | settled | queue, sequence, how |
//! | 12 | died | queue, sequence, count, deaths |
//! | 13 | replayed | queue, sequence, priority, original, expiry |
//! | 14 | moved | queue, sequence, how many, then each: queue, message |
//! | 15 | run stored | queue, run, priority, messages in the segment, bounds of those that wait with an id and of those that died in another queue, bytes that wait, least expiry, first and last sequence, taken |
//! | 16 | run settled | queue, run, how |
//! | 17 | runs rewritten | as 15 for the new run, how many old ones, then each: run, taken |
//! | 18 | run fetched | queue, run |
//! | 19 | run restated | as 15 |
//! | 20 | metadata stored | key, value |
//! | 21 | metadata removed | key |
//! | 24 | queue stored, of another identity | as 1, then a byte of bits (1 durable, 2 exclusive, 4 auto-delete), arguments |
//! | 25 | one of 1, 3 to 6 and 24, in another virtual host than `/` | virtual host, then that fact |
//! | 26 | virtual host stored | virtual host, name, settings |
//! | 27 | virtual host deleted | virtual host |
//! | 28 | leased, the work noted | as 8, then work |
//! | 30 | policy stored | virtual host, kind, name, pattern, priority, apply-to, definition |
//! | 31 | policy removed | virtual host, kind, name |
//! | 32 | put back, the attempts noted | as 9, then attempts |
//! | 33 | died, the attempts noted | as 12, then attempts |
//! | 34 | purged | queue, next sequence, how many messages stay, then each as how much greater its sequence is than that of the one before |
//! | 35 | one of 15, 17 and 19, of a run whose messages may be of several lanes | that fact |
//! | 36 | lanes changed | queue |
//!
//! The content of a stored message is 0 when it is the same as that of the stored message before it in the record, else
//! one more than its length, and then its bytes.
//!
//! *Taken* of a run is the ordinal before which all messages are, and those beyond it as a byte and what it says: 0 for how many
//! they are, then each as how many wait between it and the one before; 1 for bytes with a bit for each ordinal after the first
//! number, from the lowest bit on. The shorter one is written, so it is never much longer than a bit for each message.
//!
//! A policy's kind is a byte, 0 a user's and 1 an operator's; apply-to is a byte, 0 queues, 1 exchanges, 2 both; the definition is JSON.
//!
//! A message, and its parts, are as in `message.rs`, deaths as in `deaths.rs`, work and attempts as in `work.rs`; a binding is as in `binding.rs`.

use std::fmt;

use crate::binding::binding;
use crate::codec::{Reader, bytes, number, signed, text};
use crate::deaths::deaths;
use crate::message::{copy, message, original, time};
use crate::work::{attempts, work};

use overtake_lane::{
    ApplyTo, ExchangeSettings, Fact, Identity, LeaseId, Located, Ordinals, Pattern, Policy, PolicyKind,
    QueueId, Rewritten, RunId, RunRecord, Seq, Settled, Time, VhostId,
};

/// No record that only settles one message is longer than this, in bytes of payload.
pub const SETTLE_LEN_MAX: usize = 1 + 5 + 10 + 1;

/// What is appended of a stored message's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The fact is about no stored message.
    None,
    /// These bytes.
    Bytes(&'a [u8]),
    /// The same as of the stored message before it in this record.
    Same,
}

/// Appends a fact to a record. A [`Fact::Stored`] takes its content along; other facts have none.
///
/// # Panics
/// When content is missing or too much: a bug of the caller.
pub fn encode(fact: &Fact, content: Content<'_>, out: &mut Vec<u8>) {
    let has_content = content != Content::None;
    assert_eq!(
        matches!(fact, Fact::Stored { .. }),
        has_content,
        "a stored message has content, nothing else has"
    );
    match fact {
        Fact::VhostStored { vhost, name, settings } => {
            out.push(26);
            number(out, u64::from(vhost.0));
            text(out, name);
            json(out, settings);
        }
        Fact::VhostDeleted { vhost } => {
            out.push(27);
            number(out, u64::from(vhost.0));
        }
        Fact::QueueStored { queue, vhost, name, settings, identity, next_seq } => {
            in_vhost(out, *vhost);
            let is_usual = *identity == Identity::default();
            head(out, if is_usual { 1 } else { 24 }, *queue, *next_seq);
            text(out, name);
            json(out, settings);
            if !is_usual {
                self::identity(out, identity);
            }
        }
        Fact::QueueDeleted { queue } => {
            out.push(2);
            number(out, u64::from(queue.0));
        }
        Fact::ExchangeStored { vhost, name, settings } => {
            in_vhost(out, *vhost);
            out.push(3);
            text(out, name);
            json(out, settings);
            bytes(out, &settings.arguments);
        }
        Fact::ExchangeDeleted { vhost, name } => {
            in_vhost(out, *vhost);
            out.push(4);
            text(out, name);
        }
        Fact::Bound { vhost, binding: bound } => {
            in_vhost(out, *vhost);
            out.push(5);
            binding(out, bound);
        }
        Fact::Unbound { vhost, binding: bound } => {
            in_vhost(out, *vhost);
            out.push(6);
            binding(out, bound);
        }
        Fact::MetadataStored { key, value } => {
            out.push(20);
            text(out, key);
            bytes(out, value);
        }
        Fact::MetadataRemoved { key } => {
            out.push(21);
            text(out, key);
        }
        Fact::PolicyStored { vhost, kind, name, policy } => {
            out.push(30);
            number(out, u64::from(vhost.0));
            out.push(place(&KINDS, kind));
            text(out, name);
            text(out, policy.pattern.as_str());
            signed(out, i64::from(policy.priority));
            out.push(place(&APPLY_TO, &policy.apply_to));
            json(out, &policy.definition);
        }
        Fact::PolicyRemoved { vhost, kind, name } => {
            out.push(31);
            number(out, u64::from(vhost.0));
            out.push(place(&KINDS, kind));
            text(out, name);
        }
        Fact::Stored { queue, message: stored } => {
            out.push(7);
            number(out, u64::from(queue.0));
            message(out, stored);
            match content {
                Content::Bytes(content) => {
                    number(out, content.len() as u64 + 1);
                    out.extend_from_slice(content);
                }
                Content::Same | Content::None => number(out, 0),
            }
        }
        Fact::Leased { queue, seq, lease, deadline, count, work: going_on } => {
            head(out, if going_on.is_some() { 28 } else { 8 }, *queue, *seq);
            number(out, lease.0);
            time(out, *deadline);
            number(out, u64::from(*count));
            if let Some(going_on) = going_on {
                work(out, going_on);
            }
        }
        Fact::PutBack { queue, seq, count, due, attempts: made } => {
            head(out, if made.is_some() { 32 } else { 9 }, *queue, *seq);
            number(out, u64::from(*count));
            time(out, due.unwrap_or(Time::NEVER));
            if let Some(made) = made {
                attempts(out, made);
            }
        }
        Fact::Reprioritised { queue, seq, priority, original: given } => {
            head(out, 10, *queue, *seq);
            signed(out, i64::from(priority.0));
            original(out, *given);
        }
        Fact::Settled { queue, seq, how } => {
            head(out, 11, *queue, *seq);
            out.push(settled_code(*how));
        }
        Fact::Died { queue, seq, count, deaths: died, attempts: made } => {
            head(out, if made.is_some() { 33 } else { 12 }, *queue, *seq);
            number(out, u64::from(*count));
            deaths(out, died);
            if let Some(made) = made {
                attempts(out, made);
            }
        }
        Fact::Replayed { queue, seq, priority, original: given, expires } => {
            head(out, 13, *queue, *seq);
            signed(out, i64::from(priority.0));
            original(out, *given);
            time(out, *expires);
        }
        Fact::Moved { from, seq, to } => {
            head(out, 14, *from, *seq);
            number(out, to.len() as u64);
            let mut before = None;
            for target in to {
                number(out, u64::from(target.queue.0));
                copy(out, &target.message, before);
                before = Some(&target.message);
            }
        }
        Fact::RunStored { queue, run } => run_fact(out, 15, *queue, run),
        Fact::RunRestated { queue, run } => run_fact(out, 19, *queue, run),
        Fact::RunFetched { queue, run } => {
            out.push(18);
            number(out, u64::from(queue.0));
            number(out, run.0);
        }
        Fact::LanesChanged { queue } => {
            out.push(36);
            number(out, u64::from(queue.0));
        }
        Fact::RunSettled { queue, run, how } => {
            out.push(16);
            number(out, u64::from(queue.0));
            number(out, run.0);
            out.push(settled_code(*how));
        }
        Fact::Purged { queue, before, kept } => {
            head(out, 34, *queue, *before);
            number(out, kept.len() as u64);
            let mut last = 0;
            for seq in kept {
                number(out, seq.0 - last);
                last = seq.0;
            }
        }
        Fact::RunsRewritten { queue, run, of } => {
            run_fact(out, 17, *queue, run);
            number(out, of.len() as u64);
            for old in of {
                number(out, old.run.0);
                taken(out, old.next, &old.holes);
            }
        }
    }
}

const IN_VHOST: u8 = 25;

/// Says where what follows is; nothing of `/`, as it was before there were others.
fn in_vhost(out: &mut Vec<u8>, vhost: VhostId) {
    if vhost != VhostId::DEFAULT {
        out.push(IN_VHOST);
        number(out, u64::from(vhost.0));
    }
}

const DURABLE: u8 = 1;
const EXCLUSIVE: u8 = 2;
const AUTO_DELETE: u8 = 4;

fn identity(out: &mut Vec<u8>, identity: &Identity) {
    let bits =
        [(identity.durable, DURABLE), (identity.exclusive, EXCLUSIVE), (identity.auto_delete, AUTO_DELETE)];
    out.push(bits.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum());
    bytes(out, &identity.arguments);
}

/// A fact about a run, or its beginning.
fn run_fact(out: &mut Vec<u8>, kind: u8, queue: QueueId, record: &RunRecord) {
    if record.is_mixed {
        out.push(MIXED);
    }
    out.push(kind);
    number(out, u64::from(queue.0));
    let RunRecord {
        run,
        priority,
        count,
        ids,
        deaths,
        bytes,
        expires,
        first,
        last,
        next,
        holes,
        is_mixed: _,
    } = record;
    number(out, run.0);
    signed(out, i64::from(priority.0));
    number(out, u64::from(*count));
    number(out, u64::from(*ids));
    number(out, u64::from(*deaths));
    number(out, *bytes);
    time(out, *expires);
    number(out, first.0);
    number(out, last.0);
    taken(out, *next, holes);
}

/// Before a fact about a run whose messages may be of several lanes.
const MIXED: u8 = 35;

const LIST: u8 = 0;
const BITS: u8 = 1;

fn taken(out: &mut Vec<u8>, next: u32, holes: &Ordinals) {
    assert!(
        holes.first().is_none_or(|hole| hole > next),
        "what is taken beyond comes after what waits first"
    );
    number(out, u64::from(next));
    let bits_len = holes.last().map_or(0, |last| (last - next).div_ceil(8) as usize);
    let mut list = Vec::new();
    let mut before = next;
    for hole in holes.iter() {
        number(&mut list, u64::from(hole - before - 1));
        before = hole;
        if list.len() > bits_len {
            return bits(out, next, holes, bits_len);
        }
    }
    out.push(LIST);
    number(out, holes.len() as u64);
    out.extend(list);
}

fn bits(out: &mut Vec<u8>, next: u32, holes: &Ordinals, len: usize) {
    out.push(BITS);
    let mut bits = vec![0_u8; len];
    for hole in holes.iter() {
        let at = hole - next - 1;
        bits[(at / 8) as usize] |= 1 << (at % 8);
    }
    bytes(out, &bits);
}

fn head(out: &mut Vec<u8>, kind: u8, queue: QueueId, seq: Seq) {
    out.push(kind);
    number(out, u64::from(queue.0));
    number(out, seq.0);
}

fn json(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    bytes(out, &serde_json::to_vec(value).expect("settings are always JSON"));
}

const KINDS: [PolicyKind; 2] = [PolicyKind::User, PolicyKind::Operator];
const APPLY_TO: [ApplyTo; 3] = [ApplyTo::Queues, ApplyTo::Exchanges, ApplyTo::All];

/// Where this stands among all there are.
fn place<T: PartialEq>(all: &[T], this: &T) -> u8 {
    all.iter().position(|known| known == this).expect("all there are stand there") as u8
}

const SETTLED: [Settled; 6] = [
    Settled::Acked,
    Settled::Dropped,
    Settled::Expired,
    Settled::Evicted,
    Settled::Removed,
    Settled::Replaced,
];

fn settled_code(how: Settled) -> u8 {
    place(&SETTLED, &how)
}

/// The bytes are no record: written by a newer version, or by something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Offset in the record, bytes.
    pub at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the record makes no sense from byte {} on", self.at)
    }
}

impl std::error::Error for Malformed {}

/// Reads the facts of one record.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: Reader<'a>,
    content: Option<&'a [u8]>,
}

impl<'a> Decoder<'a> {
    /// Reads this record.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Self { bytes: Reader::new(payload), content: None }
    }

    fn fact(&mut self) -> Option<(Fact, Option<&'a [u8]>)> {
        let (vhost, kind) = self.vhost_and_kind()?;
        let fact = match kind {
            1 | 24 => {
                let (queue, next_seq) = (self.bytes.queue()?, self.bytes.seq()?);
                let (name, settings) = (self.bytes.text()?.into(), self.json()?);
                let identity = if kind == 1 { Identity::default() } else { self.identity()? };
                Fact::QueueStored { queue, vhost, next_seq, name, settings, identity }
            }
            2 => Fact::QueueDeleted { queue: self.bytes.queue()? },
            3 => {
                let (name, settings) = (self.bytes.text()?.into(), self.json::<Box<ExchangeSettings>>()?);
                let arguments = self.bytes.bytes()?.to_vec();
                let settings = Box::new(ExchangeSettings { arguments, ..*settings });
                Fact::ExchangeStored { vhost, name, settings }
            }
            4 => Fact::ExchangeDeleted { vhost, name: self.bytes.text()?.into() },
            5 => Fact::Bound { vhost, binding: Box::new(self.bytes.binding()?) },
            6 => Fact::Unbound { vhost, binding: Box::new(self.bytes.binding()?) },
            7 => {
                let fact = Fact::Stored { queue: self.bytes.queue()?, message: self.bytes.message()? };
                self.content = Some(self.content()?);
                return Some((fact, self.content));
            }
            kind @ (8 | 28) => {
                let (queue, seq) = (self.bytes.queue()?, self.bytes.seq()?);
                let (lease, deadline) = (LeaseId(self.bytes.number()?), self.bytes.time()?);
                let count = self.bytes.small()?;
                let work = if kind == 28 { Some(self.bytes.work()?) } else { None };
                Fact::Leased { queue, seq, lease, deadline, count, work }
            }
            kind @ (9 | 32) => {
                let (queue, seq) = (self.bytes.queue()?, self.bytes.seq()?);
                let (count, due) = (self.bytes.small()?, self.bytes.time()?.some());
                let attempts = if kind == 32 { Some(self.bytes.attempts()?) } else { None };
                Fact::PutBack { queue, seq, count, due, attempts }
            }
            10 => {
                let (queue, seq) = (self.bytes.queue()?, self.bytes.seq()?);
                Fact::Reprioritised {
                    queue,
                    seq,
                    priority: self.bytes.priority()?,
                    original: self.bytes.original()?,
                }
            }
            11 => {
                let (queue, seq) = (self.bytes.queue()?, self.bytes.seq()?);
                Fact::Settled { queue, seq, how: *SETTLED.get(usize::from(self.bytes.byte()?))? }
            }
            kind @ (12 | 33) => {
                let (queue, seq) = (self.bytes.queue()?, self.bytes.seq()?);
                let (count, deaths) = (self.bytes.small()?, self.bytes.deaths()?);
                let attempts = if kind == 33 { Some(self.bytes.attempts()?) } else { None };
                Fact::Died { queue, seq, count, deaths, attempts }
            }
            13 => {
                let (queue, seq) = (self.bytes.queue()?, self.bytes.seq()?);
                let (priority, original) = (self.bytes.priority()?, self.bytes.original()?);
                Fact::Replayed { queue, seq, priority, original, expires: self.bytes.time()? }
            }
            14 => {
                let (from, seq, count) = (self.bytes.queue()?, self.bytes.seq()?, self.bytes.number()?);
                let mut to: Vec<Located> = Vec::new();
                for _ in 0..count {
                    let (queue, before) = (self.bytes.queue()?, to.last().map(|located| &located.message));
                    let message = self.bytes.copy(before)?;
                    to.push(Located { queue, message });
                }
                Fact::Moved { from, seq, to }
            }
            kind @ (15 | 17 | 19) => self.run_fact(kind, false)?,
            MIXED => {
                let kind = self.bytes.byte()?;
                self.run_fact(kind, true)?
            }
            16 => {
                let (queue, run) = (self.bytes.queue()?, RunId(self.bytes.number()?));
                Fact::RunSettled { queue, run, how: *SETTLED.get(usize::from(self.bytes.byte()?))? }
            }
            34 => {
                let (queue, before) = (self.bytes.queue()?, self.bytes.seq()?);
                Fact::Purged { queue, before, kept: self.kept(before)? }
            }
            18 => Fact::RunFetched { queue: self.bytes.queue()?, run: RunId(self.bytes.number()?) },
            36 => Fact::LanesChanged { queue: self.bytes.queue()? },
            20 => Fact::MetadataStored { key: self.bytes.text()?.into(), value: self.bytes.bytes()?.into() },
            21 => Fact::MetadataRemoved { key: self.bytes.text()?.into() },
            26 => Fact::VhostStored {
                vhost: VhostId(self.bytes.small()?),
                name: self.bytes.text()?.into(),
                settings: self.json()?,
            },
            27 => Fact::VhostDeleted { vhost: VhostId(self.bytes.small()?) },
            30 => {
                let (vhost, kind) = (VhostId(self.bytes.small()?), self.policy_kind()?);
                let name = self.bytes.text()?.into();
                let pattern = Pattern::new(self.bytes.text()?).ok()?;
                let priority = i32::try_from(self.bytes.signed()?).ok()?;
                let apply_to = *APPLY_TO.get(usize::from(self.bytes.byte()?))?;
                let policy = Policy { pattern, priority, apply_to, definition: self.json()? };
                Fact::PolicyStored { vhost, kind, name, policy: Box::new(policy) }
            }
            31 => Fact::PolicyRemoved {
                vhost: VhostId(self.bytes.small()?),
                kind: self.policy_kind()?,
                name: self.bytes.text()?.into(),
            },
            _ => return None,
        };
        Some((fact, None))
    }

    /// Where what the fact is about is, and its kind.
    fn vhost_and_kind(&mut self) -> Option<(VhostId, u8)> {
        let kind = self.bytes.byte()?;
        if kind != IN_VHOST {
            return Some((VhostId::DEFAULT, kind));
        }
        let (vhost, kind) = (VhostId(self.bytes.small()?), self.bytes.byte()?);
        let is_in_one = vhost != VhostId::DEFAULT && matches!(kind, 1 | 3..=6 | 24);
        is_in_one.then_some((vhost, kind))
    }

    fn policy_kind(&mut self) -> Option<PolicyKind> {
        KINDS.get(usize::from(self.bytes.byte()?)).copied()
    }

    fn identity(&mut self) -> Option<Identity> {
        let bits = self.bytes.byte()?;
        if bits > DURABLE | EXCLUSIVE | AUTO_DELETE {
            return None;
        }
        let has = |bit| bits & bit != 0;
        let arguments = self.bytes.bytes()?.into();
        let (durable, exclusive, auto_delete) = (has(DURABLE), has(EXCLUSIVE), has(AUTO_DELETE));
        Some(Identity { durable, exclusive, auto_delete, arguments })
    }

    fn run_fact(&mut self, kind: u8, is_mixed: bool) -> Option<Fact> {
        let (queue, run) = (self.bytes.queue()?, Box::new(self.run_record(is_mixed)?));
        Some(match kind {
            15 => Fact::RunStored { queue, run },
            19 => Fact::RunRestated { queue, run },
            17 => {
                let mut of = Vec::new();
                for _ in 0..self.bytes.number()? {
                    let run = RunId(self.bytes.number()?);
                    let (next, holes) = self.taken()?;
                    of.push(Rewritten { run, next, holes });
                }
                Fact::RunsRewritten { queue, run, of }
            }
            _ => return None,
        })
    }

    fn run_record(&mut self, is_mixed: bool) -> Option<RunRecord> {
        let (run, priority) = (RunId(self.bytes.number()?), self.bytes.priority()?);
        let (count, ids, deaths) = (self.bytes.small()?, self.bytes.small()?, self.bytes.small()?);
        let (bytes, expires) = (self.bytes.number()?, self.bytes.time()?);
        let (first, last) = (self.bytes.seq()?, self.bytes.seq()?);
        let (next, holes) = self.taken()?;
        Some(RunRecord {
            run,
            priority,
            count,
            ids,
            deaths,
            bytes,
            expires,
            first,
            last,
            next,
            holes,
            is_mixed,
        })
    }

    /// The messages that a purge leaves: each comes after the one before, and all before the next one of the queue.
    fn kept(&mut self, before: Seq) -> Option<Vec<Seq>> {
        let (mut kept, mut last) = (Vec::new(), 0_u64);
        for _ in 0..self.bytes.number()? {
            let seq = last.checked_add(self.bytes.number()?)?;
            if seq <= last || seq >= before.0 {
                return None;
            }
            kept.push(Seq(seq));
            last = seq;
        }
        Some(kept)
    }

    /// The ordinal before which all messages are taken, and those taken beyond it.
    fn taken(&mut self) -> Option<(u32, Ordinals)> {
        let next = self.bytes.small()?;
        let holes = match self.bytes.byte()? {
            LIST => {
                let mut before = next;
                let holes = (0..self.bytes.number()?).map(|_| {
                    before = before.checked_add(self.bytes.small()?)?.checked_add(1)?;
                    Some(before)
                });
                holes.collect::<Option<Ordinals>>()?
            }
            BITS => {
                let bytes = self.bytes.bytes()?;
                let ordinals = (u64::from(next) + 1..)
                    .zip(bytes.iter().flat_map(|byte| (0..8).map(move |at| byte >> at & 1)));
                let holes =
                    ordinals.filter(|(_, bit)| *bit == 1).map(|(ordinal, _)| u32::try_from(ordinal).ok());
                holes.collect::<Option<Ordinals>>()?
            }
            _ => return None,
        };
        Some((next, holes))
    }

    fn content(&mut self) -> Option<&'a [u8]> {
        let Some(len) = self.bytes.number()?.checked_sub(1) else { return self.content };
        self.bytes.take(usize::try_from(len).ok()?)
    }

    fn json<T: serde::Deserialize<'a>>(&mut self) -> Option<T> {
        serde_json::from_slice(self.bytes.bytes()?).ok()
    }
}

/// The facts in order, a stored message with its content. Ends after the first that makes no sense.
impl<'a> Iterator for Decoder<'a> {
    type Item = Result<(Fact, Option<&'a [u8]>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_at_end() {
            return None;
        }
        let at = self.bytes.at();
        match self.fact() {
            Some(fact) => Some(Ok(fact)),
            None => {
                self.bytes.rest();
                Some(Err(Malformed { at }))
            }
        }
    }
}

#[cfg(test)]
mod tests;

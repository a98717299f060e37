//! A message as bytes, as the records of the journal and the segments have it.
//!
//! Numbers are unsigned LEB128; signed ones are zigzag first; text has its length before it; an optional time is 0 for
//! none, else one more than its milliseconds.
//!
//! | field | bytes |
//! |---|---|
//! | sequence | number |
//! | priority | signed |
//! | original | a byte: 0 missing, 1 a name, 2 a number, which follows, signed |
//! | since | number, milliseconds |
//! | expiry | optional time |
//! | bytes | number |
//! | count | number |
//! | state | a byte: 0 ready, 1 delayed (due follows, number), 2 leased (lease, number, and deadline, optional time, follow), 3 dead |
//! | extras | a byte of bits: 1 id, 2 key, 4 deaths, 16 work, 32 record, 64 attempts; then those there are: id and key as text, deaths as in `deaths.rs`, work, record and attempts as in `work.rs`; or 8: those of the message before it in its fact |
//!
//! Where the content is, is not written: who reads it knows.

use std::sync::Arc;

use crate::codec::{Reader, number, signed, text};
use crate::deaths::deaths;
use crate::work::{attempts, record, work};

use overtake_lane::{
    Extras, KEY_WEIGHT_MAX, LeaseId, Message, Original, Place, Priority, QueueId, Seq, State, Time,
};

/// Extras as those of the message before.
const SAME: u8 = 8;

/// Appends an optional time.
pub(crate) fn time(out: &mut Vec<u8>, time: Time) {
    number(out, time.0.wrapping_add(1));
}

/// Appends a priority as it came.
pub(crate) fn original(out: &mut Vec<u8>, original: Original) {
    match original {
        Original::Missing => out.push(0),
        Original::Name => out.push(1),
        Original::Number(value) => {
            out.push(2);
            signed(out, i64::from(value));
        }
    }
}

/// Appends a message.
pub(crate) fn message(out: &mut Vec<u8>, message: &Message) {
    head(out, message);
    extras(out, message.extras.as_deref());
}

/// Appends a message after another one of the same fact: copies have the same extras, which may be long.
pub(crate) fn copy(out: &mut Vec<u8>, message: &Message, before: Option<&Message>) {
    head(out, message);
    match before {
        Some(before) if message.extras.is_some() && before.extras == message.extras => out.push(SAME),
        _ => extras(out, message.extras.as_deref()),
    }
}

fn head(out: &mut Vec<u8>, message: &Message) {
    number(out, message.seq.0);
    signed(out, i64::from(message.priority.0));
    original(out, message.original);
    number(out, message.since.0);
    time(out, message.expires);
    number(out, u64::from(message.bytes));
    number(out, u64::from(message.count));
    match message.state {
        State::Ready => out.push(0),
        State::Delayed { due } => {
            out.push(1);
            number(out, due.0);
        }
        State::Leased { lease, deadline } => {
            out.push(2);
            number(out, lease.0);
            time(out, deadline);
        }
        State::Dead => out.push(3),
    }
}

fn extras(out: &mut Vec<u8>, extras: Option<&Extras>) {
    let none = Extras::default();
    let extras = extras.unwrap_or(&none);
    out.push(
        u8::from(extras.id.is_some())
            | u8::from(extras.key.is_some()) << 1
            | u8::from(extras.deaths.is_some()) << 2
            | u8::from(extras.work.is_some()) << 4
            | u8::from(extras.record.is_some()) << 5
            | u8::from(extras.attempts.is_some()) << 6
            | u8::from(extras.key_weight.is_some()) << 7,
    );
    for present in [&extras.id, &extras.key].into_iter().flatten() {
        text(out, present);
    }
    if let Some(weight) = extras.key_weight {
        number(out, weight.into());
    }
    if let Some(died) = &extras.deaths {
        deaths(out, died);
    }
    if let Some(going_on) = &extras.work {
        work(out, going_on);
    }
    if let Some(kept) = &extras.record {
        record(out, kept);
    }
    if let Some(made) = &extras.attempts {
        attempts(out, made);
    }
}

/// What the functions above wrote. `None` where the bytes end early or make no sense.
impl Reader<'_> {
    pub(crate) fn priority(&mut self) -> Option<Priority> {
        i32::try_from(self.signed()?).ok().map(Priority)
    }

    pub(crate) fn original(&mut self) -> Option<Original> {
        Some(match self.byte()? {
            0 => Original::Missing,
            1 => Original::Name,
            2 => Original::Number(self.priority()?.0),
            _ => return None,
        })
    }

    pub(crate) fn queue(&mut self) -> Option<QueueId> {
        self.small().map(QueueId)
    }

    pub(crate) fn seq(&mut self) -> Option<Seq> {
        self.number().map(Seq)
    }

    pub(crate) fn time(&mut self) -> Option<Time> {
        Some(Time(self.number()?.wrapping_sub(1)))
    }

    pub(crate) fn message(&mut self) -> Option<Message> {
        self.copy(None)
    }

    pub(crate) fn copy(&mut self, before: Option<&Message>) -> Option<Message> {
        let seq = self.seq()?;
        let (priority, original) = (self.priority()?, self.original()?);
        let (since, expires) = (Time(self.number()?), self.time()?);
        let (bytes, count) = (self.small()?, self.small()?);
        let state = match self.byte()? {
            0 => State::Ready,
            1 => State::Delayed { due: Time(self.number()?) },
            2 => State::Leased { lease: LeaseId(self.number()?), deadline: self.time()? },
            3 => State::Dead,
            _ => return None,
        };
        let extras = self.extras(before)?;
        let place = Place::default();
        Some(Message { seq, priority, original, since, expires, bytes, count, place, state, extras })
    }

    fn extras(&mut self, before: Option<&Message>) -> Option<Option<Box<Extras>>> {
        let has = self.byte()?;
        if has == 0 {
            return Some(None);
        }
        if has == SAME {
            return before.map(|before| before.extras.clone());
        }
        if has & SAME != 0 {
            return None;
        }
        let mut extras = Extras::default();
        if has & 1 != 0 {
            extras.id = Some(self.text()?.into());
        }
        if has & 2 != 0 {
            extras.key = Some(self.text()?.into());
        }
        if has & 128 != 0 {
            extras.key_weight = Some(self.small().filter(|weight| (1..=KEY_WEIGHT_MAX).contains(weight))?);
        }
        if has & 4 != 0 {
            extras.deaths = Some(self.deaths()?);
        }
        if has & 16 != 0 {
            extras.work = Some(Box::new(self.work()?));
        }
        if has & 32 != 0 {
            extras.record = Some(Arc::new(self.record()?));
        }
        if has & 64 != 0 {
            extras.attempts = Some(self.attempts()?);
        }
        Some(Some(Box::new(extras)))
    }
}

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
//! | extras | a byte of bits: 1 id, 2 key, 4 death; then those there are: id and key as text |
//!
//! A death is: a byte for the reason (0 rejected, 1 delivery limit, 2 expired), queue and lane as text, when (number,
//! milliseconds), count (number). Where the content is, is not written: who reads it knows.

use std::sync::Arc;

use crate::codec::{Reader, number, signed, text};

use overtake_lane::{
    Death, DeathReason, Extras, LeaseId, Message, Original, Place, Priority, QueueId, Seq, State, Time,
};

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
    let none = Extras::default();
    let extras = message.extras.as_deref().unwrap_or(&none);
    out.push(
        u8::from(extras.id.is_some())
            | u8::from(extras.key.is_some()) << 1
            | u8::from(extras.death.is_some()) << 2,
    );
    for present in [&extras.id, &extras.key].into_iter().flatten() {
        text(out, present);
    }
    if let Some(died) = &extras.death {
        death(out, died);
    }
}

/// Appends a death.
pub(crate) fn death(out: &mut Vec<u8>, death: &Death) {
    out.push(match death.reason {
        DeathReason::Rejected => 0,
        DeathReason::DeliveryLimit => 1,
        DeathReason::Expired => 2,
    });
    text(out, &death.queue);
    text(out, &death.lane);
    number(out, death.at.0);
    number(out, u64::from(death.count));
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
        let extras = self.extras()?;
        let place = Place::default();
        Some(Message { seq, priority, original, since, expires, bytes, count, place, state, extras })
    }

    fn extras(&mut self) -> Option<Option<Box<Extras>>> {
        let has = self.byte()?;
        if has == 0 {
            return Some(None);
        }
        if has > 7 {
            return None;
        }
        let mut extras = Extras::default();
        if has & 1 != 0 {
            extras.id = Some(self.text()?.into());
        }
        if has & 2 != 0 {
            extras.key = Some(self.text()?.into());
        }
        if has & 4 != 0 {
            extras.death = Some(self.death()?);
        }
        Some(Some(Box::new(extras)))
    }

    pub(crate) fn death(&mut self) -> Option<Death> {
        let reason = match self.byte()? {
            0 => DeathReason::Rejected,
            1 => DeathReason::DeliveryLimit,
            2 => DeathReason::Expired,
            _ => return None,
        };
        let (queue, lane) = (Arc::from(self.text()?), Arc::from(self.text()?));
        Some(Death { reason, queue, lane, at: Time(self.number()?), count: self.small()? })
    }
}

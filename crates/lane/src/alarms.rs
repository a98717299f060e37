//! When something happens by itself: a hierarchical timing wheel through the slots.
//!
//! Eleven levels of 64 buckets cover every `u64` of milliseconds. An alarm stands on the level of the highest six bits in
//! which it differs from `now`, so on each level all buckets in use lie ahead, and everything on a lower level comes before
//! everything on a higher one. Setting and clearing cost the same at any depth. After Varghese and Lauck, "Hashed and
//! hierarchical timing wheels" (1987), scheme 6.

use crate::entries::{Entries, NO_BUCKET, NONE, Slot};
use crate::ids::Time;

const BITS: u32 = 6;
const BUCKETS: usize = 1 << BITS;
const LEVELS: usize = 11;

/// The alarms of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alarms {
    now: u64,
    wheel: Option<Box<Wheel>>,
    /// The level and the bucket that is being emptied. Whatever is set meanwhile goes to a lower level, or is due.
    emptying: Option<(usize, usize)>,
}

#[derive(Clone, Debug)]
struct Wheel {
    used: [u64; LEVELS],
    heads: [[Slot; BUCKETS]; LEVELS],
}

impl Alarms {
    /// The same without an alarm.
    pub(crate) fn emptied(&self) -> Self {
        Self { now: self.now, wheel: None, emptying: None }
    }

    /// Sets the alarm of a slot that has none.
    pub(crate) fn set(&mut self, entries: &mut Entries, slot: Slot, when: Time) {
        let when = when.0.max(self.now);
        let level = ((63 - ((self.now ^ when) | 1).leading_zeros()) / BITS) as usize;
        let bucket = bucket_of(when, level);
        let wheel = self
            .wheel
            .get_or_insert_with(|| Box::new(Wheel { used: [0; LEVELS], heads: [[NONE; BUCKETS]; LEVELS] }));
        let head = wheel.heads[level][bucket];
        wheel.heads[level][bucket] = slot;
        wheel.used[level] |= 1 << bucket;
        let entry = &mut entries[slot];
        entry.bucket = (level * BUCKETS + bucket) as u16;
        (entry.alarm_prev, entry.alarm_next) = (NONE, head);
        if head != NONE {
            entries[head].alarm_prev = slot;
        }
    }

    /// Clears the alarm of a slot, if it has one.
    pub(crate) fn clear(&mut self, entries: &mut Entries, slot: Slot) {
        let entry = &mut entries[slot];
        if entry.bucket == NO_BUCKET {
            return;
        }
        let (level, bucket) = (entry.bucket as usize / BUCKETS, entry.bucket as usize % BUCKETS);
        let (prev, next) = (entry.alarm_prev, entry.alarm_next);
        entry.bucket = NO_BUCKET;
        if next != NONE {
            entries[next].alarm_prev = prev;
        }
        if prev != NONE {
            entries[prev].alarm_next = next;
            return;
        }
        let wheel = self.wheel.as_mut().expect("a slot in a bucket has a wheel");
        wheel.heads[level][bucket] = next;
        if next == NONE {
            wheel.used[level] &= !(1 << bucket);
            self.emptying = self.emptying.filter(|emptying| *emptying != (level, bucket));
        }
    }

    /// No alarm rings before this; the one that does may ring later.
    pub(crate) fn next(&self) -> Option<Time> {
        self.first().map(|(_, _, start)| Time(start))
    }

    /// What comes first: its level, its bucket, and when that begins.
    fn first(&self) -> Option<(usize, usize, u64)> {
        let wheel = self.wheel.as_ref()?;
        if let Some((level, bucket)) = self.emptying {
            return Some((level, bucket, self.now));
        }
        let level = wheel.used.iter().position(|used| *used != 0)?;
        let bucket = wheel.used[level].trailing_zeros() as usize;
        let low = BITS * level as u32;
        let above = self.now.checked_shr(low + BITS).map_or(0, |high| high << (low + BITS));
        Some((level, bucket, (above | (bucket as u64) << low).max(self.now)))
    }

    /// Clears alarms up to `now` and answers their slots, in no order: all of them, or as many as are found by `looks`, which it counts down
    /// by one for each alarm that it looks at.
    pub(crate) fn ring(&mut self, entries: &mut Entries, now: Time, looks: &mut usize) -> Vec<Slot> {
        let mut rung = Vec::new();
        while *looks > 0
            && let Some((level, bucket, start)) = self.first().filter(|(_, _, start)| *start <= now.0)
        {
            (self.now, self.emptying) = (start, Some((level, bucket)));
            let wheel = self.wheel.as_ref().expect("a bucket is in use");
            let slot = wheel.heads[level][bucket];
            self.clear(entries, slot);
            match entries[slot].alarm() {
                when if when <= now => rung.push(slot),
                when => self.set(entries, slot, when),
            }
            *looks -= 1;
        }
        if self.next().is_none_or(|next| next > now) {
            self.now = self.now.max(now.0);
        }
        rung
    }
}

fn bucket_of(when: u64, level: usize) -> usize {
    (when >> (BITS * level as u32)) as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::{Place, Seq};
    use crate::message::{Message, State};
    use crate::priority::{Original, Priority};

    fn message(expires: u64) -> Message {
        Message {
            seq: Seq(1),
            priority: Priority(0),
            original: Original::Missing,
            since: Time(0),
            expires: Time(expires),
            bytes: 0,
            count: 0,
            place: Place(0),
            state: State::Ready,
            extras: None,
        }
    }

    proptest! {
        #[test]
        fn every_alarm_rings_when_it_is_due_and_never_before(
            whens in prop::collection::vec((0_u32..50).prop_flat_map(|bits| 0..=(u64::MAX >> (63 - bits))), 1..40),
            steps in prop::collection::vec((0_u32..50).prop_flat_map(|bits| 0..=(u64::MAX >> (63 - bits))), 1..40),
            cleared in prop::collection::vec(any::<bool>(), 40),
            looks in prop::collection::vec(prop_oneof![1..4_usize, Just(usize::MAX)], 40),
        ) {
            let (mut entries, mut alarms) = (Entries::default(), Alarms::default());
            let mut pending = Vec::new();
            let mut now = 0_u64;
            let mut whens = whens.into_iter();
            for (at, step) in steps.into_iter().enumerate() {
                if let Some(after) = whens.next() {
                    let when = now.saturating_add(after);
                    let slot = entries.insert(message(when), 0);
                    alarms.set(&mut entries, slot, Time(when));
                    if cleared[at] { alarms.clear(&mut entries, slot); } else { pending.push((when, slot)); }
                }
                let first = pending.iter().map(|(when, _)| *when).min();
                prop_assert!(alarms.next().map(|t| t.0) <= first, "asleep past a deadline");
                prop_assert_eq!(alarms.next().is_some(), first.is_some());
                now = now.saturating_add(step);
                let mut rung = Vec::new();
                while alarms.next().is_some_and(|next| next.0 <= now) {
                    let mut left = looks[at];
                    let some = alarms.ring(&mut entries, Time(now), &mut left);
                    prop_assert!(some.len() <= looks[at] - left && left < looks[at], "it goes on, and not too far");
                    // Whatever is set or cleared meanwhile is no different.
                    if let Some(after) = whens.next() {
                        let when = now.saturating_add(after);
                        let slot = entries.insert(message(when), 0);
                        alarms.set(&mut entries, slot, Time(when));
                        if when <= now { pending.push((when, slot)); } else if cleared[at] {
                            alarms.clear(&mut entries, slot);
                        } else {
                            pending.push((when, slot));
                        }
                    }
                    rung.extend(some);
                }
                rung.sort_unstable();
                let mut due: Vec<_> = pending.iter().filter(|(when, _)| *when <= now).map(|(_, slot)| *slot).collect();
                due.sort_unstable();
                prop_assert_eq!(rung, due);
                pending.retain(|(when, _)| *when > now);
            }
        }
    }
}

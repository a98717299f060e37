//! Slots: how many messages may be out at once where a queue is in several places.
//!
//! The first place grants them, and each place has some. What a place was ever granted and ever gave back only grows, and whoever asks a place hears it; what the
//! first place has not heard it is told with the next question. Where it has none left, those that lie idle elsewhere are given back first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use overtake_lane::PlaceNumber;
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

use super::{NotDone, Places, together};
use crate::functions::{GiveBackSlots, Grant, Slots as Told};

/// The name of a limit: the level of a lane; `None`: that of the queue.
pub(super) type Limit = Option<i32>;

/// What is known of slots.
#[derive(Debug, Default)]
pub(super) struct Slots {
    known: Mutex<Known>,
    /// Whoever asks for slots does so alone.
    turn: Turn<()>,
}

#[derive(Debug, Default)]
struct Known {
    /// By limit and place, what it said last.
    shares: BTreeMap<(Limit, PlaceNumber), Share>,
    /// How often slots became free.
    freed: u64,
    /// Limits of which there are none left, as of so many times that some became free.
    spent: BTreeMap<Limit, u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// The number of the call that said so.
    calls: u64,
    granted: u64,
    returned: u64,
    idle: u64,
    /// What the first place was told: granted, given back.
    heard: (u64, u64),
}

impl Slots {
    fn with<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.known.lock().expect("nobody panics with it"))
    }

    /// A place has said what it has. True: something is idle that was not.
    pub(super) fn say(&self, place: PlaceNumber, calls: u64, told: &[Told]) -> bool {
        self.with(|known| {
            let mut is_freed = false;
            for one in told {
                let share = known.shares.entry((one.lane, place)).or_default();
                if calls > share.calls {
                    is_freed |= one.idle > share.idle || one.returned > share.returned;
                    let Told { granted, returned, idle, .. } = *one;
                    *share = Share { calls, granted, returned, idle, heard: share.heard };
                }
            }
            is_freed
        })
    }

    /// Somewhere slots became free.
    pub(super) fn freed(&self) {
        self.with(|known| known.freed += 1);
    }

    /// Whether it is known that there are none.
    pub(super) fn is_spent(&self, limit: Limit) -> bool {
        self.with(|known| known.spent.get(&limit).is_some_and(|freed| *freed == known.freed))
    }

    /// What a place said last of a limit.
    fn of(&self, limit: Limit, place: PlaceNumber) -> Share {
        self.with(|known| known.shares.get(&(limit, place)).copied().unwrap_or_default())
    }

    /// What the first place may not have heard.
    fn unheard(&self, limit: Limit) -> Vec<(PlaceNumber, u64, u64)> {
        self.with(|known| {
            let of = known.shares.range((limit, 0)..=(limit, PlaceNumber::MAX));
            of.filter(|(_, share)| share.heard != (share.granted, share.returned))
                .map(|((_, place), share)| (*place, share.granted, share.returned))
                .collect()
        })
    }

    fn heard(&self, limit: Limit, heard: &[(PlaceNumber, u64, u64)]) {
        self.with(|known| {
            for (place, granted, returned) in heard {
                if let Some(share) = known.shares.get_mut(&(limit, *place)) {
                    share.heard = (*granted, *returned);
                }
            }
        });
    }
}

impl Places {
    /// Slots of a limit for a message of this place. Answers how many it was ever granted, where it hears of it first with the lease; `Err(None)`: there are none left.
    async fn slots_of(
        &self,
        limit: Limit,
        place: PlaceNumber,
        wants: u32,
        deadline: Instant,
    ) -> Result<Option<u64>, Option<NotDone>> {
        let slots = &self.slots;
        if slots.of(limit, place).idle > 0 {
            return Ok(None);
        }
        let _turn = slots.turn.lock().await;
        if slots.is_spent(limit) {
            return Err(None);
        }
        let (mut freed, mut asked) = (slots.with(|known| known.freed), BTreeSet::new());
        loop {
            let before = slots.of(limit, place);
            let grant = Grant { lane: limit, place, wants, heard: slots.unheard(limit) };
            let (granted, held) = self.ask(FIRST, &grant, deadline).await?;
            slots.heard(limit, &grant.heard);
            if granted > before.granted {
                return Ok(Some(granted));
            }
            // What lies idle elsewhere is given back, also what was granted and never taken.
            let others: Vec<_> =
                held.into_iter().filter(|(at, _)| *at != place && asked.insert(*at)).collect();
            let ask = |(at, granted): (PlaceNumber, u64)| async move {
                self.ask(at, &GiveBackSlots { lane: limit, granted }, deadline).await
            };
            let is_all = others.is_empty();
            together(others.into_iter().map(ask)).await.into_iter().collect::<Result<Vec<()>, _>>()?;
            if !is_all {
                continue;
            }
            let now = slots.with(|known| known.freed);
            if now == freed {
                slots.with(|known| known.spent.insert(limit, now));
                return Err(None);
            }
            freed = now;
            asked.clear();
        }
    }

    /// Slots for messages of a lane of a place: what the place was ever granted of each limit, as far as it has to hear of it; or the limit that has none left.
    pub(super) async fn slots_for(
        &self,
        level: i32,
        place: PlaceNumber,
        wants: u32,
        deadline: Instant,
    ) -> Result<Result<Vec<(Limit, u64)>, Limit>, NotDone> {
        let mut granted = Vec::new();
        if self.count() == 1 {
            return Ok(Ok(granted));
        }
        // That of the lane first: of the queue there is none in vain.
        let limits = self.terms().limits(level);
        // Else one that is there would be taken from others for nothing.
        if let Some(spent) = limits.iter().find(|limit| self.slots.is_spent(**limit)) {
            return Ok(Err(*spent));
        }
        for limit in limits {
            match self.slots_of(limit, place, wants, deadline).await {
                Ok(total) => granted.extend(total.map(|total| (limit, total))),
                Err(Some(why)) => return Err(why),
                Err(None) => return Ok(Err(limit)),
            }
        }
        Ok(Ok(granted))
    }
}

/// The place that grants.
const FIRST: PlaceNumber = 0;

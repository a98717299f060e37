//! Leasing what goes next over all places.
//!
//! A claim at one place goes no further than the next best head. Where messages are spread one by one that is one message for each round trip; so who wants several
//! looks at the places first that may give some of it, and claims at all of them at once: a wave.

use std::sync::atomic::Ordering;
use std::time::Duration;

use overtake_lane::PlaceNumber;
use tokio::time::{Instant, sleep_until};

use super::heads::{Came, Claim};
use super::slots::Limit;
use super::wave::{Share, Sight, Wanted, shares};
use super::{NotDone, Places, together};
use crate::functions::{Choice, Leasing, Peek, Shown, Where};

/// For fewer messages a look takes as long as it saves.
const WAVE_MIN: u32 = 3;
/// Most places of a wave.
const BREADTH_MAX: usize = 128;
/// Longest that a claim waits for its place once nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(5);

/// A message that was leased.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where it is.
    pub place: PlaceNumber,
    /// The message.
    pub shown: Shown,
}

/// What a place answered to a claim, or the limit of which it got no slot.
type Answered = Result<(Came, Vec<Given>), Limit>;

impl Places {
    /// Leases what goes next over all places, as far as it goes before what the others show. Empty: no place is known to have something, or it was gone by then.
    ///
    /// # Errors
    /// [`NotDone`], if nothing was leased; what was leased and not answered is ready again once its time is over, or its holder is gone.
    pub async fn lease_now(&self, want: &Leasing, deadline: Instant) -> Result<Vec<Given>, NotDone> {
        while let Some(claim) = self.heads.claim(&want.choice) {
            let given = if claim.last.is_some() && self.goes_in_waves(want) {
                self.wave(claim, want, deadline).await
            } else {
                self.alone(claim, want, deadline).await
            };
            match given {
                // It is not asked any more; others are.
                Err(NotDone::Unserved(..)) => {}
                given => {
                    let given = given?;
                    if !given.is_empty() {
                        return Ok(given);
                    }
                }
            }
        }
        Ok(Vec::new())
    }

    /// As [`Places::lease_now`], but waits for the first until then.
    ///
    /// # Errors
    /// As there.
    pub async fn lease(&self, want: &Leasing, until: Instant) -> Result<Vec<Given>, NotDone> {
        loop {
            let better = self.better();
            tokio::pin!(better);
            // From here on nothing better is missed.
            better.as_mut().enable();
            let given = self.lease_now(want, until.max(Instant::now() + PATIENCE)).await?;
            if !given.is_empty() {
                return Ok(given);
            }
            tokio::select! {
                () = &mut better => {}
                () = sleep_until(until) => return Ok(Vec::new()),
            }
        }
    }

    /// Whether what goes next can be seen before it is taken. Where no slot is left nothing is to be seen.
    fn goes_in_waves(&self, want: &Leasing) -> bool {
        want.max >= WAVE_MIN && self.count() > 1 && self.terms().is_plain() && !self.slots.is_spent(None)
    }

    /// A claim at one place.
    async fn alone(
        &self,
        claim: Claim<'_>,
        want: &Leasing,
        deadline: Instant,
    ) -> Result<Vec<Given>, NotDone> {
        let max = want.max.min(claim.only.map_or(u32::MAX, |(_, turns)| turns));
        let only = claim.only.map(|(level, _)| level).or(want.choice.only);
        let choice = Choice { last: claim.last, only, ..want.choice.clone() };
        let want = Leasing { choice, max, ..want.clone() };
        let answered = self.ask_for(&claim, want, deadline).await;
        self.came(vec![(claim, answered)])
    }

    /// Claims at several places at once, beginning with this one.
    async fn wave(&self, first: Claim<'_>, want: &Leasing, deadline: Instant) -> Result<Vec<Given>, NotDone> {
        // Twice as many as had something the last time: so it finds out soon how many have.
        let breadth = (2 * self.breadth.load(Ordering::Relaxed)).min(want.max as usize).clamp(2, BREADTH_MAX);
        let mut claims = vec![first];
        claims.extend(std::iter::from_fn(|| self.heads.claim(&want.choice)).take(breadth - 1));
        // Twice what each would give if all gave as much.
        let most = want.max.div_ceil(claims.len() as u32) * 2;
        let sights = together(claims.iter().map(|claim| self.see(claim.place, most, &want.choice, deadline)));
        let sights = sights.await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let Leasing { max, max_bytes, .. } = *want;
        let horizon = self.heads.next(&want.choice);
        let shares = shares(&sights, Wanted { max, max_bytes, one: want.choice.one, horizon });
        if !shares.is_empty() {
            self.breadth.store(shares.len(), Ordering::Relaxed);
        }
        let mut claims: Vec<_> = claims.into_iter().map(Some).collect();
        let asked = shares.into_iter().map(|share| {
            let mut claim = claims[share.at].take().expect("a place has one share");
            claim.last = share.last;
            (claim, share)
        });
        let asked: Vec<_> = asked.collect();
        // Of the others nothing goes yet: they are for whoever comes.
        drop(claims);
        let answered = together(asked.iter().map(|(claim, share)| {
            let Share { max, max_bytes, last, .. } = *share;
            let choice = Choice { last, ..want.choice.clone() };
            self.ask_for(claim, Leasing { choice, max, max_bytes, ..want.clone() }, deadline)
        }));
        let answered = answered.await;
        self.came(asked.into_iter().map(|(claim, _)| claim).zip(answered).collect())
    }

    /// What is seen of a place, of what is wanted.
    async fn see(
        &self,
        place: PlaceNumber,
        most: u32,
        choice: &Choice,
        deadline: Instant,
    ) -> Result<Sight, NotDone> {
        let peek = self.peek(place, Peek { most, from: choice.only }, deadline);
        let mut ready = tokio::select! {
            ready = peek => ready?,
            // Nothing of it goes.
            () = self.until_away(place) => return Ok(Sight { ready: Vec::new(), is_all: true }),
        };
        let is_below = ready.last().is_some_and(|last| !choice.reaches(last.stands.level()));
        let is_all = is_below || ready.len() < most as usize;
        ready.retain(|ready| choice.takes(ready.stands.level()));
        Ok(Sight { ready, is_all })
    }

    /// Slots for a claim, and the claim.
    async fn ask_for(
        &self,
        claim: &Claim<'_>,
        want: Leasing,
        deadline: Instant,
    ) -> Result<Answered, NotDone> {
        let (place, max) = (claim.place, want.max);
        let granted = match self.slots_for(claim.level, place, max, deadline).await? {
            Ok(granted) => granted,
            Err(spent) => return Ok(Err(spent)),
        };
        let (calls, heads, shown) = self.lease_at(place, Leasing { granted, ..want }, deadline).await?;
        let given = shown.into_iter().map(|shown| Given { place, shown }).collect::<Vec<_>>();
        let stands = given.iter().map(|given| self.stands(given));
        let levels = stands.map(|stands| (stands.level(), stands.seq())).collect();
        Ok(Ok((Came { calls, given: levels, heads }, given)))
    }

    /// What claims came to that were made at once: what was given, in order. What one of them gave is not lost because another was not answered.
    fn came(&self, all: Vec<(Claim<'_>, Result<Answered, NotDone>)>) -> Result<Vec<Given>, NotDone> {
        let (mut told, mut all_given, mut failed) = (Vec::new(), Vec::new(), None);
        for (claim, answered) in all {
            match answered {
                Ok(Ok((came, given))) => {
                    told.push((claim, came));
                    all_given.extend(given);
                }
                // Without a slot nothing of the lane goes until one is free, and then it is shown again.
                Ok(Err(spent)) => {
                    claim.hold_back();
                    if !self.slots.is_spent(spent) {
                        self.heads.show_again();
                    }
                }
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        let is_wave = told.len() > 1;
        self.heads.told(told);
        if is_wave {
            all_given.sort_by_key(|given| (self.stands(given), given.place));
        }
        match failed {
            Some(why) if all_given.is_empty() => Err(why),
            _ => Ok(all_given),
        }
    }

    /// Where a message stood.
    fn stands(&self, given: &Given) -> Where {
        let message = &given.shown.stored.message;
        Where::new(self.terms().level(message.priority), message.seq)
    }
}

//! So many in so long: a token bucket in whole numbers.

use serde::{Deserialize, Serialize};

use crate::ids::Time;
use crate::settings::DURATION_MS_MAX;

/// Most messages of a rate.
pub const RATE_MESSAGES_MAX: u32 = 1_000_000;

/// How many messages may be leased in how long. A bucket holds `messages` tokens, is full at first, and fills evenly: in any time `t`
/// at most `messages · (1 + t / per_ms)` are leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// So many, 1 to 1,000,000.
    pub messages: u32,
    /// In so long, ms.
    pub per_ms: u64,
}

impl RateLimit {
    /// What is wrong with it.
    pub(crate) fn fault(self) -> Option<(&'static str, String)> {
        if !(1..=RATE_MESSAGES_MAX).contains(&self.messages) {
            return Some(("messages", format!("must be 1 to {RATE_MESSAGES_MAX}")));
        }
        let is_time = (1..=DURATION_MS_MAX).contains(&self.per_ms);
        (!is_time).then(|| ("per_ms", format!("must be 1 to {DURATION_MS_MAX} (ten years)")))
    }
}

/// The tokens of a rate. One token is `per_ms` units, of which `messages` come in each millisecond, so nothing is ever rounded.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    rate: RateLimit,
    units: u64,
    /// When it had so many.
    at: Time,
}

impl Bucket {
    pub(crate) fn full(rate: RateLimit) -> Self {
        Self { rate, units: most(rate), at: Time(0) }
    }

    pub(crate) fn empty(rate: RateLimit, now: Time) -> Self {
        Self { rate, units: 0, at: now }
    }

    /// Takes what has come since.
    pub(crate) fn fill(&mut self, now: Time) {
        let came = now.since(self.at).saturating_mul(u64::from(self.rate.messages));
        self.units = self.units.saturating_add(came).min(most(self.rate));
        self.at = self.at.max(now);
    }

    /// Takes a token out.
    pub(crate) fn take(&mut self) {
        self.units = self.units.saturating_sub(self.rate.per_ms);
    }

    /// When the next token is there, if there is none.
    pub(crate) fn next(&self) -> Option<Time> {
        self.when(self.rate.per_ms)
    }

    /// When it is full, if it is not.
    pub(crate) fn full_at(&self) -> Option<Time> {
        self.when(most(self.rate))
    }

    fn when(&self, units: u64) -> Option<Time> {
        let missing = units.checked_sub(self.units).filter(|missing| *missing > 0)?;
        Some(self.at.after(missing.div_ceil(u64::from(self.rate.messages))))
    }

    /// Another rate from now on; the tokens stay, as far as it holds so many.
    pub(crate) fn change(&mut self, rate: RateLimit) {
        let units = u128::from(self.units) * u128::from(rate.per_ms) / u128::from(self.rate.per_ms);
        self.units = u64::try_from(units).unwrap_or(u64::MAX).min(most(rate));
        self.rate = rate;
    }
}

fn most(rate: RateLimit) -> u64 {
    u64::from(rate.messages).saturating_mul(rate.per_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_evenly_and_no_part_of_one_is_lost() {
        let mut bucket = Bucket::full(RateLimit { messages: 3, per_ms: 10 });
        let mut taken = Vec::new();
        for now in 0..=30 {
            bucket.fill(Time(now));
            while bucket.next().is_none() {
                bucket.take();
                taken.push(now);
            }
        }
        assert_eq!(taken, [0, 0, 0, 4, 7, 10, 14, 17, 20, 24, 27, 30]);
    }

    #[test]
    fn it_says_when_there_is_a_token_and_when_it_is_full() {
        let mut bucket = Bucket::empty(RateLimit { messages: 2, per_ms: 100 }, Time(1_000));
        assert_eq!((bucket.next(), bucket.full_at()), (Some(Time(1_050)), Some(Time(1_100))));
        bucket.fill(Time(1_050));
        assert_eq!((bucket.next(), bucket.full_at()), (None, Some(Time(1_100))));
        bucket.change(RateLimit { messages: 1, per_ms: 1_000 });
        assert_eq!((bucket.next(), bucket.full_at()), (None, None));
        bucket.take();
        assert_eq!(bucket.next(), Some(Time(2_050)));
    }
}

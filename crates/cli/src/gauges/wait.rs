//! How long messages waited that were leased between two polls.

use super::read::WaitIn;
use crate::table::duration;

/// How long a share of the messages waited at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantile {
    /// About so many ms.
    About(u64),
    /// Longer than the last bucket of the histogram, ms.
    Over(u64),
}

/// Messages that were leased, by how long they had waited: bounds in ms, and how many in each bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    buckets: Vec<(u64, u64)>,
    /// Those that waited longer than the last bound.
    beyond: u64,
}

impl Waits {
    /// Those of `now` that were not there `before`.
    pub(crate) fn since(now: &WaitIn, before: &WaitIn) -> Self {
        let (mut buckets, mut below) = (Vec::with_capacity(now.buckets.len()), 0);
        for (at, (bound, upto)) in now.buckets.iter().enumerate() {
            let then = before.buckets.get(at).map_or(0, |(_, upto)| *upto);
            let new = upto.saturating_sub(then);
            buckets.push((*bound, new.saturating_sub(below)));
            below = new.max(below);
        }
        let beyond = now.count.saturating_sub(before.count).saturating_sub(below);
        Self { buckets, beyond }
    }

    /// Counts those of another lane, too.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
        } else {
            for ((_, here), (_, there)) in self.buckets.iter_mut().zip(&other.buckets) {
                *here += there;
            }
        }
        self.beyond += other.beyond;
    }

    /// How long `percent` of them waited at most; `None` where there are none. Inside a bucket they are taken to be spread evenly, as
    /// Prometheus does it in `histogram_quantile`.
    pub(crate) fn quantile(&self, percent: u64) -> Option<Quantile> {
        let all = self.buckets.iter().map(|(_, count)| count).sum::<u64>() + self.beyond;
        if all == 0 {
            return None;
        }
        // The message of this number, from 1, when they stand in a row by how long they waited.
        let rank = (u128::from(all) * u128::from(percent)).div_ceil(100).max(1) as u64;
        let (mut below, mut from) = (0, 0);
        for (bound, count) in &self.buckets {
            if below + count >= rank {
                let width = u128::from(bound - from);
                let inside = width * u128::from(rank - below) / u128::from(*count);
                return Some(Quantile::About(from + inside as u64));
            }
            (below, from) = (below + count, *bound);
        }
        Some(Quantile::Over(from))
    }
}

impl Quantile {
    /// For people.
    pub(crate) fn text(self) -> String {
        match self {
            Self::About(ms) => duration(ms),
            Self::Over(ms) => format!(">{}", duration(ms)),
        }
    }

    /// For programs: ms, the last bound where it is beyond that.
    pub(crate) fn ms(self) -> u64 {
        match self {
            Self::About(ms) | Self::Over(ms) => ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[u64], beyond: u64) -> WaitIn {
        let mut below = 0;
        let bounds = [10, 100, 1_000];
        let buckets = bounds.iter().zip(counts).map(|(bound, count)| {
            below += count;
            (*bound, below)
        });
        WaitIn { buckets: buckets.collect(), count: counts.iter().sum::<u64>() + beyond }
    }

    fn check(before: &WaitIn, now: &WaitIn, percent: u64, expect: Option<Quantile>) {
        assert_eq!(Waits::since(now, before).quantile(percent), expect);
    }

    #[test]
    fn only_what_was_leased_between_the_polls_counts() {
        let before = histogram(&[1_000, 0, 0], 5);
        check(&before, &before, 95, None);
        check(&before, &histogram(&[1_000, 10, 0], 5), 50, Some(Quantile::About(55)));
        check(&before, &histogram(&[1_000, 10, 0], 5), 95, Some(Quantile::About(100)));
        check(&before, &histogram(&[1_000, 0, 0], 6), 50, Some(Quantile::Over(1_000)));
        check(&WaitIn::default(), &histogram(&[90, 0, 10], 0), 90, Some(Quantile::About(10)));
        check(&WaitIn::default(), &histogram(&[90, 0, 10], 0), 95, Some(Quantile::About(550)));
    }

    #[test]
    fn lanes_are_counted_together() {
        let none = WaitIn::default();
        let mut both = Waits::default();
        both.add(&Waits::since(&histogram(&[1, 0, 0], 0), &none));
        both.add(&Waits::since(&histogram(&[0, 0, 3], 1), &none));
        assert_eq!(both, Waits::since(&histogram(&[1, 0, 3], 1), &none));
        assert_eq!(both.quantile(99), Some(Quantile::Over(1_000)));
        assert_eq!(Quantile::Over(1_000).text(), ">1.0s");
    }

    #[test]
    fn a_histogram_that_began_anew_is_no_reason_to_stumble() {
        check(&histogram(&[1_000, 7, 7], 7), &histogram(&[1, 0, 0], 0), 95, None);
    }
}

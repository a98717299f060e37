//! How long things took.

/// How long things took, ns.
#[derive(Default)]
pub(crate) struct Spread(Vec<u64>);

impl Spread {
    pub(crate) fn of(ns: Vec<u64>) -> Self {
        Self(ns)
    }

    pub(crate) fn saw(&mut self, ns: u64) {
        self.0.push(ns);
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// All that were seen, ns.
    pub(crate) fn all(&self) -> &[u64] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// So large a part of them took no longer, ns; by the nearest rank. `None` when there are none.
    pub(crate) fn percentile(&mut self, part: f64) -> Option<u64> {
        self.0.sort_unstable();
        let rank = (self.0.len() as f64 * part).ceil() as usize;
        self.0.get(rank.max(1) - 1).copied()
    }

    /// The same, ms.
    pub(crate) fn percentile_ms(&mut self, part: f64) -> Option<f64> {
        self.percentile(part).map(|ns| ns as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let mut spread = Spread::of((1..=200).map(|ms| ms * 1_000_000).collect());
        let seen = [0.5, 0.99, 1.0].map(|part| spread.percentile_ms(part));
        assert_eq!(seen, [Some(100.0), Some(198.0), Some(200.0)]);
        assert_eq!(Spread::default().percentile_ms(0.5), None);
    }
}

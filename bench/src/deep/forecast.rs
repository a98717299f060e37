//! How much memory a depth will take, from what smaller ones took: deep enough, memory grows in a straight line.

/// Of what is available, this much stays free, %.
const SPARE_PERCENT: u64 = 10;

/// What one store took with bodies of one length.
#[derive(Clone, Debug, Default)]
pub(super) struct Forecast {
    /// Depth and most memory, bytes; the depths rise.
    seen: Vec<(usize, u64)>,
}

impl Forecast {
    pub(super) fn saw(&mut self, depth: usize, bytes: u64) {
        self.seen.push((depth, bytes));
    }

    /// Whether it has seen enough to draw a line.
    pub(super) fn is_ready(&self) -> bool {
        self.seen.len() >= 2
    }

    /// Bytes at this depth. It never says less than was seen before.
    pub(super) fn at(&self, depth: usize) -> Option<u64> {
        let [.., (least, few), (most, many)] = self.seen[..] else { return None };
        let each = many.saturating_sub(few) as f64 / (most - least) as f64;
        Some(many.max(few) + (each * depth.saturating_sub(most) as f64) as u64)
    }

    /// Why this depth must not be tried, if there is a reason.
    pub(super) fn refuses(&self, depth: usize, available: u64) -> Option<String> {
        let needed = self.at(depth)?;
        let usable = available / 100 * (100 - SPARE_PERCENT);
        (needed > usable).then(|| {
            format!(
                "by what smaller depths took it needs {:.1} GiB of memory, and {:.1} GiB are available",
                gib(needed),
                gib(available)
            )
        })
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 30) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn forecast(seen: &[(usize, u64)]) -> Forecast {
        Forecast { seen: seen.to_vec() }
    }

    #[test]
    fn a_depth_that_does_not_fit_is_refused_with_both_figures() {
        let seen = forecast(&[(10_000, 100 * MIB), (1_010_000, 500 * MIB)]);
        assert_eq!(seen.at(2_010_000), Some(900 * MIB));
        assert_eq!(seen.refuses(2_010_000, 1_001 * MIB), None);
        let said = "by what smaller depths took it needs 0.9 GiB of memory, and 1.0 GiB are available";
        assert_eq!(seen.refuses(2_010_000, 999 * MIB).as_deref(), Some(said));
    }

    #[test]
    fn memory_that_does_not_grow_with_the_depth_lets_every_depth_through() {
        let seen = forecast(&[(10_000, 300 * MIB), (1_000_000, 290 * MIB)]);
        assert_eq!(seen.at(100_000_000), Some(300 * MIB));
    }

    #[test]
    fn one_depth_makes_no_line() {
        assert_eq!(forecast(&[(10_000, MIB)]).refuses(1_000_000_000, 0), None);
    }
}

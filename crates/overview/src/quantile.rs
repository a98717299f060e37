//! How long most messages waited, from two looks at a histogram.

use overtake_lane::WaitView;

/// Below how many ms this share of the messages waited that were leased between two looks at one lane; `None` when none was.
///
/// Linear within a bucket, as PromQL's `histogram_quantile` has it; what waited longer than the last bound counts as that bound.
/// A counter that is smaller than before began anew.
#[must_use]
pub fn quantile_ms(before: Option<&WaitView>, now: &WaitView, share: f64) -> Option<f64> {
    let before =
        before.filter(|before| before.count <= now.count && before.buckets.len() == now.buckets.len());
    let grown = |at: usize| {
        let there = before.and_then(|before| before.buckets.get(at)).map_or(0, |(_, count)| *count);
        now.buckets.get(at).map_or(0, |(_, count)| count.saturating_sub(there))
    };
    let all = now.count - before.map_or(0, |before| before.count);
    if all == 0 {
        return None;
    }
    let rank = share.clamp(0.0, 1.0) * all as f64;
    let (mut lower, mut below) = (0.0, 0);
    for (at, (bound, _)) in now.buckets.iter().enumerate() {
        let (upper, count) = (*bound as f64, grown(at));
        if count as f64 >= rank && count > below {
            return Some(lower + (upper - lower) * (rank - below as f64) / (count - below) as f64);
        }
        (lower, below) = (upper, count);
    }
    Some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(counts: &[u64], count: u64) -> WaitView {
        let bounds = [10, 100, 1_000];
        WaitView { buckets: bounds.into_iter().zip(counts.iter().copied()).collect(), count, sum_ms: 0 }
    }

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let now = waits(&[10, 20, 20], 20);
        assert_eq!(quantile_ms(None, &now, 0.5), Some(10.0));
        assert_eq!(quantile_ms(None, &now, 0.75), Some(55.0));
        assert_eq!(quantile_ms(None, &now, 1.0), Some(100.0));
        assert_eq!(quantile_ms(None, &now, 0.0), Some(0.0));
    }

    #[test]
    fn only_what_came_since_counts() {
        let before = waits(&[10, 20, 20], 20);
        assert_eq!(quantile_ms(Some(&before), &before, 0.95), None);
        assert_eq!(quantile_ms(Some(&before), &waits(&[10, 20, 30], 30), 0.5), Some(550.0));
        assert_eq!(quantile_ms(Some(&before), &waits(&[1, 1, 1], 1), 1.0), Some(10.0), "it began anew");
    }

    #[test]
    fn what_waited_longer_than_all_bounds_counts_as_the_last() {
        assert_eq!(quantile_ms(None, &waits(&[0, 0, 0], 5), 0.5), Some(1_000.0));
        assert_eq!(quantile_ms(None, &waits(&[0, 0, 0], 0), 0.5), None);
    }
}

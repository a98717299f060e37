//! How much is sent per second, lately.

use overtake_lane::Time;

/// Over so long, ms.
const SPAN_MS: u64 = 10_000;

/// How much is sent lately: over the last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throughput {
    /// Messages that the receiver accepted, in a thousand seconds.
    pub messages_per_1000_s: u64,
    /// Bytes of those over the line, per second.
    pub bytes_per_s: u64,
}

/// Counts of two spans, this one and the one before; of that as much counts as still lies within the last [`SPAN_MS`]: a sliding window counter, exact
/// where what came in a span came evenly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    span: u64,
    now: (u64, u64),
    before: (u64, u64),
}

impl Recent {
    fn at(self, now: Time) -> Self {
        let span = now.0 / SPAN_MS;
        match span.saturating_sub(self.span) {
            0 => self,
            1 => Self { span, now: (0, 0), before: self.now },
            _ => Self { span, ..Self::default() },
        }
    }

    /// A message of so many bytes was accepted.
    pub(crate) fn accepted(&mut self, now: Time, bytes: u64) {
        *self = self.at(now);
        self.now = (self.now.0 + 1, self.now.1 + bytes);
    }

    pub(crate) fn throughput(self, now: Time) -> Throughput {
        let Self { now: here, before, .. } = self.at(now);
        let (span, left) = (u128::from(SPAN_MS), u128::from(SPAN_MS - now.0 % SPAN_MS));
        let in_ms = |ms: u128, here: u64, before: u64| {
            let count = u128::from(here) * span + u128::from(before) * left;
            u64::try_from(count * ms / (span * span)).unwrap_or(u64::MAX)
        };
        Throughput {
            messages_per_1000_s: in_ms(1_000_000, here.0, before.0),
            bytes_per_s: in_ms(1_000, here.1, before.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_evenly_is_told_exactly_and_what_is_long_ago_not_at_all() {
        let mut recent = Recent::default();
        // One in 50 ms, of 3 bytes.
        for at in (0..60_000).step_by(50) {
            recent.accepted(Time(at), 3);
        }
        let told = |at: u64| {
            let Throughput { messages_per_1000_s, bytes_per_s } = recent.throughput(Time(at));
            (messages_per_1000_s, bytes_per_s)
        };
        assert_eq!([60_000, 62_500, 65_000].map(told), [(20_000, 60), (15_000, 45), (10_000, 30)]);
        assert_eq!(recent.throughput(Time(70_000)), Throughput::default());
        assert_eq!(recent.throughput(Time(1 << 40)), Throughput::default());
    }

    #[test]
    fn one_that_has_just_begun_tells_what_went() {
        let mut recent = Recent::default();
        recent.accepted(Time(123_456), 10);
        assert_eq!(recent.throughput(Time(123_457)).messages_per_1000_s, 100);
    }
}

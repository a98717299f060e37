//! How much is sent per second, lately.

use overtake_lane::Time;

/// Over so long, ms.
const SPAN_MS: u64 = 10_000;

/// How much is sent per second, over the last ten.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Messages that the receiver accepted.
    pub messages_per_second: f64,
    /// Bytes of those over the line.
    pub bytes_per_second: f64,
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
        let left = 1.0 - (now.0 % SPAN_MS) as f64 / SPAN_MS as f64;
        let per_second =
            |here: u64, before: u64| (here as f64 + before as f64 * left) * 1_000.0 / SPAN_MS as f64;
        Throughput {
            messages_per_second: per_second(here.0, before.0),
            bytes_per_second: per_second(here.1, before.1),
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
        for at in [60_000, 62_500, 65_000] {
            let gone = (at - 60_000) as f64 / 10_000.0;
            let told = recent.throughput(Time(at));
            assert!((told.messages_per_second - 20.0 * (1.0 - gone)).abs() < 0.01, "{told:?}");
            assert!((told.bytes_per_second - 60.0 * (1.0 - gone)).abs() < 0.01, "{told:?}");
        }
        assert_eq!(recent.throughput(Time(70_000)), Throughput::default());
        assert_eq!(recent.throughput(Time(1 << 40)), Throughput::default());
    }

    #[test]
    fn one_that_has_just_begun_tells_what_went() {
        let mut recent = Recent::default();
        recent.accepted(Time(123_456), 10);
        assert_eq!(recent.throughput(Time(123_457)).messages_per_second, 0.1);
    }
}

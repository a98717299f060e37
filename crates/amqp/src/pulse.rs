//! Heartbeats (4.2.7): a peer that says nothing for too long is gone.

use overtake_lane::Time;

/// When something was last heard and last said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulse {
    /// What was agreed on, ms; 0: none.
    interval_ms: u64,
    heard: Time,
    said: Time,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    Nothing,
    /// Give a sign of life.
    Send,
    /// The peer is gone.
    Dead,
}

impl Pulse {
    pub(crate) fn new(now: Time) -> Self {
        Self { interval_ms: 0, heard: now, said: now }
    }

    pub(crate) fn agree(&mut self, now: Time, seconds: u16) {
        *self = Self { interval_ms: u64::from(seconds) * 1_000, heard: now, said: now };
    }

    /// What was agreed on, seconds; 0: nothing.
    pub(crate) fn interval_s(&self) -> u64 {
        self.interval_ms / 1_000
    }

    /// When the peer last said something.
    pub(crate) fn heard(&self) -> Time {
        self.heard
    }

    pub(crate) fn hear(&mut self, now: Time) {
        self.heard = now;
    }

    pub(crate) fn say(&mut self, now: Time) {
        self.said = now;
    }

    /// A sign is given after half the interval; two of them without one mean the end.
    pub(crate) fn beat(&self, now: Time) -> Beat {
        if self.interval_ms == 0 {
            Beat::Nothing
        } else if now >= self.dead_at() {
            Beat::Dead
        } else if now >= self.send_at() {
            Beat::Send
        } else {
            Beat::Nothing
        }
    }

    /// When there is something to be done at the latest.
    pub(crate) fn next(&self) -> Option<Time> {
        (self.interval_ms > 0).then(|| self.send_at().min(self.dead_at()))
    }

    fn send_at(&self) -> Time {
        self.said.after(self.interval_ms / 2)
    }

    fn dead_at(&self) -> Time {
        self.heard.after(self.interval_ms * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_given_and_expected() {
        let mut pulse = Pulse::new(Time(0));
        assert_eq!(
            (pulse.beat(Time(u64::MAX - 1)), pulse.next()),
            (Beat::Nothing, None),
            "nothing was agreed on"
        );
        pulse.agree(Time(1_000), 10);
        assert_eq!((pulse.beat(Time(5_999)), pulse.next()), (Beat::Nothing, Some(Time(6_000))));
        assert_eq!(pulse.beat(Time(6_000)), Beat::Send);
        pulse.say(Time(6_000));
        assert_eq!(pulse.next(), Some(Time(11_000)));
        pulse.say(Time(20_000));
        assert_eq!((pulse.beat(Time(20_999)), pulse.beat(Time(21_000))), (Beat::Nothing, Beat::Dead));
        pulse.hear(Time(20_500));
        assert_eq!(pulse.beat(Time(21_000)), Beat::Nothing);
    }
}

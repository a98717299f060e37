//! How much may be sent now: rates, and what is left of the day.
//!
//! A rate is a debt: whoever has none may send, and what it sends is owed; debts are worked off as time passes. So nothing ever waits between
//! its lease and the line, and what is sent in a second is the rate and one batch at most.

use overtake_lane::{Priority, Time};

use crate::terms::Terms;

const DAY_MS: u64 = 86_400_000;

/// What one rate still owes, in units of which a second works off `per_second`.
#[derive(Clone, Copy, Debug, Default)]
struct Debt {
    /// Thousandths, so that a millisecond works off a whole number.
    owed: u128,
}

impl Debt {
    fn pass(&mut self, per_second: u64, ms: u64) {
        self.owed = self.owed.saturating_sub(u128::from(per_second) * u128::from(ms));
    }

    fn add(&mut self, units: u64) {
        self.owed += u128::from(units) * 1_000;
    }

    fn give_back(&mut self, units: u64) {
        self.owed = self.owed.saturating_sub(u128::from(units) * 1_000);
    }

    /// Milliseconds until nothing is owed.
    fn left_ms(&self, per_second: u64) -> u64 {
        if per_second == 0 {
            0
        } else {
            u64::try_from(self.owed.div_ceil(u128::from(per_second))).unwrap_or(u64::MAX)
        }
    }
}

/// What limits there are: see [`Terms`]. 0: none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) bytes_per_second: u64,
    pub(crate) messages_per_second: u64,
    pub(crate) daily_bytes: u64,
    pub(crate) reserve_bytes: u64,
    pub(crate) reserve_from: Option<Priority>,
}

impl Limits {
    pub(crate) fn of(terms: &Terms) -> Self {
        let Terms { bytes_per_second, messages_per_second, daily_bytes, reserve_bytes, reserve_from, .. } =
            *terms;
        Self { bytes_per_second, messages_per_second, daily_bytes, reserve_bytes, reserve_from }
    }
}

/// How much may be sent.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    limits: Limits,
    bytes: Debt,
    messages: Debt,
    /// To which the debts are worked off.
    at: Time,
    /// Days since 1970.
    day: u64,
    used: u64,
}

/// Who may send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Everybody,
    /// Only what is at least so urgent.
    AtLeast(Priority),
    /// Nobody before then.
    From(Time),
}

impl Allowance {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, bytes: Debt::default(), messages: Debt::default(), at: Time(0), day: 0, used: 0 }
    }

    /// So much of a day was used before.
    pub(crate) fn restore(&mut self, day: u64, used: u64) {
        (self.day, self.used) = (day, used);
    }

    /// The day, since 1970, and the bytes of it that are used.
    pub(crate) fn used(&self) -> (u64, u64) {
        (self.day, self.used)
    }

    /// Most bytes a batch should have: no more than goes in a second.
    pub(crate) fn burst_bytes(&self) -> u64 {
        if self.limits.bytes_per_second == 0 { u64::MAX } else { self.limits.bytes_per_second }
    }

    /// Most messages a batch should have.
    pub(crate) fn burst(&self) -> u32 {
        match self.limits.messages_per_second {
            0 => u32::MAX,
            rate => u32::try_from(rate).unwrap_or(u32::MAX),
        }
    }

    /// Time has passed.
    fn pass(&mut self, now: Time) {
        let ms = now.since(self.at);
        self.bytes.pass(self.limits.bytes_per_second, ms);
        self.messages.pass(self.limits.messages_per_second, ms);
        self.at = now;
        let day = now.0 / DAY_MS;
        if day != self.day {
            (self.day, self.used) = (day, 0);
        }
    }

    pub(crate) fn leave(&mut self, now: Time) -> Leave {
        self.pass(now);
        let owed_ms = self
            .bytes
            .left_ms(self.limits.bytes_per_second)
            .max(self.messages.left_ms(self.limits.messages_per_second));
        let left = self.limits.daily_bytes.saturating_sub(self.used);
        let tomorrow = self.tomorrow();
        match self.limits.reserve_from {
            _ if owed_ms > 0 => Leave::From(now.after(owed_ms)),
            _ if self.limits.daily_bytes == 0 => Leave::Everybody,
            _ if left == 0 => Leave::From(tomorrow),
            Some(from) if left <= self.limits.reserve_bytes => Leave::AtLeast(from),
            None if left <= self.limits.reserve_bytes => Leave::From(tomorrow),
            _ => Leave::Everybody,
        }
    }

    fn tomorrow(&self) -> Time {
        Time(self.day.saturating_add(1).saturating_mul(DAY_MS))
    }

    /// When it looks different by itself, if nothing is sent.
    pub(crate) fn wakes_at(&mut self, now: Time) -> Time {
        match self.leave(now) {
            Leave::From(at) => at,
            Leave::AtLeast(_) => self.tomorrow(),
            Leave::Everybody => Time::NEVER,
        }
    }

    /// A message of so many bytes is sent.
    pub(crate) fn charge(&mut self, now: Time, bytes: u64) {
        self.pass(now);
        self.bytes.add(bytes);
        self.messages.add(1);
        self.used = self.used.saturating_add(bytes);
    }

    /// It took so many bytes more than it said.
    pub(crate) fn charge_more(&mut self, bytes: u64) {
        self.bytes.add(bytes);
        self.used = self.used.saturating_add(bytes);
    }

    /// It was not sent after all.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.bytes.give_back(bytes);
        self.messages.give_back(1);
        self.used = self.used.saturating_sub(bytes);
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(limits: Limits) -> Allowance {
        let mut allowance = Allowance::new(limits);
        allowance.pass(Time(10 * DAY_MS));
        allowance
    }

    const NOON: Time = Time(10 * DAY_MS + DAY_MS / 2);

    #[test]
    fn what_is_sent_is_owed_until_the_rate_has_worked_it_off() {
        let mut allowance = allowance(Limits { bytes_per_second: 1_000, ..Limits::default() });
        assert_eq!(allowance.leave(NOON), Leave::Everybody);
        allowance.charge(NOON, 2_500);
        assert_eq!(allowance.leave(NOON), Leave::From(NOON.after(2_500)));
        assert_eq!(allowance.leave(NOON.after(2_499)), Leave::From(NOON.after(2_500)));
        assert_eq!(allowance.leave(NOON.after(2_500)), Leave::Everybody);
    }

    #[test]
    fn what_was_not_sent_is_not_owed() {
        let mut allowance =
            allowance(Limits { messages_per_second: 2, daily_bytes: 10, ..Limits::default() });
        allowance.charge(NOON, 10);
        allowance.give_back(10);
        assert_eq!(allowance.leave(NOON), Leave::Everybody);
        assert_eq!(allowance.used(), (10, 0));
    }

    #[test]
    fn the_rest_of_a_day_is_for_urgent_messages_and_the_next_day_begins_anew() {
        let limits = Limits {
            daily_bytes: 1_000,
            reserve_bytes: 200,
            reserve_from: Some(Priority(7)),
            ..Limits::default()
        };
        let (mut allowance, tomorrow) = (allowance(limits), Time(11 * DAY_MS));
        allowance.charge(NOON, 799);
        assert_eq!(allowance.leave(NOON), Leave::Everybody);
        allowance.charge(NOON, 1);
        assert_eq!(allowance.leave(NOON), Leave::AtLeast(Priority(7)));
        allowance.charge(NOON, 500);
        assert_eq!(allowance.leave(NOON), Leave::From(tomorrow));
        assert_eq!(allowance.wakes_at(NOON), tomorrow);
        assert_eq!(allowance.leave(tomorrow), Leave::Everybody);
    }

    #[test]
    fn a_slow_rate_and_a_long_wait_overflow_nothing() {
        let limits = Limits { bytes_per_second: 1, messages_per_second: u64::MAX, ..Limits::default() };
        let mut allowance = allowance(limits);
        allowance.charge(NOON, u64::MAX);
        assert_eq!(allowance.leave(NOON), Leave::From(Time::NEVER));
        assert_eq!(allowance.leave(Time::NEVER), Leave::From(Time::NEVER));
    }
}

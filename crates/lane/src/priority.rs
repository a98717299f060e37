//! How urgent: one number inside, larger is more urgent; a scheme maps what the wire says to it, once, at the edge.
//!
//! | scheme | the wire says | inside | missing |
//! |---|---|---|---|
//! | `ten-level` | 0–9, larger first; above 9 counts as 9, below 0 is refused | the same | 4 |
//! | `signed` | any `i32`, or BULK −100, LOW −50, NORMAL 0, HIGH 50, CRITICAL 100 | the same | 0 |
//! | `named` | critical, high, normal, low, background, or what `signed` calls so, 100, 50, 0, −50 and −100; anything else is refused | 4, 3, 2, 1, 0 | normal |
//! | `route` | 0–9, **0 first**; anything else is refused | 10 − n | 0, after every explicit one |
//! | `max-n` | 0–n, larger first; above n counts as n, below 0 as 0 | the same | 0 |

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// How urgent a message is. Larger is more urgent, whatever the scheme on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub i32);

/// A priority as the wire gave it, before a scheme mapped it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Given {
    /// The message said nothing.
    #[default]
    Missing,
    /// A number.
    Number(i64),
    /// A name, in any case.
    Name(String),
    /// A priority of this scheme, which need not be the queue's: it counts as what is as urgent there ([`Scheme::words_for`]). Never in JSON.
    #[serde(skip)]
    Of(Scheme, Priority),
}

/// What was given, small enough to keep with every message, so that it can be shown as it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Original {
    /// Nothing was given.
    #[default]
    Missing,
    /// A number. A queue takes none beyond an `i32`.
    Number(i32),
    /// The name of the priority it was mapped to, or what the scheme calls it that has no names.
    Name,
}

/// Maps a priority on the wire to one inside. As text: `ten-level`, `signed`, `named`, `route`, `max-N` (1 to 255).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// 0–9, larger first.
    #[default]
    TenLevel,
    /// Any `i32`, five of them with names.
    Signed,
    /// Five names.
    Named,
    /// 0–9, 0 first.
    Route,
    /// 0–n, larger first, as `x-max-priority`.
    Max(u8),
}

const SIGNED: [(&str, i32); 5] =
    [("BULK", -100), ("LOW", -50), ("NORMAL", 0), ("HIGH", 50), ("CRITICAL", 100)];
const NAMED: [(&str, i32); 5] = [("background", 0), ("low", 1), ("normal", 2), ("high", 3), ("critical", 4)];
const TEN_LEVEL_DEFAULT: i32 = 4;
const NAMED_DEFAULT: i32 = 2;

impl Scheme {
    /// The priority inside for what the wire gave.
    ///
    /// # Errors
    /// [`Refusal::PriorityOutOfRange`] or [`Refusal::PriorityUnknown`], as the table above says.
    pub fn map(self, given: &Given) -> Result<Priority, Refusal> {
        match given {
            Given::Missing => Ok(self.missing()),
            Given::Number(number) => self.map_number(*number),
            Given::Name(name) => self.map_name(name),
            Given::Of(theirs, priority) => self.map(&self.words_for(*theirs, *priority)),
        }
    }

    /// The priority of this scheme that is as urgent as a priority of another, in the words of this one. The most urgent of one is the most urgent of the other, and
    /// nothing less urgent comes before anything more urgent; where one scheme has fewer priorities, several are the same in it.
    ///
    /// | `route` | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | nothing |
    /// |---|---|---|---|---|---|---|---|---|---|---|---|
    /// | `ten-level` | 9 | 8 | 7 | 6 | 5 | 4 | 3 | 2 | 1 | 0 | 0 |
    /// | `named` | critical | critical | high | high | normal | normal | low | low | background | background | background |
    /// | `signed` | CRITICAL | CRITICAL | HIGH | HIGH | NORMAL | NORMAL | LOW | LOW | BULK | BULK | BULK |
    ///
    /// | `named` | critical | high | normal | low | background |
    /// |---|---|---|---|---|---|
    /// | `signed` | CRITICAL | HIGH | NORMAL | LOW | BULK |
    /// | `ten-level` | 9 | 6 | 4 | 2 | 0 |
    ///
    /// A number of `signed` between two names counts as the less urgent of them where names are said, and as a part of the way from −100 to 100 where numbers
    /// are; beyond them as the nearest. To and from `max-n` the steps are equal, rounded down.
    #[must_use]
    pub fn words_for(self, theirs: Self, priority: Priority) -> Given {
        if self == theirs {
            return self.show(Original::Name, priority);
        }
        let (steps, most) = theirs.steps_from_below(priority);
        let name = |names: &[(&str, i32)]| {
            let nth = match theirs {
                Self::Named | Self::Signed => steps * 4 / most,
                Self::TenLevel | Self::Route | Self::Max(_) => steps * 9 / most / 2,
            };
            Given::from(names[nth as usize].0)
        };
        match self {
            Self::TenLevel => Given::Number(steps * 9 / most),
            Self::Max(n) => Given::Number(steps * i64::from(n) / most),
            Self::Route => Given::Number(9 - steps * 9 / most),
            Self::Named => name(&NAMED),
            Self::Signed => name(&SIGNED),
        }
    }

    /// How far a priority is from the least urgent that can be said, and how far the most urgent is.
    fn steps_from_below(self, priority: Priority) -> (i64, i64) {
        let (first, last) = match self {
            Self::TenLevel => (0, 9),
            Self::Max(n) => (0, i64::from(n)),
            // Below the first is what says nothing.
            Self::Route => (1, 10),
            Self::Named => (0, NAMED.len() as i64 - 1),
            Self::Signed => (-100, 100),
        };
        (i64::from(priority.0).clamp(first, last) - first, last - first)
    }

    fn missing(self) -> Priority {
        Priority(match self {
            Self::TenLevel => TEN_LEVEL_DEFAULT,
            Self::Named => NAMED_DEFAULT,
            Self::Signed | Self::Route | Self::Max(_) => 0,
        })
    }

    fn map_number(self, number: i64) -> Result<Priority, Refusal> {
        match self {
            Self::TenLevel if number < 0 => Err(Refusal::PriorityOutOfRange),
            Self::TenLevel => Ok(Priority(number.min(9) as i32)),
            Self::Max(most) => Ok(Priority(number.clamp(0, i64::from(most)) as i32)),
            Self::Signed => i32::try_from(number).map(Priority).map_err(|_| Refusal::PriorityOutOfRange),
            Self::Route if (0..=9).contains(&number) => Ok(Priority(10 - number as i32)),
            Self::Route => Err(Refusal::PriorityOutOfRange),
            Self::Named => {
                let at = SIGNED.iter().position(|(_, signed)| i64::from(*signed) == number);
                at.map(|at| Priority(NAMED[at].1)).ok_or(Refusal::PriorityUnknown)
            }
        }
    }

    fn map_name(self, name: &str) -> Result<Priority, Refusal> {
        self.names()
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, level)| Priority(*level))
            .ok_or(Refusal::PriorityUnknown)
    }

    /// The priorities that find a lane in a queue with a lane for each, however many others are there: those with names, where there
    /// are more numbers than lanes.
    pub(crate) fn kept(self) -> &'static [(&'static str, i32)] {
        if self == Self::Signed { &SIGNED } else { &[] }
    }

    fn names(self) -> &'static [(&'static str, i32)] {
        match self {
            Self::Signed => &SIGNED,
            Self::Named => &NAMED,
            Self::TenLevel | Self::Route | Self::Max(_) => &[],
        }
    }

    /// The priority in the words of the wire: a name where the scheme has one, else the number. Under `route` the
    /// priority that was not given is `default`.
    #[must_use]
    pub fn name(self, priority: Priority) -> Cow<'static, str> {
        if let Some((name, _)) = self.names().iter().find(|(_, level)| *level == priority.0) {
            return Cow::Borrowed(name);
        }
        match self {
            Self::Route if priority.0 == 0 => Cow::Borrowed("default"),
            // A history keeps the levels of a queue of another scheme: one below all of these has a lane with a name of its own.
            Self::Route => Cow::Owned((10 - i64::from(priority.0)).to_string()),
            _ => Cow::Owned(priority.0.to_string()),
        }
    }

    /// The priority whose [`name`](Self::name) this is; `None`: no priority is called so.
    #[must_use]
    pub fn named(self, name: &str) -> Option<Priority> {
        let level = match self.names().iter().find(|(known, _)| *known == name) {
            Some((_, level)) => *level,
            None if self == Self::Route => {
                name.parse().map_or(0, |number: i32| 10_i32.saturating_sub(number))
            }
            None => name.parse().ok()?,
        };
        Some(Priority(level)).filter(|level| *self.name(*level) == *name)
    }

    /// What was given, as the wire would say it again; [`Given::Missing`] is shown as what it was taken for.
    #[must_use]
    pub fn show(self, original: Original, priority: Priority) -> Given {
        match original {
            // The lane is called so, and people read names.
            Original::Number(number) if self != Self::Named => Given::Number(i64::from(number)),
            _ => match self {
                Self::Route if priority.0 == 0 => Given::Missing,
                Self::Route => Given::Number(10 - i64::from(priority.0)),
                _ => match self.name(priority) {
                    Cow::Borrowed(name) => Given::Name(name.to_owned()),
                    Cow::Owned(_) => Given::Number(i64::from(priority.0)),
                },
            },
        }
    }
}

impl Scheme {
    /// What was given, as a number that every scheme with names takes for the same; `None`: nothing was given.
    #[must_use]
    pub fn number(self, original: Original, priority: Priority) -> Option<i32> {
        match (original, self) {
            (Original::Missing, _) => None,
            (Original::Number(number), _) => Some(number),
            (Original::Name, Self::Named) => {
                let nth = NAMED.iter().position(|(_, level)| *level == priority.0);
                Some(nth.map_or(priority.0, |nth| SIGNED[nth].1))
            }
            (Original::Name, Self::Route) => (priority.0 != 0).then(|| 10_i32.saturating_sub(priority.0)),
            (Original::Name, Self::TenLevel | Self::Signed | Self::Max(_)) => Some(priority.0),
        }
    }
}

impl Given {
    /// A priority of a route: 0 is the most urgent of ten, a level above 9 counts as 9, and no level comes after all of them.
    #[must_use]
    pub fn of_route(level: Option<u8>) -> Self {
        Self::Of(Scheme::Route, Priority(level.map_or(0, |level| 10 - i32::from(level.min(9)))))
    }

    /// The small form that is kept with the message.
    #[must_use]
    pub fn original(&self) -> Original {
        match self {
            Self::Missing => Original::Missing,
            Self::Number(number) => {
                Original::Number((*number).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
            }
            Self::Name(_) | Self::Of(..) => Original::Name,
        }
    }

    /// Whether any scheme takes it. Where a message goes nowhere, or only where something else says how urgent it is, no queue checks it.
    ///
    /// # Errors
    /// [`Refusal::PriorityUnknown`], [`Refusal::PriorityOutOfRange`].
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Missing | Self::Of(..) => Ok(()),
            Self::Number(number) => i32::try_from(*number).map(drop).map_err(|_| Refusal::PriorityOutOfRange),
            Self::Name(_) => self.name_as_number().map(drop).ok_or(Refusal::PriorityUnknown),
        }
    }

    /// A name as the number that `signed` has for it, or for the step that `named` calls so; `None`: neither knows the name, or it is none.
    pub(crate) fn name_as_number(&self) -> Option<Self> {
        let Self::Name(name) = self else { return None };
        let is_it = |known: &str| known.eq_ignore_ascii_case(name);
        let at = SIGNED.iter().zip(&NAMED).position(|(signed, named)| is_it(signed.0) || is_it(named.0))?;
        Some(Self::Number(SIGNED[at].1.into()))
    }
}

impl From<i64> for Given {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Given {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

/// From one word of a command line or a header: a number, else a name, exactly as it is; empty or only blanks is missing.
impl FromStr for Given {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.trim().is_empty() {
            true => Self::Missing,
            false => text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Number),
        })
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("default"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::Of(scheme, priority) => f.write_str(&scheme.name(*priority)),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TenLevel => f.write_str("ten-level"),
            Self::Signed => f.write_str("signed"),
            Self::Named => f.write_str("named"),
            Self::Route => f.write_str("route"),
            Self::Max(most) => write!(f, "max-{most}"),
        }
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ten-level" => Ok(Self::TenLevel),
            "signed" => Ok(Self::Signed),
            "named" => Ok(Self::Named),
            "route" => Ok(Self::Route),
            _ => text
                .strip_prefix("max-")
                .and_then(|most| most.parse().ok())
                .filter(|most| *most > 0)
                .map(Self::Max)
                .ok_or_else(|| {
                    format!(
                        "unknown scheme `{text}`: use ten-level, signed, named, route or max-1 to max-255"
                    )
                }),
        }
    }
}

impl Serialize for Scheme {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scheme {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scheme: &str, given: &str, expect: &str) {
        let scheme: Scheme = scheme.parse().expect("a scheme");
        let given: Given = given.parse().expect("never fails");
        let seen = match scheme.map(&given) {
            Ok(priority) => format!("{} shown {}", priority.0, scheme.show(given.original(), priority)),
            Err(refusal) => refusal.code().to_owned(),
        };
        assert_eq!(seen, expect, "{scheme} {given:?}");
    }

    #[test]
    fn ten_level_takes_more_than_nine_as_nine_and_nothing_as_four() {
        check("ten-level", "12", "9 shown 12");
        check("ten-level", "0", "0 shown 0");
        check("ten-level", "", "4 shown 4");
        check("ten-level", "-1", "priority-out-of-range");
        check("ten-level", "high", "priority-unknown");
    }

    #[test]
    fn signed_takes_any_integer_and_five_names() {
        check("signed", "bulk", "-100 shown BULK");
        check("signed", "-7", "-7 shown -7");
        check("signed", "", "0 shown NORMAL");
        check("signed", "2147483648", "priority-out-of-range");
        check("signed", "urgent", "priority-unknown");
    }

    #[test]
    fn named_takes_its_five_names_and_the_numbers_that_signed_has_for_them() {
        check("named", "Critical", "4 shown critical");
        check("named", "background", "0 shown background");
        check("named", "", "2 shown normal");
        check("named", "-100", "0 shown background");
        check("named", "50", "3 shown high");
        check("named", "3", "priority-unknown");
    }

    #[test]
    fn a_name_counts_in_any_case_and_is_otherwise_exact() {
        for wrong in [" high", "high ", "hi gh", "\thigh"] {
            check("named", wrong, "priority-unknown");
            check("signed", wrong, "priority-unknown");
        }
        check("ten-level", " 5", "priority-unknown");
        check("named", " ", "2 shown normal");
    }

    #[test]
    fn what_a_priority_is_called_names_it_again() {
        for scheme in [Scheme::TenLevel, Scheme::Signed, Scheme::Named, Scheme::Route, Scheme::Max(9)] {
            for level in -100..=100 {
                let name = scheme.name(Priority(level));
                assert_eq!(scheme.named(&name), Some(Priority(level)), "{scheme} {name}");
            }
            for none in ["", "high-ish", "007", "primary"] {
                assert_eq!(scheme.named(none), None, "{scheme}");
            }
        }
    }

    #[test]
    fn a_name_is_the_same_number_in_both_schemes_that_have_names() {
        for (name, number) in [("low", -50), ("Normal", 0), ("high", 50), ("CRITICAL", 100)] {
            for scheme in [Scheme::Signed, Scheme::Named] {
                for given in [Given::from(name), Given::Number(number)] {
                    let priority = scheme.map(&given).expect("it is known");
                    let told = scheme.number(given.original(), priority);
                    assert_eq!(told.map(i64::from), Some(number), "{scheme} {given:?}");
                }
            }
        }
        assert_eq!(Scheme::Signed.number(Original::Missing, Priority(0)), None, "nothing was said");
    }

    #[test]
    fn max_takes_what_is_outside_as_its_nearest() {
        check("max-9", "12", "9 shown 12");
        check("max-9", "-50", "0 shown -50");
        check("max-9", "", "0 shown 0");
    }

    #[test]
    fn route_puts_zero_first_and_nothing_last() {
        check("route", "0", "10 shown 0");
        check("route", "9", "1 shown 9");
        check("route", "", "0 shown default");
        check("route", "10", "priority-out-of-range");
    }

    const ALL: [Scheme; 7] = [
        Scheme::TenLevel,
        Scheme::Signed,
        Scheme::Named,
        Scheme::Route,
        Scheme::Max(1),
        Scheme::Max(9),
        Scheme::Max(255),
    ];

    /// The priorities of a scheme, the least urgent first.
    fn sayable(scheme: Scheme) -> Vec<Priority> {
        let (first, last) = match scheme {
            Scheme::TenLevel => (0, 9),
            Scheme::Signed => (-101, 101),
            Scheme::Named => (0, 4),
            Scheme::Route => (0, 10),
            Scheme::Max(most) => (0, i32::from(most)),
        };
        (first..=last).map(Priority).collect()
    }

    #[test]
    fn a_priority_is_as_urgent_in_the_words_of_every_other_scheme() {
        for theirs in ALL {
            for ours in ALL {
                let taken = |priority: &Priority| {
                    let given = Given::Of(theirs, *priority);
                    let mapped = ours.map(&given).unwrap_or_else(|why| panic!("{ours} {given:?}: {why}"));
                    let shown = ours.show(given.original(), mapped);
                    assert_eq!(ours.map(&shown), Ok(mapped), "{ours} shows {given:?} as {shown}");
                    let told = ours
                        .number(given.original(), mapped)
                        .map_or(Given::Missing, |n| Given::Number(n.into()));
                    assert_eq!(ours.map(&told), Ok(mapped), "{ours} tells {given:?} as {told}");
                    mapped
                };
                let all: Vec<Priority> = sayable(theirs).iter().map(taken).collect();
                assert!(all.is_sorted(), "{theirs} in {ours}: {all:?}");
                let most = sayable(ours).iter().max().map(|most| ours.map(&ours.show(Original::Name, *most)));
                let expected = if ours == Scheme::Signed && theirs != ours {
                    Priority(100)
                } else {
                    most.expect("one").expect("sayable")
                };
                assert_eq!(all.last(), Some(&expected), "{theirs} in {ours}");
            }
        }
    }

    #[test]
    fn what_goes_through_a_scheme_of_as_many_priorities_comes_back_as_it_was() {
        for (ours, through) in [
            (Scheme::TenLevel, Scheme::Max(9)),
            (Scheme::TenLevel, Scheme::Max(90)),
            (Scheme::Named, Scheme::Signed),
            (Scheme::Named, Scheme::TenLevel),
            (Scheme::Named, Scheme::Route),
            (Scheme::Named, Scheme::Max(4)),
            (Scheme::Max(9), Scheme::Route),
        ] {
            for priority in sayable(ours) {
                let there = through.map(&Given::Of(ours, priority)).expect("it is taken");
                let back = ours.map(&Given::Of(through, there));
                assert_eq!(back, Ok(priority), "{ours} through {through}");
            }
        }
    }

    #[test]
    fn a_priority_of_routes_is_said_as_the_documentation_has_it() {
        let said = |scheme: Scheme| -> String {
            let levels = (0..=9).map(|level| Scheme::Route.map(&Given::Number(level)).expect("a level"));
            let words =
                levels.chain([Priority(0)]).map(|level| scheme.words_for(Scheme::Route, level).to_string());
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(said(Scheme::Route), "0 1 2 3 4 5 6 7 8 9 default");
        assert_eq!(said(Scheme::TenLevel), "9 8 7 6 5 4 3 2 1 0 0");
        assert_eq!(said(Scheme::Max(4)), "4 3 3 2 2 1 1 0 0 0 0");
        assert_eq!(
            said(Scheme::Named),
            "critical critical high high normal normal low low background background background"
        );
        assert_eq!(said(Scheme::Signed), "CRITICAL CRITICAL HIGH HIGH NORMAL NORMAL LOW LOW BULK BULK BULK");
        let named = |scheme: Scheme| {
            (0..5)
                .rev()
                .map(|level| scheme.words_for(Scheme::Named, Priority(level)).to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(named(Scheme::TenLevel), "9 6 4 2 0");
        assert_eq!(named(Scheme::Signed), "CRITICAL HIGH NORMAL LOW BULK");
    }

    #[test]
    fn no_two_priorities_share_a_name_though_one_came_from_a_queue_of_another_scheme() {
        for scheme in [Scheme::TenLevel, Scheme::Signed, Scheme::Named, Scheme::Route, Scheme::Max(3)] {
            let all = (-200..200).chain([i32::MIN, i32::MAX]);
            let names: std::collections::BTreeSet<_> =
                all.map(|level| scheme.name(Priority(level))).collect();
            assert_eq!(names.len(), 402, "{scheme}");
        }
    }

    #[test]
    fn max_n_takes_more_than_n_as_n() {
        check("max-5", "9", "5 shown 9");
        check("max-5", "", "0 shown 0");
        assert!("max-0".parse::<Scheme>().is_err());
        assert!("max-256".parse::<Scheme>().is_err());
    }
}

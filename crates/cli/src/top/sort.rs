//! In which order queues stand, and which of them.

use std::cmp::{Ordering, Reverse};

use clap::ValueEnum;

use crate::gauges::QueueNow;

/// What comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Where the most urgent of what waits has waited longest.
    #[default]
    Trouble,
    /// Where most is ready.
    Ready,
    /// Where most comes in.
    In,
    /// Where most goes out.
    Out,
    /// By name.
    Name,
}

impl Sort {
    /// The one after it, in a round.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Trouble => Self::Ready,
            Self::Ready => Self::In,
            Self::In => Self::Out,
            Self::Out => Self::Name,
            Self::Name => Self::Trouble,
        }
    }

    /// For people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Ready => "ready",
            Self::In => "in",
            Self::Out => "out",
            Self::Name => "name",
        }
    }

    /// Which of two comes first; of equal ones that where more is ready, then by name.
    pub(crate) fn compare(self, one: &QueueNow, other: &QueueNow) -> Ordering {
        let rate = |rate: Option<f64>| rate.unwrap_or(0.0);
        let first = match self {
            Self::Trouble => Reverse(one.urgent_age_ms()).cmp(&Reverse(other.urgent_age_ms())),
            Self::In => rate(other.sums.in_rate).total_cmp(&rate(one.sums.in_rate)),
            Self::Out => rate(other.sums.out_rate).total_cmp(&rate(one.sums.out_rate)),
            Self::Ready => Ordering::Equal,
            Self::Name => return one.name.cmp(&other.name),
        };
        first.then(other.sums.ready.cmp(&one.sums.ready)).then_with(|| one.name.cmp(&other.name))
    }
}

/// Whether a name is like a pattern, in which `*` is any text and `?` any character.
pub(crate) fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut of) = (0, 0);
    // Where the last `*` stands, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(of) {
            Some('*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(c) if *c == '?' || *c == name[at] => (at, of) = (at + 1, of + 1),
            _ => {
                let Some((star_of, taken)) = star else { return false };
                star = Some((star_of, taken + 1));
                (at, of) = (taken + 1, star_of + 1);
            }
        }
    }
    pattern[of..].iter().all(|c| *c == '*')
}

/// Whether a pattern is like more than one name.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Whether a name is what was typed in: part of it in any case, or the whole where it is a pattern.
pub(crate) fn is_meant(name: &str, typed: &str) -> bool {
    if is_pattern(typed) { is_like(name, typed) } else { name.to_lowercase().contains(&typed.to_lowercase()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauges::{LaneNow, Sums};

    #[test]
    fn a_pattern_is_like_whole_names() {
        for (name, pattern, expect) in [
            ("jobs", "jobs", true),
            ("jobs", "job", false),
            ("jobs", "*", true),
            ("jobs.eu.high", "jobs.*.high", true),
            ("jobs.eu.low", "jobs.*.high", false),
            ("aab", "*ab", true),
            ("mäil", "m?il", true),
            ("", "*", true),
            ("", "?", false),
            ("x", "", false),
        ] {
            assert_eq!(is_like(name, pattern), expect, "{name} {pattern}");
        }
        assert!(is_meant("Orders.eu", "orders") && !is_meant("Orders.eu", "orders*"));
    }

    fn queue(name: &str, lanes: &[(u64, u64)], in_rate: f64) -> QueueNow {
        let lane = |(ready, oldest_ms): &(u64, u64)| LaneNow {
            sums: Sums { ready: *ready, oldest_ms: *oldest_ms, ..Sums::default() },
            ..LaneNow::default()
        };
        let lanes: Vec<_> = lanes.iter().map(lane).collect();
        let sums = lanes.iter().fold(Sums::default(), |sums, lane| sums.and(&lane.sums));
        let sums = Sums { in_rate: Some(in_rate), out_rate: Some(-in_rate), ..sums };
        QueueNow { name: name.to_owned(), lanes, sums, ..QueueNow::default() }
    }

    #[test]
    fn trouble_is_where_urgent_work_waits_long_and_not_where_bulk_does() {
        let mut queues = [
            queue("bulk", &[(0, 0), (9, 5_000)], 1.0),
            queue("urgent", &[(1, 9_000), (5, 99_000)], 2.0),
            queue("idle", &[], 3.0),
            queue("also idle", &[(0, 0)], 0.0),
        ];
        let mut by = |sort: Sort| {
            queues.sort_by(|one, other| sort.compare(one, other));
            queues.iter().map(|queue| queue.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(by(Sort::Trouble), "urgent, bulk, also idle, idle");
        assert_eq!(by(Sort::Ready), "bulk, urgent, also idle, idle");
        assert_eq!(by(Sort::In), "idle, urgent, bulk, also idle");
        assert_eq!(by(Sort::Out), "also idle, bulk, urgent, idle");
        assert_eq!(by(Sort::Name), "also idle, bulk, idle, urgent");
        let mut sort = Sort::Trouble;
        for _ in 0..5 {
            sort = sort.next();
        }
        assert_eq!(sort, Sort::Trouble);
    }
}

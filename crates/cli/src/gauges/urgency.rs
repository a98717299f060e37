//! How urgent a lane is among those its queue can have, in five steps, so that a colour means the same in every queue.

use super::read::{LaneIn, SettingsIn};

/// How many steps there are.
pub(crate) const HEATS: usize = 5;

/// A step: 0 is the most urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Heat(u8);

impl Heat {
    /// Of a lane in a queue with these settings.
    ///
    /// Lanes that the settings name stand as they name them. Else the level stands among those of the scheme, as
    /// `docs/queues.md` has them; of `signed` those beyond its names are as urgent as the last name.
    pub(crate) fn of(lane: &LaneIn, settings: &SettingsIn) -> Self {
        let bands = settings.order["lanes"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(at) = bands.iter().position(|band| band["name"] == lane.lane.as_str()) {
            return Self::between(at as i64, 0, bands.len() as i64 - 1);
        }
        if settings.order == "fifo" {
            return Self(HEATS as u8 / 2);
        }
        let (least, most) = range(&settings.scheme);
        Self::between(most - i64::from(lane.level).clamp(least, most), 0, most - least)
    }

    /// The step of `at` between the most urgent, and the least.
    fn between(at: i64, most: i64, least: i64) -> Self {
        if most == least {
            return Self(HEATS as u8 / 2);
        }
        let steps = HEATS as i64 - 1;
        // Rounded to the nearest.
        Self(((2 * (at - most) * steps + (least - most)) / (2 * (least - most))) as u8)
    }

    /// As an index.
    pub(crate) fn step(self) -> usize {
        usize::from(self.0)
    }
}

/// The least and the most urgent level of a scheme.
fn range(scheme: &str) -> (i64, i64) {
    match scheme {
        "named" => (0, 4),
        "route" => (0, 10),
        "signed" => (-100, 100),
        _ => (0, scheme.strip_prefix("max-").and_then(|most| most.parse().ok()).unwrap_or(9)),
    }
}

/// So many cells shared out by these amounts; each that is there has one at least. Nothing where there is nothing.
pub(crate) fn bar(amounts: [u64; HEATS], cells: usize) -> [usize; HEATS] {
    let mut widths = [0; HEATS];
    let all: u128 = amounts.iter().map(|amount| u128::from(*amount)).sum();
    let there = amounts.iter().filter(|amount| **amount > 0).count();
    if all == 0 || cells < there {
        return widths;
    }
    let mut left = cells - there;
    let spare = left as u128;
    for (width, amount) in widths.iter_mut().zip(amounts) {
        let share = (u128::from(amount) * spare / all) as usize;
        *width = share + usize::from(amount > 0);
        left -= share;
    }
    // What rounding left over is the largest one's.
    let largest = (0..HEATS).max_by_key(|at| amounts[*at]).unwrap_or_default();
    widths[largest] += left;
    widths
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn heat(scheme: &str, order: Value, lane: &str, level: i32) -> u8 {
        let settings = SettingsIn { scheme: scheme.to_owned(), order, ..SettingsIn::default() };
        Heat::of(&LaneIn { lane: lane.to_owned(), level, ..LaneIn::default() }, &settings).0
    }

    #[test]
    fn a_level_stands_among_those_of_its_scheme() {
        let steps = |scheme: &str, levels: &[i32]| {
            levels.iter().map(|level| heat(scheme, json!("priority"), "x", *level)).collect::<Vec<_>>()
        };
        assert_eq!(steps("ten-level", &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(steps("named", &[4, 3, 2, 1, 0]), [0, 1, 2, 3, 4]);
        assert_eq!(steps("signed", &[i32::MAX, 100, 50, 0, -50, -100, i32::MIN]), [0, 0, 1, 2, 3, 4, 4]);
        assert_eq!(steps("route", &[10, 5, 0]), [0, 2, 4]);
        assert_eq!(steps("max-2", &[2, 1, 0]), [0, 2, 4]);
    }

    #[test]
    fn lanes_by_name_stand_as_the_settings_have_them() {
        let order = json!({"lanes": [{"name": "primary", "from": 0}, {"name": "backfill"}]});
        assert_eq!(heat("signed", order.clone(), "primary", 0), 0);
        assert_eq!(heat("signed", order, "backfill", i32::MIN), 4);
        assert_eq!(heat("ten-level", json!("fifo"), "all", 0), 2);
        assert_eq!(heat("ten-level", json!({"lanes": [{"name": "one"}]}), "one", 0), 2);
    }

    #[test]
    fn in_a_bar_nothing_that_waits_is_too_small_to_be_seen() {
        assert_eq!(bar([1, 0, 0, 0, 1_000_000], 10), [1, 0, 0, 0, 9]);
        assert_eq!(bar([50, 0, 50, 0, 0], 10), [5, 0, 5, 0, 0]);
        assert_eq!(bar([0; HEATS], 10), [0; HEATS]);
        assert_eq!(bar([1; HEATS], 3), [0; HEATS]);
        for amounts in [[1, 2, 3, 4, 5], [u64::MAX; HEATS], [0, 7, 0, 0, 3]] {
            assert_eq!(bar(amounts, 17).iter().sum::<usize>(), 17, "{amounts:?}");
        }
    }
}

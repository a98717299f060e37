//! Times as people write them: `"250ms"`, `"30s"`, `"5m"`, `"2h"`, `"7d"`.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A whole number and a unit.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let millis = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, millis)| *millis);
    let all = millis.and_then(|millis| number.parse::<u64>().ok()?.checked_mul(millis));
    match all.filter(|all| *all <= 36_500 * 86_400_000) {
        Some(all) => Ok(Duration::from_millis(all)),
        None => Err(format!("`{text}` is no time: say it as \"250ms\", \"30s\", \"5m\", \"2h\" or \"7d\"")),
    }
}

/// A time in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).map(Self).map_err(D::Error::custom)
    }
}

/// A time, or `false` for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeOrNever(pub(super) Option<Duration>);

impl<'de> Deserialize<'de> for TimeOrNever {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a time such as \"7d\", or false for never")]
        enum Said {
            Text(String),
            Flag(bool),
        }
        match Said::deserialize(deserializer)? {
            Said::Text(text) => parse(&text).map(|time| Self(Some(time))).map_err(D::Error::custom),
            Said::Flag(false) => Ok(Self(None)),
            Said::Flag(true) => Err(D::Error::custom("say a time such as \"7d\", or false for never")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        let millis = |text| parse(text).map(|time| time.as_millis());
        assert_eq!([millis("250ms"), millis("30s"), millis("7d")], [Ok(250), Ok(30_000), Ok(604_800_000)]);
        for bad in ["", "30", "s", "-1s", "1.5s", "1 week", "99999999999999999999s", "18446744073709551615d"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}

//! The lanes of a category, and which of them a priority takes: as the broker has them, and from the same table and variables.

use std::collections::BTreeMap;

pub use overtake_lane::{PriorityLanes as Lanes, StreamLane as Lane};
use serde::Deserialize;

/// The table `[server.priority_lanes]`, as the broker, relays, subscribers and publishers read it. A key that nobody says has the default of [`Lanes`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LanesTable {
    /// Whether what is below the threshold has a lane of its own.
    pub enabled: Option<bool>,
    /// The least priority that is not backfill.
    pub threshold: Option<i32>,
    /// The suffix of the backfill lane: the lane of the category `customer` is `customer:SUFFIX`.
    pub backfill_suffix: Option<String>,
}

/// The beginning of the variables of the table, and of their likely misspellings: the broker has no other setting that begins so.
const VARIABLES: &str = "OVERTAKE__SERVER__PRIORITY";
/// The keys of the table.
const KEYS: [&str; 3] = ["enabled", "threshold", "backfill_suffix"];

impl LanesTable {
    /// The variable of the environment that sets a key, such as `OVERTAKE__SERVER__PRIORITY_LANES__ENABLED`: the broker's.
    #[must_use]
    pub fn variable(key: &str) -> String {
        format!("OVERTAKE__SERVER__PRIORITY_LANES__{}", key.to_uppercase())
    }

    /// Reads all variables of an environment, of which those of the table count. A variable that begins as they do and is none of them is
    /// refused, as the broker does: it would set nothing.
    ///
    /// # Errors
    /// The variable that is misspelled, or whose value cannot be, and why.
    pub fn of_environment(variables: &BTreeMap<String, String>) -> Result<Self, String> {
        let known = KEYS.map(Self::variable);
        match variables.keys().find(|name| name.starts_with(VARIABLES) && !known.contains(name)) {
            Some(name) => Err(format!("there is no variable {name}; there are {}", known.join(", "))),
            None => Self::of_variables(|name| variables.get(name).cloned()),
        }
    }

    /// Reads the variables of the environment, each by its name. A name that is misspelled shows nothing here:
    /// [`LanesTable::of_environment`] finds it.
    ///
    /// # Errors
    /// The variable whose value cannot be, and why.
    pub fn of_variables(value_of: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let read = |key: &str| {
            let name = Self::variable(key);
            value_of(&name).map(|value| (name, value))
        };
        let mut table = Self::default();
        if let Some((name, value)) = read("enabled") {
            let is_enabled =
                value.parse().map_err(|_| format!("{name}: `{value}` is neither true nor false"));
            table.enabled = Some(is_enabled?);
        }
        if let Some((name, value)) = read("threshold") {
            let (least, most) = (i32::MIN, i32::MAX);
            let wrong = |_| format!("{name}: `{value}` is no whole number from {least} to {most}");
            table.threshold = Some(value.trim().parse().map_err(wrong)?);
        }
        if let Some((name, suffix)) = read("backfill_suffix") {
            Lanes::check_suffix(&suffix).map_err(|why| format!("{name}: {why}"))?;
            table.backfill_suffix = Some(suffix);
        }
        Ok(table)
    }

    /// The keys of this table before those of `below`.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            enabled: self.enabled.or(below.enabled),
            threshold: self.threshold.or(below.threshold),
            backfill_suffix: self.backfill_suffix.or(below.backfill_suffix),
        }
    }

    /// The lanes that the table says.
    ///
    /// # Errors
    /// The suffix cannot be one; says what it must be, as a phrase.
    pub fn lanes(self) -> Result<Lanes, String> {
        let usual = Lanes::default();
        Lanes::new(
            self.enabled.unwrap_or(usual.is_enabled()),
            self.threshold.unwrap_or(usual.threshold()),
            self.backfill_suffix.unwrap_or_else(|| usual.suffix().to_owned()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_misspelled_is_named() {
        let read = |name: &str| {
            let variables = [(name.to_owned(), "true".to_owned()), ("PATH".to_owned(), "/bin".to_owned())];
            LanesTable::of_environment(&variables.into()).map(|table| table.enabled)
        };
        assert_eq!(read("OVERTAKE__SERVER__PRIORITY_LANES__ENABLED"), Ok(Some(true)));
        assert_eq!(read("OVERTAKE__SERVER__PORTS_FILE"), Ok(None), "a setting of the broker");
        for wrong in
            ["PRIORITY_LANES__ENABELD", "PRIORITY_LANES", "PRIORITY_LANE__ENABLED", "PRIORITYLANES__ENABLED"]
        {
            let wrong = format!("OVERTAKE__SERVER__{wrong}");
            let all = KEYS.map(LanesTable::variable).join(", ");
            assert_eq!(read(&wrong), Err(format!("there is no variable {wrong}; there are {all}")));
        }
    }

    #[test]
    fn a_variable_that_cannot_be_is_named() {
        let read = |key: &str, value: &str| {
            let (name, value) = (LanesTable::variable(key), value.to_owned());
            LanesTable::of_variables(|asked| (asked == name).then(|| value.clone()))
        };
        for (key, value, why) in [
            ("enabled", "yes", "ENABLED: `yes` is neither true nor false"),
            ("threshold", "low", "THRESHOLD: `low` is no whole number from -2147483648 to 2147483647"),
            (
                "backfill_suffix",
                "dlq",
                "BACKFILL_SUFFIX: `dlq` is what dead letters are called: name another",
            ),
        ] {
            assert_eq!(read(key, value), Err(format!("OVERTAKE__SERVER__PRIORITY_LANES__{why}")));
        }
        assert_eq!(read("threshold", "-25").map(|table| table.threshold), Ok(Some(-25)));
    }
}

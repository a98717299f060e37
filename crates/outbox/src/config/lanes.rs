//! The table `[server.priority_lanes]`, the broker's own: what the file says, what it says of the environment that is named, and variables before both.
//! `[lanes]` is the table's former name.

use std::collections::BTreeMap;

use serde::Deserialize;
#[cfg(not(feature = "redis"))]
pub(super) use serde::de::IgnoredAny as LanesTable;

#[cfg(feature = "redis")]
use overtake_streams::Lanes;
#[cfg(feature = "redis")]
pub(super) use overtake_streams::LanesTable;

use super::file::Wrong;

/// Names the environment whose table holds, as for the broker.
#[cfg(feature = "redis")]
const ENVIRONMENT: &str = "OVERTAKE_ENV";
/// The names of the table in the file.
const NAME: &str = "server.priority_lanes";
const FORMER_NAME: &str = "lanes";

/// All that a file says about lanes.
#[derive(Default)]
pub(super) struct LanesSections {
    pub(super) former: Option<LanesTable>,
    pub(super) server: ServerSection,
    pub(super) environments: BTreeMap<String, EnvironmentSection>,
}

/// `[server]`, of which a relay reads one table.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServerSection {
    priority_lanes: Option<LanesTable>,
}

/// `[env.NAME]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EnvironmentSection {
    server: ServerSection,
}

impl LanesSections {
    /// Refuses lanes where rows go to a broker. Variables are left alone: a deployment may set them for all its processes.
    pub(super) fn refuse(self) -> Result<(), Wrong> {
        let environments = self.environments.into_iter();
        let environments =
            environments.map(|(name, said)| (format!("env.{name}.{NAME}"), said.server.priority_lanes));
        let base = [(FORMER_NAME, self.former), (NAME, self.server.priority_lanes)];
        let mut all = base.map(|(key, table)| (key.to_owned(), table)).into_iter().chain(environments);
        match all.find_map(|(key, table)| table.filter(is_unusual).map(|_| key)) {
            Some(key) => {
                let why = "lanes are for the sink `redis`; queues of the broker have lanes of their own";
                Err((key, why.to_owned()))
            }
            None => Ok(()),
        }
    }

    /// The lanes that hold, with the variables of the environment.
    ///
    /// # Errors
    /// The key at fault and why; the key is empty where a variable is at fault.
    #[cfg(feature = "redis")]
    pub(super) fn lanes(mut self, variables: &BTreeMap<String, String>) -> Result<Lanes, Wrong> {
        let (name, base) = match (self.former, self.server.priority_lanes) {
            (Some(_), Some(_)) => {
                let why = format!("`{NAME}` says the same: leave this table out");
                return Err((FORMER_NAME.to_owned(), why));
            }
            (Some(table), None) => (FORMER_NAME, table),
            (None, table) => (NAME, table.unwrap_or_default()),
        };
        let suffix = |table: &LanesTable, name: &str| match &table.backfill_suffix {
            Some(suffix) => {
                Lanes::check_suffix(suffix).map_err(|why| (format!("{name}.backfill_suffix"), why))
            }
            None => Ok(()),
        };
        suffix(&base, name)?;
        for (environment, said) in &self.environments {
            if let Some(table) = &said.server.priority_lanes {
                suffix(table, &format!("env.{environment}.{NAME}"))?;
            }
        }
        // A file without environments is the same in all of them.
        let named =
            variables.get(ENVIRONMENT).filter(|name| !name.is_empty() && !self.environments.is_empty());
        let of_environment = match named {
            Some(named) => match self.environments.remove(named) {
                Some(said) => said.server.priority_lanes.unwrap_or_default(),
                None => {
                    let known: Vec<_> = self.environments.keys().map(|name| format!("`{name}`")).collect();
                    let known = known.join(", ");
                    let why = format!(
                        "{ENVIRONMENT} is `{named}`, and the file has {known}: add [env.{named}], or name one of these"
                    );
                    return Err(("env".to_owned(), why));
                }
            },
            None => LanesTable::default(),
        };
        let no_key = |why| (String::new(), why);
        let variables = LanesTable::of_environment(variables).map_err(no_key)?;
        variables.over(of_environment).over(base).lanes().map_err(no_key)
    }
}

/// Whether a table says anything but the defaults.
#[cfg(feature = "redis")]
fn is_unusual(table: &LanesTable) -> bool {
    table.clone().lanes() != Ok(Lanes::default())
}

#[cfg(not(feature = "redis"))]
fn is_unusual(_: &LanesTable) -> bool {
    true
}

//! What the process finds around itself: handed in, so that tests can make it up.

use std::path::PathBuf;

use rustix::fs::Access;

use super::{Origin, Sourced};

/// Where a service keeps its state on Debian.
pub(super) const SYSTEM_DIR: &str = "/var/lib/overtake";

/// The surroundings of the process.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The environment. Variables that are no Unicode are left out, but for the last resort of their names.
    pub variables: Vec<(String, String)>,
    /// The user may do everything.
    pub is_root: bool,
    /// `/var/lib/overtake` is a directory this user may write to.
    pub owns_system_dir: bool,
    /// The file that is read when none is named, if it is there.
    pub system_file: Option<PathBuf>,
}

impl Around {
    /// As they are.
    #[must_use]
    pub fn here() -> Self {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let here = Self {
            variables: std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect(),
            ..Self::default()
        };
        Self {
            is_root: rustix::process::geteuid().is_root(),
            system_file: here.files().into_iter().find(|path| path.exists()),
            owns_system_dir: rustix::fs::access(SYSTEM_DIR, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
            ..here
        }
    }

    /// Where the file is looked for when none is named: in `$CONFIGURATION_DIRECTORY` (what systemd gives, the first of several),
    /// then where the system has it.
    fn files(&self) -> Vec<PathBuf> {
        let given = self.variable("CONFIGURATION_DIRECTORY").and_then(|given| given.split(':').next());
        let given = given.map(|dir| PathBuf::from(dir).join("overtake.toml"));
        given.into_iter().chain([PathBuf::from(super::DEFAULT_FILE)]).collect()
    }

    /// The value of a variable that is set and not empty.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        let value = self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    /// Where the store is unless it is told: `$STATE_DIRECTORY` (what systemd gives, the first of several),
    /// `/var/lib/overtake` for root and whoever may write there, else the user's own data directory.
    pub(super) fn data_dir(&self) -> Sourced<PathBuf> {
        let from = |name: &str, value: PathBuf| Sourced { value, origin: Origin::Variable(name.to_owned()) };
        if let Some(given) = self.variable("STATE_DIRECTORY") {
            let first = given.split(':').next().unwrap_or(given);
            return from("STATE_DIRECTORY", first.into());
        }
        let system = Sourced { value: PathBuf::from(SYSTEM_DIR), origin: Origin::Default };
        if self.is_root || self.owns_system_dir {
            return system;
        }
        if let Some(data) = self.variable("XDG_DATA_HOME") {
            return from("XDG_DATA_HOME", PathBuf::from(data).join("overtake"));
        }
        match self.variable("HOME") {
            Some(home) => from("HOME", PathBuf::from(home).join(".local/share/overtake")),
            None => system,
        }
    }
}

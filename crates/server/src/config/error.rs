//! Why a configuration is refused: where, what, and what to do.

use std::fmt;

use super::Origin;

/// A configuration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where the fault is; `None` when it is nowhere in particular.
    pub place: Option<Origin>,
    /// What is wrong, naming the key.
    pub what: String,
    /// The line of the file with a mark under the fault.
    pub excerpt: Option<String>,
    /// What would be right.
    pub hint: Option<String>,
}

impl ConfigError {
    pub(super) fn at(place: Origin, what: impl Into<String>) -> Self {
        Self { place: Some(place), what: what.into(), excerpt: None, hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what)?;
        match &self.excerpt {
            Some(excerpt) => write!(f, "\n{excerpt}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}

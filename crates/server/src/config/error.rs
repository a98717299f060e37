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
    pub excerpt: Option<Box<str>>,
    /// How to mend this error and those in [`ConfigError::more`].
    pub hint: Option<String>,
    /// The other faults that were found.
    pub more: Box<[ConfigError]>,
}

impl ConfigError {
    pub(super) fn at(place: Origin, what: impl Into<String>) -> Self {
        Self { place: Some(place), what: what.into(), excerpt: None, hint: None, more: Box::default() }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// All faults as one error, the first in front.
    pub(super) fn all(faults: impl IntoIterator<Item = Self>) -> Result<(), Self> {
        let mut faults = faults.into_iter();
        let Some(mut first) = faults.next() else { return Ok(()) };
        let mut more = std::mem::take(&mut first.more).into_vec();
        for mut fault in faults {
            more.extend(std::mem::take(&mut fault.more));
            match (&mut first.hint, fault.hint.take()) {
                (Some(said), Some(hint)) if !said.contains(&hint) => *said = format!("{said}\n{hint}"),
                (None, hint) => first.hint = hint,
                _ => {}
            }
            more.push(fault);
        }
        first.more = more.into();
        Err(first)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what)?;
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n{excerpt}")?;
        }
        self.more.iter().try_for_each(|fault| write!(f, "\n{fault}"))
    }
}

impl std::error::Error for ConfigError {}

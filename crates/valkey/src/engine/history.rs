//! Where a process is in the history of definitions, and what it is to do where the servers are elsewhere: they may go back in time, by a flush, a snapshot, a backup, or a replica that was behind.
//!
//! Each version has a tag that is made of all entries up to it. So a process that knows the tags of its versions knows whether the log in the servers is a part of what it knows itself, which it then
//! writes back; or went on from an older version, or began anew, without it: then what the servers have holds, since others go by it.

use std::collections::BTreeMap;

use crate::functions::{Defined, Version};

/// Tags that are remembered.
const TAGS_MAX: usize = 4_096;

/// The versions that a process knows.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// Of the definitions; empty: none are known.
    incarnation: Box<str>,
    version: Version,
    /// Tags of the last versions, by their numbers.
    tags: BTreeMap<u64, Box<str>>,
}

/// How the log on the servers goes with the versions that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// The log goes on from there.
    On,
    /// The log is so much further that all of it is said anew.
    Anew,
    /// The log went back to an older version that is known, or to nothing.
    Back,
    /// The log went back, and then another way; or began anew.
    Elsewhere,
    /// A part of the log is lost, and nothing is known here.
    Damaged,
}

impl History {
    /// The history of a process that knows nothing.
    pub(super) fn none() -> Self {
        Self { incarnation: "".into(), version: Version::none(), tags: BTreeMap::new() }
    }

    /// From a version of definitions of this incarnation on.
    pub(super) fn from(incarnation: Box<str>, version: Version) -> Self {
        let mut history = Self { incarnation, ..Self::none() };
        history.go_on(version);
        history
    }

    pub(super) fn version(&self) -> &Version {
        &self.version
    }

    pub(super) fn incarnation(&self) -> &str {
        &self.incarnation
    }

    /// Takes the next version.
    pub(super) fn go_on(&mut self, version: Version) {
        self.tags.insert(version.number, version.tag.clone());
        while self.tags.len() > TAGS_MAX {
            self.tags.pop_first();
        }
        self.version = version;
    }

    /// How what the servers answered goes with it, who were asked for what comes after [`History::version`].
    pub(super) fn compare(&self, defined: &Defined) -> Course {
        let last = &defined.last;
        let oldest = self.tags.first_key_value().map_or(0, |(number, _)| *number);
        // Of what is older than every known tag nobody can say, and what is known is more.
        let is_known = |version: &Version| {
            version.number < oldest || self.tags.get(&version.number) == Some(&version.tag)
        };
        if self.incarnation.is_empty() {
            return if defined.is_damaged {
                Course::Damaged
            } else if defined.base.is_some() {
                Course::Anew
            } else {
                Course::On
            };
        }
        match (&defined.base, defined.incarnation == self.incarnation) {
            _ if defined.incarnation.is_empty() || defined.is_damaged => Course::Back,
            (_, false) => Course::Elsewhere,
            (None, true) => Course::On,
            (Some(_), true) if last.number < self.version.number && is_known(last) => Course::Back,
            (Some(_), true) if defined.after.number > self.version.number => Course::Anew,
            (Some(_), true) => Course::Elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64, tag: &str) -> Version {
        Version { number, tag: tag.into() }
    }

    /// Knows the versions 3 to 5, whose tags are `a3` to `a5`.
    fn known() -> History {
        let mut history = History::from("a".into(), at(3, "a3"));
        history.go_on(at(4, "a4"));
        history.go_on(at(5, "a5"));
        history
    }

    fn told(incarnation: &str, last: Version, base: Option<Version>) -> Defined {
        let (after, base) = base.map_or((at(5, "a5"), None), |at| (at, Some(Vec::new())));
        let incarnation = incarnation.into();
        Defined { last, incarnation, is_damaged: false, after, base, entries: Vec::new() }
    }

    #[test]
    fn what_the_servers_have_goes_on_goes_back_or_goes_elsewhere() {
        let course = |incarnation, last, base| known().compare(&told(incarnation, last, base));
        assert_eq!(course("a", at(5, "a5"), None), Course::On);
        assert_eq!(course("a", at(7, "a7"), None), Course::On);
        assert_eq!(course("a", at(9, "a9"), Some(at(8, "a8"))), Course::Anew);
        assert_eq!(course("a", at(4, "a4"), Some(at(2, "a2"))), Course::Back, "a snapshot");
        assert_eq!(course("", at(0, ""), None), Course::Back, "a flush");
        assert_eq!(course("a", at(5, "b5"), Some(at(2, "a2"))), Course::Elsewhere, "and then on");
        assert_eq!(course("a", at(6, "b6"), Some(at(2, "a2"))), Course::Elsewhere);
        assert_eq!(course("a", at(2, "a2"), Some(at(2, "a2"))), Course::Back, "further than tags are known");
        assert_eq!(course("b", at(1, "b1"), Some(at(0, "b"))), Course::Elsewhere, "begun anew");
    }

    #[test]
    fn whoever_knows_nothing_takes_what_there_is() {
        let course = |told: Defined| History::none().compare(&told);
        assert_eq!(course(told("a", at(5, "a5"), Some(at(2, "a2")))), Course::Anew);
        assert_eq!(course(told("", at(0, ""), None)), Course::On);
        let damaged = Defined { is_damaged: true, ..told("a", at(5, "a5"), None) };
        assert_eq!(known().compare(&damaged), Course::Back, "whoever knows it writes it back");
        assert_eq!(course(damaged), Course::Damaged);
    }
}

//! What has the same key, and who is held back for it: what the checkers of order and pick need to know of a queue whose
//! settings speak of keys.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use overtake_lane::Settings;

use crate::book::Book;
use crate::round::{Candidate, Round};

/// A key that a message has, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group(u64);

impl Group {
    /// `None`: what has no key, or an empty one, is in no group.
    pub(crate) fn of(key: Option<&str>) -> Option<Self> {
        let mut hasher = DefaultHasher::new();
        key.filter(|key| !key.is_empty())?.hash(&mut hasher);
        Some(Self(hasher.finish()))
    }
}

/// Whether something else than its age says which message of a lane goes first.
pub(crate) fn speaks_of_keys(settings: &Settings) -> bool {
    settings.out_per_key() > 0 || settings.key_rate_limit.is_some() || settings.fair_keys
}

/// Whether a candidate may be held back for its key, when so many of the group are out. Of tokens nothing is known here.
pub(crate) fn may_be_held_back(settings: &Settings, one: &Candidate, out: &BTreeMap<Group, u64>) -> bool {
    let limit = u64::from(settings.out_per_key());
    one.group.is_some_and(|group| {
        settings.key_rate_limit.is_some() || (limit > 0 && out.get(&group).is_some_and(|out| *out >= limit))
    })
}

/// For each pick of a round, what could have gone in its place, itself among them.
pub(crate) fn rivals(book: &Book, round: &Round<'_>) -> Vec<Vec<Candidate>> {
    let mut out = book.out(round.queue);
    let mut there = round.rest.clone();
    let mut all = Vec::new();
    for (pick, lent) in round.picks.iter().rev() {
        // As it was before this lease.
        if let Some(group) = pick.group.filter(|_| !lent.is_given) {
            *out.entry(group).or_insert(1) -= 1;
        }
        let mut rivals: Vec<Candidate> =
            there.iter().filter(|one| !may_be_held_back(round.settings, one, &out)).copied().collect();
        rivals.push(*pick);
        all.push(rivals);
        there.push(*pick);
    }
    all.reverse();
    all
}

//! One store, one depth, one length of body: what a pair of children measures.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) store: Store,
    pub(super) depth: usize,
    pub(super) body_bytes: usize,
    /// Messages that pass in the steady state.
    pub(super) steady: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Store {
    Overtake,
    #[cfg(feature = "references")]
    Sqlite,
    #[cfg(feature = "references")]
    Fjall,
}

impl Store {
    #[cfg(feature = "references")]
    pub(super) const ALL: &[Self] = &[Self::Overtake, Self::Sqlite, Self::Fjall];
    #[cfg(not(feature = "references"))]
    pub(super) const ALL: &[Self] = &[Self::Overtake];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Overtake => "Overtake",
            #[cfg(feature = "references")]
            Self::Sqlite => "SQLite, WAL, FULL",
            #[cfg(feature = "references")]
            Self::Fjall => "fjall, one ordered key",
        }
    }

    pub(super) fn is_reference(self) -> bool {
        self != Self::Overtake
    }
}

impl Case {
    /// `10 M of 100 B`
    pub(super) fn depth_label(self) -> String {
        format!("{} of {}", short_count(self.depth), short_bytes(self.body_bytes))
    }

    /// `Overtake, 10 M of 100 B`
    pub(super) fn label(self) -> String {
        format!("{}, {}", self.store.name(), self.depth_label())
    }
}

fn short_count(count: usize) -> String {
    match count {
        1_000_000.. if count.is_multiple_of(1_000_000) => format!("{} M", count / 1_000_000),
        1_000.. if count.is_multiple_of(1_000) => format!("{} k", count / 1_000),
        _ => count.to_string(),
    }
}

fn short_bytes(bytes: usize) -> String {
    if bytes >= 1_024 && bytes.is_multiple_of(1_024) {
        format!("{} KiB", bytes / 1_024)
    } else {
        format!("{bytes} B")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_named_as_people_say_it() {
        let case = |depth, body_bytes| Case { store: Store::Overtake, depth, body_bytes, steady: 0 };
        assert_eq!(case(10_000, 100).label(), "Overtake, 10 k of 100 B");
        assert_eq!(case(100_000_000, 1_024).label(), "Overtake, 100 M of 1 KiB");
        assert_eq!(case(1_500, 7).depth_label(), "1500 of 7 B");
    }
}

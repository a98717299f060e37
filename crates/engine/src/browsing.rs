//! What a page is of: the part of browsing that is the same wherever messages are kept.

use overtake_lane::{Cursor, Marks, Priority, Query, Walk};

use crate::api::{ANSWER_BYTES_MAX, Browse, Content, Filter, PageCursor};

impl Filter {
    /// Whether it asks for something that only the content of a message tells.
    #[must_use]
    pub fn is_about_content(&self) -> bool {
        !self.headers.is_empty() || self.user_id.is_some()
    }

    /// Whether the content of a message is as this filter wants it.
    #[must_use]
    pub fn says(&self, content: &Content) -> bool {
        let says =
            |(name, value): &(String, String)| content.header(name).is_some_and(|header| header.says(value));
        let is_of = |user: &str| content.user_id() == Some(user);
        self.headers.iter().all(says) && self.user_id.as_deref().is_none_or(is_of)
    }
}

impl Browse {
    /// What a queue is asked, where the priority of the filter comes to this one there.
    #[must_use]
    pub fn query(&self, priority: Option<Priority>) -> Query {
        Query {
            status: self.filter.status,
            priority,
            key: self.filter.key.clone(),
            ending: self.filter.ending,
            without_priority: self.filter.without_priority,
            order: self.order,
            skip: self.skip,
            limit: self.limit,
            cursor: self.cursor.as_ref().and_then(PageCursor::number),
            looks: None,
        }
    }
}

impl PageCursor {
    /// What the queue goes on from, if that is told by a number.
    fn number(&self) -> Option<Cursor> {
        match self {
            Self::After(seq) => Some(Cursor(seq.0)),
            Self::Passed(passed) => Some(Cursor(*passed)),
            Self::Walk(_) | Self::PartitionWalk(_) => None,
        }
    }

    /// The walk that goes on from here.
    pub(crate) fn walk(&self) -> Walk {
        if let Self::Walk(walk) = self { Walk::clone(walk) } else { Walk::default() }
    }
}

/// How many messages of these sizes, bytes, a page holds: as many as [`ANSWER_BYTES_MAX`] has room for, and one at least.
pub fn fitting(sizes: impl Iterator<Item = u64>) -> usize {
    let mut bytes = 0;
    let fits = |size: u64| {
        bytes += size;
        bytes <= ANSWER_BYTES_MAX
    };
    sizes.map(fits).take_while(|fits| *fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_what_fits_and_one_message_at_least() {
        const MIB: u64 = 1 << 20;
        let check =
            |sizes: &[u64], expect: usize| assert_eq!(fitting(sizes.iter().copied()), expect, "{sizes:?}");
        check(&[1, 2, 3], 3);
        check(&[8 * MIB, 8 * MIB], 2);
        check(&[8 * MIB, 8 * MIB, 0], 3);
        check(&[8 * MIB, 8 * MIB + 1, 1], 1);
        check(&[17 * MIB, 1], 1);
        check(&[1, 17 * MIB, 1], 1);
    }
}

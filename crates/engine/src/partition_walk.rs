//! Where a look in dispatch order was, of a queue whose messages are at servers: the cursor of a page.
//!
//! The cursor says everything that the next page needs, so nobody keeps anything between two pages. [`Walk`](overtake_lane::Walk) is the same for a queue of
//! this process.

use std::collections::{BTreeMap, BTreeSet};

use overtake_lane::{Seq, Status};
use serde::{Deserialize, Serialize};

/// Where a look in dispatch order was. Sequences are those by which messages are known outside of their partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionWalk {
    /// Before the first message.
    #[default]
    Begin,
    /// Looks for the first messages of a status, which no list has in their order.
    Gather {
        /// The status.
        status: Status,
        /// All messages up to this sequence were looked at.
        from: Option<Seq>,
        /// The first messages so far.
        found: Gathered,
    },
    /// Shows the messages that were gathered.
    Show {
        /// Their status.
        status: Status,
        /// The messages that were not shown yet.
        found: Gathered,
    },
    /// Goes through the ready messages, lane by lane as the picker says.
    Lanes(LaneMarks),
    /// After the last message.
    End,
}

/// How far a look has come in each lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneMarks {
    /// By level, the last sequence that was passed.
    pub passed: BTreeMap<i32, Seq>,
    /// The level of the lane whose turn it is, under a picker by weights, and how many more it gives.
    pub turn: Option<(i32, u32)>,
}

/// The place of a message among those of its status: the number of its lease, or when something happens to it or happened; then its sequence.
pub type StatusOrder = (u64, Seq);

/// The first messages of a status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gathered {
    /// All messages up to here were passed.
    pub after: Option<StatusOrder>,
    /// From here on messages were left out, more than a page needs.
    pub cut: Option<StatusOrder>,
    /// The messages, in their order.
    pub keys: StatusOrders,
}

/// Messages of a status in their order. Written down, each says by how much it comes after the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, Seq)>", into = "Vec<(u64, Seq)>")]
pub struct StatusOrders(pub BTreeSet<StatusOrder>);

impl From<StatusOrders> for Vec<(u64, Seq)> {
    fn from(StatusOrders(keys): StatusOrders) -> Self {
        let mut last = 0;
        let difference = |(order, seq)| (order - std::mem::replace(&mut last, order), seq);
        keys.into_iter().map(difference).collect()
    }
}

impl From<Vec<(u64, Seq)>> for StatusOrders {
    fn from(written: Vec<(u64, Seq)>) -> Self {
        let mut last = 0_u64;
        let sum = |(difference, seq)| {
            last = last.saturating_add(difference);
            (last, seq)
        };
        Self(written.into_iter().map(sum).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_gathered_is_read_as_it_was_written() {
        let keys = StatusOrders([(7, Seq(9)), (7, Seq(12)), (1_700_000_000_000, Seq(3))].into());
        let text = serde_json::to_string(&keys).expect("it can be written");
        assert_eq!(text, "[[7,9],[0,12],[1699999999993,3]]");
        assert_eq!(serde_json::from_str::<StatusOrders>(&text).expect("it can be read"), keys);
        let forged = format!("[[{0},1],[{0},2]]", u64::MAX);
        assert!(serde_json::from_str::<StatusOrders>(&forged).is_ok());
    }
}

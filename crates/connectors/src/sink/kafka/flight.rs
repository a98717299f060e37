//! Records on their way: few, so that what is urgent soon goes next.
//!
//! At most [`IN_FLIGHT`] or [`IN_FLIGHT_BYTES`] are on their way, whichever is less, but one at least. That is one request's worth, so a line is not
//! waiting for each report; and when something urgent makes the line halt, no more than that goes before it: a tenth of a second at 20 Mbit/s.
//!
//! Kafka refuses requests, not records: in one that is too large there may be none that is. So once it refused one, each record goes alone, and
//! only one that was alone is refused for good.

use std::collections::HashMap;

/// Most records on their way.
pub(super) const IN_FLIGHT: usize = 32;
/// Most bytes on their way.
const IN_FLIGHT_BYTES: u64 = 256 << 10;

/// What is on its way, by the numbers of messages.
#[derive(Debug, Default)]
pub(super) struct Flight {
    records: HashMap<usize, Record>,
    bytes: u64,
    one_by_one: bool,
}

/// A record that was on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) bytes: u64,
    /// No other was in its request.
    pub(super) alone: bool,
}

impl Flight {
    pub(super) fn has_room(&self) -> bool {
        let most = if self.one_by_one { 1 } else { IN_FLIGHT };
        self.records.len() < most && self.bytes < IN_FLIGHT_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn start(&mut self, at: usize, bytes: u64) {
        self.records.insert(at, Record { bytes, alone: self.one_by_one });
        self.bytes += bytes;
    }

    pub(super) fn land(&mut self, at: usize) -> Record {
        let record = self.records.remove(&at).unwrap_or_default();
        self.bytes -= record.bytes;
        record
    }

    /// From now on each goes alone.
    pub(super) fn go_one_by_one(&mut self) {
        self.one_by_one = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_on_their_way_and_of_large_ones_fewer() {
        let mut flight = Flight::default();
        (0..IN_FLIGHT).for_each(|at| flight.start(at, 100));
        assert!(!flight.has_room());
        assert_eq!(flight.land(0), Record { bytes: 100, alone: false });
        assert!(flight.has_room());
        flight.start(99, IN_FLIGHT_BYTES);
        assert!(!flight.has_room());
    }

    #[test]
    fn who_goes_alone_was_not_there_before_the_others_had_landed() {
        let mut flight = Flight::default();
        flight.start(0, 1);
        flight.start(1, 1);
        assert!(!flight.land(0).alone);
        flight.go_one_by_one();
        assert!(!flight.has_room());
        assert!(!flight.land(1).alone);
        assert!(flight.has_room());
        flight.start(2, 1);
        assert!(!flight.has_room());
        assert!(flight.land(2).alone);
    }
}

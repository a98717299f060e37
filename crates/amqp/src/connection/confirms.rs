//! Publisher confirms (RabbitMQ): which publishes of a channel are safe, said of as many at once as can be.

use crate::method::Method;
use crate::method::basic::{Ack, Nack};

/// The confirms of one channel. Publishes are answered in the order they came in.
#[derive(Debug, Default)]
pub(super) struct Confirms {
    /// Publishes so far; the last has this number.
    published: u64,
    /// The last that was confirmed, or refused.
    told: u64,
    /// The last that is safe.
    safe: u64,
}

impl Confirms {
    /// One more publish.
    pub(super) fn publish(&mut self) -> u64 {
        self.published += 1;
        self.published
    }

    /// A publish is safe.
    pub(super) fn ack(&mut self, number: u64) {
        self.safe = number;
    }

    /// A publish was not taken. Answers what is to be said.
    pub(super) fn nack(&mut self, number: u64) -> impl Iterator<Item = Method<'static>> {
        let before = self.flush();
        self.told = number;
        self.safe = number;
        before.into_iter().chain([Nack { delivery_tag: number, multiple: false, requeue: false }.into()])
    }

    /// What is to be said of the publishes that are safe.
    pub(super) fn flush(&mut self) -> Option<Method<'static>> {
        let count = self.safe.saturating_sub(self.told);
        self.told = self.told.max(self.safe);
        (count > 0).then(|| Ack { delivery_tag: self.safe, multiple: count > 1 }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_safe_is_said_at_once_and_what_is_not_alone() {
        let mut confirms = Confirms::default();
        let numbers: Vec<u64> = (0..6).map(|_| confirms.publish()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert_eq!(confirms.flush(), None);
        confirms.ack(1);
        assert_eq!(confirms.flush(), Some(Ack { delivery_tag: 1, multiple: false }.into()));
        confirms.ack(2);
        confirms.ack(3);
        let said: Vec<Method<'_>> = confirms.nack(4).collect();
        let nack = Nack { delivery_tag: 4, multiple: false, requeue: false };
        assert_eq!(said, [Ack { delivery_tag: 3, multiple: true }.into(), nack.into()]);
        confirms.ack(5);
        assert_eq!(confirms.flush(), Some(Ack { delivery_tag: 5, multiple: false }.into()));
        assert_eq!(confirms.flush(), None);
    }
}

//! A promise that was broken.

use std::fmt;

/// The promises, one checker each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// What was confirmed is never lost.
    Kept,
    /// What was settled, and confirmed so, never returns.
    Gone,
    /// What one recovery did not show, no later one shows.
    Denied,
    /// In a lane nothing older is passed over.
    Order,
    /// No eligible head outranks the one that is leased.
    Pick,
    /// No two live leases of one message; receipts hold exactly as long as their leases.
    OneHolder,
    /// Caps of queues, lanes and groups, rates, and windows of consumers.
    Cap,
    /// A failed delivery waits its queue's backoff; a release is no delivery.
    Aside,
    /// Nothing is delivered after it expired or before it is due, and nothing expires early.
    Expiry,
    /// Per lane, what came in is there or has left by a door that counts.
    Conserved,
    /// A look at messages shows each once that matched all the while.
    Seen,
    /// Every queue that an exchange leads to has one copy, and no other has one.
    Routed,
    /// The facts of the log, folded anew, are the live broker.
    Refold,
    /// The journal is not much longer than what it keeps, and so is memory.
    Bounded,
    /// No step does more by itself than it may, so nobody waits for all that is to be done.
    Budget,
    /// Never asleep past a deadline, nor while somebody waits for what is there.
    Awake,
    /// The engine answers, opens and drains: what is not one of the others.
    Alive,
}

impl Promise {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Gone => "gone",
            Self::Denied => "denied",
            Self::Order => "order",
            Self::Pick => "pick",
            Self::OneHolder => "one holder",
            Self::Cap => "cap",
            Self::Aside => "aside",
            Self::Expiry => "expiry",
            Self::Conserved => "conserved",
            Self::Seen => "seen",
            Self::Routed => "routed",
            Self::Refold => "refold",
            Self::Bounded => "bounded",
            Self::Budget => "budget",
            Self::Awake => "awake",
            Self::Alive => "alive",
        }
    }
}

/// Which promise was broken, and how.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which.
    pub promise: Promise,
    /// How.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise.name(), self.what)
    }
}

/// What a check answers.
pub(crate) type Checked<T = ()> = Result<T, Failure>;

/// Breaks a promise unless `holds`.
pub(crate) fn hold(holds: bool, promise: Promise, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Failure { promise, what: what() }) }
}

/// Breaks a promise.
pub(crate) fn broken<T>(promise: Promise, what: impl Into<String>) -> Checked<T> {
    Err(Failure { promise, what: what.into() })
}

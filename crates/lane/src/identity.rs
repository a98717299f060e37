//! What a queue is from the moment it is made: how long it lives, and whether it is one session's own. Settings may change,
//! this never does.

use std::sync::Arc;

/// What a queue is besides its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// It is still there after a restart.
    pub durable: bool,
    /// It belongs to the session that declared it: others may only publish to it, and it ends with that session.
    pub exclusive: bool,
    /// It is deleted when its last consumer that stays is gone.
    pub auto_delete: bool,
    /// What else its client gave, remembered and shown. The broker never looks into it.
    pub arguments: Arc<[u8]>,
}

impl Default for Identity {
    /// One that stays until it is deleted, for everybody.
    fn default() -> Self {
        Self { durable: true, exclusive: false, auto_delete: false, arguments: Arc::from([]) }
    }
}

impl Identity {
    /// Whether declaring this is declaring that: its arguments may differ, since what they mean is in the settings.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.durable, self.exclusive, self.auto_delete)
            == (other.durable, other.exclusive, other.auto_delete)
    }

    /// Whether a restart leaves it: of its sessions none does.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.durable && !self.exclusive
    }
}

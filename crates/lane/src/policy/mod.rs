//! Policies: settings that administrators give to queues and exchanges from outside, by their names.
//!
//! ```text
//!   own settings ──┐
//!   policy ────────┼─▶ Ruled: what holds now
//!   operator's ────┘
//! ```
//!
//! A queue keeps what it was declared with, which is stored, shown, and compared when it is declared again. What holds is
//! derived from that and from the policies, never stored, and found anew whenever one of them changes ([`ruling`]): for a few queues
//! a step, and before a queue is used. So a policy leaves nothing behind when it goes.
//!
//! Each kind gives a queue one policy at most: of those that match its name, the one of the highest priority; of equal ones the first
//! by name, where RabbitMQ leaves open which.
//!
//! They belong to a virtual host, rule what is in it, and go with it.

mod commands;
mod definition;
mod policies;
mod ruled;
mod ruling;

use serde::{Deserialize, Serialize};

pub use definition::{DEFINITION_BYTES_MAX, Definition, PolicyValue};
pub(crate) use policies::Policies;
pub(crate) use ruled::Ruled;
pub(crate) use ruling::Ruling;

use crate::pattern::Pattern;
use crate::settings::BadSetting;

/// Most policies of one broker, of both kinds together.
pub const POLICIES_MAX: usize = 1_000;

/// Whose policy it is. A queue may have one of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyKind {
    /// Of whoever runs applications.
    #[default]
    User,
    /// Of whoever runs the broker: it bounds what queues and other policies ask for.
    Operator,
}

/// What a policy is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApplyTo {
    /// Queues. RabbitMQ knows kinds of them, of which there is one here.
    #[serde(alias = "classic_queues", alias = "quorum_queues")]
    Queues,
    /// Exchanges.
    Exchanges,
    /// Both.
    #[default]
    All,
}

impl ApplyTo {
    /// Whether it is for queues.
    #[must_use]
    pub fn queues(self) -> bool {
        self != Self::Exchanges
    }

    /// Whether it is for exchanges.
    #[must_use]
    pub fn exchanges(self) -> bool {
        self != Self::Queues
    }
}

/// Settings for all queues or exchanges of matching names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Policy {
    /// Which names.
    pub pattern: Pattern,
    /// What it says.
    pub definition: Definition,
    /// Of those that match, the one of the highest is the one that applies.
    #[serde(default)]
    pub priority: i32,
    /// What of these names.
    #[serde(default)]
    pub apply_to: ApplyTo,
}

impl Policy {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// The first key that cannot be, or that an operator's policy cannot have.
    pub fn check(&self, kind: PolicyKind) -> Result<(), BadSetting> {
        self.definition.check(kind)
    }

    /// Bytes that it counts for, beside its name.
    pub(crate) fn cost(&self) -> u64 {
        (self.pattern.as_str().len() + self.definition.cost()) as u64
    }
}

/// How much of policies there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoliciesSize {
    /// Policies, of both kinds.
    pub policies: u64,
    /// Bytes of their names.
    pub name_bytes: u64,
    /// Bytes of what they say, about.
    pub bytes: u64,
}

impl PoliciesSize {
    /// Bytes that they take.
    pub(crate) fn cost(self) -> u64 {
        self.name_bytes + self.bytes
    }

    /// Some of them were so many before, and are so many now.
    pub(crate) fn change(&mut self, before: Self, now: Self) {
        self.policies = self.policies - before.policies + now.policies;
        self.name_bytes = self.name_bytes - before.name_bytes + now.name_bytes;
        self.bytes = self.bytes - before.bytes + now.bytes;
    }
}

//! The promises, one checker each. They see what clients see and what a broker shows of itself, never how it works.

pub(crate) mod awake;
pub(crate) mod bounded;
pub(crate) mod cap;
pub(crate) mod conserved;
pub(crate) mod denied;
pub(crate) mod expiry;
pub(crate) mod gone;
pub(crate) mod kept;
pub(crate) mod one_holder;
pub(crate) mod order;
pub(crate) mod pick;
pub(crate) mod refold;
pub(crate) mod route;

use overtake_engine::Refused;
use overtake_engine::core::{Answer, Request};
use overtake_lane::Time;

use crate::audit::Audit;

/// One step of an engine, as the checkers see it.
pub(crate) struct Step<'a> {
    pub(crate) now: Time,
    /// What was asked and answered at once; `None` when time passed.
    pub(crate) request: Option<&'a Request>,
    pub(crate) result: Option<&'a Result<Answer, Refused>>,
    pub(crate) before: &'a Audit,
    pub(crate) after: &'a Audit,
}

/// The checkers that remember something.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) kept: kept::Kept,
    pub(crate) gone: gone::Gone,
    pub(crate) denied: denied::Denied,
    pub(crate) pick: pick::Pick,
    pub(crate) refold: refold::Snapshots,
}

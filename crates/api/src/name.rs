//! Names of queues, exchanges and messages, checked before the engine sees them.

use overtake_lane::{NAME_LEN_MAX, Refusal};

use crate::problem::Problem;

/// Returns the name if anything that people name but queues and exchanges can have it.
///
/// # Errors
/// 422 with `key` as the field, parameter or part of the path that holds the name.
pub fn checked<'a>(name: &'a str, key: &str) -> Result<&'a str, Problem> {
    overtake_lane::check_name(name).map(|()| name).map_err(|refusal| Problem::from(refusal).key(key))
}

/// Returns the name if a queue or an exchange can have it.
///
/// # Errors
/// As [`checked`].
pub fn checked_queue<'a>(name: &'a str, key: &str) -> Result<&'a str, Problem> {
    overtake_lane::check_queue_name(name).map(|()| name).map_err(|refusal| Problem::from(refusal).key(key))
}

/// Returns the id if a message can have it.
///
/// # Errors
/// 422 for an id that is empty, too long, or has control characters.
pub fn checked_id(id: String) -> Result<String, Problem> {
    overtake_lane::check_name(&id).map(|()| id).map_err(|_| {
        Problem::from(Refusal::IdInvalid).hint(format!(
            "the id of a message is 1 to {NAME_LEN_MAX} bytes of text without control characters"
        ))
    })
}

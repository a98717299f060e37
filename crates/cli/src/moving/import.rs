//! The priority that messages without one get in the queue that they are moved to.

use overtake_lane::{Given, Priority, Scheme};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;

/// The value of `--import-priority` for the most urgent priority of the queue there.
const MOST_URGENT: &str = "most-urgent";

/// Whether a scheme knows a priority.
pub(super) fn is_known(scheme: Scheme, priority: &Value) -> bool {
    Given::deserialize(priority).is_ok_and(|given| scheme.map(&given).is_ok())
}

/// The priority of messages that were published without one.
pub(super) enum Import {
    /// Such messages are published without a priority, which means the same in both queues.
    Missing,
    /// Such messages get the priority that the queue here shows, since a missing one means something else there.
    AsShown,
    /// The queue here is served in publish order and the queue there by priority, and the user did not say a priority.
    Unknown,
    /// Such messages get this priority, in the words of the scheme there.
    As(Value),
}

impl Import {
    /// # Errors
    /// A usage error for a priority that the scheme there does not know, also where no message needs it.
    pub(super) fn between(here: &Value, there: &Value, asked: Option<&Value>) -> Result<Self, Failure> {
        let scheme = Scheme::deserialize(&there["scheme"]).unwrap_or_default();
        let asked = match asked {
            Some(word) if *word == MOST_URGENT => Some(json!(scheme.words_for(Scheme::Route, Priority(10)))),
            Some(priority) => {
                if !is_known(scheme, priority) {
                    let shown = priority.as_str().map_or_else(|| priority.to_string(), ToOwned::to_owned);
                    let what = format!(
                        "`{shown}` for --import-priority is no priority of the scheme {scheme}, which the queue there has"
                    );
                    return Err(Failure::usage(what)
                        .hint("say most-urgent, or a priority of that scheme; nothing was moved"));
                }
                Some(priority.clone())
            }
            None => None,
        };
        if here["order"] != "fifo" || there["order"] == "fifo" {
            let means_the_same = ["scheme", "default_priority"].iter().all(|key| here[key] == there[key]);
            return Ok(if means_the_same { Self::Missing } else { Self::AsShown });
        }
        Ok(asked.map_or(Self::Unknown, Self::As))
    }

    /// The priority that a message is published with; `None`: without one.
    pub(super) fn priority_of(&self, message: &Value) -> Result<Option<Value>, PriorityMissing> {
        match self {
            _ if !message["given_priority"].is_null() => {}
            Self::Missing => return Ok(None),
            Self::AsShown => {}
            Self::As(priority) => return Ok(Some(priority.clone())),
            Self::Unknown => return Err(PriorityMissing),
        }
        Ok(Some(message["priority"].clone()).filter(|priority| !priority.is_null()))
    }
}

/// The refusal of a message without a priority where the user has not said which it gets.
pub(super) struct PriorityMissing;

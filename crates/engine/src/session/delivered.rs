//! A message for a consumer, with as little said of it as costs little.

use std::sync::Arc;

use overtake_lane::{Extras, Message, Priority, Receipt, Time, public_id};

use crate::api::Content;

/// A message, lent to a consumer that stays.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// What to show when settling.
    pub receipt: Receipt,
    /// How often it was leased, this time included.
    pub count: u32,
    /// How urgent it is, inside.
    pub level: Priority,
    /// The priority as it was given, as a number; `None`: none was given.
    pub given: Option<i32>,
    /// When it was published.
    pub since: Time,
    /// When it expires; [`Time::NEVER`]: not at all.
    pub expires: Time,
    /// What few messages have: an id of their publisher's, a key, a death.
    pub extras: Option<Box<Extras>>,
    /// What it says.
    pub content: Arc<Content>,
}

impl Delivered {
    pub(crate) fn of(receipt: Receipt, message: &Message, given: Option<i32>, content: Arc<Content>) -> Self {
        let Message { count, priority: level, since, expires, .. } = *message;
        Self { receipt, count, level, given, since, expires, extras: message.extras.clone(), content }
    }

    /// Its id: its publisher's, else `seq-N`.
    #[must_use]
    pub fn id(&self) -> String {
        public_id(self.extras.as_ref().and_then(|extras| extras.id.as_deref()), self.receipt.seq)
    }
}

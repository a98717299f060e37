//! What requests say, as they say it. Decoding is pure; nothing here asks the engine.

mod exchange;
mod lease;
mod message;
mod select;
mod value;

pub(crate) use exchange::{BindingIn, ExchangeIn};
pub(crate) use lease::{ExtendIn, LeaseIn, PropertiesShown, SettleIn, TransactionIn, receipts};
pub(crate) use message::{
    ExchangePublishIn, Limits, MESSAGES_MAX, MessageIn, PublishIn, TransactionMessageIn, check_content,
    check_headers, of_user, to_exchange,
};
pub(crate) use select::{PriorityIn, PurgeIn, ReplayIn, ReprioritiseIn, SelectIn};
pub(crate) use value::{Bounded, DurationMs, GivenIn, HEADERS_MAX, HeadersIn, Ranged};

#[cfg(test)]
mod tests;

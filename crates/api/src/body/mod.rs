//! JSON bodies of requests, and the values of the model and the engine that they stand for.

mod exchange;
mod lease;
mod message;
mod select;
mod value;

pub use exchange::{BindingIn, ExchangeIn};
pub use lease::{ExtendIn, LeaseIn, ProgressIn, PropertiesShown, SettleIn, TransactionIn, receipts};
pub use message::{ExchangePublishIn, Limits, MessageIn, MoreKeys, PublishIn, to_exchange};
pub(crate) use message::{MESSAGES_MAX, TransactionMessageIn, check_content, check_headers, of_user};
pub use select::{PriorityIn, PurgeIn, ReplayIn, ReprioritiseIn, SelectIn};
pub use value::{Bounded, DurationMs, GivenIn, Ranged};
pub(crate) use value::{HEADERS_MAX, HeadersIn};

#[cfg(test)]
mod tests;

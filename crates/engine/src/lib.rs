//! What front ends may ask of a broker, and the engine on the embedded store.

mod api;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod content;
mod contents;
pub mod core;
mod local;
mod options;

pub use api::{
    BROWSE_LIMIT_MAX, Browse, BrowsedMessage, ConsumeRequest, Consumer, Content, Declared, DeleteOnly, Engine, Failure,
    Filter, Health, LeaseRequest, LeasedMessage, NewMessage, Page, Pending, PublishedCopy, Select, Target,
};
pub use clock::{Clock, ManualClock, SystemClock};
pub use local::LocalEngine;
pub use options::Options;

//! What a message says about itself, in the bytes in which AMQP 0-9-1 has it.
//!
//! Every front end shares this one representation, so nothing is lost between them: what came in goes out with the very
//! same bytes, with the order of a table and its duplicates, with text that is no UTF-8. Untrusted bytes become a
//! [`Table`] or [`Properties`] by one check, which bounds size, entries and depth; after it, reading cannot fail.
//!
//! The sections that are cited are those of the AMQP 0-9-1 specification (13 November 2008); where RabbitMQ differs, its
//! dialect is taken, because that is what clients write.

mod array;
mod builder;
mod check;
mod fault;
mod fields;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod layout;
mod limits;
mod properties;
mod property;
mod reader;
mod short;
mod table;
mod value;

pub use array::{ArrayRef, Items};
pub use builder::{ArrayBuilder, TableBuilder};
pub use fault::Fault;
pub use fields::Fields;
pub use limits::{DEPTH_MAX, Limits};
pub use properties::{Properties, PropertiesRef};
pub use property::Property;
pub use short::{SHORT_LEN_MAX, Short, ShortText};
pub use table::{Entries, Table, TableRef};
pub use value::Value;

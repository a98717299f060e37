//! What an error may show of a text that a user gave: a URL without its password, and a parser's message without the value it was given.
//!
//! [`Strict`] finds two errors that serde does not report: a key that is there twice, and a list where a table is expected.
//!
//! Errors are copied into logs, terminals and issues. A value that does not parse may be a secret under a misspelled key, so no value is repeated: an error
//! names the key, its place, what is expected, and what kind of value was found.

mod excerpt;
mod reason;
mod strict;
mod url;

pub use excerpt::{excerpt, toml_error};
pub use reason::{json_reason, reason};
pub use strict::{Strict, strict};
pub use url::{MASK, masked};

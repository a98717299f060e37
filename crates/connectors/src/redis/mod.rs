//! Redis and Valkey: what both directions read and write there. The connection is of `overtake-peer`.

pub(crate) mod fault;
pub(crate) mod fields;

//! The language, by a corpus that a person can read, and by properties.

mod corpus;
mod limits;
mod message;
mod properties;

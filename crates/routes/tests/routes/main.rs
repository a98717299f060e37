//! The language, by a corpus that a person can read, and by properties.

mod corpus;
mod docs;
mod hints;
mod limits;
mod manifest;
mod message;
mod properties;
mod table;
mod thrift;

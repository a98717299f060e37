//! The functions of a place do what one queue of the broker does, whatever happens.

mod beside;
mod compare;
mod examples;
mod machine;
mod server;
mod twin;

//! The functions of a place do what one queue of the broker does, whatever happens.

mod beside;
mod compare;
mod examples;
mod lanes;
mod machine;
mod moving;
mod server;
mod twin;

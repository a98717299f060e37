//! The functions of a place do what one queue of the broker does, whatever happens.

mod machine;
mod server;
mod twin;

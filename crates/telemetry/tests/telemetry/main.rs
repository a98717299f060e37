//! What is told of a broker, as another reads it.

mod many;
mod otlp;
mod spans;
mod world;

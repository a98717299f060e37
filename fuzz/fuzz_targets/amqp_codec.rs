//! Any bytes as what an AMQP peer sends, whole and in pieces.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| overtake_amqp::fuzz::codec(bytes));

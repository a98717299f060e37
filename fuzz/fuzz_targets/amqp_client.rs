//! Any bytes as all that an AMQP server says, before and after the login.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| overtake_amqp::fuzz::client(bytes));

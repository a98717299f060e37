//! Any bytes as all that an AMQP client says, before and after its login.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| overtake_amqp::fuzz::connection(bytes));

//! Any bytes as a field table and as the properties of a message.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| overtake_properties::fuzz::properties(bytes));

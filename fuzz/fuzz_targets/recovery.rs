//! A store with any bytes changed, and a store with any records in it: opened, used, and opened again.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| overtake_engine::fuzz::recovery(bytes));

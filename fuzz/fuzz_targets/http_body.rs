//! Decodes any bytes as the body of each HTTP request, as a query, and as a raw message with headers.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| overtake_api::fuzz::request(bytes));

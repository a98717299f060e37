//! Any text as a route and its condition, evaluated for a message made of what follows, and as a manifest.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| overtake_routes::fuzz::routes(bytes));

//! Fuzz targets, one file each in `fuzz_targets/`.
//!
//! To add one: write `fuzz_targets/NAME.rs`, give it a `[[bin]]` entry in `Cargo.toml`, and put a few inputs worth
//! remembering into `corpus/NAME/`. The body belongs into the crate it tests, as a function from bytes to nothing
//! that panics on a broken promise, so that a plain test of that crate runs the same body over the same corpus, and over
//! variations of it (`overtake_corpus::check`):
//!
//! ```ignore
//! #![no_main]
//! libfuzzer_sys::fuzz_target!(|bytes: &[u8]| overtake_store::recovery::try_bytes(bytes));
//! ```
//!
//! `cargo xtask fuzz NAME --seconds 60 --keep` runs one longer, and adds inputs that reach new code to its corpus. A crash is written to `artifacts/NAME/`; once the bug is
//! fixed, move the input into the corpus, where it stays.

//! The suite that defines an engine. Whatever passes it is one.
//!
//! A case is an async function over a [`Fixture`], named as a claim. [`conformance_tests!`](crate::conformance_tests)
//! makes one test of each:
//!
//! ```ignore
//! async fn fixture() -> MyFixture { MyFixture::start().await }
//! overtake_engine::conformance_tests!(fixture);
//! ```
//!
//! The cases read as stories: messages have names and stand in text ([`words`]), and everything done with them is one
//! call of [`Story`].

pub mod admin;
pub mod browse;
pub mod caps;
pub mod connected;
pub mod dead_letters;
pub mod deaths;
pub mod delay;
pub mod exchanges;
mod fixture;
pub mod holders;
pub mod ids;
pub mod lanes;
pub mod leases;
pub mod limits;
mod list;
pub mod metadata;
pub mod order;
pub mod pickers;
pub mod policies;
pub mod producers;
pub mod refusals;
pub mod restart;
pub mod retry;
pub mod routes;
pub mod sessions;
mod story;
mod talk;
pub mod transactions;
pub mod ttl;
pub mod vhosts;
pub mod wiring;
pub mod words;
pub mod work;

pub use fixture::Fixture;
pub use list::CASES;
pub use story::{ENDS, End, Story, answered, binding, refused};
pub use talk::Talk;
pub use words::settings;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    /// A case that is written and not listed would never run.
    #[test]
    fn every_case_is_in_the_list() {
        let mut written = BTreeSet::new();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
        for source in std::fs::read_dir(sources).expect("the sources are there") {
            let path = source.expect("an entry").path();
            let theme = path.file_stem().expect("a name").to_string_lossy().into_owned();
            for line in std::fs::read_to_string(&path).expect("a source").lines() {
                if let Some((case, _)) =
                    line.strip_prefix("pub async fn ").and_then(|rest| rest.split_once("<F: Fixture>"))
                {
                    assert!(written.insert(format!("{theme}::{case}")), "{case} is written twice");
                }
            }
        }
        let listed: BTreeSet<String> = super::CASES.iter().map(|case| (*case).to_owned()).collect();
        assert_eq!(written.difference(&listed).collect::<Vec<_>>(), Vec::<&String>::new(), "not in list.rs");
        assert_eq!(listed.difference(&written).collect::<Vec<_>>(), Vec::<&String>::new(), "only in list.rs");
        assert_eq!(listed.len(), super::CASES.len(), "listed twice");
    }
}

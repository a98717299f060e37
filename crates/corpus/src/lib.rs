//! The kept inputs of a fuzz target, for plain tests.
//!
//! Coverage-guided fuzzing finds new inputs, but takes minutes to build. A plain test of the same function runs everywhere: first each
//! kept input as it is, then random variations. Add to the corpus what `cargo xtask fuzz --keep` finds, and this test covers it from then on.

use std::ops::Range;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;

/// One change of an input. Positions are relative, so that an edit fits an input of any length.
#[derive(Clone, Debug)]
enum Edit {
    /// Another byte in the place of one.
    Set(Index, u8),
    /// One bit turned.
    Flip(Index, u8),
    /// A number at the edge of its range, big-endian, over what stood there.
    Number(Index, Vec<u8>),
    Insert(Index, Vec<u8>),
    Remove(Index, Index),
    /// A part of the input once more, somewhere else.
    Repeat(Index, Index, Index),
    /// The start of this input, then the end of another one.
    Splice(Index, Index, Index),
}

/// Calls `body` with each input in `fuzz/corpus/TARGET`, then with variations of them: as many as proptest has cases (`PROPTEST_CASES`).
///
/// # Panics
/// If `body` does, with the shortest input for which proptest saw that; and if there is no corpus.
pub fn check(target: &str, body: impl Fn(&[u8])) {
    let inputs = read(target);
    for input in &inputs {
        body(input);
    }
    let varied = (select(inputs.clone()), prop::collection::vec(edit(), 1..6));
    let seen = TestRunner::default().run(&varied, |(mut input, edits)| {
        for edit in &edits {
            edit.apply(&mut input, &inputs);
        }
        body(&input);
        Ok(())
    });
    if let Err(error) = seen {
        panic!("{target}: {error}");
    }
}

fn read(target: &str) -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries =
        std::fs::read_dir(&corpus).unwrap_or_else(|error| panic!("no corpus {}: {error}", corpus.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    // In the same order everywhere, so that a seed of proptest is the same case everywhere.
    paths.sort();
    assert!(!paths.is_empty(), "the corpus {} is empty", corpus.display());
    paths.iter().map(|path| std::fs::read(path).expect("a file")).collect()
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    let edge = select(vec![
        vec![0xff; 8],
        vec![0; 8],
        vec![0x7f, 0xff, 0xff, 0xff],
        vec![0x80, 0, 0, 0],
        vec![0xff; 4],
        vec![0; 4],
        vec![0xff, 0xff],
        vec![0, 0],
    ]);
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(place, byte)| Edit::Set(place, byte)),
        (at(), 0..8_u8).prop_map(|(place, bit)| Edit::Flip(place, bit)),
        (at(), edge).prop_map(|(place, bytes)| Edit::Number(place, bytes)),
        (at(), prop::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(place, bytes)| Edit::Insert(place, bytes)),
        (at(), at()).prop_map(|(one, other)| Edit::Remove(one, other)),
        (at(), at(), at()).prop_map(|(one, other, to)| Edit::Repeat(one, other, to)),
        (at(), at(), at()).prop_map(|(place, which, from)| Edit::Splice(place, which, from)),
    ]
}

impl Edit {
    fn apply(&self, input: &mut Vec<u8>, all: &[Vec<u8>]) {
        match self {
            Self::Insert(at, bytes) => {
                let at = at.index(input.len() + 1);
                input.splice(at..at, bytes.iter().copied());
            }
            Self::Splice(at, which, from) => {
                input.truncate(at.index(input.len() + 1));
                let other = &all[which.index(all.len())];
                input.extend_from_slice(&other[from.index(other.len() + 1)..]);
            }
            // The others change bytes that are there.
            _ if input.is_empty() => {}
            Self::Set(at, byte) => *at.get_mut(input) = *byte,
            Self::Flip(at, bit) => *at.get_mut(input) ^= 1 << bit,
            Self::Number(at, bytes) => {
                let at = at.index(input.len());
                let end = input.len().min(at + bytes.len());
                input.splice(at..end, bytes.iter().copied());
            }
            Self::Remove(one, other) => {
                input.drain(range(one, other, input.len()));
            }
            Self::Repeat(one, other, to) => {
                let part = input[range(one, other, input.len())].to_vec();
                let to = to.index(input.len());
                input.splice(to..to, part);
            }
        }
    }
}

/// A part of `len` bytes, 64 at most.
fn range(one: &Index, other: &Index, len: usize) -> Range<usize> {
    let start = one.index(len);
    start..len.min(start + 1 + other.index(64))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::HashSet;

    #[test]
    fn each_kept_input_is_tried_and_many_that_are_not_kept() {
        let kept: HashSet<_> = super::read("routes").into_iter().collect();
        let tried = RefCell::new(HashSet::new());
        super::check("routes", |input| _ = tried.borrow_mut().insert(input.to_vec()));
        let tried = tried.into_inner();
        assert!(kept.is_subset(&tried));
        assert!(tried.len() > kept.len() + 100, "{} of {}", tried.len(), kept.len());
    }

    #[test]
    #[should_panic(expected = "routes: ")]
    fn an_input_that_breaks_a_promise_is_named() {
        let calls = Cell::new(0);
        let kept = super::read("routes").len();
        super::check("routes", |_| {
            calls.set(calls.get() + 1);
            assert!(calls.get() <= kept, "a variation");
        });
    }
}

//! Where seeds start: at the commit, so that a run can be repeated and the next commit looks elsewhere.

use std::process::Command;

use crate::shell::read;

/// The base seed of the commit that is checked out; 0 where there is none.
pub(crate) fn of_commit() -> u64 {
    let head = read(Command::new("git").args(["rev-parse", "--verify", "--quiet", "HEAD"]));
    head.ok().and_then(|hash| of_hash(&hash)).unwrap_or(0)
}

/// The first twelve hexadecimal digits: 48 bits are plenty, and counting on from there never overflows.
fn of_hash(hash: &str) -> Option<u64> {
    u64::from_str_radix(hash.trim().get(..12)?, 16).ok()
}

/// The seed a line of the simulator names: the number after the word `seed`.
pub(crate) fn named_in(line: &str) -> Option<u64> {
    let words: Vec<&str> =
        line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.windows(2).find(|pair| pair[0].eq_ignore_ascii_case("seed")).and_then(|pair| pair[1].parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_gives_the_same_seed_everywhere() {
        assert_eq!(of_hash("00000000000ffedc0000000000000000000000ff\n"), Some(0xf));
        assert_eq!(of_hash("ffffffffffff0000000000000000000000000000"), Some((1 << 48) - 1));
        assert_eq!(of_hash("fatal: no"), None);
    }

    #[test]
    fn the_seed_is_the_number_after_its_word() {
        assert_eq!(named_in("seed 42: promise `kept` broken"), Some(42));
        assert_eq!(named_in("FAILED, Seed=7"), Some(7));
        assert_eq!(named_in("replay: cargo xtask sim --seed 18446744073709551615"), Some(u64::MAX));
        assert_eq!(named_in("ran 2000 seeds from 5"), None);
    }
}

//! Which binding of a consistent-hash exchange a message goes to: the same for the same key, in proportion to the weights, and
//! when a binding comes or goes only the keys it gets or had go elsewhere.
//!
//! Each binding draws a lot `u` in (0, 1) from the key and its own name, and the least `-log2(u) / weight` wins (weighted
//! rendezvous hashing: Schindelhauer and Schomaker, *Weighted distributed hash tables*, 2005). In whole numbers: the logarithm
//! has 32 binary digits after the point, and fractions are compared by multiplying across. The hash is FNV-1a with the finish
//! of SplitMix64, and never changes: messages of one key must find the same queue after an upgrade.

use std::cmp::Ordering;

use super::binding::{Binding, Destination};
use super::route::Envelope;
use super::settings::HashOn;

/// What an exchange shares out by, as a number.
pub(super) fn key(on: &HashOn, letter: &Envelope<'_>) -> u64 {
    match on {
        HashOn::RoutingKey => hash(START, letter.keys.first().unwrap_or(&"").as_bytes()),
        HashOn::Header(name) => {
            let value = letter.marks.header(name);
            hash(START, value.as_ref().and_then(|value| value.text()).unwrap_or_default().as_bytes())
        }
        HashOn::Property(property) => {
            hash(START, letter.marks.property(*property).unwrap_or_default().as_bytes())
        }
    }
}

/// The binding that gets a key; of equals the first.
pub(super) fn choose<'a>(key: u64, bindings: impl Iterator<Item = &'a Binding>) -> Option<&'a Binding> {
    bindings
        .map(|binding| (Lot::draw(key, binding), binding))
        .min_by(|(a, _), (b, _)| a.cmp(b))
        .map(|(_, b)| b)
}

/// `-log2(u)` with 32 binary digits after the point, over a weight.
struct Lot {
    log: u64,
    weight: u32,
}

impl Lot {
    fn draw(key: u64, binding: &Binding) -> Self {
        let kind = match binding.to {
            Destination::Queue(_) => b'q',
            Destination::Exchange(_) => b'x',
        };
        // Not the weight: a binding that is given more keeps what it had.
        let seed = hash(hash(key, &[kind]), binding.to.name().as_bytes());
        // A log read from a damaged disk may hold another weight.
        Self { log: minus_log2(finish(seed)), weight: binding.weight().unwrap_or(1) }
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let (own, its) = (
            u128::from(self.log) * u128::from(other.weight),
            u128::from(other.log) * u128::from(self.weight),
        );
        own.cmp(&its)
    }
}

/// `-log2(lot / 2^64)`, 32 binary digits after the point.
fn minus_log2(lot: u64) -> u64 {
    let lot = lot | 1;
    let zeros = lot.leading_zeros();
    let mut mantissa = u128::from(lot << zeros);
    let mut log = u64::from(63 - zeros);
    for _ in 0..32 {
        mantissa = (mantissa * mantissa) >> 63;
        let is_over = mantissa >> 64 != 0;
        mantissa >>= u32::from(is_over);
        log = log << 1 | u64::from(is_over);
    }
    (64 << 32) - log
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// A number for some bytes, which never changes.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    finish(hash(START, bytes))
}

fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn finish(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bindings(weights: &[u32]) -> Vec<Binding> {
        let to = |at: usize| Destination::Queue(format!("q{at}").into());
        weights
            .iter()
            .enumerate()
            .map(|(at, weight)| Binding::new("x", to(at), &weight.to_string()))
            .collect()
    }

    fn chosen(bindings: &[Binding], key: u64) -> &str {
        choose(hash(START, key.to_string().as_bytes()), bindings.iter()).expect("there is one").to.name()
    }

    #[test]
    fn the_logarithm_is_right() {
        for (lot, expect) in
            [(1_u64, 64_u64 << 32), (1 << 63, 1 << 32), (1 << 62, 2 << 32), (3 << 62, 1_782_572_486)]
        {
            let seen = minus_log2(lot);
            assert!(seen.abs_diff(expect) <= 2, "{lot}: {seen} {expect}");
        }
    }

    #[test]
    fn keys_are_shared_out_by_weight() {
        let bindings = bindings(&[1, 2, 5]);
        let share = |name| (0..8_000).filter(|key| chosen(&bindings, *key) == name).count();
        for (name, expect) in [("q0", 1_000), ("q1", 2_000), ("q2", 5_000)] {
            assert!(share(name).abs_diff(expect) < 200, "{name}: {}", share(name));
        }
    }

    #[test]
    fn only_the_keys_of_a_binding_that_comes_or_goes_move() {
        let (three, four) = (bindings(&[2, 2, 2]), bindings(&[2, 2, 2, 2]));
        for key in 0..2_000 {
            let (before, after) = (chosen(&three, key), chosen(&four, key));
            assert!(before == after || after == "q3", "{key} went from {before} to {after}");
        }
    }

    #[test]
    fn a_binding_that_is_given_more_keeps_what_it_had() {
        let (before, after) = (bindings(&[2, 2]), bindings(&[2, 3]));
        for key in 0..2_000 {
            assert!(chosen(&before, key) != "q1" || chosen(&after, key) == "q1", "{key}");
        }
    }

    #[test]
    fn a_key_finds_the_same_queue_for_ever() {
        let bindings = bindings(&[1, 1, 1, 1]);
        let seen: Vec<_> = (0..8).map(|key| chosen(&bindings, key)).collect();
        assert_eq!(seen.join(" "), "q3 q2 q1 q0 q0 q1 q1 q1");
    }
}

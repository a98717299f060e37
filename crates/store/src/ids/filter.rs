//! What says of most ids that they are not there, without reading anything: a Bloom filter.
//!
//! With ten bits for each id one of a hundred that are not there may be, with five one of ten, with two two of five.

/// Bits for each id, where there is room.
pub(super) const BITS_MAX: f64 = 10.0;

/// A set of hashes that says of each that is in it that it may be.
#[derive(Debug)]
pub(super) struct Filter {
    words: Box<[u64]>,
    probes: u32,
}

impl Filter {
    /// For so many hashes, with so many bits for each; `None` where that is less than a bit.
    pub(super) fn new(hashes: u64, bits_each: f64) -> Option<Self> {
        if bits_each < 1.0 {
            return None;
        }
        let words = (hashes as f64 * bits_each / 64.0).ceil() as usize;
        // The logarithm of 2 times the bits for each: where half of all bits are set.
        let probes = (bits_each * std::f64::consts::LN_2).round().clamp(1.0, 8.0) as u32;
        Some(Self { words: vec![0; words.max(1)].into(), probes })
    }

    pub(super) fn insert(&mut self, hash: u64) {
        for probe in 0..self.probes {
            let (word, bit) = self.place(hash, probe);
            self.words[word] |= bit;
        }
    }

    pub(super) fn may_have(&self, hash: u64) -> bool {
        (0..self.probes).all(|probe| {
            let (word, bit) = self.place(hash, probe);
            self.words[word] & bit != 0
        })
    }

    /// Bytes of memory.
    pub(super) fn len(&self) -> usize {
        self.words.len() * 8
    }

    fn place(&self, hash: u64, probe: u32) -> (usize, u64) {
        let step = hash.rotate_left(32) | 1;
        let mixed = hash.wrapping_add(step.wrapping_mul(u64::from(probe)));
        let bits = self.words.len() as u128 * 64;
        let bit = ((u128::from(mixed) * bits) >> 64) as u64;
        ((bit / 64) as usize, 1 << (bit % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(n: u64) -> u64 {
        let mut n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ (n >> 31)
    }

    #[test]
    fn whatever_is_in_it_is_found_and_little_else() {
        for (bits, most) in [(10.0, 0.012), (5.0, 0.11), (2.0, 0.41)] {
            let mut filter = Filter::new(20_000, bits).expect("enough bits");
            (0..20_000).for_each(|n| filter.insert(mixed(n)));
            assert!((0..20_000).all(|n| filter.may_have(mixed(n))));
            let wrong = (20_000..120_000).filter(|n| filter.may_have(mixed(*n))).count();
            assert!((wrong as f64) < most * 100_000.0, "{wrong} of 100,000 with {bits} bits");
            assert!(filter.len() <= 20_000 * bits as usize / 8 + 8);
        }
        assert!(Filter::new(20_000, 0.9).is_none());
    }
}

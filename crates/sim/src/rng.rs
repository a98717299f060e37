//! Chance: xoshiro256++ (Blackman and Vigna 2019), seeded by SplitMix64, the same on every machine.
//!
//! Each part of a world draws from its own stream, so that a change in one does not shift the others.

/// A stream of chance.
#[derive(Clone, Debug)]
pub(crate) struct Rng([u64; 4]);

impl Rng {
    /// The stream of this seed and salt.
    pub(crate) fn new(seed: u64, salt: &str) -> Self {
        let mut state =
            salt.bytes().fold(seed ^ 0x6f76_6572_7461_6b65, |state, byte| mix(state ^ u64::from(byte)));
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        }))
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let answer = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        answer
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A number from `least` to `most`.
    pub(crate) fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of several.
    pub(crate) fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }

    /// Mostly near `usual`, sometimes ten, rarely a hundred times as much.
    pub(crate) fn heavy(&mut self, usual: u64) -> u64 {
        let scale = match self.below(200) {
            0 => 100,
            1..=9 => 10,
            _ => 1,
        };
        self.within(usual / 2, usual.max(1) * 3 / 2) * scale
    }
}

/// The finisher of SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |salt| {
            let mut rng = Rng::new(7, salt);
            [rng.next(), rng.next(), rng.next()]
        };
        assert_eq!(draw("disk"), draw("disk"));
        assert_ne!(draw("disk"), draw("clock"));
    }
}

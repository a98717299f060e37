//! Names that the broker makes up.

/// Makes names that nobody else has, and nobody guesses who does not know the seed.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    seed: [u64; 2],
    made: u64,
}

impl Names {
    pub(crate) fn new(seed: [u64; 2]) -> Self {
        Self { seed, made: 0 }
    }

    /// A new one that begins so.
    pub(crate) fn make(&mut self, prefix: &str) -> String {
        self.made += 1;
        let [one, other] = self.seed.map(|seed| mixed(seed.wrapping_add(self.made.wrapping_mul(GOLDEN))));
        format!("{prefix}{one:016x}{other:016x}")
    }
}

/// 2⁶⁴ divided by the golden ratio: splitmix64's step (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// splitmix64's finalizer.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

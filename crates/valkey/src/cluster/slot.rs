//! Which of the 16,384 slots a key is in: the CRC16 of its tag, by the cluster specification's "Key distribution model".

use std::fmt;

/// How many slots there are.
pub const SLOTS: u16 = 16_384;

/// One of the slots of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// Where a key, or a sharded channel, is: by what stands in its first braces, if anything does, else by all of it.
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        Self(crc16(tag(key)) % SLOTS)
    }

    /// By its number, if there is such a slot.
    #[must_use]
    pub fn new(number: u16) -> Option<Self> {
        (number < SLOTS).then_some(Self(number))
    }

    /// From 0 to 16,383.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// A tag that lies here, a small number as text. It takes some ten thousand tries to find one.
    #[must_use]
    pub fn a_tag(self) -> String {
        let all = (0_u32..).map(|number| number.to_string());
        let mut here = all.filter(|tag| Self::of(tag.as_bytes()) == self);
        here.next().expect("every slot has numbers")
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.0)
    }
}

fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// CRC-16/XMODEM: polynomial 0x1021, from 0.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

static TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = (at as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_where_the_specification_says() {
        assert_eq!(crc16(b"123456789"), 0x31c3, "the specification's own example");
        let slot = |key: &str| Slot::of(key.as_bytes()).number();
        assert_eq!(slot("foo"), 12_182);
        assert_eq!(slot("{user1000}.following"), slot("{user1000}.followers"));
        assert_eq!(slot("foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS, "nothing stands in the first braces");
        assert_eq!(slot("foo{{bar}}zap"), slot("{bar"));
        assert_eq!(slot("foo{bar}{zap}"), slot("bar"));
        assert_eq!(slot("foo{bar"), crc16(b"foo{bar") % SLOTS);
    }

    #[test]
    fn a_tag_of_a_slot_lies_there() {
        for number in [0, 1, 8_191, SLOTS - 1] {
            let slot = Slot::new(number).expect("there is one");
            let key = format!("mark:{{{}}}", slot.a_tag());
            assert_eq!(Slot::of(key.as_bytes()), slot);
        }
        assert_eq!(Slot::new(SLOTS), None);
    }
}

//! The last bytes of a segment: how to read it, and what is in it.

use overtake_lane::{Seq, Time};

pub(super) const FOOTER_LEN: usize = 72;
const MAGIC: [u8; 8] = *b"OVTKSEND";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) first: Seq,
    pub(super) last: Seq,
    pub(super) expires: Time,
    pub(super) index_at: u64,
    pub(super) blocks: u32,
    pub(super) ids: u32,
    pub(super) index_crc: u32,
}

impl Footer {
    pub(super) fn encode(&self, salt: u32) -> [u8; FOOTER_LEN] {
        let mut bytes = [0; FOOTER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        let longs = [self.count, self.bytes, self.first.0, self.last.0, self.expires.0, self.index_at];
        for (long, place) in longs.iter().zip(bytes[8..56].chunks_exact_mut(8)) {
            place.copy_from_slice(&long.to_le_bytes());
        }
        bytes[56..60].copy_from_slice(&self.blocks.to_le_bytes());
        bytes[60..64].copy_from_slice(&self.ids.to_le_bytes());
        bytes[64..68].copy_from_slice(&self.index_crc.to_le_bytes());
        let crc = crc32c::crc32c_append(salt, &bytes[..68]);
        bytes[68..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` when these bytes are no footer of this file, or one that contradicts itself.
    pub(super) fn decode(bytes: &[u8], salt: u32) -> Option<Self> {
        let bytes: &[u8; FOOTER_LEN] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if bytes[..8] != MAGIC || word(68) != crc32c::crc32c_append(salt, &bytes[..68]) {
            return None;
        }
        let footer = Self {
            count: long(8),
            bytes: long(16),
            first: Seq(long(24)),
            last: Seq(long(32)),
            expires: Time(long(40)),
            index_at: long(48),
            blocks: word(56),
            ids: word(60),
            index_crc: word(64),
        };
        let fits = footer.blocks > 0 && footer.first <= footer.last && u64::from(footer.ids) <= footer.count;
        fits.then_some(footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOOTER: Footer = Footer {
        count: 1,
        bytes: 2,
        first: Seq(3),
        last: Seq(4),
        expires: Time::NEVER,
        index_at: 5,
        blocks: 6,
        ids: 1,
        index_crc: 7,
    };

    #[test]
    fn the_footer_is_these_bytes() {
        let mut expected = b"OVTKSEND".to_vec();
        for long in [1_u64, 2, 3, 4, u64::MAX, 5] {
            expected.extend_from_slice(&long.to_le_bytes());
        }
        expected.extend_from_slice(b"\x06\0\0\0\x01\0\0\0\x07\0\0\0");
        expected.extend_from_slice(&crc32c::crc32c_append(99, &expected).to_le_bytes());
        assert_eq!(FOOTER.encode(99)[..], expected[..]);
        assert_eq!(Footer::decode(&expected, 99), Some(FOOTER));
    }

    #[test]
    fn a_footer_of_another_file_is_none() {
        assert_eq!(Footer::decode(&FOOTER.encode(99), 98), None);
    }
}

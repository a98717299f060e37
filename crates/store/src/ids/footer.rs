//! The last bytes of a file of ids.

pub(super) const FOOTER_LEN: usize = 32;
const MAGIC: [u8; 8] = *b"OVTKIDND";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) entries: u64,
    pub(super) segments: u32,
    pub(super) index_crc: u32,
}

impl Footer {
    pub(super) fn encode(&self, salt: u32) -> [u8; FOOTER_LEN] {
        let mut bytes = [0; FOOTER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.entries.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.segments.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.index_crc.to_le_bytes());
        let crc = crc32c::crc32c_append(salt, &bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` when these bytes are no footer of this file.
    pub(super) fn decode(bytes: &[u8], salt: u32) -> Option<Self> {
        let bytes: &[u8; FOOTER_LEN] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if bytes[..8] != MAGIC || word(28) != crc32c::crc32c_append(salt, &bytes[..28]) {
            return None;
        }
        let entries = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
        let footer = Self { entries, segments: word(16), index_crc: word(24) };
        (footer.entries > 0 && footer.segments > 0).then_some(footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_footer_is_these_bytes() {
        let footer = Footer { entries: 1, segments: 2, index_crc: 3 };
        let mut expected = b"OVTKIDND\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0".to_vec();
        expected.extend_from_slice(&crc32c::crc32c_append(99, &expected).to_le_bytes());
        assert_eq!(footer.encode(99)[..], expected[..]);
        assert_eq!(Footer::decode(&expected, 99), Some(footer));
        assert_eq!(Footer::decode(&expected, 98), None);
    }
}

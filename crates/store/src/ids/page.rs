//! A page of a file of ids: what a look-up reads.

/// Length of a page, bytes.
pub(super) const PAGE_LEN: usize = 4096;
/// Entries of a full page.
pub(super) const PER_PAGE: usize = 255;
const ENTRY_LEN: usize = 16;
const CRC_AT: usize = PAGE_LEN - 4;

/// A message with an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) hash: u64,
    /// The place of its segment in the file's list.
    pub(super) place: u32,
    pub(super) ordinal: u32,
}

/// Appends a page; `at` is where it will stand in the file.
pub(super) fn append(out: &mut Vec<u8>, entries: &[Entry], at: u64, salt: u32) {
    let start = out.len();
    for entry in entries {
        out.extend_from_slice(&entry.hash.to_le_bytes());
        out.extend_from_slice(&entry.place.to_le_bytes());
        out.extend_from_slice(&entry.ordinal.to_le_bytes());
    }
    out.resize(start + CRC_AT, 0);
    let crc = checksum(&out[start..], at, salt);
    out.extend_from_slice(&crc.to_le_bytes());
}

/// The first `count` entries; `None` when the bytes are not those of the page at this offset.
pub(super) fn decode(bytes: &[u8], count: usize, at: u64, salt: u32) -> Option<Vec<Entry>> {
    let bytes: &[u8; PAGE_LEN] = bytes.try_into().ok()?;
    let crc = u32::from_le_bytes(bytes[CRC_AT..].try_into().expect("four bytes"));
    if crc != checksum(&bytes[..CRC_AT], at, salt) {
        return None;
    }
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let entry = |bytes: &[u8]| Entry {
        hash: u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")),
        place: word(&bytes[8..12]),
        ordinal: word(&bytes[12..]),
    };
    let entries: Vec<Entry> = bytes[..count * ENTRY_LEN].chunks_exact(ENTRY_LEN).map(entry).collect();
    entries.is_sorted_by(|one, next| one < next).then_some(entries)
}

fn checksum(bytes: &[u8], at: u64, salt: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(salt, &at.to_le_bytes()), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_these_bytes() {
        let entries = [
            Entry { hash: 0x0102_0304_0506_0708, place: 3, ordinal: 4 },
            Entry { hash: u64::MAX, place: 0, ordinal: 0x0a0b },
        ];
        let mut expected = b"\x08\x07\x06\x05\x04\x03\x02\x01\x03\0\0\0\x04\0\0\0".to_vec();
        expected.extend_from_slice(b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\x0b\x0a\0\0");
        expected.resize(4092, 0);
        let crc = crc32c::crc32c_append(crc32c::crc32c_append(99, &8192_u64.to_le_bytes()), &expected);
        expected.extend_from_slice(&crc.to_le_bytes());
        let mut page = Vec::new();
        append(&mut page, &entries, 8192, 99);
        assert_eq!(page, expected);
        assert_eq!(decode(&page, 2, 8192, 99).as_deref(), Some(&entries[..]));
        assert_eq!(decode(&page, 2, 4096, 99), None);
        assert_eq!(decode(&page, 2, 8192, 98), None);
    }
}

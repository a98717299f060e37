//! Journal files: their names, their header, and the arithmetic between offsets and [`Lsn`]s.
//!
//! # Names
//! | name | what |
//! |---|---|
//! | `journal-NNNNNNNNNNNN` | file number N (decimal, from 1, at least 12 digits): a part of the log, or prepared to be the next |
//! | `spare-NNNNNNNNNNNN` | a file of the right length whose content does not matter; N only tells them apart |
//! | `new-NNNNNNNNNNNN` | a file being made; removed when found |
//! | `segment-NNNNNNNNNNNN` | segment number N, of its own count: spilled messages of one queue; see [`crate::segment`] |
//! | `segment-new-NNNNNNNNNNNN` | a segment being written; removed when found |
//! | `ids-NNNNNNNNNNNN` | file of ids number N, of its own count: where the messages of ids are; see [`crate::ids`] |
//! | `ids-new-NNNNNNNNNNNN` | a file of ids being written; removed when found |
//! | `LOCK` | empty; its lock is the store's |
//!
//! # The header
//! As in `header.rs`; the frames follow.
//!
//! ```text
//!  0  8  magic "OVTKJRNL"
//!  8  4  format version, 1
//! 12  4  life in which the file was prepared
//! 16  8  store id
//! 24  8  file number
//! 32  8  LSN of the first byte after the header
//! 40  8  length of the file
//! 48 12  zero
//! 60  4  CRC-32C of bytes 0..60, the file's salt
//! ```
//!
//! A file gets its `journal-` name only after header and length are durable, and is used only after the name is, too.

use crate::header::{Copies, Fields, HeaderFault, decode};
use crate::lsn::Lsn;

/// The format this program writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;

/// Unit of the page cache, bytes.
pub(crate) const PAGE_LEN: u64 = 4096;
/// Where the frames begin.
pub(crate) const HEADER_LEN: u64 = crate::header::HEADER_LEN;
/// The shortest journal file, bytes.
pub const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// The longest journal file, bytes.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;

const MAGIC: [u8; 8] = *b"OVTKJRNL";

/// What the header of a journal file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) store_id: u64,
    pub(crate) number: u64,
    pub(crate) life: u32,
    pub(crate) first_lsn: Lsn,
    pub(crate) segment_bytes: u64,
}

impl FileHeader {
    /// The file that follows this one, prepared in `life`.
    pub(crate) fn next(&self, life: u32, segment_bytes: u64) -> Self {
        Self { number: self.number + 1, life, first_lsn: self.end_lsn(), segment_bytes, ..*self }
    }

    /// The LSN of the byte at `offset`.
    pub(crate) fn lsn_at(&self, offset: u64) -> Lsn {
        Lsn(self.first_lsn.0 + (offset - HEADER_LEN))
    }

    /// The offset of an LSN, which must not lie before the file.
    pub(crate) fn offset_of(&self, lsn: Lsn) -> u64 {
        lsn.0 - self.first_lsn.0 + HEADER_LEN
    }

    /// The LSN at which the next file begins.
    pub(crate) fn end_lsn(&self) -> Lsn {
        self.lsn_at(self.segment_bytes)
    }

    pub(crate) fn name(&self) -> String {
        Name::Journal(self.number).to_string()
    }

    pub(crate) fn salt(&self) -> u32 {
        self.fields().salt()
    }

    fn fields(&self) -> Fields {
        let mut fields = Fields::new(MAGIC);
        fields.set_word(12, self.life);
        fields.set_long(16, self.store_id);
        fields.set_long(24, self.number);
        fields.set_long(32, self.first_lsn.0);
        fields.set_long(40, self.segment_bytes);
        fields
    }

    /// The header block.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.fields().block()
    }

    /// Reads a header block, which may be too short; says which of the two copies were right.
    pub(crate) fn decode(block: &[u8]) -> Result<(Self, Copies), HeaderFault> {
        decode(block, MAGIC, Self::read)
    }

    fn read(fields: &Fields) -> Option<Self> {
        let header = Self {
            store_id: fields.long(16),
            number: fields.long(24),
            life: fields.word(12),
            first_lsn: Lsn(fields.long(32)),
            segment_bytes: fields.long(40),
        };
        header.is_sane().then_some(header)
    }

    /// A header made by anyone else may hold any numbers; the arithmetic on it must not overflow.
    fn is_sane(&self) -> bool {
        let bound = 1 << 62;
        segment_bytes_are_valid(self.segment_bytes)
            && (1..bound).contains(&self.number)
            && self.first_lsn.0 < bound
            && self.first_lsn.0.is_multiple_of(8)
    }
}

/// Whether a journal file may have this length.
pub(crate) fn segment_bytes_are_valid(bytes: u64) -> bool {
    (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&bytes) && bytes.is_multiple_of(PAGE_LEN)
}

/// The name of a file of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Journal(u64),
    Spare(u64),
    New(u64),
    Segment(u64),
    NewSegment(u64),
    Ids(u64),
    NewIds(u64),
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Journal(number) => write!(f, "journal-{number:012}"),
            Self::Spare(id) => write!(f, "spare-{id:012}"),
            Self::New(id) => write!(f, "new-{id:012}"),
            Self::Segment(number) => write!(f, "segment-{number:012}"),
            Self::NewSegment(number) => write!(f, "segment-new-{number:012}"),
            Self::Ids(number) => write!(f, "ids-{number:012}"),
            Self::NewIds(number) => write!(f, "ids-new-{number:012}"),
        }
    }
}

impl Name {
    /// Reads a name; `None` for every name that we would not have given.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (stem, digits) = text.rsplit_once('-')?;
        let n: u64 = digits.parse().ok()?;
        let name = match stem {
            "journal" => Self::Journal(n),
            "spare" => Self::Spare(n),
            "new" => Self::New(n),
            "segment" => Self::Segment(n),
            "segment-new" => Self::NewSegment(n),
            "ids" => Self::Ids(n),
            "ids-new" => Self::NewIds(n),
            _ => return None,
        };
        ((1..1 << 62).contains(&n) && name.to_string() == text).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FileHeader {
        FileHeader {
            store_id: 0x0102_0304_0506_0708,
            number: 3,
            life: 2,
            first_lsn: Lsn(122_880),
            segment_bytes: 65_536,
        }
    }

    #[test]
    fn the_header_is_these_bytes() {
        let block = header().encode();
        let mut expected = b"OVTKJRNL\x01\0\0\0\x02\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01".to_vec();
        expected.extend_from_slice(b"\x03\0\0\0\0\0\0\0\0\xe0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0");
        expected.extend_from_slice(&[0; 12]);
        expected.extend_from_slice(&crc32c::crc32c(&expected).to_le_bytes());
        assert_eq!(block.len(), 4096);
        assert_eq!(&block[..64], expected);
        assert_eq!(&block[2048..2112], expected);
        assert!(block[64..2048].iter().chain(&block[2112..]).all(|&byte| byte == 0));
    }

    #[test]
    fn one_right_copy_is_enough() {
        let mut block = header().encode();
        assert_eq!(FileHeader::decode(&block), Ok((header(), Copies::Both)));
        block[17] ^= 1;
        assert_eq!(FileHeader::decode(&block), Ok((header(), Copies::Second)));
        block[17] ^= 1;
        block[2048 + 63] ^= 1;
        assert_eq!(FileHeader::decode(&block), Ok((header(), Copies::First)));
        block[63] ^= 1;
        assert_eq!(FileHeader::decode(&block), Err(HeaderFault::Bad));
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let mut fields = header().fields();
        fields.set_word(8, 9);
        let mut block = fields.block();
        assert_eq!(FileHeader::decode(&block[..64]), Err(HeaderFault::Newer(9)));
        block[60] ^= 1;
        assert_eq!(FileHeader::decode(&block[..64]), Err(HeaderFault::Bad));
    }

    #[test]
    fn only_our_own_names_are_read() {
        for name in [
            Name::Journal(7),
            Name::Spare(1),
            Name::New(1 << 40),
            Name::Segment(1_234_567_890_123),
            Name::NewSegment(2),
            Name::Ids(3),
            Name::NewIds(4),
        ] {
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        for text in [
            "LOCK",
            "journal-7",
            "journal-+00000000007",
            "journal-000000000000",
            "spare-",
            "journal-x",
            "segment-new-",
            "segment-new-7",
            "segment-old-000000000007",
            "a-b",
        ] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_log_runs_on_through_the_files() {
        let next = header().next(5, 131_072);
        assert_eq!((next.number, next.life, next.first_lsn), (4, 5, Lsn(122_880 + 65_536 - 4096)));
        assert_eq!(next.offset_of(next.lsn_at(5000)), 5000);
    }
}

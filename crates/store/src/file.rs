//! Journal files: their names, their header, and the arithmetic between offsets and [`Lsn`]s.
//!
//! # Names
//! | name | what |
//! |---|---|
//! | `journal-NNNNNNNNNNNN` | file number N (decimal, from 1, at least 12 digits): a part of the log, or prepared to be the next |
//! | `spare-NNNNNNNNNNNN` | a file of the right length whose content does not matter; N only tells them apart |
//! | `new-NNNNNNNNNNNN` | a file being made; removed when found |
//! | `LOCK` | empty; its lock is the store's |
//!
//! # The header
//! The first 4,096 bytes of a file; the frames follow. Little-endian. The same 64 bytes stand at 0 and at 2,048, the rest is zero.
//!
//! ```text
//!  0  8  magic "OVTKJRNL"
//!  8  4  format version, 1. The place of magic, version and checksum holds for every later version.
//! 12  4  life in which the file was prepared
//! 16  8  store id
//! 24  8  file number
//! 32  8  LSN of the first byte after the header
//! 40  8  length of the file
//! 48 12  zero
//! 60  4  CRC-32C of bytes 0..60, the file's *salt*: it is part of the checksum of every frame in the file
//! ```
//!
//! A file gets its `journal-` name only after header and length are durable, and is used only after the name is, too.

use crate::decide::Sight;
use crate::lsn::Lsn;

/// The format this program writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;

/// Length of the header block and unit of the page cache, bytes.
pub(crate) const PAGE_LEN: u64 = 4096;
/// Where the frames begin.
pub(crate) const HEADER_LEN: u64 = PAGE_LEN;
/// Where the second copy of the header stands.
pub(crate) const COPY_AT: usize = 2048;
/// The shortest journal file, bytes.
pub const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// The longest journal file, bytes.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;

const MAGIC: [u8; 8] = *b"OVTKJRNL";
const FIELDS_LEN: usize = 64;

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
        crc32c::crc32c(&self.fields()[..60])
    }

    fn fields(&self) -> [u8; FIELDS_LEN] {
        let mut bytes = [0; FIELDS_LEN];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.life.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.store_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_lsn.0.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.segment_bytes.to_le_bytes());
        bytes
    }

    /// The header block, both copies in it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut fields = self.fields();
        fields[60..].copy_from_slice(&self.salt().to_le_bytes());
        let mut block = vec![0; HEADER_LEN as usize];
        block[..FIELDS_LEN].copy_from_slice(&fields);
        block[COPY_AT..COPY_AT + FIELDS_LEN].copy_from_slice(&fields);
        block
    }

    /// Reads a header block, which may be too short; says how many of the two copies were wrong.
    pub(crate) fn decode(block: &[u8]) -> Result<(Self, Copies), HeaderFault> {
        let copy = |at: usize| Self::decode_copy(block.get(at..at + FIELDS_LEN).ok_or(HeaderFault::Bad)?);
        match (copy(0), copy(COPY_AT)) {
            (Ok(first), Ok(second)) if first == second => Ok((first, Copies::Both)),
            // Two right copies that differ: neither can be trusted.
            (Ok(_), Ok(_)) => Err(HeaderFault::Bad),
            (Ok(first), Err(_)) => Ok((first, Copies::First)),
            (Err(_), Ok(second)) => Ok((second, Copies::Second)),
            (Err(HeaderFault::Newer(version)), _) | (_, Err(HeaderFault::Newer(version))) => {
                Err(HeaderFault::Newer(version))
            }
            (Err(HeaderFault::Bad), Err(HeaderFault::Bad)) => Err(HeaderFault::Bad),
        }
    }

    fn decode_copy(bytes: &[u8]) -> Result<Self, HeaderFault> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if bytes[..8] != MAGIC || word(60) != crc32c::crc32c(&bytes[..60]) {
            return Err(HeaderFault::Bad);
        }
        if word(8) > FORMAT_VERSION {
            return Err(HeaderFault::Newer(word(8)));
        }
        let header = Self {
            store_id: long(16),
            number: long(24),
            life: word(12),
            first_lsn: Lsn(long(32)),
            segment_bytes: long(40),
        };
        if header.is_sane() { Ok(header) } else { Err(HeaderFault::Bad) }
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

/// Which copies of a header are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    Both,
    First,
    Second,
}

/// Why a header cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    Bad,
    Newer(u32),
}

impl From<HeaderFault> for Sight {
    fn from(fault: HeaderFault) -> Self {
        match fault {
            HeaderFault::Bad => Self::HeaderBad,
            HeaderFault::Newer(_) => Self::HeaderNewer,
        }
    }
}

/// The name of a file of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Journal(u64),
    Spare(u64),
    New(u64),
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Journal(number) => write!(f, "journal-{number:012}"),
            Self::Spare(id) => write!(f, "spare-{id:012}"),
            Self::New(id) => write!(f, "new-{id:012}"),
        }
    }
}

impl Name {
    /// Reads a name; `None` for every name that we would not have given.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (stem, digits) = text.split_once('-')?;
        let name = match stem {
            "journal" => Self::Journal(digits.parse().ok()?),
            "spare" => Self::Spare(digits.parse().ok()?),
            "new" => Self::New(digits.parse().ok()?),
            _ => return None,
        };
        let (Self::Journal(n) | Self::Spare(n) | Self::New(n)) = name;
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
        fields[8] = 9;
        let salt = crc32c::crc32c(&fields[..60]);
        fields[60..].copy_from_slice(&salt.to_le_bytes());
        assert_eq!(FileHeader::decode(&fields), Err(HeaderFault::Newer(9)));
        fields[60] ^= 1;
        assert_eq!(FileHeader::decode(&fields), Err(HeaderFault::Bad));
    }

    #[test]
    fn only_our_own_names_are_read() {
        for name in [Name::Journal(7), Name::Spare(1), Name::New(1 << 40)] {
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        for text in [
            "LOCK",
            "journal-7",
            "journal-+00000000007",
            "journal-000000000000",
            "spare-",
            "journal-x",
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

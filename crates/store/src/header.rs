//! The block that every file of a store begins with: 64 bytes, written twice.
//!
//! The first 4,096 bytes of a file. The same 64 bytes stand at 0 and at 2,048, so in two sectors; the rest is zero.
//! Little-endian. What all of them have, in every version, is this; the rest is the kind of file's own.
//!
//! ```text
//!  0  8  magic: the kind of file
//!  8  4  format version
//! 60  4  CRC-32C of bytes 0..60, the file's *salt*: it is part of every other checksum in the file
//! ```

use crate::decide::Sight;
use crate::file::FORMAT_VERSION;

/// Length of the block, bytes; what the file holds begins after it.
pub(crate) const HEADER_LEN: u64 = 4096;
/// Where the second copy stands.
pub(crate) const COPY_AT: usize = 2048;

const FIELDS_LEN: usize = 64;
const CRC_AT: usize = 60;

/// One copy of a header. Offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields([u8; FIELDS_LEN]);

impl Fields {
    /// Magic and version; all else is zero.
    pub(crate) fn new(magic: [u8; 8]) -> Self {
        let mut fields = Self([0; FIELDS_LEN]);
        fields.0[..8].copy_from_slice(&magic);
        fields.set_word(8, FORMAT_VERSION);
        fields
    }

    pub(crate) fn set_word(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn set_long(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    pub(crate) fn long(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    /// The checksum of all the other fields.
    pub(crate) fn salt(&self) -> u32 {
        crc32c::crc32c(&self.0[..CRC_AT])
    }

    /// The block, both copies in it.
    pub(crate) fn block(mut self) -> Vec<u8> {
        self.set_word(CRC_AT, self.salt());
        let mut block = vec![0; HEADER_LEN as usize];
        block[..FIELDS_LEN].copy_from_slice(&self.0);
        block[COPY_AT..COPY_AT + FIELDS_LEN].copy_from_slice(&self.0);
        block
    }

    fn of(block: &[u8], at: usize, magic: [u8; 8]) -> Result<Self, HeaderFault> {
        let bytes = block.get(at..at + FIELDS_LEN).ok_or(HeaderFault::Bad)?;
        let fields = Self(bytes.try_into().expect("as many bytes as were asked for"));
        if fields.0[..8] != magic || fields.word(CRC_AT) != fields.salt() {
            return Err(HeaderFault::Bad);
        }
        match fields.word(8) {
            version if version > FORMAT_VERSION => Err(HeaderFault::Newer(version)),
            _ => Ok(fields),
        }
    }
}

/// Reads a block, which may be too short; says which of the two copies were right. `read` refuses fields that make no sense.
pub(crate) fn decode<T: PartialEq>(
    block: &[u8],
    magic: [u8; 8],
    read: impl Fn(&Fields) -> Option<T>,
) -> Result<(T, Copies), HeaderFault> {
    let copy = |at| read(&Fields::of(block, at, magic)?).ok_or(HeaderFault::Bad);
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

/// Which copies of a header are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    Both,
    First,
    Second,
}

impl Copies {
    /// Where the copy stands that is wrong, if one is.
    pub(crate) fn bad_at(self) -> Option<u64> {
        match self {
            Self::Both => None,
            Self::First => Some(COPY_AT as u64),
            Self::Second => Some(0),
        }
    }
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

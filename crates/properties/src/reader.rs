//! Numbers and strings, front to back (4.2.5): most significant byte first.

use crate::short::Short;

/// What is left to be read. `None` when there is less than was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(crate) fn octet(&mut self) -> Option<u8> {
        self.array().map(|[octet]| octet)
    }

    pub(crate) fn word(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A short string: its length in one byte.
    pub(crate) fn short(&mut self) -> Option<Short<'a>> {
        let len = self.octet()?;
        self.take(usize::from(len)).and_then(Short::new)
    }

    /// A long string, a table or an array: its length in four bytes.
    pub(crate) fn long(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_be_bytes(self.array()?);
        self.take(usize::try_from(len).ok()?)
    }
}

/// Writes what [`Reader::long`] reads.
pub(crate) fn write_long(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("a string or a table is shorter than 4 GiB");
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
}

//! Whether bytes are a table, all the way down, without recursion.
//!
//! A table in a table in a table costs a peer six bytes a level, and stacks are not endless: `connection.start-ok` carries a
//! table before anyone has logged in. So the levels that are open stand in an array of [`DEPTH_MAX`] ends, and the walk
//! looks at each byte once.

use crate::fault::Fault;
use crate::limits::{DEPTH_MAX, Limits};

/// Walks the whole table, without the length in front.
pub(crate) fn table(bytes: &[u8], limits: &Limits) -> Result<(), Fault> {
    if bytes.len() > limits.bytes as usize {
        return Err(Fault::TooLong);
    }
    let mut walk = Walk::new(bytes, limits);
    while walk.close_what_ended() {
        walk.step()?;
    }
    Ok(())
}

/// Where a walk through a table stands. Invariant: the open levels end in ascending order from the innermost out, and
/// `at` is not beyond the end of the innermost.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the innermost level ends, and whether it is a table.
    end: usize,
    is_table: bool,
    /// The same of those around it, from the outermost in.
    ends: [u32; DEPTH_MAX as usize],
    tables: u32,
    /// Levels around the innermost.
    depth: u32,
    depth_max: u32,
    entries_left: u32,
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8], limits: &Limits) -> Self {
        Self {
            bytes,
            at: 0,
            end: bytes.len(),
            is_table: true,
            ends: [0; DEPTH_MAX as usize],
            tables: 0,
            depth: 0,
            depth_max: limits.depth.min(DEPTH_MAX),
            entries_left: limits.entries,
        }
    }

    /// Leaves the levels that end here; false when that was the outermost.
    fn close_what_ended(&mut self) -> bool {
        while self.at == self.end {
            let Some(outer) = self.depth.checked_sub(1) else { return false };
            self.depth = outer;
            self.end = self.ends[outer as usize] as usize;
            self.is_table = self.tables & (1 << outer) != 0;
        }
        true
    }

    /// One entry or one item; of a nested one only its head.
    fn step(&mut self) -> Result<(), Fault> {
        self.entries_left = self.entries_left.checked_sub(1).ok_or(Fault::TooMany)?;
        if self.is_table {
            let len = self.octet()?;
            self.skip(usize::from(len))?;
        }
        match self.octet()? {
            b'V' => Ok(()),
            b't' | b'b' | b'B' => self.skip(1),
            b's' | b'u' => self.skip(2),
            b'I' | b'i' | b'f' => self.skip(4),
            b'D' => self.skip(5),
            b'l' | b'L' | b'd' | b'T' => self.skip(8),
            b'S' | b'x' => {
                let len = self.len()?;
                self.skip(len)
            }
            b'F' => self.open(true),
            b'A' => self.open(false),
            tag => Err(Fault::UnknownType(tag)),
        }
    }

    fn open(&mut self, is_table: bool) -> Result<(), Fault> {
        let len = self.len()?;
        if len > self.end - self.at {
            return Err(Fault::Truncated);
        }
        if self.depth + 1 >= self.depth_max {
            return Err(Fault::TooDeep);
        }
        let flag = 1 << self.depth;
        self.tables = if self.is_table { self.tables | flag } else { self.tables & !flag };
        self.ends[self.depth as usize] = self.end as u32;
        self.depth += 1;
        self.end = self.at + len;
        self.is_table = is_table;
        Ok(())
    }

    fn skip(&mut self, len: usize) -> Result<(), Fault> {
        if len > self.end - self.at {
            return Err(Fault::Truncated);
        }
        self.at += len;
        Ok(())
    }

    fn octet(&mut self) -> Result<u8, Fault> {
        let octet = *self.bytes[..self.end].get(self.at).ok_or(Fault::Truncated)?;
        self.at += 1;
        Ok(octet)
    }

    fn len(&mut self) -> Result<usize, Fault> {
        let (bytes, _) = self.bytes[self.at..self.end].split_first_chunk().ok_or(Fault::Truncated)?;
        self.at += 4;
        usize::try_from(u32::from_be_bytes(*bytes)).map_err(|_| Fault::Truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many tables or arrays in each other, the outermost a table.
    fn nest(depth: usize, tag: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        for level in 1..depth {
            let mut outer = if tag == b'F' || level == depth - 1 { vec![0] } else { Vec::new() };
            outer.push(tag);
            outer.extend_from_slice(&u32::try_from(bytes.len()).expect("short").to_be_bytes());
            outer.append(&mut bytes);
            bytes = outer;
        }
        bytes
    }

    #[test]
    fn depth_ends_at_32_for_tables_and_arrays() {
        for tag in [b'F', b'A'] {
            assert_eq!(table(&nest(32, tag), &Limits::default()), Ok(()));
            assert_eq!(table(&nest(33, tag), &Limits::default()), Err(Fault::TooDeep));
            assert_eq!(table(&nest(20_000, tag), &Limits::default()), Err(Fault::TooDeep));
            assert_eq!(table(&nest(3, tag), &Limits { depth: 2, ..Limits::default() }), Err(Fault::TooDeep));
        }
        let limits = Limits { depth: 99, ..Limits::default() };
        assert_eq!(table(&nest(33, b'F'), &limits), Err(Fault::TooDeep), "whatever the limits say");
    }

    #[test]
    fn entries_and_items_are_counted_together() {
        // Two entries, the second an array of three.
        let bytes = b"\x01aV\x01bA\0\0\0\x03VVV";
        let limits = |entries| Limits { entries, ..Limits::default() };
        assert_eq!(table(bytes, &limits(5)), Ok(()));
        assert_eq!(table(bytes, &limits(4)), Err(Fault::TooMany));
    }

    #[test]
    fn a_nested_length_stays_within_what_holds_it() {
        assert_eq!(table(b"\x01aF\0\0\0\x04\x01bV", &Limits::default()), Err(Fault::Truncated));
        assert_eq!(table(b"\x01aA\0\0\0\x02S\0\0\0\0", &Limits::default()), Err(Fault::Truncated));
        assert_eq!(table(b"\x01aS\xff\xff\xff\xff", &Limits::default()), Err(Fault::Truncated));
    }
}

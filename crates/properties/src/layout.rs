//! Where each property stands.
//!
//! One pass over the bytes finds those that a broker asks for with every message; any other is found from the nearest of
//! them. Nothing is allocated.

use std::ops::Range;

use crate::fault::Fault;
use crate::property::{Form, Property};
use crate::reader::Reader;

/// Length of the word of flags, bytes.
pub(crate) const FLAGS_LEN: usize = 2;
/// The lowest flag: another word of flags follows. RabbitMQ does not look at it, nor at the flag above it.
const MORE_FLAGS: u16 = 1;

/// What one pass over the properties found. Offsets are in bytes; what is not there stands, empty, where it would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    flags: u16,
    headers_at: u32,
    delivery_mode_at: u32,
    expiration_at: u32,
}

impl Layout {
    /// Of no properties: two bytes that are zero.
    pub(crate) const EMPTY: Self = Self { flags: 0, headers_at: 2, delivery_mode_at: 2, expiration_at: 2 };

    /// Goes over the bytes and finds what is in them; headers are not looked into.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, Fault> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(Fault::TooLong);
        }
        let mut reader = Reader::new(bytes);
        let flags = reader.word().ok_or(Fault::Truncated)?;
        if flags & MORE_FLAGS != 0 {
            return Err(Fault::MoreFlags);
        }
        let mut pass = Pass { reader, flags, len: bytes.len() };
        pass.over(&Property::ALL[..2])?;
        let headers_at = pass.over(&Property::ALL[2..3])?;
        let delivery_mode_at = pass.over(&Property::ALL[3..7])?;
        let expiration_at = pass.over(&Property::ALL[7..])?;
        if !pass.reader.rest().is_empty() {
            return Err(Fault::Trailing);
        }
        Ok(Self { flags, headers_at, delivery_mode_at, expiration_at })
    }

    /// The word of flags.
    pub(crate) fn flags(self) -> u16 {
        self.flags
    }

    pub(crate) fn has(self, property: Property) -> bool {
        self.flags & property.flag() != 0
    }

    /// The bytes of a property; where it would stand if it is not there.
    pub(crate) fn span(self, bytes: &[u8], property: Property) -> Range<usize> {
        let (known, from) = self.nearest(property);
        let mut at = from as usize;
        for earlier in &Property::ALL[known.index()..property.index()] {
            at += self.len(bytes, at, *earlier);
        }
        at..at + self.len(bytes, at, property)
    }

    /// The last property at or before this one whose place is known.
    fn nearest(self, property: Property) -> (Property, u32) {
        match property.index() {
            0..2 => (Property::ContentType, FLAGS_LEN as u32),
            2 => (Property::Headers, self.headers_at),
            3..7 => (Property::DeliveryMode, self.delivery_mode_at),
            _ => (Property::Expiration, self.expiration_at),
        }
    }

    /// How long a property is that stands here, bytes. They were checked.
    fn len(self, bytes: &[u8], at: usize, property: Property) -> usize {
        if !self.has(property) {
            return 0;
        }
        match property.form() {
            Form::Octet => 1,
            Form::Time => 8,
            Form::Short => 1 + usize::from(bytes[at]),
            Form::Table => {
                let len = bytes[at..].first_chunk().expect("properties were checked when they came in");
                4 + u32::from_be_bytes(*len) as usize
            }
        }
    }
}

/// The pass.
struct Pass<'a> {
    reader: Reader<'a>,
    flags: u16,
    len: usize,
}

impl Pass<'_> {
    /// Goes over these properties, says where they begin.
    #[inline(always)]
    fn over(&mut self, properties: &[Property]) -> Result<u32, Fault> {
        let at = self.len - self.reader.rest().len();
        for property in properties {
            if self.flags & property.flag() != 0 {
                self.skip(property.form())?;
            }
        }
        Ok(at as u32)
    }

    #[inline(always)]
    fn skip(&mut self, form: Form) -> Result<(), Fault> {
        let skipped = match form {
            Form::Octet => self.reader.take(1),
            Form::Time => self.reader.take(8),
            Form::Short => self.reader.short().map(|short| short.as_bytes()),
            Form::Table => self.reader.long(),
        };
        skipped.map(drop).ok_or(Fault::Truncated)
    }
}

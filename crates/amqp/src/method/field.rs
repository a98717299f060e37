//! The fields of methods (4.2.5), one after the other.
//!
//! Bits that follow each other share an octet, the first in its lowest bit (4.2.5.2); any other field begins an octet.

use overtake_properties::{Limits, Short, ShortText, TableRef};

use crate::error::WireError;

/// What a field is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// One bit.
    Bit,
    /// A number of 8 bits.
    Octet,
    /// A number of 16 bits.
    Short,
    /// A number of 32 bits.
    Long,
    /// A number of 64 bits.
    LongLong,
    /// At most 255 bytes; text, where the method carries no content.
    ShortString,
    /// Bytes, after their length in 32 bits.
    LongString,
    /// A field table, after its length in 32 bits.
    Table,
}

/// A type that stands for a domain.
pub(super) trait Field<'p>: Sized {
    /// Reads it.
    fn read(fields: &mut Fields<'p, '_>) -> Result<Self, WireError>;
    /// Appends it.
    fn write(self, out: &mut Draft<'_>);
}

/// Which domain a type stands for.
pub(super) trait Typed {
    /// The domain.
    const DOMAIN: Domain;
}

/// The fields that are left to be read.
pub(super) struct Fields<'p, 'l> {
    rest: &'p [u8],
    limits: &'l Limits,
    /// The octet of bits that was begun, without those that were read.
    bits: u8,
    bits_left: u8,
}

impl<'p, 'l> Fields<'p, 'l> {
    #[inline(always)]
    pub(super) fn new(payload: &'p [u8], limits: &'l Limits) -> Self {
        Self { rest: payload, limits, bits: 0, bits_left: 0 }
    }

    /// The next field.
    #[inline(always)]
    pub(super) fn field<F: Field<'p>>(&mut self) -> Result<F, WireError> {
        F::read(self)
    }

    /// That nothing is left.
    #[inline(always)]
    pub(super) fn end(&self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Trailing) }
    }

    #[inline(always)]
    fn bit(&mut self) -> Result<bool, WireError> {
        if self.bits_left == 0 {
            [self.bits] = self.array()?;
            self.bits_left = 8;
        }
        let bit = self.bits & 1 != 0;
        self.bits >>= 1;
        self.bits_left -= 1;
        Ok(bit)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        self.bits_left = 0;
        let (taken, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline(always)]
    fn take(&mut self, len: usize) -> Result<&'p [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline(always)]
    fn long_string(&mut self) -> Result<&'p [u8], WireError> {
        let len = u32::from_be_bytes(self.array()?);
        self.take(len as usize)
    }
}

/// Fields being written.
pub(super) struct Draft<'o> {
    out: &'o mut Vec<u8>,
    /// How many bits are in the last octet; 0 when it is none of bits, or full.
    bits: u8,
}

impl<'o> Draft<'o> {
    #[inline(always)]
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, bits: 0 }
    }

    #[inline(always)]
    fn bit(&mut self, bit: bool) {
        if self.bits == 0 {
            self.out.push(u8::from(bit));
        } else if let Some(octet) = self.out.last_mut() {
            *octet |= u8::from(bit) << self.bits;
        }
        self.bits = (self.bits + 1) % 8;
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        self.bits = 0;
        self.out.extend_from_slice(bytes);
    }

    #[inline(always)]
    fn short_string(&mut self, bytes: &[u8]) {
        self.bytes(&[bytes.len() as u8]);
        self.bytes(bytes);
    }

    #[inline(always)]
    fn long_string(&mut self, bytes: &[u8]) {
        let len = u32::try_from(bytes.len()).expect("a long string is shorter than 4 GiB");
        self.bytes(&len.to_be_bytes());
        self.bytes(bytes);
    }
}

impl Field<'_> for bool {
    #[inline(always)]
    fn read(fields: &mut Fields<'_, '_>) -> Result<Self, WireError> {
        fields.bit()
    }

    #[inline(always)]
    fn write(self, out: &mut Draft<'_>) {
        out.bit(self);
    }
}

impl Typed for bool {
    const DOMAIN: Domain = Domain::Bit;
}

macro_rules! numbers {
    ($($number:ty: $domain:ident),*) => { $(
        impl Field<'_> for $number {
            #[inline(always)]
            fn read(fields: &mut Fields<'_, '_>) -> Result<Self, WireError> {
                fields.array().map(Self::from_be_bytes)
            }

            #[inline(always)]
            fn write(self, out: &mut Draft<'_>) {
                out.bytes(&self.to_be_bytes());
            }
        }

        impl Typed for $number {
            const DOMAIN: Domain = Domain::$domain;
        }
    )* };
}

numbers!(u8: Octet, u16: Short, u32: Long, u64: LongLong);

impl<'p> Field<'p> for Short<'p> {
    #[inline(always)]
    fn read(fields: &mut Fields<'p, '_>) -> Result<Self, WireError> {
        let [len] = fields.array()?;
        let bytes = fields.take(usize::from(len))?;
        Ok(Self::new(bytes).expect("one byte of length says at most 255"))
    }

    #[inline(always)]
    fn write(self, out: &mut Draft<'_>) {
        out.short_string(self.as_bytes());
    }
}

impl Typed for Short<'_> {
    const DOMAIN: Domain = Domain::ShortString;
}

impl<'p> Field<'p> for ShortText<'p> {
    #[inline(always)]
    fn read(fields: &mut Fields<'p, '_>) -> Result<Self, WireError> {
        let short: Short<'p> = fields.field()?;
        short.text().and_then(Self::new).ok_or(WireError::NotText)
    }

    #[inline(always)]
    fn write(self, out: &mut Draft<'_>) {
        out.short_string(self.as_str().as_bytes());
    }
}

impl Typed for ShortText<'_> {
    const DOMAIN: Domain = Domain::ShortString;
}

impl<'p> Field<'p> for &'p [u8] {
    #[inline(always)]
    fn read(fields: &mut Fields<'p, '_>) -> Result<Self, WireError> {
        fields.long_string()
    }

    #[inline(always)]
    fn write(self, out: &mut Draft<'_>) {
        out.long_string(self);
    }
}

impl Typed for &[u8] {
    const DOMAIN: Domain = Domain::LongString;
}

impl<'p> Field<'p> for TableRef<'p> {
    #[inline(always)]
    fn read(fields: &mut Fields<'p, '_>) -> Result<Self, WireError> {
        Ok(Self::check(fields.long_string()?, fields.limits)?)
    }

    #[inline(always)]
    fn write(self, out: &mut Draft<'_>) {
        out.long_string(self.as_bytes());
    }
}

impl Typed for TableRef<'_> {
    const DOMAIN: Domain = Domain::Table;
}

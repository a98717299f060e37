//! One value of a table or an array.
//!
//! The types are those of RabbitMQ's dialect, which is not quite that of 4.2.1: `s` is a whole number of 16 bits and no
//! short string, `l` and `L` are the same, `b` has a sign, and `x` and `V` are additions (`rabbit_binary_parser.erl`;
//! RabbitMQ's errata, section 3).
//!
//! ```text
//! t bool   b B 8 bits   s u 16 bits   I i 32 bits   l L 64 bits   f d float   D decimal   T time
//! S long string   x bytes   A array   F table   V nothing
//! ```

use crate::array::ArrayRef;
use crate::reader::{Reader, write_long};
use crate::table::TableRef;

/// One value, as it stands in the table. Two are equal when their types and their bytes are, but floats as floats are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// `t`: any byte but 0 is true.
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s`
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l`, and `L` when it is read.
    I64(i64),
    /// `f`
    F32(f32),
    /// `d`
    F64(f64),
    /// `D`: `value` with so many digits behind the point.
    Decimal {
        /// Digits behind the point.
        scale: u8,
        /// The number without a point.
        value: u32,
    },
    /// `T`: seconds since 1970, UTC.
    Time(u64),
    /// `S`: text, or any bytes; [`text`](Self::text) says which.
    String(&'a [u8]),
    /// `x`: bytes that are no text.
    Bytes(&'a [u8]),
    /// `A`
    Array(ArrayRef<'a>),
    /// `F`
    Table(TableRef<'a>),
    /// `V`: nothing at all.
    Void,
}

/// Values of the types that programs have.
macro_rules! from {
    ($($type:ty => $variant:ident),*) => {$(
        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

from!(bool => Bool, i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, f32 => F32, f64 => F64);

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(text.as_bytes())
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::String(text.as_bytes())
    }
}

/// Bytes that are no text.
impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> Value<'a> {
    /// The text of a string that is UTF-8.
    #[must_use]
    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::String(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The truth of a bool.
    #[must_use]
    pub fn bool(self) -> Option<bool> {
        match self {
            Self::Bool(bool) => Some(bool),
            _ => None,
        }
    }

    /// A whole number of any width. Clients choose the width by the size of the number, so arguments are read by this.
    #[must_use]
    pub fn int(self) -> Option<i64> {
        match self {
            Self::I8(int) => Some(int.into()),
            Self::U8(int) => Some(int.into()),
            Self::I16(int) => Some(int.into()),
            Self::U16(int) => Some(int.into()),
            Self::I32(int) => Some(int.into()),
            Self::U32(int) => Some(int.into()),
            Self::I64(int) => Some(int),
            _ => None,
        }
    }

    /// Reads type and value; `None` when either makes no sense. What is nested is not looked into.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(match reader.octet()? {
            b't' => Self::Bool(reader.octet()? != 0),
            b'b' => Self::I8(i8::from_be_bytes(reader.array()?)),
            b'B' => Self::U8(reader.octet()?),
            b's' => Self::I16(i16::from_be_bytes(reader.array()?)),
            b'u' => Self::U16(reader.word()?),
            b'I' => Self::I32(i32::from_be_bytes(reader.array()?)),
            b'i' => Self::U32(u32::from_be_bytes(reader.array()?)),
            b'l' | b'L' => Self::I64(i64::from_be_bytes(reader.array()?)),
            b'f' => Self::F32(f32::from_be_bytes(reader.array()?)),
            b'd' => Self::F64(f64::from_be_bytes(reader.array()?)),
            b'D' => Self::Decimal { scale: reader.octet()?, value: u32::from_be_bytes(reader.array()?) },
            b'T' => Self::Time(u64::from_be_bytes(reader.array()?)),
            b'S' => Self::String(reader.long()?),
            b'x' => Self::Bytes(reader.long()?),
            b'A' => Self::Array(ArrayRef::trusted(reader.long()?)),
            b'F' => Self::Table(TableRef::trusted(reader.long()?)),
            b'V' => Self::Void,
            _ => return None,
        })
    }

    /// Appends type and value.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Bool(bool) => put(out, b't', [u8::from(bool)]),
            Self::I8(int) => put(out, b'b', int.to_be_bytes()),
            Self::U8(int) => put(out, b'B', int.to_be_bytes()),
            Self::I16(int) => put(out, b's', int.to_be_bytes()),
            Self::U16(int) => put(out, b'u', int.to_be_bytes()),
            Self::I32(int) => put(out, b'I', int.to_be_bytes()),
            Self::U32(int) => put(out, b'i', int.to_be_bytes()),
            Self::I64(int) => put(out, b'l', int.to_be_bytes()),
            Self::F32(float) => put(out, b'f', float.to_be_bytes()),
            Self::F64(float) => put(out, b'd', float.to_be_bytes()),
            Self::Decimal { scale, value } => {
                put(out, b'D', [scale]);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::Time(seconds) => put(out, b'T', seconds.to_be_bytes()),
            Self::String(bytes) => put_long(out, b'S', bytes),
            Self::Bytes(bytes) => put_long(out, b'x', bytes),
            Self::Array(array) => put_long(out, b'A', array.as_bytes()),
            Self::Table(table) => put_long(out, b'F', table.as_bytes()),
            Self::Void => out.push(b'V'),
        }
    }
}

fn put<const N: usize>(out: &mut Vec<u8>, tag: u8, bytes: [u8; N]) {
    out.push(tag);
    out.extend_from_slice(&bytes);
}

fn put_long(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    write_long(out, bytes);
}

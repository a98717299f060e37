//! Why bytes are no table and no properties.

use std::fmt;

/// Why bytes are no table and no properties. On a wire it is a syntax error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They end in the middle of something, or something in them reaches beyond what holds it.
    Truncated,
    /// Something follows the last property.
    Trailing,
    /// A value is of a type that nobody knows.
    UnknownType(u8),
    /// The flags say that more flags follow, but class basic has no more (4.2.6.1).
    MoreFlags,
    /// There are more bytes than [`Limits::bytes`](crate::Limits::bytes).
    TooLong,
    /// There are more entries and items than [`Limits::entries`](crate::Limits::entries).
    TooMany,
    /// Tables and arrays lie in each other deeper than [`Limits::depth`](crate::Limits::depth).
    TooDeep,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end in the middle of a field"),
            Self::Trailing => f.write_str("bytes follow the last property"),
            Self::UnknownType(tag) => write!(f, "'{}' is no type of a field", tag.escape_ascii()),
            Self::MoreFlags => f.write_str("class basic has no second word of property flags"),
            Self::TooLong => f.write_str("a table or the properties are too long"),
            Self::TooMany => f.write_str("a table has too many entries"),
            Self::TooDeep => f.write_str("tables and arrays are nested too deeply"),
        }
    }
}

impl std::error::Error for Fault {}

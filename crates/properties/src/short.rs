//! Short strings (4.2.5.3): at most 255 bytes after a length of one byte.
//!
//! RabbitMQ takes any bytes in them where a method carries content, and only UTF-8 elsewhere; so there are two types, and
//! neither can be too long to be written.

use std::fmt;
use std::ops::Deref;

/// Length of the longest short string, bytes.
pub const SHORT_LEN_MAX: usize = 255;

/// At most 255 bytes, mostly text.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Short<'a>(&'a [u8]);

impl<'a> Short<'a> {
    /// These bytes, unless they are too long.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() <= SHORT_LEN_MAX).then_some(Self(bytes))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The bytes as text, if they are UTF-8.
    #[must_use]
    pub fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.push(self.0.len() as u8);
        out.extend_from_slice(self.0);
    }
}

impl Short<'static> {
    /// A name that is known when this is compiled.
    ///
    /// # Panics
    /// When it is too long.
    #[must_use]
    pub const fn literal(text: &'static str) -> Self {
        assert!(text.len() <= SHORT_LEN_MAX, "a short string has at most 255 bytes");
        Self(text.as_bytes())
    }
}

impl fmt::Debug for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl<'a> From<ShortText<'a>> for Short<'a> {
    fn from(text: ShortText<'a>) -> Self {
        Self(text.0.as_bytes())
    }
}

/// At most 255 bytes of UTF-8.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortText<'a>(&'a str);

impl<'a> ShortText<'a> {
    /// This text, unless it is too long.
    #[must_use]
    pub fn new(text: &'a str) -> Option<Self> {
        (text.len() <= SHORT_LEN_MAX).then_some(Self(text))
    }

    /// As much of the text as fits, cut between characters.
    #[must_use]
    pub fn cut(text: &'a str) -> Self {
        Self(&text[..text.floor_char_boundary(SHORT_LEN_MAX)])
    }

    /// The text.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        self.0
    }
}

impl ShortText<'static> {
    /// A text that is known when this is compiled.
    ///
    /// # Panics
    /// When it is too long.
    #[must_use]
    pub const fn literal(text: &'static str) -> Self {
        assert!(text.len() <= SHORT_LEN_MAX, "a short string has at most 255 bytes");
        Self(text)
    }
}

impl Deref for ShortText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl fmt::Debug for ShortText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_string_ends_at_255_bytes() {
        let long = "ä".repeat(128);
        assert!(Short::new(&[7; 255]).is_some());
        assert!(Short::new(&[7; 256]).is_none());
        assert!(ShortText::new(&long).is_none());
        assert_eq!(ShortText::cut(&long).len(), 254, "cut between characters");
    }
}

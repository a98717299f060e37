//! Field arrays (4.2.5.5): values one after the other.

use std::fmt;

use crate::reader::Reader;
use crate::value::Value;

/// An array, borrowed from the table it stands in and checked with it. Equal when its bytes are.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ArrayRef<'a>(&'a [u8]);

impl<'a> ArrayRef<'a> {
    /// The array without items.
    pub const EMPTY: ArrayRef<'static> = ArrayRef(&[]);

    /// Of bytes that were checked.
    pub(crate) fn trusted(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Its bytes, without the length in front.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether it has no item.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The items in order.
    #[must_use]
    pub fn iter(self) -> Items<'a> {
        Items(Reader::new(self.0))
    }
}

impl<'a> IntoIterator for ArrayRef<'a> {
    type Item = Value<'a>;
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

impl fmt::Debug for ArrayRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The items of an array, in order.
#[derive(Clone, Debug)]
pub struct Items<'a>(Reader<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.0.rest().is_empty() {
            return None;
        }
        Some(Value::read(&mut self.0).expect("an array was checked when it came in"))
    }
}

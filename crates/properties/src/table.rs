//! Field tables (4.2.5.5): names with values, in order, as the bytes they came in.
//!
//! A table is checked once and read lazily: what nobody asks for costs nothing, and what goes out again has the same bytes,
//! with duplicates and with the width of each number.

use std::fmt;

use bytes::Bytes;

use crate::check;
use crate::fault::Fault;
use crate::limits::Limits;
use crate::reader::Reader;
use crate::short::Short;
use crate::value::Value;

/// A table that owns its bytes, or a part of somebody's; cheap to clone. Equal when its bytes are.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Table(Bytes);

impl Table {
    /// Takes bytes that came from outside, without the length in front. They are not copied.
    ///
    /// # Errors
    /// Any [`Fault`] but those of properties.
    pub fn check(bytes: Bytes, limits: &Limits) -> Result<Self, Fault> {
        check::table(&bytes, limits)?;
        Ok(Self(bytes))
    }

    pub(crate) fn trusted(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// Its bytes, without the length in front.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The same, borrowed, to be read.
    #[must_use]
    pub fn view(&self) -> TableRef<'_> {
        TableRef(&self.0)
    }

    /// See [`TableRef::get`].
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'_>> {
        self.view().get(name)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

/// A table, borrowed and checked. Equal when its bytes are.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct TableRef<'a>(&'a [u8]);

impl<'a> TableRef<'a> {
    /// The table without entries.
    pub const EMPTY: TableRef<'static> = TableRef(&[]);

    /// Takes bytes that came from outside, without the length in front.
    ///
    /// # Errors
    /// As [`Table::check`].
    pub fn check(bytes: &'a [u8], limits: &Limits) -> Result<Self, Fault> {
        check::table(bytes, limits)?;
        Ok(Self(bytes))
    }

    /// Of bytes that were checked.
    pub(crate) fn trusted(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Its bytes, without the length in front.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether it has no entry.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The entries in order, duplicates and all.
    #[must_use]
    pub fn iter(self) -> Entries<'a> {
        Entries(Reader::new(self.0))
    }

    /// The value of the first entry of that name.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        self.iter().find(|(there, _)| there.as_bytes() == name.as_bytes()).map(|(_, value)| value)
    }

    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_table(self) -> Table {
        Table(Bytes::copy_from_slice(self.0))
    }

    /// A copy in which the first entry of that name has this value and no other has that name; at the end if there was none.
    /// All else keeps its bytes.
    #[must_use]
    pub fn with(self, name: Short<'_>, value: Value<'_>) -> Table {
        self.rewritten(name, Some(value))
    }

    /// A copy without the entries of that name. All else keeps its bytes.
    #[must_use]
    pub fn without(self, name: &str) -> Table {
        Short::new(name.as_bytes()).map_or_else(|| self.to_table(), |name| self.rewritten(name, None))
    }

    fn rewritten(self, name: Short<'_>, mut value: Option<Value<'_>>) -> Table {
        let mut out = Vec::with_capacity(self.0.len() + 64);
        let mut entries = self.iter();
        loop {
            let before = entries.0.rest();
            let Some((there, _)) = entries.next() else { break };
            if there != name {
                out.extend_from_slice(&before[..before.len() - entries.0.rest().len()]);
            } else if let Some(value) = value.take() {
                write_entry(&mut out, name, value);
            }
        }
        if let Some(value) = value {
            write_entry(&mut out, name, value);
        }
        Table(out.into())
    }
}

pub(crate) fn write_entry(out: &mut Vec<u8>, name: Short<'_>, value: Value<'_>) {
    name.write(out);
    value.write(out);
}

impl<'a> IntoIterator for TableRef<'a> {
    type Item = (Short<'a>, Value<'a>);
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

impl fmt::Debug for TableRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The entries of a table, in order.
#[derive(Clone, Debug)]
pub struct Entries<'a>(Reader<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = (Short<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.rest().is_empty() {
            return None;
        }
        let name = self.0.short().expect("a table was checked when it came in");
        let value = Value::read(&mut self.0).expect("a table was checked when it came in");
        Some((name, value))
    }
}

//! Tables and arrays, written front to back. The inner is built before the outer.

use crate::array::ArrayRef;
use crate::short::Short;
use crate::table::{Table, TableRef, write_entry};
use crate::value::Value;

/// A table being written.
///
/// What is nested into it deeper than [`DEPTH_MAX`](crate::DEPTH_MAX) goes out, but would not be taken back.
///
/// ```
/// use overtake_properties::{ArrayBuilder, Short, TableBuilder, Value};
///
/// const QUEUE: Short<'_> = Short::literal("queue");
/// const DEATHS: Short<'_> = Short::literal("x-death");
///
/// let death = TableBuilder::new().entry(QUEUE, Value::String(b"jobs")).finish();
/// let deaths = ArrayBuilder::new().item(Value::Table(death.view()));
/// let headers = TableBuilder::new().entry(DEATHS, Value::Array(deaths.view())).finish();
/// assert_eq!(headers.get("x-death"), Some(Value::Array(deaths.view())));
/// assert_eq!(headers.as_bytes().as_ref(), b"\x07x-deathA\0\0\0\x14F\0\0\0\x0f\x05queueS\0\0\0\x04jobs");
/// ```
#[derive(Clone, Debug, Default)]
pub struct TableBuilder(Vec<u8>);

impl TableBuilder {
    /// No entries yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an entry; one of the same name stays.
    #[must_use]
    pub fn entry(mut self, name: Short<'_>, value: Value<'_>) -> Self {
        write_entry(&mut self.0, name, value);
        self
    }

    /// What was written so far.
    #[must_use]
    pub fn view(&self) -> TableRef<'_> {
        TableRef::trusted(&self.0)
    }

    /// The table.
    #[must_use]
    pub fn finish(self) -> Table {
        Table::trusted(self.0.into())
    }
}

/// An array being written.
#[derive(Clone, Debug, Default)]
pub struct ArrayBuilder(Vec<u8>);

impl ArrayBuilder {
    /// No items yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an item.
    #[must_use]
    pub fn item(mut self, value: Value<'_>) -> Self {
        value.write(&mut self.0);
        self
    }

    /// What was written so far.
    #[must_use]
    pub fn view(&self) -> ArrayRef<'_> {
        ArrayRef::trusted(&self.0)
    }
}

//! How much a peer may make us walk through.

/// How deep tables and arrays may lie in each other at most, whatever the limits say; the outermost counts as one.
pub const DEPTH_MAX: u32 = 32;

/// What a table, or the properties of a message, may have at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes, of all together.
    pub bytes: u32,
    /// Entries and items, of all tables and arrays together.
    pub entries: u32,
    /// Tables and arrays in each other, the outermost counted; never more than [`DEPTH_MAX`].
    pub depth: u32,
}

impl Default for Limits {
    /// 1 MiB, 16,384 entries, 32 deep.
    fn default() -> Self {
        Self { bytes: 1 << 20, entries: 16_384, depth: DEPTH_MAX }
    }
}

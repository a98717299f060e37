//! What the header of a file of ids says.

use crate::file::Name;
use crate::header::{Copies, Fields, HeaderFault, decode};

const MAGIC: [u8; 8] = *b"OVTKIDIX";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdsHeader {
    pub(super) store_id: u64,
    pub(super) life: u32,
    pub(super) number: u64,
}

impl IdsHeader {
    pub(super) fn name(&self) -> String {
        Name::Ids(self.number).to_string()
    }

    pub(super) fn name_while_made(&self) -> String {
        Name::NewIds(self.number).to_string()
    }

    pub(super) fn salt(&self) -> u32 {
        self.fields().salt()
    }

    /// The header block.
    pub(super) fn encode(&self) -> Vec<u8> {
        self.fields().block()
    }

    fn fields(&self) -> Fields {
        let mut fields = Fields::new(MAGIC);
        fields.set_word(12, self.life);
        fields.set_long(16, self.store_id);
        fields.set_long(24, self.number);
        fields
    }

    /// Reads a header block, which may be too short; says which of the two copies were right.
    pub(super) fn decode(block: &[u8]) -> Result<(Self, Copies), HeaderFault> {
        decode(block, MAGIC, |fields| {
            let header = Self { store_id: fields.long(16), life: fields.word(12), number: fields.long(24) };
            (header.fields().salt() == fields.salt()).then_some(header)
        })
    }
}

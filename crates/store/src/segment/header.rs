//! What the header of a segment says.

use overtake_lane::QueueId;

use crate::file::Name;
use crate::header::{Copies, Fields, HeaderFault, decode};
use crate::ids::IdHasher;

const MAGIC: [u8; 8] = *b"OVTKSGMT";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) store_id: u64,
    pub(super) life: u32,
    pub(super) number: u64,
    pub(super) queue: QueueId,
}

impl SegmentHeader {
    pub(super) fn name(&self) -> String {
        Name::Segment(self.number).to_string()
    }

    pub(super) fn name_while_made(&self) -> String {
        Name::NewSegment(self.number).to_string()
    }

    /// Hashes the ids of its messages.
    pub(super) fn id_hasher(&self) -> IdHasher {
        IdHasher::new(self.store_id, self.queue)
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
        fields.set_word(32, self.queue.0);
        fields
    }

    /// Reads a header block, which may be too short; says which of the two copies were right.
    pub(super) fn decode(block: &[u8]) -> Result<(Self, Copies), HeaderFault> {
        decode(block, MAGIC, |fields| {
            let header = Self {
                store_id: fields.long(16),
                life: fields.word(12),
                number: fields.long(24),
                queue: QueueId(fields.word(32)),
            };
            // The salt is computed from what is known here, so there must be nothing else.
            (header.fields().salt() == fields.salt()).then_some(header)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_these_bytes() {
        let header =
            SegmentHeader { store_id: 0x0102_0304_0506_0708, life: 2, number: 3, queue: QueueId(0x0a0b) };
        let mut expected = b"OVTKSGMT\x01\0\0\0\x02\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01".to_vec();
        expected.extend_from_slice(b"\x03\0\0\0\0\0\0\0\x0b\x0a\0\0");
        expected.extend_from_slice(&[0; 24]);
        expected.extend_from_slice(&crc32c::crc32c(&expected).to_le_bytes());
        let block = header.encode();
        assert_eq!((block.len(), &block[..64], &block[2048..2112]), (4096, &expected[..], &expected[..]));
        assert_eq!(SegmentHeader::decode(&block), Ok((header, Copies::Both)));
    }
}

//! Frames: the bytes between a file's header and its end. Little-endian; every frame begins at a multiple of 8.
//!
//! ```text
//!  0  4        length of the payload
//!  4  1        kind: 1 commit · 2 record · 3 born · 4 seal
//!  5  3        head check: low 24 bits of H
//!  8  length   payload
//!  .  4        CRC-32C of the payload, continuing from H
//!  .  0..=7    zeros up to the next multiple of 8
//!
//!  H = CRC-32C, starting from the file's salt, of:
//!      LSN of the frame (8) · life of the commit it belongs to, 0 for a commit itself (4) · length (4) · kind (4)
//! ```
//!
//! So a frame is right only in its file, in that use of the file, at its place and in its life; what an older use or an
//! older life left behind can never pass for a frame of this one, whatever the bytes around it become. The head has its own
//! check so that a damaged payload does not hide where the next frame begins.
//!
//! A **commit** opens what one call to the committer writes, in each file it touches. Everything up to the next commit
//! belongs to it, and has its life. Its payload is 40 bytes:
//!
//! ```text
//!  0  8  LSN of this frame
//!  8  8  durable: everything below this LSN was synced before this commit was written. It is where the batch begins.
//! 16  8  number of the oldest file still needed
//! 24  4  life
//! 28  4  chain: payload checksum of the commit before this one, 0 for the first
//! 32  8  zero
//! ```
//!
//! A **record** is the caller's payload. A **born** frame (16 bytes: life (4), zero (4), LSN of the tail that life found (8)) is the
//! first thing a life writes. A **seal** (no payload) says that the log goes on in the next file; the rest of this one is not used.
//! A file always keeps [`FOOT_LEN`] bytes for a commit and a seal, so it can always be closed.

use crate::decide::Sight;
use crate::lsn::Lsn;

pub(crate) const HEAD_LEN: usize = 8;
const CRC_LEN: usize = 4;
/// Frames begin at multiples of this.
pub(crate) const ALIGN: usize = 8;
const COMMIT_PAYLOAD_LEN: usize = 40;
const BORN_PAYLOAD_LEN: usize = 16;
/// A commit frame, bytes.
pub(crate) const COMMIT_LEN: u64 = frame_len(COMMIT_PAYLOAD_LEN);
/// A born frame, bytes.
pub(crate) const BORN_LEN: u64 = frame_len(BORN_PAYLOAD_LEN);
/// A seal, bytes.
pub(crate) const SEAL_LEN: u64 = frame_len(0);
/// What a file keeps free to close itself, bytes.
pub(crate) const FOOT_LEN: u64 = COMMIT_LEN + SEAL_LEN;

/// The length of a frame with so long a payload, bytes.
pub(crate) const fn frame_len(payload_len: usize) -> u64 {
    (HEAD_LEN + payload_len + CRC_LEN).next_multiple_of(ALIGN) as u64
}

/// The longest payload whose frame has at most so many bytes, a multiple of 8.
pub(crate) const fn payload_len_max(frame_len: u64) -> usize {
    frame_len as usize - HEAD_LEN - CRC_LEN
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Commit = 1,
    Record = 2,
    Born = 3,
    Seal = 4,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        [Self::Commit, Self::Record, Self::Born, Self::Seal].into_iter().find(|&kind| kind as u8 == byte)
    }
}

/// Where a frame stands: what its checksum depends on beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed {
    pub(crate) salt: u32,
    pub(crate) life: u32,
    pub(crate) lsn: Lsn,
}

impl Seed {
    fn head_crc(self, kind: Kind, len: u32) -> u32 {
        let life = if kind == Kind::Commit { 0 } else { self.life };
        let mut bytes = [0; 20];
        bytes[0..8].copy_from_slice(&self.lsn.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&life.to_le_bytes());
        bytes[12..16].copy_from_slice(&len.to_le_bytes());
        bytes[16] = kind as u8;
        crc32c::crc32c_append(self.salt, &bytes)
    }
}

/// The head of a frame, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) len: usize,
    crc: u32,
}

impl Head {
    /// Reads and checks the eight bytes of a head.
    pub(crate) fn parse(seed: Seed, bytes: [u8; HEAD_LEN]) -> Result<Self, Sight> {
        if bytes == [0; HEAD_LEN] {
            return Err(Sight::Zeros);
        }
        let (len, word) = halves(bytes);
        let kind = Kind::of(bytes[4]).ok_or(Sight::Garbage)?;
        let crc = seed.head_crc(kind, len);
        if word >> 8 != crc & 0x00ff_ffff {
            return Err(Sight::StaleFrame);
        }
        Ok(Self { kind, len: len as usize, crc })
    }

    /// Whether eight bytes can be the head of a commit, before anything dear is computed.
    pub(crate) fn may_be_commit(bytes: [u8; HEAD_LEN]) -> bool {
        bytes[..5] == [COMMIT_PAYLOAD_LEN as u8, 0, 0, 0, Kind::Commit as u8]
    }

    /// The length of the whole frame, bytes.
    pub(crate) fn frame_len(&self) -> u64 {
        frame_len(self.len)
    }

    /// The payload's checksum.
    pub(crate) fn payload_crc(&self, payload: &[u8]) -> u32 {
        crc32c::crc32c_append(self.crc, payload)
    }

    /// The payload of a whole frame, checked.
    pub(crate) fn payload<'a>(&self, frame: &'a [u8]) -> Result<&'a [u8], Sight> {
        let (payload, rest) = frame[HEAD_LEN..].split_at(self.len);
        let stored = u32::from_le_bytes(rest[..CRC_LEN].try_into().expect("four bytes"));
        if self.payload_crc(payload) == stored { Ok(payload) } else { Err(Sight::TornFrame) }
    }
}

fn halves(bytes: [u8; HEAD_LEN]) -> (u32, u32) {
    let long = u64::from_le_bytes(bytes);
    (long as u32, (long >> 32) as u32)
}

/// Adds a frame to `out`; returns its payload's checksum. The payload is the parts, one after another, `len` bytes in all.
pub(crate) fn encode(out: &mut Vec<u8>, seed: Seed, kind: Kind, len: usize, parts: &[&[u8]]) -> u32 {
    let len_field = u32::try_from(len).expect("a payload is shorter than a file");
    let mut crc = seed.head_crc(kind, len_field);
    let word = (crc << 8) | kind as u32;
    let end = out.len() + frame_len(len) as usize;
    out.extend_from_slice(&len_field.to_le_bytes());
    out.extend_from_slice(&word.to_le_bytes());
    for part in parts {
        crc = crc32c::crc32c_append(crc, part);
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&crc.to_le_bytes());
    out.resize(end, 0);
    crc
}

/// The payload of a commit frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) lsn: Lsn,
    pub(crate) durable: Lsn,
    pub(crate) oldest: u64,
    pub(crate) life: u32,
    pub(crate) chain: u32,
}

impl Commit {
    /// Adds the frame to `out`; returns its checksum, the chain of the next one.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, salt: u32) -> u32 {
        let mut payload = [0; COMMIT_PAYLOAD_LEN];
        payload[0..8].copy_from_slice(&self.lsn.0.to_le_bytes());
        payload[8..16].copy_from_slice(&self.durable.0.to_le_bytes());
        payload[16..24].copy_from_slice(&self.oldest.to_le_bytes());
        payload[24..28].copy_from_slice(&self.life.to_le_bytes());
        payload[28..32].copy_from_slice(&self.chain.to_le_bytes());
        let seed = Seed { salt, life: 0, lsn: self.lsn };
        encode(out, seed, Kind::Commit, payload.len(), &[&payload])
    }

    /// Reads a checked payload; `None` when it contradicts itself, or the place where it was found.
    pub(crate) fn decode(payload: &[u8], lsn: Lsn) -> Option<Self> {
        let payload: &[u8; COMMIT_PAYLOAD_LEN] = payload.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().expect("eight bytes"));
        let commit = Self {
            lsn: Lsn(long(0)),
            durable: Lsn(long(8)),
            oldest: long(16),
            life: word(24),
            chain: word(28),
        };
        (commit.lsn == lsn && commit.durable <= lsn).then_some(commit)
    }
}

/// The payload of a born frame.
pub(crate) fn born_payload(life: u32, tail: Lsn) -> [u8; BORN_PAYLOAD_LEN] {
    let mut payload = [0; BORN_PAYLOAD_LEN];
    payload[0..4].copy_from_slice(&life.to_le_bytes());
    payload[8..16].copy_from_slice(&tail.0.to_le_bytes());
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed { salt: 0x1234_5678, life: 7, lsn: Lsn(0x100) };

    #[test]
    fn a_record_is_these_bytes() {
        let mut out = Vec::new();
        encode(&mut out, SEED, Kind::Record, 5, &[b"he", b"llo"]);
        let head_input = b"\x00\x01\0\0\0\0\0\0\x07\0\0\0\x05\0\0\0\x02\0\0\0";
        let head = crc32c::crc32c_append(0x1234_5678, head_input);
        let mut expected = b"\x05\0\0\0\x02".to_vec();
        expected.extend_from_slice(&head.to_le_bytes()[..3]);
        expected.extend_from_slice(b"hello");
        expected.extend_from_slice(&crc32c::crc32c_append(head, b"hello").to_le_bytes());
        expected.resize(24, 0);
        assert_eq!(out, expected);
        assert_eq!(out, GOLDEN_RECORD, "the checksum itself has not changed");
    }

    const GOLDEN_RECORD: [u8; 24] =
        [5, 0, 0, 0, 2, 49, 137, 251, b'h', b'e', b'l', b'l', b'o', 89, 191, 213, 103, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn lengths_are_as_documented() {
        assert_eq!((COMMIT_LEN, BORN_LEN, SEAL_LEN, FOOT_LEN), (56, 32, 16, 72));
        assert_eq!([0, 4, 5, 256].map(frame_len), [16, 16, 24, 272]);
    }

    #[test]
    fn a_commit_reads_back_and_only_where_it_stands() {
        let commit = Commit { lsn: Lsn(0x100), durable: Lsn(0xf8), oldest: 3, life: 7, chain: 99 };
        let mut out = Vec::new();
        commit.encode(&mut out, SEED.salt);
        let bytes = out[..8].try_into().expect("eight bytes");
        assert!(Head::may_be_commit(bytes));
        let payload = Head::parse(SEED, bytes).and_then(|head| head.payload(&out)).expect("a right frame");
        assert_eq!(Commit::decode(payload, Lsn(0x100)), Some(commit));
        assert_eq!(Commit::decode(payload, Lsn(0x108)), None);
    }

    #[test]
    fn a_frame_of_another_place_life_or_file_is_stale() {
        let mut out = Vec::new();
        encode(&mut out, SEED, Kind::Record, 1, &[b"x"]);
        let bytes = out[..8].try_into().expect("eight bytes");
        assert!(Head::parse(SEED, bytes).is_ok());
        for other in [Seed { salt: 1, ..SEED }, Seed { life: 8, ..SEED }, Seed { lsn: Lsn(0x108), ..SEED }] {
            assert_eq!(Head::parse(other, bytes).err(), Some(Sight::StaleFrame));
        }
    }

    #[test]
    fn no_single_flipped_bit_goes_unseen() {
        let mut out = Vec::new();
        encode(&mut out, SEED, Kind::Record, 12, &[b"twelve bytes"]);
        for bit in 0..(out.len() * 8) {
            let mut bytes = out.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let head = Head::parse(SEED, bytes[..8].try_into().expect("eight bytes"));
            assert!(head.and_then(|head| head.payload(&bytes).map(<[u8]>::len)).is_err(), "bit {bit}");
        }
    }
}

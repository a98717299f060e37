//! Changes to a file's bytes, and what becomes of them when the power fails.

use super::rng::Rng;

/// The unit in which a write is torn, bytes.
const SECTOR: usize = 512;

/// A change to a file that may not be durable yet.
pub(super) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

pub(super) fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::SetLen(len) => content.resize(*len, 0),
        Change::Write { offset, bytes } => write(content, *offset, bytes),
    }
}

fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

/// What becomes of a change that was not synced when the power failed.
pub(super) fn land_or_not(rng: &mut Rng, durable: &mut Vec<u8>, change: &Change) {
    match (rng.below(3), change) {
        (0, _) => apply(durable, change),
        (1, Change::Write { offset, bytes }) => tear(rng, durable, *offset, bytes),
        _ => {}
    }
}

/// Each sector of a write lands, vanishes, or becomes garbage where it was changing something.
fn tear(rng: &mut Rng, durable: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let to = ((offset + at + 1).next_multiple_of(SECTOR) - offset).min(bytes.len());
        match rng.below(3) {
            0 => write(durable, offset + at, &bytes[at..to]),
            1 => {
                let garbage: Vec<u8> =
                    (at..to)
                        .map(|i| {
                            if durable.get(offset + i) == Some(&bytes[i]) {
                                bytes[i]
                            } else {
                                rng.next() as u8
                            }
                        })
                        .collect();
                write(durable, offset + at, &garbage);
            }
            _ => {}
        }
        at = to;
    }
}

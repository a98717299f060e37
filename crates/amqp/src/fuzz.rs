//! Arbitrary bytes as what a peer sends, for fuzz targets.
//!
//! The first byte of an input says in what pieces the rest arrives, and its highest bit whether frames have a limit. Whatever
//! comes, whole or in pieces, the frames are the same; what was understood goes out again with the same meaning and is not
//! longer; and no panic.

use overtake_properties::Limits;

use crate::content::ContentHeader;
use crate::error::WireError;
use crate::frame::{Frame, FrameKind};
use crate::method::Method;
use crate::writer::FrameWriter;

const LIMITS: Limits = Limits { bytes: 1 << 16, entries: 1 << 10, depth: 16 };

/// A frame that was understood, written anew, or what was wrong.
type Seen = Result<Vec<u8>, WireError>;

/// Reads the bytes as a stream of frames.
///
/// # Panics
/// When it matters how the bytes arrive, or something does not come back as it was.
pub fn codec(bytes: &[u8]) {
    let Some((&how, stream)) = bytes.split_first() else { return };
    let frame_max = if how & 0x80 == 0 { 4096 } else { 0 };
    let whole = read([stream], frame_max);
    let in_pieces = read(stream.chunks(usize::from(how & 0x7f) + 1), frame_max);
    assert_eq!(whole, in_pieces, "whole and in pieces");
}

fn read<'b>(pieces: impl IntoIterator<Item = &'b [u8]>, frame_max: u32) -> Vec<Seen> {
    let (mut buffer, mut at, mut seen) = (Vec::new(), 0, Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match Frame::parse(&buffer[at..], frame_max) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    at += frame.len();
                    seen.push(understand(&frame));
                }
                Err(error) => {
                    seen.push(Err(error));
                    return seen;
                }
            }
        }
    }
    seen
}

fn understand(frame: &Frame<'_>) -> Seen {
    let mut anew = Vec::new();
    match frame.kind {
        FrameKind::Method => method(frame, &mut anew)?,
        FrameKind::Header => header(frame.payload, &mut anew)?,
        FrameKind::Body => anew.extend_from_slice(frame.payload),
        FrameKind::Heartbeat => FrameWriter::new(&mut anew, 0).heartbeat(),
    }
    assert!(anew.len() <= frame.len(), "what was understood is not longer than it came");
    Ok(anew)
}

fn method(frame: &Frame<'_>, anew: &mut Vec<u8>) -> Result<(), WireError> {
    let method = Method::decode(frame.payload, &LIMITS)?;
    FrameWriter::new(anew, 0).method(frame.channel, method);
    let again = Frame::parse(anew, 0).expect("a frame").expect("a whole one");
    assert_eq!(again.channel, frame.channel);
    assert_eq!(Method::decode(again.payload, &LIMITS), Ok(method));
    assert!(!method.name().is_empty());
    Ok(())
}

fn header(payload: &[u8], anew: &mut Vec<u8>) -> Result<(), WireError> {
    ContentHeader::decode(payload, &LIMITS)?.encode(anew);
    assert_eq!(anew, payload, "properties keep their bytes");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn no_input_of_the_corpus_panics() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/amqp_codec");
        let mut read = 0;
        for input in std::fs::read_dir(corpus).expect("the corpus is there") {
            super::codec(&std::fs::read(input.expect("an entry").path()).expect("a file"));
            read += 1;
        }
        assert!(read > 0, "the corpus is empty");
    }
}

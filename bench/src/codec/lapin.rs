//! The same bytes through `amq-protocol`.

use std::hint::black_box;
use std::time::Duration;

use amq_protocol::frame::{AMQPFrame, WriteContext, gen_frame, parse_frame};

use crate::report::time;

/// Reads all frames of a message.
pub(super) fn read(bytes: &[u8], count: usize) -> Duration {
    time(|| {
        for _ in 0..count {
            black_box(frames(black_box(bytes)));
        }
    })
}

/// Writes all frames of a message, into one buffer that is sent off after 64 KiB.
pub(super) fn write(bytes: &[u8], count: usize) -> Duration {
    let frames = frames(bytes);
    let mut out = Vec::with_capacity(128 << 10);
    time(|| {
        for _ in 0..count {
            for frame in &frames {
                let written = gen_frame(black_box(frame))(WriteContext::from(std::mem::take(&mut out)));
                out = written.expect("a vector takes all").into_inner().0;
            }
            if out.len() > 64 << 10 {
                black_box(&mut out).clear();
            }
        }
    })
}

fn frames(mut bytes: &[u8]) -> Vec<AMQPFrame> {
    let mut frames = Vec::with_capacity(3);
    while !bytes.is_empty() {
        let (rest, frame) = parse_frame(bytes).expect("a frame");
        frames.push(frame);
        bytes = rest;
    }
    frames
}

//! Frames (2.3.5, 4.2.3): what the bytes of a connection are cut into.
//!
//! ```text
//! 0  1  type: 1 method, 2 content header, 3 body, 8 heartbeat
//! 1  2  channel
//! 3  4  length of the payload, bytes
//! 7     payload
//!       1  0xCE
//! ```

use crate::error::WireError;

/// What a client says first, and what a server answers that cannot speak with it (4.2.2).
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\x00\x00\x09\x01";
/// Bytes of a frame that are not payload.
pub const FRAME_OVERHEAD: usize = 8;
/// The longest frame that a peer must take before anything was agreed on, and the least that can be agreed on, bytes.
pub const FRAME_MIN_SIZE: u32 = 4096;

pub(crate) const HEAD_LEN: usize = 7;
pub(crate) const FRAME_END: u8 = 0xCE;

/// Whether these are the first bytes of a connection that speaks 0-9-1. Compare as they come: with less than
/// [`PROTOCOL_HEADER`] wait for more, with anything else answer the header and close (4.2.2).
#[must_use]
pub fn starts_protocol(bytes: &[u8]) -> bool {
    let len = bytes.len().min(PROTOCOL_HEADER.len());
    bytes[..len] == PROTOCOL_HEADER[..len]
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// A [`Method`](crate::Method).
    Method = 1,
    /// A [`ContentHeader`](crate::ContentHeader).
    Header = 2,
    /// A piece of a body.
    Body = 3,
    /// A sign of life, which has no payload and belongs on channel 0.
    Heartbeat = 8,
}

/// A frame, borrowed from the bytes it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it carries.
    pub kind: FrameKind,
    /// The channel; 0 is the connection.
    pub channel: u16,
    /// What it carries, as bytes.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Cuts the first frame from the bytes; `None` when it is not all there yet. The next begins after [`len`](Self::len).
    ///
    /// Type and length are judged as soon as they are there, so nobody needs to make room for a frame that will be refused.
    /// `frame_max` is the longest frame that was agreed on, 0 for no limit. The payload may be that long itself: as in
    /// RabbitMQ, because some clients count without the overhead.
    ///
    /// # Errors
    /// [`WireError::UnknownFrame`], [`WireError::FrameTooLarge`], [`WireError::FrameEnd`].
    #[inline]
    pub fn parse(bytes: &'a [u8], frame_max: u32) -> Result<Option<Self>, WireError> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let kind = kind(first)?;
        let Some((&[_, c0, c1, l0, l1, l2, l3], rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let len = u32::from_be_bytes([l0, l1, l2, l3]);
        if frame_max != 0 && len > frame_max {
            return Err(WireError::FrameTooLarge { len, max: frame_max });
        }
        match rest.split_at_checked(len as usize) {
            None | Some((_, [])) => Ok(None),
            Some((payload, [FRAME_END, ..])) => {
                Ok(Some(Self { kind, channel: u16::from_be_bytes([c0, c1]), payload }))
            }
            Some((_, [end, ..])) => Err(WireError::FrameEnd(*end)),
        }
    }

    /// Its length with everything around the payload, bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    pub fn len(&self) -> usize {
        self.payload.len() + FRAME_OVERHEAD
    }
}

fn kind(octet: u8) -> Result<FrameKind, WireError> {
    match octet {
        1 => Ok(FrameKind::Method),
        2 => Ok(FrameKind::Header),
        3 => Ok(FrameKind::Body),
        8 => Ok(FrameKind::Heartbeat),
        _ => Err(WireError::UnknownFrame(octet)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"\x03\x00\x07\x00\x00\x00\x02hi\xce";

    #[test]
    fn a_frame_is_there_when_its_end_is() {
        for len in 0..BODY.len() {
            assert_eq!(Frame::parse(&BODY[..len], 4096), Ok(None), "{len} bytes of it");
        }
        let frame = Frame { kind: FrameKind::Body, channel: 7, payload: b"hi" };
        assert_eq!(Frame::parse(BODY, 4096), Ok(Some(frame)));
        assert_eq!(Frame::parse(&[BODY, b"\x01\x00"].concat(), 4096), Ok(Some(frame)), "what follows waits");
        assert_eq!(frame.len(), BODY.len());
    }

    #[test]
    fn a_wrong_frame_is_refused_as_soon_as_it_shows() {
        assert_eq!(Frame::parse(b"G", 4096), Err(WireError::UnknownFrame(b'G')));
        let long = b"\x03\x00\x07\x00\x00\x10\x01";
        assert_eq!(Frame::parse(long, 4096), Err(WireError::FrameTooLarge { len: 4097, max: 4096 }));
        assert_eq!(Frame::parse(long, 0), Ok(None), "without a limit it may come");
        assert_eq!(Frame::parse(b"\x08\x00\x00\x00\x00\x00\x00\xcd", 4096), Err(WireError::FrameEnd(0xcd)));
    }

    #[test]
    fn a_payload_may_be_as_long_as_a_frame() {
        let head = b"\x03\x00\x07\x00\x00\x10\x00";
        let frame = [&head[..], &[0; 4096], &[FRAME_END]].concat();
        assert_eq!(Frame::parse(&frame, 4096).map(|frame| frame.map(|frame| frame.len())), Ok(Some(4104)));
    }

    #[test]
    fn the_protocol_shows_with_its_first_bytes() {
        for len in 0..=8 {
            assert!(starts_protocol(&PROTOCOL_HEADER[..len]), "{len} bytes of it");
        }
        assert!(starts_protocol(b"AMQP\x00\x00\x09\x01\x01\x00"), "frames follow");
        assert!(!starts_protocol(b"GET "));
        assert!(!starts_protocol(b"AMQP\x00\x01\x00\x00"), "AMQP 1.0");
    }
}

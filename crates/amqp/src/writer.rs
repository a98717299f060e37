//! Frames on their way out: whole ones only, appended to one buffer.

use std::fmt;

use overtake_properties::PropertiesRef;

use crate::content::{self, ContentHeader};
use crate::frame::{FRAME_END, FRAME_MIN_SIZE, FRAME_OVERHEAD, FrameKind, HEAD_LEN};
use crate::method::Method;

/// Properties that do not fit a frame of the length that was agreed on; a content header cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderTooLarge {
    /// How long the frame would be, bytes.
    pub len: usize,
}

impl fmt::Display for HeaderTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a content header of {} bytes fits no frame", self.len)
    }
}

impl std::error::Error for HeaderTooLarge {}

/// Appends frames to a buffer.
#[derive(Debug)]
pub struct FrameWriter<'o> {
    out: &'o mut Vec<u8>,
    frame_max: usize,
}

impl<'o> FrameWriter<'o> {
    /// Appends to `out` frames of at most `frame_max` bytes; 0 is no limit, as in `connection.tune`.
    #[must_use]
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, frame_max: u32) -> Self {
        let frame_max = match frame_max {
            0 => u32::MAX,
            max => max.max(FRAME_MIN_SIZE),
        };
        Self { out, frame_max: frame_max as usize }
    }

    /// A method without content. It is not divided, whatever its length: only tables make one long, and a server sends none
    /// but its own.
    #[inline]
    pub fn method<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        let method = method.into();
        self.frame(FrameKind::Method, channel, |out| method.encode(out));
    }

    /// A method with its content: header, then the body in as many frames as it needs. The body is copied once.
    ///
    /// # Errors
    /// [`HeaderTooLarge`]; then nothing was appended.
    #[inline]
    pub fn content<'m>(
        &mut self,
        channel: u16,
        method: impl Into<Method<'m>>,
        properties: PropertiesRef<'_>,
        body: &[u8],
    ) -> Result<(), HeaderTooLarge> {
        let header_len = content::HEAD_LEN + properties.as_bytes().len() + FRAME_OVERHEAD;
        if header_len > self.frame_max {
            return Err(HeaderTooLarge { len: header_len });
        }
        self.out.reserve(METHOD_LEN_MOSTLY + header_len + body.len() + FRAME_OVERHEAD);
        self.method(channel, method);
        let header = ContentHeader { body_len: body.len() as u64, properties };
        self.frame(FrameKind::Header, channel, |out| header.encode(out));
        for piece in body.chunks(self.frame_max - FRAME_OVERHEAD) {
            self.frame(FrameKind::Body, channel, |out| out.extend_from_slice(piece));
        }
        Ok(())
    }

    /// A sign of life (4.2.7).
    pub fn heartbeat(&mut self) {
        self.frame(FrameKind::Heartbeat, 0, |_| ());
    }

    /// The length is written once the payload is.
    #[inline(always)]
    fn frame(&mut self, kind: FrameKind, channel: u16, payload: impl FnOnce(&mut Vec<u8>)) {
        let [c0, c1] = channel.to_be_bytes();
        let start = self.out.len() + HEAD_LEN;
        self.out.extend_from_slice(&[kind as u8, c0, c1, 0, 0, 0, 0]);
        payload(self.out);
        let len = u32::try_from(self.out.len() - start).expect("a frame is shorter than 4 GiB");
        self.out[start - 4..start].copy_from_slice(&len.to_be_bytes());
        self.out.push(FRAME_END);
    }
}

/// As long a frame as most deliveries begin with, bytes.
const METHOD_LEN_MOSTLY: usize = 128;

#[cfg(test)]
mod tests {
    use overtake_properties::{Fields, Properties, Short};

    use super::*;
    use crate::frame::Frame;
    use crate::method::basic::{Ack, Deliver};

    fn deliver() -> Deliver<'static> {
        Deliver {
            consumer_tag: Short::literal("c"),
            delivery_tag: 7,
            redelivered: true,
            exchange: Short::literal(""),
            routing_key: Short::literal("jobs"),
        }
    }

    #[test]
    fn a_method_is_one_frame() {
        let mut out = Vec::new();
        FrameWriter::new(&mut out, 4096).method(3, Ack { delivery_tag: 1, multiple: true });
        assert_eq!(
            out,
            b"\x01\x00\x03\x00\x00\x00\x0d\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x01\x01\xce"
        );
    }

    #[test]
    fn a_delivery_is_method_header_and_body() {
        let properties = Fields { priority: Some(5), ..Fields::default() }.encode();
        let mut out = Vec::new();
        FrameWriter::new(&mut out, 4096).content(1, deliver(), properties.view(), b"hi").expect("it fits");
        let method = b"\x01\x00\x01\x00\x00\x00\x15\x00\x3c\x00\x3c\x01c\x00\x00\x00\x00\x00\x00\x00\x07\x01\x00\x04jobs\xce";
        let header =
            b"\x02\x00\x01\x00\x00\x00\x0f\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x08\x00\x05\xce";
        assert_eq!(out, [&method[..], header, b"\x03\x00\x01\x00\x00\x00\x02hi\xce"].concat());
    }

    #[test]
    fn a_body_is_divided_by_the_longest_frame_and_an_empty_one_has_none() {
        for (body_len, frames) in [(0, 0), (1, 1), (4088, 1), (4089, 2), (3 * 4088, 3)] {
            let mut out = Vec::new();
            let body = vec![b'x'; body_len];
            let properties = Properties::EMPTY;
            FrameWriter::new(&mut out, 4096)
                .content(1, deliver(), properties.view(), &body)
                .expect("it fits");
            let (mut rest, mut lens) = (&out[..], Vec::new());
            while let Some(frame) = Frame::parse(rest, 4088).expect("frames") {
                rest = &rest[frame.len()..];
                lens.push(frame.payload.len());
            }
            assert!(rest.is_empty());
            assert_eq!(lens[2..].len(), frames, "{body_len} bytes");
            assert_eq!(lens[2..].iter().sum::<usize>(), body_len);
        }
    }

    #[test]
    fn properties_that_fit_no_frame_leave_nothing_behind() {
        let texts = [b'x'; 255];
        let text = Short::new(&texts);
        let table = (0..20).fold(overtake_properties::TableBuilder::new(), |table, _| {
            table.entry(Short::literal("x"), overtake_properties::Value::String(&texts))
        });
        let fields = Fields { app_id: text, headers: Some(table.view()), ..Fields::default() };
        let mut out = Vec::new();
        let refused = FrameWriter::new(&mut out, 4096).content(1, deliver(), fields.encode().view(), b"");
        assert!(refused.is_err() && out.is_empty());
    }
}

//! Content headers (2.3.5.2, 4.2.6.1): what stands between a method that carries content and the body.
//!
//! ```text
//!  0  2  class: 60, basic, the only one with content
//!  2  2  weight: 0
//!  4  8  length of the body, bytes
//! 12     properties
//! ```

use overtake_properties::{Limits, PropertiesRef};

use crate::error::WireError;

/// The class that has content.
pub(crate) const BASIC: u16 = 60;
/// Length of what is in front of the properties, bytes.
pub(crate) const HEAD_LEN: usize = 12;

/// A content header, borrowed from its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// Length of the body, bytes. A body of 0 bytes has no frame.
    pub body_len: u64,
    /// What the message says about itself.
    pub properties: PropertiesRef<'a>,
}

impl<'a> ContentHeader<'a> {
    /// Reads the payload of a [`Header`](crate::FrameKind::Header) frame.
    ///
    /// # Errors
    /// [`WireError::ContentClass`], [`WireError::ContentWeight`], [`WireError::Table`], [`WireError::Truncated`].
    #[inline]
    pub fn decode(payload: &'a [u8], limits: &Limits) -> Result<Self, WireError> {
        let (head, properties) = payload.split_first_chunk::<HEAD_LEN>().ok_or(WireError::Truncated)?;
        let [c0, c1, w0, w1, body_len @ ..] = *head;
        match (u16::from_be_bytes([c0, c1]), u16::from_be_bytes([w0, w1])) {
            (BASIC, 0) => {}
            (BASIC, weight) => return Err(WireError::ContentWeight(weight)),
            (class, _) => return Err(WireError::ContentClass(class)),
        }
        let properties = PropertiesRef::check(properties, limits)?;
        Ok(Self { body_len: u64::from_be_bytes(body_len), properties })
    }

    /// Appends the payload of a header frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&BASIC.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.body_len.to_be_bytes());
        out.extend_from_slice(self.properties.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use overtake_properties::Fault;

    use super::*;

    #[test]
    fn a_header_has_its_bytes() {
        let bytes = b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x08\x00\x05";
        let header = ContentHeader::decode(bytes, &Limits::default()).expect("a header");
        assert_eq!((header.body_len, header.properties.priority()), (256, Some(5)));
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn another_class_and_a_weight_are_refused() {
        let check = |bytes: &[u8], error| {
            assert_eq!(ContentHeader::decode(bytes, &Limits::default()), Err(error));
        };
        check(b"\x00\x32\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00", WireError::ContentClass(50));
        check(b"\x00\x3c\x00\x01\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00", WireError::ContentWeight(1));
        check(b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x01", WireError::Truncated);
        check(b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00", WireError::Table(Fault::Truncated));
    }
}

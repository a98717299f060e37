//! What a header holds, as bytes: in the records of bindings, and in the content of messages.
//!
//! | kind | value | then |
//! |---|---|---|
//! | 0, 1 | false, true | |
//! | 2 | a whole number | signed |
//! | 3 | text | text |
//! | 4 | nothing | |
//! | 5 | a float | its 64 bits, little-endian |
//! | 6 | a decimal | digits after the point (a byte), all digits (number) |
//! | 7 | a time | seconds (number) |
//! | 8 | bytes | bytes |
//! | 9 | a list | how many (number), then each |
//! | 10 | a table | how many (number), then each: name (text), value |

use overtake_lane::{HEADER_DEPTH_MAX, HeaderValue, Headers};

use crate::codec::{Reader, bytes, number, signed, text};

/// Appends a value; nothing that is deeper than [`HEADER_DEPTH_MAX`] is read again.
pub fn value(out: &mut Vec<u8>, value: &HeaderValue) {
    match value {
        HeaderValue::Bool(value) => out.push(u8::from(*value)),
        HeaderValue::Int(value) => {
            out.push(2);
            signed(out, *value);
        }
        HeaderValue::Text(value) => {
            out.push(3);
            text(out, value);
        }
        HeaderValue::Void => out.push(4),
        HeaderValue::Float(bits) => {
            out.push(5);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        HeaderValue::Decimal { scale, value } => {
            out.extend_from_slice(&[6, *scale]);
            number(out, u64::from(*value));
        }
        HeaderValue::Time(seconds) => {
            out.push(7);
            number(out, *seconds);
        }
        HeaderValue::Bytes(value) => {
            out.push(8);
            bytes(out, value);
        }
        HeaderValue::List(values) => {
            out.push(9);
            number(out, values.len() as u64);
            values.iter().for_each(|inner| self::value(out, inner));
        }
        HeaderValue::Table(values) => {
            out.push(10);
            named(out, values.iter());
        }
    }
}

/// Appends names and values.
pub fn named<'a>(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = (&'a String, &'a HeaderValue)>) {
    number(out, values.len() as u64);
    for (name, inner) in values {
        text(out, name);
        value(out, inner);
    }
}

impl Reader<'_> {
    /// A value.
    pub fn value(&mut self) -> Option<HeaderValue> {
        self.value_at(0)
    }

    /// Names and values, in order, as [`named`] wrote them.
    pub fn named(&mut self) -> Option<Vec<(String, HeaderValue)>> {
        self.named_at(0)
    }

    fn value_at(&mut self, depth: usize) -> Option<HeaderValue> {
        Some(match self.byte()? {
            kind @ (0 | 1) => HeaderValue::Bool(kind == 1),
            2 => HeaderValue::Int(self.signed()?),
            3 => HeaderValue::Text(self.text()?.to_owned()),
            4 => HeaderValue::Void,
            5 => HeaderValue::Float(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            6 => HeaderValue::Decimal { scale: self.byte()?, value: self.small()? },
            7 => HeaderValue::Time(self.number()?),
            8 => HeaderValue::Bytes(self.bytes()?.to_vec()),
            9 | 10 if depth == HEADER_DEPTH_MAX => return None,
            9 => {
                let mut values = Vec::new();
                for _ in 0..self.number()? {
                    values.push(self.value_at(depth + 1)?);
                }
                HeaderValue::List(values)
            }
            10 => HeaderValue::Table(self.named_at(depth + 1)?.into_iter().collect::<Headers>()),
            _ => return None,
        })
    }

    fn named_at(&mut self, depth: usize) -> Option<Vec<(String, HeaderValue)>> {
        let mut values = Vec::new();
        for _ in 0..self.number()? {
            values.push((self.text()?.to_owned(), self.value_at(depth)?));
        }
        Some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_as_they_were_written_and_too_deep_ones_do_not() {
        let inner = [("a".to_owned(), HeaderValue::Void), ("b".to_owned(), HeaderValue::Bool(false))];
        let values = [
            HeaderValue::Bool(true),
            HeaderValue::Int(i64::MIN),
            HeaderValue::Text("é".into()),
            HeaderValue::Float(1.5_f64.to_bits()),
            HeaderValue::Decimal { scale: 3, value: u32::MAX },
            HeaderValue::Time(u64::MAX),
            HeaderValue::Bytes(vec![0, 255]),
            HeaderValue::Table(inner.into()),
        ];
        let all = HeaderValue::List(values.to_vec());
        let mut out = Vec::new();
        value(&mut out, &all);
        assert_eq!(Reader::new(&out).value(), Some(all));
        for cut in 0..out.len() {
            assert_eq!(Reader::new(&out[..cut]).value(), None, "cut at {cut}");
        }
        for (depth, is_read) in [(HEADER_DEPTH_MAX, true), (HEADER_DEPTH_MAX + 1, false)] {
            let nested = (0..depth).fold(HeaderValue::Void, |inner, _| HeaderValue::List(vec![inner]));
            let mut out = Vec::new();
            value(&mut out, &nested);
            assert_eq!(Reader::new(&out).value().is_some(), is_read);
        }
    }
}

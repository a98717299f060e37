//! Bodies as text: UTF-8, UTF-16, UTF-32 (Unicode 17.0, section 3.10).

use std::borrow::Cow;

/// How a text became bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// With or without a mark at its beginning that says which byte comes first.
    Utf16(Order),
    Utf32(Order),
}

/// Which byte of a unit comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The mark says it; without one the least significant, as devices write it.
    Marked,
    Little,
    Big,
}

impl Encoding {
    /// By its name, in any case; nothing said is UTF-8 (RFC 8259).
    pub(crate) fn named(name: Option<&str>) -> Option<Self> {
        let name = name.map(str::trim).unwrap_or_default().to_ascii_lowercase();
        Some(match name.as_str() {
            "" | "utf-8" | "utf8" => Self::Utf8,
            "utf-16" | "utf16" => Self::Utf16(Order::Marked),
            "utf-16le" => Self::Utf16(Order::Little),
            "utf-16be" => Self::Utf16(Order::Big),
            "utf-32" | "utf32" => Self::Utf32(Order::Marked),
            "utf-32le" => Self::Utf32(Order::Little),
            "utf-32be" => Self::Utf32(Order::Big),
            _ => return None,
        })
    }

    /// The text, without a mark; `None` when the bytes are none.
    pub(crate) fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Self::Utf8 => {
                let text = std::str::from_utf8(bytes).ok()?;
                Some(text.strip_prefix('\u{FEFF}').unwrap_or(text).into())
            }
            Self::Utf16(order) => {
                let (units, rest) = bytes.as_chunks::<2>();
                let is_big = order.is_big(units.first().is_some_and(|unit| *unit == [0xFE, 0xFF]));
                let units = units
                    .iter()
                    .map(|unit| if is_big { u16::from_be_bytes(*unit) } else { u16::from_le_bytes(*unit) });
                let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
                rest.is_empty().then(|| without_mark(text).into())
            }
            Self::Utf32(order) => {
                let (units, rest) = bytes.as_chunks::<4>();
                let is_big = order.is_big(units.first().is_some_and(|unit| *unit == [0, 0, 0xFE, 0xFF]));
                let units = units
                    .iter()
                    .map(|unit| if is_big { u32::from_be_bytes(*unit) } else { u32::from_le_bytes(*unit) });
                let text = units.map(char::from_u32).collect::<Option<String>>()?;
                rest.is_empty().then(|| without_mark(text).into())
            }
        }
    }
}

impl Order {
    fn is_big(self, is_marked_big: bool) -> bool {
        match self {
            Self::Marked => is_marked_big,
            Self::Little => false,
            Self::Big => true,
        }
    }
}

fn without_mark(mut text: String) -> String {
    if text.starts_with('\u{FEFF}') {
        text.remove(0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\"ä\":\"😀\"}";

    fn check(name: &str, bytes: &[u8], text: Option<&str>) {
        let encoding = Encoding::named(Some(name)).expect("an encoding");
        assert_eq!(encoding.decode(bytes).as_deref(), text, "{name}");
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    fn utf32(text: &str, bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
        text.chars().map(u32::from).flat_map(bytes).collect()
    }

    #[test]
    fn each_encoding_is_read_with_and_without_its_mark() {
        let marked = format!("\u{FEFF}{TEXT}");
        for text in [TEXT, &marked] {
            check("UTF-8", text.as_bytes(), Some(TEXT));
            check("utf-16", &utf16(text, u16::to_le_bytes), Some(TEXT));
            check("utf-16LE", &utf16(text, u16::to_le_bytes), Some(TEXT));
            check("utf-16BE", &utf16(text, u16::to_be_bytes), Some(TEXT));
            check("utf-32", &utf32(text, u32::to_le_bytes), Some(TEXT));
            check("utf-32le", &utf32(text, u32::to_le_bytes), Some(TEXT));
            check("utf-32be", &utf32(text, u32::to_be_bytes), Some(TEXT));
        }
        check("utf-16", &utf16(&marked, u16::to_be_bytes), Some(TEXT));
        check("utf-32", &utf32(&marked, u32::to_be_bytes), Some(TEXT));
    }

    #[test]
    fn what_is_no_text_is_none() {
        check("utf-8", b"\xFF", None);
        check("utf-16", b"{\0}", None);
        check("utf-16", &0xD800_u16.to_le_bytes(), None);
        check("utf-32", &0x11_0000_u32.to_le_bytes(), None);
        check("utf-32", b"{\0\0\0}", None);
        assert_eq!(Encoding::named(Some("gzip")), None);
    }
}

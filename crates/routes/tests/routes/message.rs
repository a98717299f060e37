//! A message in one line: `severity='high' $messageId='7' gone=null body={"a": 1}`, or `-` for an empty one.

use overtake_routes::{Body, Shown, Subject, is_same_name};

/// What a line of the corpus says of a message.
#[derive(Default)]
pub(crate) struct Message {
    properties: Vec<(String, Option<String>)>,
    body: Vec<u8>,
    content_type: Option<String>,
    content_encoding: Option<String>,
}

impl Message {
    /// Reads one. `type=` and `encoding=` are those of the body, which is JSON in UTF-8 if nothing is said; `body=` is the last.
    pub(crate) fn parse(line: &str) -> Self {
        let mut message = Self { content_type: Some("application/json".into()), ..Self::default() };
        let mut rest = line.trim();
        while !rest.is_empty() && rest != "-" {
            let (name, value) = rest.split_once('=').unwrap_or_else(|| panic!("{line}: no `=`"));
            if name == "body" {
                message.body = bytes(value, message.content_encoding.as_deref());
                break;
            }
            let (value, left) = match value.strip_prefix('\'') {
                Some(quoted) => {
                    quoted.split_once('\'').map(|(value, left)| (Some(value), left)).expect("a quote")
                }
                None => (None, value.strip_prefix("null").expect("'text' or null")),
            };
            let value = value.map(str::to_owned);
            match name {
                "type" => message.content_type = value,
                "encoding" => message.content_encoding = value,
                _ => message.properties.push((name.to_owned(), value)),
            }
            rest = left.trim();
        }
        message
    }

    fn shown(&self, is_it: impl Fn(&str) -> bool) -> Shown<'_> {
        match self.properties.iter().find(|(known, _)| is_it(known)) {
            None => Shown::Missing,
            Some((_, None)) => Shown::Null,
            Some((_, Some(value))) => Shown::Text(value),
        }
    }
}

fn bytes(text: &str, encoding: Option<&str>) -> Vec<u8> {
    match encoding {
        Some("utf-16") => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Some("utf-16be") => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        Some("utf-32") => text.chars().map(u32::from).flat_map(u32::to_le_bytes).collect(),
        Some("utf-32be") => text.chars().map(u32::from).flat_map(u32::to_be_bytes).collect(),
        _ => text.as_bytes().to_vec(),
    }
}

/// A system property is written with its `$`; an application property whose name begins with `$`, in braces.
impl Subject for Message {
    fn property(&self, name: &str) -> Shown<'_> {
        match name.starts_with('$') {
            true => self.shown(|known| is_same_name(known, &format!("{{{name}}}"))),
            false => self.shown(|known| is_same_name(known, name)),
        }
    }

    fn system(&self, name: &str) -> Shown<'_> {
        self.shown(|known| known.strip_prefix('$').is_some_and(|known| is_same_name(known, name)))
    }

    fn body(&self) -> Body<'_> {
        Body {
            bytes: &self.body,
            content_type: self.content_type.as_deref(),
            content_encoding: self.content_encoding.as_deref(),
        }
    }
}

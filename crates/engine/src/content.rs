//! What a message says, as bytes in the journal: media type, headers, how it was published, then the body to the end.
//!
//! | field | bytes |
//! |---|---|
//! | media type | its length plus one, 0 for none; then the text |
//! | how many headers | a number |
//! | each header | name, and its value as the store writes it |
//! | exchange | text |
//! | how many routing keys | a number |
//! | each routing key | text |
//! | its own time to live | 0 for none; else one more than its milliseconds |
//! | body | the rest |

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use overtake_lane::{Deaths, HeaderValue, Marks, MessageView, Route};
use overtake_store::codec::{self, Reader};
use overtake_store::value;

use crate::api::Content;

impl Content {
    /// Bytes that count against limits: names and values of headers, and the body.
    #[must_use]
    pub fn size(&self) -> usize {
        let header = |(name, value): (&String, &HeaderValue)| name.len() + value.size();
        self.body.len() + self.headers.iter().map(header).sum::<usize>()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match &self.content_type {
            None => codec::number(out, 0),
            Some(text) => {
                codec::number(out, text.len() as u64 + 1);
                out.extend_from_slice(text.as_bytes());
            }
        }
        value::named(out, self.headers.iter());
        codec::text(out, &self.route.exchange);
        codec::number(out, self.route.keys.len() as u64);
        for key in &self.route.keys {
            codec::text(out, key);
        }
        codec::number(out, self.ttl_ms.map_or(0, |ms| ms.saturating_add(1)));
        out.extend_from_slice(&self.body);
    }

    /// By which exchange and routing keys this message, which says so, came into its queue: as published, else as its last
    /// death sent it on.
    #[must_use]
    pub fn route_of<'a>(&'a self, message: &'a MessageView) -> &'a Route {
        message.deaths.as_deref().map_or(&self.route, Deaths::route)
    }

    /// `None` where the bytes make no sense.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let content_type = match reader.number()? {
            0 => None,
            len => {
                let text = reader.take(usize::try_from(len - 1).ok()?)?;
                Some(std::str::from_utf8(text).ok()?.to_owned())
            }
        };
        let headers = reader.named()?.into_iter().collect();
        let exchange = reader.text()?.into();
        let keys = (0..reader.number()?).map(|_| reader.text().map(Arc::from)).collect::<Option<_>>()?;
        let (route, ttl_ms) = (Route { exchange, keys }, reader.number()?.checked_sub(1));
        Some(Self { headers, content_type, route, ttl_ms, body: Bytes::copy_from_slice(reader.rest()) })
    }
}

impl Marks for Content {
    fn header(&self, name: &str) -> Option<Cow<'_, HeaderValue>> {
        self.headers.get(name).map(Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_reads_back_as_it_was_written() {
        let headers = [
            ("a".to_owned(), HeaderValue::Bool(true)),
            ("b".to_owned(), HeaderValue::Int(-7)),
            ("c".to_owned(), HeaderValue::Text("é".into())),
        ];
        for content_type in [None, Some(String::new()), Some("text/plain".to_owned())] {
            let content = Content {
                headers: headers.clone().into(),
                content_type,
                route: Route { exchange: "x".into(), keys: ["a.b", ""].map(Arc::from).into_iter().collect() },
                ttl_ms: Some(0),
                body: Bytes::from_static(b"\0body"),
            };
            let mut bytes = Vec::new();
            content.encode(&mut bytes);
            assert_eq!(Content::decode(&bytes), Some(content));
            for cut in 0..bytes.len() - 5 {
                assert!(Content::decode(&bytes[..cut]).is_none(), "cut at {cut}");
            }
        }
    }
}

//! How messages were published, as their contents say it, read by another way than the engine's. The place of a message is
//! the mark in its content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use overtake_engine::Content;
use overtake_lane::{Letter, Letters, Place, Route};
use overtake_properties::{Limits, Properties};
use overtake_store::codec::Reader;

use crate::refold::mark_in;

/// Every content that was seen.
#[derive(Debug, Default)]
pub(crate) struct Post(Mutex<BTreeMap<Place, Letter>>);

impl Post {
    /// Notes a content. Answers its place.
    pub(crate) fn note(&self, content: &[u8]) -> Place {
        let place = Place(mark_in(content).unwrap_or(u64::MAX));
        if let Some(letter) = letter_in(content) {
            self.0.lock().expect("one thread").insert(place, letter);
        }
        place
    }
}

impl Letters for Post {
    fn read(&self, place: Place) -> Letter {
        self.0.lock().expect("one thread").get(&place).cloned().unwrap_or_default()
    }
}

fn letter_in(content: &[u8]) -> Option<Letter> {
    let mut reader = Reader::new(content);
    let len = usize::try_from(reader.number()?).ok()?;
    let properties = Bytes::copy_from_slice(reader.take(len)?);
    let properties = Properties::check(properties, &Limits::default()).ok()?;
    let exchange = reader.text()?.into();
    let keys = (0..reader.number()?).map(|_| reader.text().map(Arc::from)).collect::<Option<_>>()?;
    let ttl_ms = reader.number()?.checked_sub(1);
    Some(Letter {
        route: Route { exchange, keys },
        marks: Arc::new(Content { properties, ..Content::default() }),
        ttl_ms,
    })
}

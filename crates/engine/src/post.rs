//! How messages were published, as the broker reads it when one dies.

use std::sync::Arc;

use overtake_lane::{Letter, Letters, Place};

use crate::api::Content;
use crate::contents::Contents;
use crate::place::Where;
use crate::shelf::Shelf;

/// What messages say, wherever it is.
#[derive(Debug)]
pub(crate) struct Post {
    contents: Arc<Contents>,
    shelf: Arc<dyn Shelf>,
}

impl Post {
    pub(crate) fn new(contents: Arc<Contents>, shelf: Arc<dyn Shelf>) -> Self {
        Self { contents, shelf }
    }

    /// What a message says.
    fn content(&self, place: Place) -> Arc<Content> {
        match Where::of(place) {
            Where::Here { slot, .. } => self.contents.get(slot),
            // Of a message that is lost nothing is known.
            Where::Shelf { run, ordinal } => self.shelf.content(run, ordinal).unwrap_or_default(),
        }
    }
}

impl Letters for Post {
    fn read(&self, place: Place) -> Letter {
        let content = self.content(place);
        Letter { route: content.route.clone(), ttl_ms: content.ttl_ms, marks: content }
    }
}

//! Routes by the path that messages come from: a tree of segments, so that a message meets only routes that mean its source.

use super::pivot::Group;
use crate::source::{Source, compare, segments};

/// A tree of segments.
#[derive(Default)]
pub(super) struct Index {
    /// The first is the root, once there is a route.
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    /// By segment, in the order of [`compare`].
    below: Vec<(Box<str>, usize)>,
    /// Routes whose source ends here.
    group: Group,
}

impl Index {
    /// The group of routes from a source.
    pub(super) fn group_at(&mut self, source: &Source) -> &mut Group {
        if self.places.is_empty() {
            self.places.push(Place::default());
        }
        let mut place = 0;
        for segment in source.segments() {
            let next = self.places.len();
            let below = &mut self.places[place].below;
            place = match below.binary_search_by(|(known, _)| compare(known, segment)) {
                Ok(at) => below[at].1,
                Err(at) => {
                    below.insert(at, (segment.into(), next));
                    self.places.push(Place::default());
                    next
                }
            };
        }
        &mut self.places[place].group
    }

    /// Each group of routes that mean this path.
    pub(super) fn each_group(&self, path: &str, mut look: impl FnMut(&Group)) {
        let Some(mut place) = self.places.first() else { return };
        look(&place.group);
        for segment in segments(path) {
            let Ok(at) = place.below.binary_search_by(|(known, _)| compare(known, segment)) else { return };
            place = &self.places[place.below[at].1];
            look(&place.group);
        }
    }
}

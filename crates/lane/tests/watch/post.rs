//! How every message was published, by the place of its content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use overtake_lane::{Address, Command, Letter, Letters, Place, Publish, Route};

use super::shelf::Shelf;

/// Every letter that was ever sent.
#[derive(Debug)]
pub(crate) struct Post {
    shelf: Arc<Shelf>,
    letters: Mutex<BTreeMap<Place, Letter>>,
}

impl Post {
    pub(crate) fn new(shelf: Arc<Shelf>) -> Self {
        Self { shelf, letters: Mutex::default() }
    }

    /// Keeps how the messages of a command are published.
    pub(crate) fn keep(&self, command: &Command) {
        let mut letters = self.letters.lock().expect("sound");
        match command {
            Command::Publish(publish) => drop(letters.insert(publish.place, letter(publish))),
            Command::Transact { publishes, .. } => {
                letters.extend(publishes.iter().map(|publish| (publish.place, letter(publish))));
            }
            _ => {}
        }
    }
}

fn letter(publish: &Publish) -> Letter {
    let ttl_ms = publish.ttl_ms;
    match &publish.to {
        Address::Queue(name) => Letter { route: Route::by("", name.clone()), ttl_ms, ..Letter::default() },
        Address::Exchange { name, routing_key, more_keys, marks, .. } => {
            let keys = [routing_key].into_iter().chain(more_keys).cloned().collect();
            Letter { route: Route { exchange: name.clone(), keys }, marks: marks.clone(), ttl_ms }
        }
        Address::Copies { .. } => {
            Letter { route: Route::by("routes", "a/path"), ttl_ms, ..Letter::default() }
        }
    }
}

impl Letters for Post {
    fn read(&self, place: Place) -> Letter {
        let first = self.shelf.first_place(place);
        self.letters.lock().expect("sound").get(&first).cloned().unwrap_or_default()
    }
}

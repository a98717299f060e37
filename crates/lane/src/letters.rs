//! How messages were published. The broker does not keep it: it asks when a message dies.

use std::fmt;
use std::sync::Arc;

use crate::command::Few;
use crate::ids::Place;
use crate::topology::{Headers, Marks};

/// By which exchange and routing keys a message came into its queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The exchange; empty: the default one, or straight into the queue.
    pub exchange: Arc<str>,
    /// The routing key, then those of `CC`.
    pub keys: Few<Arc<str>>,
}

/// Most bytes of the routing keys that are kept of a route by which a message died, each counted with one more, but for the
/// first one.
pub const FURTHER_KEYS_LEN_MAX: usize = 1_024;

impl Route {
    /// By one key.
    #[must_use]
    pub fn by(exchange: impl Into<Arc<str>>, key: impl Into<Arc<str>>) -> Self {
        Self { exchange: exchange.into(), keys: Few::from_buf([key.into()]) }
    }

    /// Its first routing key; empty if it has none.
    #[must_use]
    pub fn key(&self) -> &str {
        self.keys.first().map_or("", |key| key)
    }

    /// Bytes of names and keys.
    #[must_use]
    pub fn size(&self) -> usize {
        self.exchange.len() + self.keys.iter().map(|key| key.len()).sum::<usize>()
    }

    /// Without the keys that are too many to be kept with a message.
    pub(crate) fn bounded(mut self) -> Self {
        let len = |key: &str| key.len() + 1;
        let most = FURTHER_KEYS_LEN_MAX + len(self.key());
        let ends = self.keys.iter().scan(0, |end, key| {
            *end += len(key);
            Some(*end)
        });
        let count = ends.take_while(|end| *end <= most).count();
        self.keys.truncate(count);
        self
    }
}

/// What a message was published with, beside its body.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Where to. Without a key: straight into its queue.
    pub route: Route,
    /// What it says about itself, for exchanges that go by it.
    pub marks: Arc<dyn Marks>,
    /// Its own time to live, ms; `None`: it brought none.
    pub ttl_ms: Option<u64>,
}

impl Default for Letter {
    fn default() -> Self {
        Self { route: Route::default(), marks: Arc::new(Headers::new()), ttl_ms: None }
    }
}

/// Where it is read how a message was published. Asked when a message dies, so it must not keep anybody waiting for long.
pub trait Letters: fmt::Debug + Send + Sync {
    /// How the message whose content is at this place was published. For what cannot be read, as
    /// [`Backlog::read`](crate::Backlog::read).
    fn read(&self, place: Place) -> Letter;
}

/// Nobody kept how messages were published: each counts as published straight into its queue.
#[derive(Clone, Copy, Debug)]
pub struct NoLetters;

impl Letters for NoLetters {
    fn read(&self, _: Place) -> Letter {
        Letter::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_routing_keys_the_first_are_kept() {
        let long: Arc<str> = "k".repeat(255).into();
        let route = |keys: usize| Route {
            exchange: "x".into(),
            keys: std::iter::repeat_n(long.clone(), keys).collect(),
        };
        assert_eq!(route(4).bounded().keys.len(), 4);
        assert_eq!(route(9).bounded().keys.len(), 5);
        let empty: Arc<str> = "".into();
        let many = Route { exchange: "x".into(), keys: std::iter::repeat_n(empty, 9_999).collect() };
        assert!(many.bounded().keys.len() <= FURTHER_KEYS_LEN_MAX + 1);
    }
}

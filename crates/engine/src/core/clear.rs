//! Clearing: the contents of messages that are gone all at once, with their queue or by a purge, are released step by step, between whatever else is
//! asked.
//!
//! Until then they count as kept ([`Core::kept`]), and what the journal keeps for them is not given back.

use super::Core;

impl<T> Core<T> {
    /// Whether something is left in memory of messages that are gone: then [`Core::clear_on`] is to be called, however often. A store that is closed
    /// loses nothing with it.
    #[must_use]
    pub fn is_clearing(&self) -> bool {
        self.broker.has_remains()
    }

    /// Goes on with clearing, by so many messages.
    pub fn clear_on(&mut self, messages: usize) {
        if !self.is_clearing() {
            return;
        }
        let mut step = std::mem::take(&mut self.step);
        self.broker.clear_remains(messages, &mut step);
        self.step = step;
        self.keep(false);
        self.hold_or_go();
    }
}

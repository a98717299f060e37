//! What happened, as one number, and on demand as a story.

use std::io::Write;

use crate::rng::mix;

/// The trace of one run.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    hash: u64,
    events: u64,
    is_told: bool,
}

impl Trace {
    pub(crate) fn new(is_told: bool) -> Self {
        Self { is_told, ..Self::default() }
    }

    /// Takes an event into the hash.
    pub(crate) fn event(&mut self, words: &[u64]) {
        self.events += 1;
        self.mix(words);
    }

    pub(crate) fn mix(&mut self, words: &[u64]) {
        for word in words {
            self.hash = mix(self.hash.rotate_left(5) ^ *word);
        }
    }

    /// Tells a line of the story, if somebody listens: at once, since the next thing may be a panic.
    pub(crate) fn tell(&self, now_us: u64, line: impl FnOnce() -> String) {
        if self.is_told {
            let ms = (now_us / 1_000, now_us % 1_000);
            // Nobody listens any more: then nobody misses it.
            let _ = writeln!(std::io::stdout(), "{:>8}.{:03} ms  {}", ms.0, ms.1, line());
        }
    }

    pub(crate) fn close(self) -> (u64, u64) {
        (self.hash, self.events)
    }
}

//! What a program has printed so far: whoever reads its output writes here, whoever keeps its lease looks.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use super::tail::Tail;

/// The end of what a program has printed. Clones are of the same program.
#[derive(Clone)]
pub(crate) struct Printed(Arc<Shared>);

struct Shared {
    tail: Mutex<Tail>,
    news: Notify,
}

impl Printed {
    /// Of a program that has printed nothing, of which so many bytes are kept.
    pub(crate) fn new(keep: usize) -> Self {
        Self(Arc::new(Shared { tail: Mutex::new(Tail::new(keep)), news: Notify::new() }))
    }

    /// More came.
    pub(crate) fn push(&self, bytes: &[u8]) {
        self.tail().push(bytes);
        self.0.news.notify_one();
    }

    /// Waits until something came since this was last waited for.
    pub(crate) async fn more(&self) {
        self.0.news.notified().await;
    }

    /// As text, all that is kept.
    pub(crate) fn text(&self) -> String {
        self.tail().text()
    }

    /// The same, the last bytes of it: so many at most.
    pub(crate) fn end(&self, most: usize) -> String {
        let mut text = self.text();
        let more = text.ceil_char_boundary(text.len().saturating_sub(most));
        text.drain(..more);
        text
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.0.tail.lock().expect("nothing panics under this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_whole_characters() {
        let printed = Printed::new(100);
        assert_eq!(printed.end(10), "");
        printed.push("begun äö".as_bytes());
        assert_eq!((printed.text().as_str(), printed.end(3).as_str()), ("begun äö", "ö"));
        assert_eq!(printed.end(1_000), printed.text());
    }
}

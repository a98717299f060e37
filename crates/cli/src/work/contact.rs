//! Whether the broker answers. It is said once when it no longer does, and once when it does again.

use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use super::display::{Display, Event};
use crate::failure::Failure;
use crate::table::duration;

/// What is known about the broker.
pub(crate) struct Contact {
    known: Mutex<Known>,
    display: Display,
}

#[derive(Default)]
struct Known {
    /// Since then there is no answer.
    gone_since: Option<Instant>,
    /// The word for why it gives out no messages, though it answers.
    excuse: Option<String>,
}

impl Contact {
    /// It is there, as far as anybody knows.
    pub(crate) fn new(display: Display) -> Self {
        Self { known: Mutex::default(), display }
    }

    /// It did not do what was asked, and will be asked again.
    pub(crate) async fn failed(&self, failure: &Failure) {
        if failure.word().is_some() {
            self.answered().await;
        }
        if self.known().is_news(failure) {
            let what = failure.what();
            self.notice(format!("{what}; asking again")).await;
        }
    }

    /// It answered.
    pub(crate) async fn answered(&self) {
        let gone_since = self.known().gone_since.take();
        if let Some(since) = gone_since {
            let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.notice(format!("the broker is back after {}", duration(ms))).await;
        }
    }

    /// It gives out messages, or would if it had any.
    pub(crate) async fn leased(&self) {
        self.answered().await;
        self.known().excuse = None;
    }

    async fn notice(&self, text: String) {
        self.display.tell(Event::Notice(text)).await;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nothing panics under this lock")
    }
}

impl Known {
    /// Remembers a failure, and whether nobody knew of it.
    fn is_news(&mut self, failure: &Failure) -> bool {
        match failure.word() {
            None => {
                let is_news = self.gone_since.is_none();
                self.gone_since.get_or_insert_with(Instant::now);
                is_news
            }
            Some(word) => self.excuse.replace(word.to_owned()).as_deref() != Some(word),
        }
    }
}

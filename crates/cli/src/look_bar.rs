//! A bar that shows how far a look at messages is, where somebody sees it on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::Session;
use crate::table::number;

/// The bar, which is gone when this is dropped. It is on stderr, and only where answers are for people.
pub(crate) struct LookBar(ProgressBar);

impl LookBar {
    pub(crate) fn new(session: &Session) -> Self {
        if session.out.is_quiet() || session.out.is_json() {
            return Self(ProgressBar::hidden());
        }
        let template = "{bar:12} looked at {human_pos} of {human_len} messages, {msg} found; Ctrl-C stops";
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    /// Shows how many messages were looked at, of how many, and how many were found.
    pub(crate) fn show(&self, looked_at: u64, of: u64, found: u64) {
        self.0.set_length(of);
        self.0.set_message(number(found));
        self.0.set_position(looked_at);
    }
}

impl Drop for LookBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

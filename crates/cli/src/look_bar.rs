//! A bar that shows how far a look at messages is, or a change of many, where somebody sees it on a terminal.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::commands::Session;
use crate::table::number;

/// The bar on stderr, which is gone when this is dropped.
pub(crate) struct LookBar {
    bar: ProgressBar,
    text: Arc<Mutex<String>>,
}

impl LookBar {
    /// A bar so many columns long; `hint` says what Ctrl-C does.
    pub(crate) fn new(is_shown: bool, columns: usize, hint: &str) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&text);
        let write = move |_: &ProgressState, out: &mut dyn Write| {
            let _ = out.write_str(&shown.lock().expect("nobody panics while holding it"));
        };
        let style = ProgressStyle::with_template(&format!("{{bar:{columns}}} {{text}}; {hint}"))
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .with_key("text", write);
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { bar: ProgressBar::with_draw_target(None, target).with_style(style), text }
    }

    /// The bar of a look: shown where answers are for people.
    pub(crate) fn of_look(session: &Session) -> Self {
        Self::new(!session.out.is_quiet() && !session.out.is_json(), 12, "Ctrl-C stops")
    }

    /// Shows how many messages were looked at, of how many, and how many were found.
    pub(crate) fn show_found(&self, looked_at: u64, of: u64, found: u64) {
        let come = format!("looked at {} of {} messages", number(looked_at), number(of));
        self.show(looked_at, of, format!("{come}, {} found", number(found)));
    }

    /// Shows how many messages were looked at, of how many, with a text that says it.
    pub(crate) fn show(&self, looked_at: u64, of: u64, text: String) {
        *self.text.lock().expect("nobody panics while holding it") = text;
        self.bar.update(|state| {
            state.set_len(of);
            state.set_pos(looked_at);
        });
    }

    /// How long the rest takes, where that can be told: `, 5 seconds left`.
    pub(crate) fn left(&self) -> String {
        let left = self.bar.eta();
        if left.is_zero() { String::new() } else { format!(", {} left", HumanDuration(left)) }
    }
}

impl Drop for LookBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

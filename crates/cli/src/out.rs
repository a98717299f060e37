//! What goes to stdout: tables for people, JSON for programs. Colours only where a terminal shows them.

use std::io::{self, Write};

use anstyle::{AnsiColor, Reset, Style};
use serde_json::Value;

use crate::args::Global;

/// For what went wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// For what to do.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// For headings.
pub(crate) const HEAD: Style = Style::new().bold();
/// Back to normal.
pub(crate) const RESET: Reset = Reset;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    json: bool,
    quiet: bool,
}

impl Out {
    /// As the flags say.
    pub(crate) fn new(global: &Global) -> Self {
        Self { json: global.json, quiet: global.quiet }
    }

    /// JSON with `--json`, else what `text` makes of it.
    pub(crate) fn answer(self, answer: &Value, text: impl FnOnce(&Value) -> String) -> io::Result<()> {
        if self.json { self.json(answer) } else { self.text(&text(answer)) }
    }

    /// JSON with `--json`, else a sentence unless `--quiet`.
    pub(crate) fn done(self, answer: &Value, sentence: impl FnOnce() -> String) -> io::Result<()> {
        match (self.json, self.quiet) {
            (true, _) => self.json(answer),
            (false, true) => Ok(()),
            (false, false) => self.text(&format!("{}\n", sentence())),
        }
    }

    /// Whether programs read this.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether only what was asked for is wanted.
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// One line of JSON.
    pub(crate) fn json(self, value: &Value) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{value}")?;
        stdout.flush()
    }

    /// Text, with its colours where they show.
    pub(crate) fn text(self, text: &str) -> io::Result<()> {
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}

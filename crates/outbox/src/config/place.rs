//! Where in a file something is.

use std::ops::Range;
use std::path::Path;

use overtake_redact::reason;
use toml::de::{DeTable, DeValue};

use super::ConfigError;

/// A file, to find places in.
pub(super) struct Place<'t> {
    pub(super) text: &'t str,
    pub(super) path: &'t Path,
}

impl Place<'_> {
    /// What the parser found, with the innermost key around it.
    pub(super) fn of_parser(&self, error: &toml::de::Error) -> ConfigError {
        let span = error.span();
        let key = span.as_ref().and_then(|span| {
            let table = DeTable::parse(self.text).ok()?;
            around(table.get_ref(), span)
        });
        let what = reason(error.message());
        self.error(span, key.unwrap_or_default(), what)
    }

    /// What is wrong with the value of a key, or with that of the nearest one around it that is there.
    pub(super) fn of_key(&self, key: &str, what: String) -> ConfigError {
        let table = DeTable::parse(self.text).ok();
        let span = table.and_then(|table| {
            let mut span = None;
            let mut inside = Some(table.get_ref());
            for part in key.split('.') {
                let Some((name, value)) =
                    inside.and_then(|inside| inside.iter().find(|(name, _)| name.get_ref() == part))
                else {
                    break;
                };
                span = Some(name.span());
                inside = match value.get_ref() {
                    DeValue::Table(table) => Some(table),
                    _ => None,
                };
            }
            span
        });
        self.error(span, key.to_owned(), what)
    }

    fn error(&self, span: Option<Range<usize>>, key: String, what: String) -> ConfigError {
        let line = span.map_or(0, |span| {
            let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
            before.iter().filter(|byte| **byte == b'\n').count() + 1
        });
        ConfigError { path: self.path.to_owned(), line, key, what }
    }
}

/// The key whose value, or whose name, has this span in it.
fn around(table: &DeTable<'_>, wanted: &Range<usize>) -> Option<String> {
    let is_in = |span: Range<usize>| span.start <= wanted.start && wanted.end <= span.end;
    for (name, value) in table {
        if let DeValue::Table(inner) = value.get_ref()
            && let Some(deeper) = around(inner, wanted)
        {
            return Some(format!("{}.{deeper}", name.get_ref()));
        }
        if is_in(name.span()) || is_in(value.span()) {
            return Some(name.get_ref().to_string());
        }
    }
    None
}

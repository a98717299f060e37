//! What is wrong with a route, and where, so that a person sees it at once.

use std::fmt::{self, Write as _};
use std::ops::Range;

/// Most characters of a route that are shown around the place.
const SHOWN_LEN_MAX: usize = 100;
/// Characters that are shown before the place when the beginning is cut off.
const BEFORE: usize = 40;

/// A route that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError {
    /// The place in the route's text, bytes. Empty at the end of the text, where something is missing.
    pub span: Range<usize>,
    /// What is wrong, a lower-case phrase.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl RouteError {
    pub(crate) fn new(span: Range<usize>, what: impl Into<String>) -> Self {
        Self { span, what: what.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn hint_if(self, hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into).or(self.hint), ..self }
    }

    /// The place for people, as lines of plain text that end without a line feed: the line of the route in which it is, cut where it
    /// is long; carets beneath it; and the hint, if there is one. Columns are characters; tabs and what cannot be shown are one blank.
    ///
    /// `route` is the text that was read.
    #[must_use]
    pub fn render(&self, route: &str) -> String {
        let start = floor(route, self.span.start);
        let end = floor(route, self.span.end).max(start);
        let line_start = route[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = route[start..].find('\n').map_or(route.len(), |at| start + at);
        let line = &route[line_start..line_end];
        let column = line[..start - line_start].chars().count();
        let carets = route[start..end.min(line_end)].chars().count().max(1);

        let cut = if column + carets > SHOWN_LEN_MAX { column.saturating_sub(BEFORE) } else { 0 };
        let shown = line.chars().skip(cut).take(SHOWN_LEN_MAX).map(visible).collect::<String>();
        let is_cut_behind = line.chars().nth(cut + SHOWN_LEN_MAX).is_some();
        let (before, behind) = (if cut > 0 { "…" } else { "" }, if is_cut_behind { "…" } else { "" });
        let indent = column - cut + before.chars().count();
        let carets = carets.min(SHOWN_LEN_MAX - (column - cut).min(SHOWN_LEN_MAX - 1));
        let mut text = format!("{before}{shown}{behind}\n{:indent$}{:^<carets$}", "", "");
        if let Some(hint) = &self.hint {
            write!(text, "\nhint: {hint}").expect("a string takes everything");
        }
        text
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for RouteError {}

/// The boundary of a character at or before a place.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// A piece of the user's text in a message, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    const LEN_MAX: usize = 40;
    let short = text.chars().take(LEN_MAX).map(visible).collect::<String>();
    if text.chars().nth(LEN_MAX).is_some() { format!("`{short}…`") } else { format!("`{short}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(route: &str, span: Range<usize>, shown: &str) {
        assert_eq!(RouteError::new(span, "wrong").render(route), shown);
    }

    #[test]
    fn carets_stand_beneath_the_place() {
        check("FROM x", 5..6, "FROM x\n     ^");
        check("FROM xyz", 5..8, "FROM xyz\n     ^^^");
        check("FROM", 4..4, "FROM\n    ^");
        check("", 0..0, "\n^");
    }

    #[test]
    fn columns_are_characters_and_tabs_are_one() {
        check("ä\tb", 3..4, "ä b\n  ^");
        check("a\nbc\nd", 3..4, "bc\n ^");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let route = format!("{}!{}", "a".repeat(500), "b".repeat(500));
        let shown = RouteError::new(500..501, "wrong").render(&route);
        let lines = shown.lines().collect::<Vec<_>>();
        assert_eq!(lines[0], format!("…{}!{}…", "a".repeat(BEFORE), "b".repeat(SHOWN_LEN_MAX - BEFORE - 1)));
        assert_eq!(lines[1].find('^'), Some(BEFORE + 1));
        let shown = RouteError::new(0..1001, "wrong").render(&route);
        assert!(shown.lines().all(|line| line.chars().count() <= SHOWN_LEN_MAX + 2), "{shown}");
    }

    #[test]
    fn a_place_beyond_the_text_is_its_end() {
        check("ab", 7..9, "ab\n  ^");
        check("ä", 1..2, "ä\n^");
    }
}

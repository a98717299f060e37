//! A line of TOML as it may be shown: its key or its table, and `…` in the place of the value.

use std::ops::Range;

use crate::reason::reason;

/// Shown in the place of a value.
const VALUE: &str = "…";

/// The line of a span of TOML with a mark under it. Of the line only its key or its table is shown: the value may be a secret, and may stand unquoted or
/// on several lines.
#[must_use]
pub fn excerpt(text: &str, span: Range<usize>) -> String {
    let at = floor(text, span.start);
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[start..].find('\n').map_or(text.len(), |end| start + end);
    let number = (text[..start].matches('\n').count() + 1).to_string();
    let line = text[start..end].trim_end();
    let shown = if begins_in_value(&text[..start]) { Shown::NOTHING } else { Shown::of(line) };
    let head = &line[..shown.head];
    let (before, marked) = match line.get(..at - start) {
        Some(before) if before.len() < shown.name => {
            let stop = floor(text, span.end).clamp(at, start + shown.name) - start;
            (before, line[before.len()..stop].chars().count().max(1))
        }
        _ => (head, 1),
    };
    let margin = " ".repeat(number.len());
    let lead: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let value = if shown.has_value { VALUE } else { "" };
    format!("  {number} | {head}{value}\n  {margin} | {lead}{}", "^".repeat(marked))
}

/// What the parser of TOML says, with its place and an [`excerpt`] of the line, for a text that has no other place to be shown at.
#[must_use]
pub fn toml_error(text: &str, span: Option<Range<usize>>, message: &str) -> String {
    let why = reason(message);
    let Some(span) = span else { return why };
    let before = &text[..floor(text, span.start)];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("line {line}, column {column}: {why}\n{}", excerpt(text, span))
}

/// The bytes of a line that may be shown.
struct Shown {
    /// The name of a key or a table, with what is before it.
    name: usize,
    /// The name and the `= ` after it.
    head: usize,
    has_value: bool,
}

impl Shown {
    const NOTHING: Self = Self { name: 0, head: 0, has_value: true };

    fn of(line: &str) -> Self {
        let whole = Self { name: line.len(), head: line.len(), has_value: false };
        let inner = line.trim_start();
        let table = inner.strip_prefix("[[").and_then(|inner| inner.strip_suffix("]]"));
        let table = table.or_else(|| inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')));
        if inner.is_empty() || table.is_some_and(is_bare) {
            return whole;
        }
        // A quoted key is not told from a value without an equals sign.
        let Some((name, after)) = line.split_once('=').filter(|(name, _)| is_bare(name)) else {
            return Self::NOTHING;
        };
        let gap = after.len() - after.trim_start().len();
        Self { name: name.trim_end().len(), head: name.len() + 1 + gap, has_value: !after.trim().is_empty() }
    }
}

fn is_bare(name: &str) -> bool {
    let name = name.trim();
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !name.is_empty() && name.chars().all(is_bare)
}

/// The start of the character that has this byte.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Whether a text ends inside of a list, a table or a text of several lines, so that what follows is a value or a part of one.
fn begins_in_value(text: &str) -> bool {
    let (mut depth, mut rest) = (0_usize, text);
    while let Some(c) = rest.chars().next() {
        let string = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote));
        rest = match (string, c) {
            (Some(quote), _) => match after_string(&rest[quote.len()..], quote) {
                Some(after) => after,
                None => return true,
            },
            (None, '#') => rest.find('\n').map_or("", |end| &rest[end..]),
            (None, _) => {
                match c {
                    '[' | '{' => depth += 1,
                    ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                &rest[c.len_utf8()..]
            }
        };
    }
    depth > 0
}

/// What follows a string whose opening quote is passed. A string of one line ends with the line at the latest.
fn after_string<'t>(text: &'t str, quote: &str) -> Option<&'t str> {
    let (is_literal, is_of_one_line) = (quote.starts_with('\''), quote.len() == 1);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(after) = rest.strip_prefix(quote) {
            return Some(after);
        }
        let c = rest.chars().next()?;
        if is_of_one_line && c == '\n' {
            return Some(rest);
        }
        at += c.len_utf8();
        if c == '\\' && !is_literal {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    is_of_one_line.then_some("")
}

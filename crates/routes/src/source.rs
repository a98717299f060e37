//! Where a message comes from: `FROM path`.
//!
//! A path matches what lies below it, segment by segment and whatever the case, so `/messages/modules/m` is no beginning of
//! `/messages/modules/m2`. A last segment `*` says that in writing, and changes nothing; elsewhere `*` is a character.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use crate::error::{RouteError, quoted};

/// A source of messages, a path like `/messages/modules/camera/outputs/alerts`.
#[derive(Clone, Debug)]
pub struct Source {
    path: Box<str>,
}

impl Source {
    pub(crate) fn parse(path: &str, span: Range<usize>) -> Result<Self, RouteError> {
        let Some(below) = path.strip_prefix('/') else {
            let error = RouteError::new(span, format!("a source is a path, and {} is none", quoted(path)));
            let bare = path.trim_matches(['\'', '"', '`', '[', ']']);
            return Err(error.hint(match bare {
                "*" => "`/*` is everything".to_owned(),
                _ if bare.starts_with('/') => format!("a path is written without quotes: `{}`", cut(bare)),
                _ => format!("a path begins with `/`: `/{}`, or `/*` for everything", cut(bare)),
            }));
        };
        if path.contains(char::is_control) {
            return Err(RouteError::new(span, "a source has no control characters"));
        }
        // With a slash at its end, it is the same path.
        let path = if below.is_empty() { "/*" } else { path.strip_suffix('/').unwrap_or(path) };
        if path[1..].split('/').any(str::is_empty) {
            let error = RouteError::new(span, format!("the source {} has an empty segment", quoted(path)));
            return Err(error.hint("write one `/` between segments"));
        }
        Ok(Self { path: path.into() })
    }

    /// The path as it was written.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The segments that a message's path has to begin with.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &str> {
        segments(self.path.strip_suffix("/*").unwrap_or(&self.path))
    }

    /// Whether messages from this path are meant.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let mut theirs = segments(path);
        self.segments().all(|ours| theirs.next().is_some_and(|theirs| compare(ours, theirs).is_eq()))
    }
}

/// The segments of a path, without empty ones.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// The order of segments and of names, whatever their case.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    if one.is_ascii() && other.is_ascii() {
        let lower = |byte: u8| byte.to_ascii_lowercase();
        return one.bytes().map(lower).cmp(other.bytes().map(lower));
    }
    one.chars().flat_map(char::to_lowercase).cmp(other.chars().flat_map(char::to_lowercase))
}

/// The same words, whatever their case.
impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        compare(&self.path, &other.path).is_eq()
    }
}

impl Eq for Source {}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

fn cut(path: &str) -> String {
    path.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, path: &str, matches: bool) {
        let parsed = Source::parse(source, 0..source.len()).expect("a source");
        assert_eq!(parsed.matches(path), matches, "{source} and {path}");
    }

    #[test]
    fn everything_is_everything() {
        for path in ["", "/", "/messages", "/messages/modules/m/outputs/o", "/twinChangeNotifications"] {
            check("/*", path, true);
            check("/", path, true);
        }
    }

    #[test]
    fn a_path_is_a_beginning_by_segments() {
        for source in
            ["/messages/modules/m", "/messages/modules/m/*", "/messages/modules/m/", "/MESSAGES/Modules/M"]
        {
            check(source, "/messages/modules/m", true);
            check(source, "/messages/modules/M/outputs/o", true);
            check(source, "/messages/modules/m2", false);
            check(source, "/messages/modules", false);
            check(source, "/messages", false);
        }
    }

    #[test]
    fn a_star_that_is_no_last_segment_is_a_character() {
        check("/messages/*/outputs", "/messages/m/outputs", false);
        check("/messages/*/outputs", "/messages/*/outputs/o", true);
        check("/messages/mod*", "/messages/modules", false);
        check("/messages/mod*", "/messages/MOD*/x", true);
        check("/messages/**", "/messages/x", false);
    }

    #[test]
    fn case_does_not_count_in_any_script() {
        check("/messages/modules/Küche", "/messages/modules/KÜCHE/outputs/o", true);
        check("/messages/modules/Küche", "/messages/modules/Kuche", false);
    }
}

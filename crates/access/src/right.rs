//! What somebody may do in a virtual host, and what else besides: rights and tags, as RabbitMQ has them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use overtake_engine::rights::Right;
use overtake_lane::{BadPattern, Pattern};
use serde::{Deserialize, Serialize};

/// How the exchange of the empty name is called where rights are given.
pub const DEFAULT_EXCHANGE: &str = "amq.default";

/// The names for which somebody has each right in one virtual host. An empty pattern matches no name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Patterns", into = "Patterns")]
pub struct Permission {
    configure: Pattern,
    write: Pattern,
    read: Pattern,
}

/// The same as texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patterns {
    /// Names that may be configured.
    pub configure: String,
    /// Names that may be written.
    pub write: String,
    /// Names that may be read.
    pub read: String,
}

impl Permission {
    /// All rights to everything.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn everything() -> Self {
        Self::new(".*", ".*", ".*").expect("they are patterns")
    }

    /// The rights to what these match.
    ///
    /// # Errors
    /// [`BadPattern`].
    pub fn new(configure: &str, write: &str, read: &str) -> Result<Self, BadPattern> {
        Ok(Self {
            configure: Pattern::new(configure)?,
            write: Pattern::new(write)?,
            read: Pattern::new(read)?,
        })
    }

    /// The names for which it gives this right.
    #[must_use]
    pub fn pattern(&self, right: Right) -> &Pattern {
        match right {
            Right::Configure => &self.configure,
            Right::Write => &self.write,
            Right::Read => &self.read,
        }
    }

    /// Whether it gives this right to this name.
    #[must_use]
    pub fn gives(&self, right: Right, name: &str) -> bool {
        let name = if name.is_empty() { DEFAULT_EXCHANGE } else { name };
        let pattern = self.pattern(right);
        !pattern.as_str().is_empty() && pattern.matches(name)
    }

    /// Whether it gives this right to every name that these match, also to names that nothing has yet. It says so only where the texts of
    /// both patterns show it: ours matches everything, is the same, or is the literal beginning of theirs (`^jobs\.` of `^jobs\.eu`).
    #[must_use]
    pub fn gives_all(&self, right: Right, names: &Pattern) -> bool {
        covers(self.pattern(right).as_str(), names.as_str())
    }

    /// Whether it gives any right to this name.
    #[must_use]
    pub fn gives_any(&self, name: &str) -> bool {
        [Right::Configure, Right::Write, Right::Read].into_iter().any(|right| self.gives(right, name))
    }
}

/// Patterns that match every name.
const EVERY_NAME: [&str; 8] = [".*", "^.*", ".*$", "^.*$", ".+", "^.+$", "^", "."];

/// Whether every name that `inner` matches is matched by `outer`, as far as their texts show.
fn covers(outer: &str, inner: &str) -> bool {
    if outer.is_empty() {
        return false;
    }
    EVERY_NAME.contains(&outer) || outer == inner || has_prefix(inner, outer)
}

/// Whether all that `pattern` matches begins with the literal text that `prefix` asks for: `^LITERAL`, `^LITERAL.*` or `^LITERAL.*$`.
fn has_prefix(pattern: &str, prefix: &str) -> bool {
    let asks_for = prefix.strip_suffix(".*$").or_else(|| prefix.strip_suffix(".*")).unwrap_or(prefix);
    let Some(literal) = asks_for.strip_prefix('^') else { return false };
    let plain = literal.replace("\\.", "");
    let is_literal = plain.chars().all(|one| one.is_alphanumeric() || "-_:/".contains(one));
    // An alternative need not begin so, and what is repeated may be there no time.
    let rest = pattern.strip_prefix(asks_for).filter(|_| !pattern.contains('|'));
    is_literal && rest.is_some_and(|rest| !rest.starts_with(['*', '?', '{']))
}

impl TryFrom<Patterns> for Permission {
    type Error = BadPattern;

    fn try_from(patterns: Patterns) -> Result<Self, BadPattern> {
        Self::new(&patterns.configure, &patterns.write, &patterns.read)
    }
}

impl From<Permission> for Patterns {
    fn from(permission: Permission) -> Self {
        let text = |right| permission.pattern(right).as_str().to_owned();
        Self { configure: text(Right::Configure), write: text(Right::Write), read: text(Right::Read) }
    }
}

/// What a tag lets somebody do beyond rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// Use the management API and the page, for what one has rights to.
    Management,
    /// And policies and parameters of one's virtual hosts.
    Policymaker,
    /// And see everything: other people's connections, all virtual hosts, metrics.
    Monitoring,
    /// Everything, but publish in the name of others.
    Administrator,
    /// Publish over AMQP with another user's name as `user_id`, and nothing else, as in RabbitMQ.
    Impersonator,
}

impl Tag {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Management => "management",
            Self::Policymaker => "policymaker",
            Self::Monitoring => "monitoring",
            Self::Administrator => "administrator",
            Self::Impersonator => "impersonator",
        }
    }

    /// Whether whoever has this one may do what the other lets one do.
    fn covers(self, other: Self) -> bool {
        match (self, other) {
            (Self::Impersonator, _) | (_, Self::Impersonator) => self == other,
            _ => self == other || self == Self::Administrator || other == Self::Management,
        }
    }
}

/// Every tag.
pub const TAGS: [Tag; 5] =
    [Tag::Administrator, Tag::Monitoring, Tag::Policymaker, Tag::Management, Tag::Impersonator];

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Tag {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        TAGS.into_iter().find(|tag| tag.as_str() == text).ok_or(())
    }
}

/// The tags of somebody: those above, and others that mean nothing here and are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tags(BTreeSet<Arc<str>>);

impl Tags {
    /// Whether they let one do what this tag does.
    #[must_use]
    pub fn cover(&self, tag: Tag) -> bool {
        self.0.iter().filter_map(|text| text.parse::<Tag>().ok()).any(|has| has.covers(tag))
    }

    /// Those that mean nothing here.
    pub fn unknown(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().filter(|text| text.parse::<Tag>().is_err())
    }

    /// Each, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|tag| &**tag)
    }
}

impl<T: AsRef<str>> FromIterator<T> for Tags {
    fn from_iter<I: IntoIterator<Item = T>>(tags: I) -> Self {
        Self(tags.into_iter().map(|tag| Arc::from(tag.as_ref())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_gives_what_its_patterns_match() {
        let permission = Permission::new("^own-", "", ".*").expect("patterns");
        let gives = |right, name| permission.gives(right, name);
        assert!(gives(Right::Configure, "own-orders"));
        assert!(!gives(Right::Configure, "orders"));
        assert!(!gives(Right::Write, "own-orders"), "an empty pattern matches no name");
        assert!(!gives(Right::Write, ""));
        assert!(gives(Right::Read, "anything"));
        assert!(permission.gives_any("x"));
    }

    #[test]
    fn the_exchange_without_a_name_has_one_for_rights() {
        let permission = Permission::new("", "^amq\\.default$", "").expect("patterns");
        assert!(permission.gives(Right::Write, ""));
        assert!(!permission.gives(Right::Write, "amq.direct"));
    }

    #[test]
    fn one_pattern_covers_another_where_their_texts_show_it() {
        let cases = [
            (".*", "anything|else", true),
            ("", "", false),
            ("^jobs$", "^jobs$", true),
            ("^jobs", "^jobs$", true),
            ("^jobs\\.", "^jobs\\.eu", true),
            ("^jobs\\..*$", "^jobs\\.eu", true),
            ("^jobs\\.", "^jobs.eu", false),
            ("^jobs", "jobs", false),
            ("jobs", "^jobs", false),
            ("^jobs", "^jobs|^secret", false),
            ("^jobs", "^jobs*", false),
            ("^jobs", "^jobs?x", false),
            ("^jobs", "^jobs{0,1}x", false),
            ("^job[ab]", "^job[ab]x", false),
            ("^jobs$", "^jobs", false),
        ];
        for (outer, inner, is_covered) in cases {
            assert_eq!(covers(outer, inner), is_covered, "{outer} and {inner}");
        }
    }

    #[test]
    fn tags_cover_one_another() {
        let cover = |tags: &str| {
            let tags: Tags = tags.split_whitespace().collect();
            let all =
                [Tag::Management, Tag::Policymaker, Tag::Monitoring, Tag::Administrator, Tag::Impersonator];
            all.map(|tag| u8::from(tags.cover(tag)))
        };
        assert_eq!(cover(""), [0, 0, 0, 0, 0]);
        assert_eq!(cover("federation"), [0, 0, 0, 0, 0]);
        assert_eq!(cover("impersonator"), [0, 0, 0, 0, 1]);
        assert_eq!(cover("management"), [1, 0, 0, 0, 0]);
        assert_eq!(cover("policymaker"), [1, 1, 0, 0, 0]);
        assert_eq!(cover("monitoring"), [1, 0, 1, 0, 0]);
        assert_eq!(cover("policymaker monitoring"), [1, 1, 1, 0, 0]);
        assert_eq!(cover("administrator"), [1, 1, 1, 1, 0]);
    }
}

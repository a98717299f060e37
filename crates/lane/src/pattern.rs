//! Regular expressions over names: which queues a policy is for, which exchanges somebody may write to.
//!
//! As in RabbitMQ a pattern may match anywhere in the name unless it is anchored, and may look ahead and behind, since
//! `^(?!amq\.)` is what people write. Matching is bounded: a pattern that would try for ever does not match.

use std::borrow::Cow;
use std::fmt;

use fancy_regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest text of a pattern, bytes.
pub const PATTERN_LEN_MAX: usize = 1_024;
/// Steps after which a pattern that looks around is given up.
const STEPS_MAX: usize = 10_000;
/// Most bytes that a compiled pattern takes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// A regular expression over names.
#[derive(Clone)]
pub struct Pattern {
    text: Box<str>,
    regex: Regex,
}

/// A text that is no pattern: why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    /// In a sentence.
    pub why: String,
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for BadPattern {}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`BadPattern`] when it is no regular expression, or too long.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        if text.len() > PATTERN_LEN_MAX {
            return Err(BadPattern { why: format!("a pattern has at most {PATTERN_LEN_MAX} bytes") });
        }
        let regex = RegexBuilder::new(text)
            .backtrack_limit(STEPS_MAX)
            .delegate_size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|error| BadPattern { why: format!("`{text}` is no regular expression: {error}") })?;
        Ok(Self { text: text.into(), regex })
    }

    /// Whether it matches somewhere in this name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name).unwrap_or(false)
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&Cow::<'de, str>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).expect("a pattern").matches(name)
    }

    #[test]
    fn a_pattern_matches_anywhere_unless_it_is_anchored() {
        assert!(matches("orders", "all-orders-eu"));
        assert!(!matches("^orders$", "all-orders-eu"));
        assert!(matches("", "anything"));
        assert!(matches(".*", ""));
        assert!(!matches("^$", "anything"));
    }

    #[test]
    fn a_pattern_may_look_ahead() {
        assert!(matches(r"^(?!amq\.)", "orders"));
        assert!(!matches(r"^(?!amq\.)", "amq.direct"));
    }

    #[test]
    fn a_pattern_that_would_try_for_ever_does_not_match() {
        assert!(!matches(r"^(?=(a+)+b)(a+)+$", &"a".repeat(200)));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        let why = |text: &str| Pattern::new(text).expect_err("no pattern").why;
        assert!(why("(").starts_with("`(` is no regular expression: "));
        assert!(why("*").starts_with("`*` is no regular expression: "));
        assert_eq!(why(&"a".repeat(PATTERN_LEN_MAX + 1)), "a pattern has at most 1024 bytes");
        assert!(Pattern::new(&format!("({}){{999}}", "[a-z]{99}".repeat(20))).is_err());
    }
}

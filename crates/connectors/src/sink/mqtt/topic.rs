//! A topic with places in it that each message fills.

use crate::mqtt::message::{fits, is_topic};
use crate::outgoing::Outgoing;
use crate::texts;

/// A topic, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Topic(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Priority,
    Lane,
    Key,
    Queue,
    RoutingKey,
}

impl Topic {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("`topic` must name a topic".to_owned());
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) =
                after.split_once('}').ok_or_else(|| format!("`topic`: a `{{` of `{text}` has no `}}`"))?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::named(name)?);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        let is_wrong = |part: &Part| matches!(part, Part::Text(text) if !is_topic(text));
        if parts.iter().any(is_wrong) {
            return Err(format!("`topic`: `{text}` must have no `+`, no `#` and no control characters"));
        }
        Ok(Self(parts))
    }

    /// The topic of a message.
    ///
    /// # Errors
    /// Why it can have none, as a phrase.
    pub(super) fn of(&self, message: &Outgoing) -> Result<String, String> {
        let mut topic = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => topic.push_str(text),
                Part::Priority => topic.push_str(&texts::priority(message).ok_or("it has no priority")?),
                Part::Lane => topic.push_str(&message.leased().message.lane),
                Part::Key => topic.push_str(message.key().ok_or("it has no key")?),
                Part::Queue => topic.push_str(message.queue()),
                Part::RoutingKey => topic.push_str(message.route().1),
            }
        }
        if is_topic(&topic) {
            return Ok(topic);
        }
        let told: String =
            topic.chars().take(100).filter(|char| fits(char.encode_utf8(&mut [0; 4]))).collect();
        Err(format!("`{told}` is no topic: none is empty or has `+`, `#` or control characters"))
    }
}

impl Part {
    fn named(name: &str) -> Result<Self, String> {
        Ok(match name {
            "priority" => Self::Priority,
            "lane" => Self::Lane,
            "key" => Self::Key,
            "queue" => Self::Queue,
            "routing_key" => Self::RoutingKey,
            other => {
                return Err(format!(
                    "`topic`: {{{other}}} is none of {{priority}}, {{lane}}, {{key}}, {{queue}} and {{routing_key}}"
                ));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_text_with_places() {
        let Topic(parts) = Topic::parse("jobs/{queue}/{priority}").expect("a topic");
        let text = |text: &str| Part::Text(text.to_owned());
        assert_eq!(parts, [text("jobs/"), Part::Queue, text("/"), Part::Priority]);
    }

    #[test]
    fn a_topic_that_no_message_could_have_is_refused_and_says_why() {
        let why = |text: &str| Topic::parse(text).expect_err(text);
        assert!(why("").contains("must name a topic"));
        assert!(why("a/{lane").contains("has no `}`"));
        assert!(why("a/{color}").contains("{color} is none of {priority}"));
        assert!(why("a/+/{lane}").contains("no `+`"));
    }
}

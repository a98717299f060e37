//! A topic with places in it that each message fills.

use crate::mqtt::message::{fits, is_topic};
use crate::outgoing::Outgoing;
use crate::template::Template;

/// A topic, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Topic(Template<Part>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Priority,
    Lane,
    Key,
    Queue,
    RoutingKey,
}

const PARTS: [(&str, Part); 5] = [
    ("priority", Part::Priority),
    ("lane", Part::Lane),
    ("key", Part::Key),
    ("queue", Part::Queue),
    ("routing_key", Part::RoutingKey),
];

impl Topic {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("`topic` must name a topic".to_owned());
        }
        let template = Template::parse(text, &PARTS).map_err(|why| format!("`topic`: {why}"))?;
        if !template.texts().all(is_topic) {
            return Err(format!("`topic`: `{text}` must have no `+`, no `#` and no control characters"));
        }
        Ok(Self(template))
    }

    /// The topic of a message.
    ///
    /// # Errors
    /// Why it can have none, as a phrase.
    pub(super) fn of(&self, message: &Outgoing) -> Result<String, String> {
        let topic = self.0.fill(|part| {
            let owned =
                |text: Option<&str>, none: &str| text.map(str::to_owned).ok_or_else(|| none.to_owned());
            match part {
                Part::Priority => message
                    .priority_text()
                    .map(|(text, _)| text)
                    .ok_or_else(|| "it has no priority".to_owned()),
                Part::Lane => Ok(message.leased().message.lane.to_string()),
                Part::Key => owned(message.key(), "it has no key"),
                Part::Queue => Ok(message.queue().to_owned()),
                Part::RoutingKey => Ok(message.route().1.to_owned()),
            }
        })?;
        if is_topic(&topic) {
            return Ok(topic);
        }
        let told: String =
            topic.chars().take(100).filter(|char| fits(char.encode_utf8(&mut [0; 4]))).collect();
        Err(format!("`{told}` is no topic: none is empty or has `+`, `#` or control characters"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_that_no_message_could_have_is_refused_and_says_why() {
        let why = |text: &str| Topic::parse(text).expect_err(text);
        assert!(why("").contains("must name a topic"));
        assert!(why("a/{lane").contains("has no `}`"));
        assert!(why("a/{color}").contains("there is no {color}, only {priority}, {lane}"));
        assert!(why("a/+/{lane}").contains("no `+`"));
    }
}

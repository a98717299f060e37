//! The topic of each message: a name, with places for what the message says.

use crate::template::Template;

/// What a message says that may be part of a topic's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Priority,
    Lane,
    Queue,
    RoutingKey,
    Key,
}

const FIELDS: [(&str, Field); 5] = [
    ("priority", Field::Priority),
    ("lane", Field::Lane),
    ("queue", Field::Queue),
    ("routing_key", Field::RoutingKey),
    ("key", Field::Key),
];

/// Longest name of a topic, bytes.
const NAME_LEN_MAX: usize = 249;

/// A name, with places for what a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Topic(Template<Field>);

impl Topic {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("`topic` must be a name".to_owned());
        }
        let template = Template::parse(text, &FIELDS).map_err(|why| format!("`topic`: {why}"))?;
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if template.texts().any(|text| text.len() > NAME_LEN_MAX || !text.bytes().all(is_fine)) {
            return Err(format!(
                "`topic`: a name is at most {NAME_LEN_MAX} of a to z, A to Z, 0 to 9, `.`, `_` and `-`"
            ));
        }
        Ok(Self(template))
    }

    /// The name, where it is the same for all messages.
    #[cfg(feature = "kafka")]
    pub(super) fn name(&self) -> Option<&str> {
        self.0.texts().next().filter(|_| self.0.fields().next().is_none())
    }

    /// The name for one message; nothing stands where it says nothing.
    #[cfg(feature = "kafka")]
    pub(super) fn fill(&self, said: impl Fn(Field) -> Option<String>) -> String {
        let filled = self.0.fill(|field| Ok::<_, std::convert::Infallible>(said(field).unwrap_or_default()));
        filled.unwrap_or_else(|never| match never {})
    }
}

#[cfg(all(test, feature = "kafka"))]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_filled_with_what_the_message_says() {
        let said = |field| match field {
            Field::Priority => Some("high".to_owned()),
            Field::Queue => Some("orders".to_owned()),
            _ => None,
        };
        for (topic, name) in [
            ("plain", "plain"),
            ("{queue}", "orders"),
            ("a.{queue}-{priority}.z", "a.orders-high.z"),
            ("{queue}.{key}", "orders."),
        ] {
            assert_eq!(Topic::parse(topic).map(|topic| topic.fill(said)), Ok(name.to_owned()));
        }
    }

    #[test]
    fn what_is_no_topic_is_told() {
        for (topic, why) in [
            ("", "a name"),
            ("a b", "a to z"),
            ("{queue", "no `}`"),
            ("x.{id}", "there is no {id}, only {pri"),
        ] {
            let said = Topic::parse(topic);
            assert!(said.as_ref().is_err_and(|said| said.contains(why)), "{topic}: {said:?}");
        }
    }
}

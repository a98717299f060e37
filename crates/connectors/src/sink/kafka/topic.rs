//! The topic of each message: a name, with places for what the message says.

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

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Field(Field),
}

/// A name, with places for what a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Topic(Vec<Piece>);

impl Topic {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}').ok_or("`topic`: a `{` has no `}`")?;
            let field = FIELDS.iter().find(|(known, _)| *known == name).ok_or_else(|| {
                let all: Vec<String> = FIELDS.iter().map(|(name, _)| format!("{{{name}}}")).collect();
                format!("`topic`: there is no {{{name}}}, only {}", all.join(", "))
            })?;
            pieces.extend(text_of(before)?);
            pieces.push(Piece::Field(field.1));
            rest = behind;
        }
        pieces.extend(text_of(rest)?);
        if pieces.is_empty() {
            return Err("`topic` must be a name".to_owned());
        }
        Ok(Self(pieces))
    }

    /// The name, where it is the same for all messages.
    #[cfg(feature = "kafka")]
    pub(super) fn name(&self) -> Option<&str> {
        match &*self.0 {
            [Piece::Text(name)] => Some(name),
            _ => None,
        }
    }

    /// The name for one message; nothing stands where it says nothing.
    #[cfg(feature = "kafka")]
    pub(super) fn fill(&self, said: impl Fn(Field) -> Option<String>) -> String {
        let one = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Field(field) => said(*field).unwrap_or_default(),
        };
        self.0.iter().map(one).collect()
    }
}

fn text_of(text: &str) -> Result<Option<Piece>, String> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if text.len() > NAME_LEN_MAX || !text.bytes().all(is_fine) {
        return Err(format!(
            "`topic`: a name is at most {NAME_LEN_MAX} of a to z, A to Z, 0 to 9, `.`, `_` and `-`"
        ));
    }
    Ok((!text.is_empty()).then(|| Piece::Text(text.to_owned())))
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

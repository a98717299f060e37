//! How urgent a message is, in the words of another system.
//!
//! A number means little without its scale: 0 is the most urgent in one system and the least urgent in the next. So what an endpoint says goes with the scheme
//! in which it is said, and a source that reads both takes what is as urgent in its own queue.

use std::collections::BTreeMap;

use bytes::Bytes;
use overtake_lane::{Given, HeaderValue, MessageView, Refusal, Scheme};
use overtake_properties::PropertiesRef;
use serde::{Deserialize, Serialize};

use crate::connector::Flaw;
use crate::texts::given;

/// The name in a table for a message that says no priority.
const NOTHING_SAID: &str = "default";

/// How a receiver says how urgent a message is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityTo {
    /// In the words of this scheme.
    Scheme(Scheme),
    /// As this table has it: on the left priorities in the words of the queue's scheme, or `default`; on the right what the receiver calls them. A priority that
    /// is not in it counts as the next less urgent one that is, and one below all as the last.
    Table(BTreeMap<String, Given>),
}

/// What says how urgent a message is that comes in, and in which words; by default the message itself, in the words of the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorityFrom {
    /// A header: a number or a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// A value in a JSON body, by its JSON pointer (RFC 6901), as `/priority`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The same for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Given>,
    /// The scheme of what is said. Without it: what the message says of that, else the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// What is said there, or `default`, and what it is in the words of the queue's scheme. Anything else is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<BTreeMap<String, Given>>,
}

/// A priority as it is said to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) given: Given,
    /// The scheme it is of, where it is known.
    pub(crate) scheme: Option<Scheme>,
}

impl Said {
    /// As text; `None`: no priority.
    pub(crate) fn text(&self) -> Option<String> {
        (self.given != Given::Missing).then(|| self.given.to_string())
    }

    /// As a number of one byte.
    pub(crate) fn byte(&self) -> Option<u8> {
        match &self.given {
            Given::Number(number) => u8::try_from(*number).ok(),
            _ => None,
        }
    }
}

/// # Errors
/// There is nothing in it.
fn check_table(table: &BTreeMap<String, Given>) -> Result<(), Flaw> {
    let empty = || Flaw::of("priority.table", "it is empty: name one priority or more");
    (!table.is_empty()).then_some(()).ok_or_else(empty)
}

impl PriorityTo {
    /// # Errors
    /// The first flaw that shows without the queue.
    pub(crate) fn check(&self) -> Result<(), Flaw> {
        match self {
            Self::Scheme(_) => Ok(()),
            Self::Table(table) => check_table(table),
        }
    }

    /// # Errors
    /// The first priority that the scheme of the queue does not know.
    pub(crate) fn check_with(&self, queue: Scheme) -> Result<(), Flaw> {
        let Self::Table(table) = self else { return Ok(()) };
        table.keys().try_for_each(|name| {
            let known = queue.map(&named(name));
            let why = |why: Refusal| format!("`{name}`: {why}, which is {queue}");
            known.map(drop).map_err(|refusal| Flaw::of("priority.table", why(refusal)))
        })
    }

    fn say(&self, message: &MessageView) -> Said {
        match self {
            Self::Scheme(scheme) => in_words_of(*scheme, message),
            Self::Table(table) => {
                let known =
                    |name: &String| message.scheme.unwrap_or(Scheme::Max(u8::MAX)).map(&named(name)).ok();
                let all = table.iter().filter_map(|(name, said)| Some((known(name)?, said)));
                let below =
                    all.clone().filter(|(level, _)| *level <= message.level).max_by_key(|(level, _)| *level);
                let found = below.or_else(|| all.min_by_key(|(level, _)| *level));
                Said { given: found.map(|(_, said)| said.clone()).unwrap_or_default(), scheme: None }
            }
        }
    }
}

/// The priority of a message, as this endpoint says it; in the words of `usual` of the queue's scheme where it is not told otherwise.
pub(crate) fn said(to: Option<&PriorityTo>, message: &MessageView, usual: impl Fn(Scheme) -> Scheme) -> Said {
    match (to, message.scheme) {
        (Some(to), _) => to.say(message),
        (None, Some(scheme)) => in_words_of(usual(scheme), message),
        (None, None) => Said { given: message.priority.clone(), scheme: None },
    }
}

/// Numbers of which larger ones are more urgent, as most systems have them.
pub(crate) fn in_numbers(scheme: Scheme) -> Scheme {
    match scheme {
        Scheme::TenLevel | Scheme::Max(_) => scheme,
        Scheme::Signed | Scheme::Named | Scheme::Route => Scheme::Max(9),
    }
}

/// As [`in_numbers`], but names, and the numbers between them, stay what they are.
pub(crate) fn in_text(scheme: Scheme) -> Scheme {
    match scheme {
        Scheme::Signed | Scheme::Named => scheme,
        Scheme::TenLevel | Scheme::Route | Scheme::Max(_) => in_numbers(scheme),
    }
}

/// A queue without priorities has no scheme to translate from: what its publishers said stays as it is.
fn in_words_of(scheme: Scheme, message: &MessageView) -> Said {
    let given = match message.scheme {
        Some(own) if own != scheme => scheme.words_for(own, message.level),
        _ => message.priority.clone(),
    };
    Said { given, scheme: message.scheme.map(|_| scheme) }
}

fn named(name: &str) -> Given {
    if name.eq_ignore_ascii_case(NOTHING_SAID) { Given::Missing } else { given(name) }
}

impl PriorityFrom {
    /// # Errors
    /// The first flaw.
    pub(crate) fn check(&self) -> Result<(), Flaw> {
        let Self { header, body, value, scheme, table } = self;
        let places =
            usize::from(header.is_some()) + usize::from(body.is_some()) + usize::from(value.is_some());
        if places > 1 {
            return Err(Flaw::of("priority", "say one of `header`, `body` and `value`"));
        }
        if scheme.is_some() && table.is_some() {
            return Err(Flaw::of(
                "priority",
                "say one of `scheme` and `table`: what the table says is of the queue's scheme",
            ));
        }
        table.as_ref().map_or(Ok(()), check_table)?;
        if let (Some(scheme), Some(value)) = (scheme, value) {
            scheme
                .map(value)
                .map_err(|why| Flaw::of("priority.value", format!("{why}, which is {scheme}")))?;
        }
        Ok(())
    }

    /// How urgent a message is that says so itself.
    ///
    /// # Errors
    /// [`Refusal::PriorityUnknown`] and [`Refusal::PriorityOutOfRange`]: a word that its scheme or the table does not have.
    pub(crate) fn read(
        &self,
        own: Said,
        properties: PropertiesRef<'_>,
        body: &Bytes,
    ) -> Result<Given, Refusal> {
        let Said { given: said, scheme } = match self {
            Self { value: Some(value), .. } => Said { given: value.clone(), scheme: None },
            Self { header: Some(name), .. } => Said { given: in_header(name, properties), scheme: None },
            Self { body: Some(pointer), .. } => Said { given: in_body(pointer, body), scheme: None },
            _ => own,
        };
        if let Some(table) = &self.table {
            let is_it = |name: &&String| name.eq_ignore_ascii_case(&said.to_string());
            let found = table.keys().find(is_it).map(|name| table[name].clone());
            return found.ok_or(Refusal::PriorityUnknown);
        }
        match self.scheme.or(scheme) {
            None => Ok(said),
            Some(scheme) => Ok(Given::Of(scheme, scheme.map(&said)?)),
        }
    }
}

fn in_header(name: &str, properties: PropertiesRef<'_>) -> Given {
    let value = properties.headers().and_then(|table| table.get(name));
    let said = value.and_then(|value| match overtake_engine::header_of(value) {
        HeaderValue::Int(number) => Some(Given::Number(number)),
        HeaderValue::Text(text) => Some(given(&text)),
        _ => None,
    });
    said.unwrap_or_default()
}

fn in_body(pointer: &str, body: &Bytes) -> Given {
    let json = serde_json::from_slice::<serde_json::Value>(body).ok();
    let value = json.as_ref().and_then(|json| json.pointer(pointer));
    let said =
        value.and_then(|value| value.as_i64().map(Given::Number).or_else(|| value.as_str().map(given)));
    said.unwrap_or_default()
}

//! How urgent a message is, in the words of another system.
//!
//! A number means little without its scale: 0 is the most urgent in one system and the least urgent in the next. So what an endpoint says goes with the scheme
//! in which it is said, and a source that reads both takes what is as urgent in its own queue.

use std::collections::BTreeMap;

use bytes::Bytes;
use overtake_lane::{Given, HeaderValue, MessageView, Priority, Refusal, Scheme};
use overtake_properties::PropertiesRef;
use serde::{Deserialize, Serialize};

use crate::connector::Flaw;
use crate::texts::{given, in_body, in_header};

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

/// Where an incoming message says how urgent it is, and in which words; by default the message itself, in the words of the queue.
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
    /// From the sender's words (or `default`, for none) to words of the queue's scheme. Any other word is refused.
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
/// The table is empty, or names one priority twice: `0` and `00`, `High` and `high`.
fn check_table(table: &BTreeMap<String, Given>) -> Result<(), Flaw> {
    let flaw = |why: String| Flaw::of("priority.table", why);
    let names: Vec<&String> = table.keys().collect();
    if names.is_empty() {
        return Err(flaw("it is empty: name one priority or more".to_owned()));
    }
    let mut pairs =
        names.iter().enumerate().flat_map(|(at, one)| names[..at].iter().map(move |other| (*other, *one)));
    match pairs.find(|(one, other)| is_same(&named(one), &named(other))) {
        Some((one, other)) => Err(flaw(format!("`{one}` and `{other}` are the same priority: name it once"))),
        None => Ok(()),
    }
}

/// Whether two priorities are the same whatever the scheme is.
fn is_same(one: &Given, other: &Given) -> bool {
    match (one, other) {
        (Given::Name(one), Given::Name(other)) => one.eq_ignore_ascii_case(other),
        _ => one == other,
    }
}

fn unknown_to(queue: Scheme, said: &Given) -> Option<String> {
    queue.map(said).err().map(|why| format!("`{said}`: {why}, which is {queue}"))
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
    /// The first priority that the scheme of the queue does not know, or that it takes for the same as another one of the table.
    pub(crate) fn check_with(&self, queue: Scheme) -> Result<(), Flaw> {
        let Self::Table(table) = self else { return Ok(()) };
        let flaw = |why: String| Err(Flaw::of("priority.table", why));
        let mut levels: Vec<(Priority, &String, &Given)> = Vec::with_capacity(table.len());
        for (name, said) in table {
            let level = match queue.map(&named(name)) {
                Ok(level) => level,
                Err(why) => return flaw(format!("`{name}`: {why}, which is {queue}")),
            };
            // A message that says nothing may well be called what its level is called.
            let is_other = |other: &str, other_said: &Given| {
                let one_says_nothing = [name, other].iter().any(|name| named(name) == Given::Missing);
                !(one_says_nothing && said == other_said)
            };
            let same = levels.iter().find(|(of, other, at)| *of == level && is_other(other, at));
            if let Some((_, other, _)) = same {
                return flaw(format!(
                    "`{other}` and `{name}` are the same priority in a queue of {queue}: name it once"
                ));
            }
            levels.push((level, name, said));
        }
        Ok(())
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

    /// # Errors
    /// The first priority that the scheme of the queue does not know, of those that stand here in its words.
    pub(crate) fn check_with(&self, queue: Scheme) -> Result<(), Flaw> {
        let (key, said): (_, Vec<&Given>) = match self {
            Self { table: Some(table), .. } => ("priority.table", table.values().collect()),
            Self { scheme: None, value: Some(value), .. } => ("priority.value", vec![value]),
            _ => return Ok(()),
        };
        said.into_iter()
            .find_map(|given| unknown_to(queue, given))
            .map_or(Ok(()), |why| Err(Flaw::of(key, why)))
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
            Self { header: Some(name), .. } => {
                Said { given: given_by(in_header(name, properties)), scheme: None }
            }
            Self { body: Some(pointer), .. } => {
                Said { given: given_by(in_body(pointer, body)), scheme: None }
            }
            _ => own,
        };
        if let Some(table) = &self.table {
            let said = named(&said.to_string());
            let found = table.iter().find(|(name, _)| is_same(&named(name), &said));
            return found.map(|(_, given)| given.clone()).ok_or(Refusal::PriorityUnknown);
        }
        match self.scheme.or(scheme) {
            None => Ok(said),
            Some(scheme) => Ok(Given::Of(scheme, scheme.map(&said)?)),
        }
    }
}

/// A text or a whole number as a priority; nothing, and anything else, is none.
fn given_by(value: Option<HeaderValue>) -> Given {
    match value {
        Some(HeaderValue::Int(number)) => Given::Number(number),
        Some(HeaderValue::Text(text)) => given(&text),
        _ => Given::Missing,
    }
}

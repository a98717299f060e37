//! Bindings: what an exchange gives to whom.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::header::{HeaderValue, Marks};
use crate::refusal::Refusal;

/// Most bytes of what is remembered of an exchange or a binding beside its names.
pub const ARGUMENTS_LEN_MAX: usize = 8_192;

/// Where a binding leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// To the queue of this name.
    Queue(Arc<str>),
    /// To the exchange of this name.
    Exchange(Arc<str>),
}

impl Destination {
    /// The name of the queue or exchange.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Queue(name) | Self::Exchange(name) => name,
        }
    }
}

/// How many of its headers a binding of a headers exchange wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadersMatch {
    /// All of them; those whose name begins with `x-` do not count.
    #[default]
    All,
    /// One of them; those whose name begins with `x-` do not count.
    Any,
    /// All of them, whatever their name.
    AllWithX,
    /// One of them, whatever its name.
    AnyWithX,
}

/// Ties a queue or an exchange to an exchange. The same in everything is the same binding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    /// The exchange it is of.
    pub exchange: Arc<str>,
    /// Where it leads.
    pub to: Destination,
    /// The routing key, pattern or weight.
    pub routing_key: String,
    /// For a headers exchange: names and values that must be there.
    pub headers: Vec<(String, HeaderValue)>,
    /// For a headers exchange: how many of them.
    pub matching: HeadersMatch,
    /// As the client gave them. Nothing here reads them.
    pub arguments: Vec<u8>,
}

/// Several bindings, each once.
pub(crate) type Bindings = BTreeSet<Arc<Binding>>;

impl Binding {
    /// A binding by key alone.
    #[must_use]
    pub fn new(exchange: &str, to: Destination, routing_key: &str) -> Self {
        Self {
            exchange: exchange.into(),
            to,
            routing_key: routing_key.to_owned(),
            headers: Vec::new(),
            matching: HeadersMatch::All,
            arguments: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.size());
        self.routing_key.len() + self.arguments.len() + headers.sum::<usize>()
    }

    /// How much its record takes, in KiB, about.
    pub(super) fn cost(&self) -> usize {
        1 + self.len() / 1_024
    }

    /// Whether it can be remembered.
    ///
    /// # Errors
    /// [`Refusal::ArgumentsInvalid`].
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let is_shallow = self.headers.iter().all(|(_, value)| value.is_shallow());
        (self.len() <= ARGUMENTS_LEN_MAX && is_shallow).then_some(()).ok_or(Refusal::ArgumentsInvalid)
    }

    /// How much of what a consistent-hash exchange shares out it gets.
    ///
    /// # Errors
    /// [`Refusal::WeightInvalid`].
    pub(crate) fn weight(&self) -> Result<u32, Refusal> {
        self.routing_key.parse().ok().filter(|weight| *weight > 0).ok_or(Refusal::WeightInvalid)
    }

    /// Whether a headers exchange gives it a message. As in RabbitMQ: none of no headers is none, all of no headers is all.
    pub(crate) fn takes_headers(&self, marks: &dyn Marks) -> bool {
        let with_x = matches!(self.matching, HeadersMatch::AllWithX | HeadersMatch::AnyWithX);
        let mut wanted = self.headers.iter().filter(|(name, _)| with_x || !name.starts_with("x-"));
        let has = |(name, value): &(String, HeaderValue)| {
            marks.header(name).is_some_and(|there| *value == HeaderValue::Void || there.equals(value))
        };
        match self.matching {
            HeadersMatch::All | HeadersMatch::AllWithX => wanted.all(has),
            HeadersMatch::Any | HeadersMatch::AnyWithX => wanted.any(has),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::Headers;
    use super::*;

    fn text(text: &str) -> HeaderValue {
        HeaderValue::Text(text.into())
    }

    #[test]
    fn headers_match_all_or_any() {
        use HeaderValue::{Int, Void};
        use HeadersMatch::{All, AllWithX, Any, AnyWithX};
        let headers: Headers =
            [("a".to_owned(), text("1")), ("n".to_owned(), Int(2)), ("x-n".to_owned(), Int(3))].into();
        let check = |pairs: &[(&str, HeaderValue)], matching, expect| {
            let binding = Binding {
                headers: pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
                matching,
                ..Binding::new("x", Destination::Queue("q".into()), "")
            };
            assert_eq!(binding.takes_headers(&headers), expect, "{pairs:?} {matching:?}");
        };
        check(&[("a", text("1")), ("n", Int(2))], All, true);
        check(&[("a", text("1")), ("n", Int(3))], All, false);
        check(&[("a", text("1")), ("n", Int(3))], Any, true);
        check(&[("a", Int(1))], Any, false);
        check(&[("a", Void), ("n", Void)], All, true);
        check(&[("b", Void)], All, false);
        check(&[("b", Void), ("n", Void)], Any, true);
        check(&[], All, true);
        check(&[], Any, false);
        check(&[], AllWithX, true);
        check(&[], AnyWithX, false);
        check(&[("x-n", Int(4))], All, true);
        check(&[("x-n", Int(3))], Any, false);
        check(&[("x-n", Int(4))], AllWithX, false);
        check(&[("x-n", Int(3))], AllWithX, true);
        check(&[("x-n", Int(3)), ("a", text("2"))], AnyWithX, true);
    }
}

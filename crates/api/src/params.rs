//! Query parameters, decoded and checked.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum_core::extract::FromRequestParts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::request::Parts;
use overtake_engine::{BROWSE_LIMIT_MAX, BROWSE_LOOKS_MAX, Browse, DeleteOnly, Filter, PageCursor};
use overtake_lane::{BrowseOrder, Given, Seq, Status};
use percent_encoding::percent_decode_str;

use crate::body::PropertiesShown;
use crate::problem::Problem;

/// Most parameters of one request.
const PARAMS_MAX: usize = 100;
/// Default number of messages or queues on a page.
const PAGE_LIMIT: usize = 50;
/// Largest `timeout_ms` and `wait_ms`: a day.
const TIMEOUT_MS_MAX: u64 = 86_400_000;

/// Query parameters that no method has taken yet.
#[derive(Debug)]
pub struct Params(Vec<(String, String)>);

/// Parts of a message that a request asks for, in addition to those that every response shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// Whether to show the body.
    pub body: bool,
    /// Which AMQP properties to show.
    pub properties: PropertiesShown,
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl Params {
    /// Parses the query of an address.
    ///
    /// # Errors
    /// 422 for parameters that are not percent-encoded UTF-8, or too many.
    pub fn parse(query: &str) -> Result<Self, Problem> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let mut params = Vec::new();
        for pair in pairs {
            if params.len() == PARAMS_MAX {
                return Err(Problem::bad_value(
                    "query",
                    format!("there may be at most {PARAMS_MAX} parameters"),
                ));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            params.push((text(name)?, text(value)?));
        }
        Ok(Self(params))
    }

    /// The names of the parameters.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Takes the value of a parameter. An empty value counts as a missing parameter.
    ///
    /// # Errors
    /// 422 for a parameter that is given twice.
    pub fn take(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let mut values =
            self.take_all(|key| (key == name).then_some(())).into_iter().map(|((), value)| value);
        match (values.next(), values.next()) {
            (Some(one), Some(other)) => Err(twice(name, &one, &other)),
            (value, _) => Ok(value.filter(|value| !value.is_empty())),
        }
    }

    /// Takes the value of a parameter, which is refused when it is empty: a value that was lost on its way must not count as none.
    ///
    /// # Errors
    /// 422 for a parameter that is given twice, or without a value.
    pub fn take_word(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let is_there = self.0.iter().any(|(key, _)| key == name);
        let word = self.take(name)?;
        match is_there && word.is_none() {
            true => Err(Problem::bad_value(name, format!("the parameter `{name}` is there without a value"))),
            false => Ok(word),
        }
    }

    /// Takes `priority`.
    ///
    /// # Errors
    /// 422 for a parameter that is given twice, or without a value.
    pub fn take_priority(&mut self) -> Result<Option<Given>, Problem> {
        self.take_word("priority")?.map(|word| priority("priority", &word)).transpose()
    }

    /// Takes a parameter that is `true` or `false`; a missing one is false.
    ///
    /// # Errors
    /// 422 for another value, or a parameter that is given twice.
    pub fn take_flag(&mut self, name: &str) -> Result<bool, Problem> {
        let word = self.take(name)?.unwrap_or_else(|| "false".to_owned());
        word.parse().map_err(|_| Problem::bad_value(name, "must be `true` or `false`"))
    }

    /// Takes all parameters for whose name `choose` returns a key.
    fn take_all<K>(&mut self, choose: impl Fn(&str) -> Option<K>) -> Vec<(K, String)> {
        let (mut chosen, mut left) = (Vec::new(), Vec::new());
        for (name, value) in self.0.drain(..) {
            match choose(&name) {
                Some(key) => chosen.push((key, value)),
                None => left.push((name, value)),
            }
        }
        self.0 = left;
        chosen
    }

    /// Takes `if=empty`, `if=unused`, or both.
    ///
    /// # Errors
    /// 422 for any other value.
    pub fn into_delete_only(mut self) -> Result<DeleteOnly, Problem> {
        let mut only = DeleteOnly::default();
        for word in self.take_word("if")?.iter().flat_map(|value| value.split(',')) {
            match word {
                "empty" => only.if_empty = true,
                "unused" => only.if_unused = true,
                _ => return Err(Problem::bad_value("if", "must be `empty`, `unused` or `empty,unused`")),
            }
        }
        Ok(only)
    }

    /// Takes `if=unused`.
    ///
    /// # Errors
    /// 422 for any other value.
    pub fn into_if_unused(self) -> Result<bool, Problem> {
        let only = self.into_delete_only()?;
        if only.if_empty { Err(Problem::bad_value("if", "must be `unused`")) } else { Ok(only.if_unused) }
    }

    /// Takes the parameters that select a page of messages, and those that say which parts to show.
    ///
    /// # Errors
    /// 422 for a value that is not valid.
    pub fn into_browse(mut self) -> Result<(Browse, Shown), Problem> {
        let filter = Filter {
            status: self.take("status")?.map(|word| status(&word)).transpose()?,
            priority: self.take_priority()?,
            key: self.take("key")?,
            headers: self.take_headers()?,
            user_id: self.take("user_id")?,
            ending: None,
            without_priority: self.take_flag("without_priority")?,
        };
        let order = self.take("order")?.map_or(Ok(BrowseOrder::Dispatch), |word| order(&word))?;
        let limit = self.take_limit(PAGE_LIMIT)?;
        let cursor = self.take("cursor")?.map(|word| cursor(&word, order)).transpose()?;
        let looks = Some(self.take("looks")?.map_or(Ok(BROWSE_LOOKS_MAX), |word| looks(&word))?);
        let shown = self.take_shown()?;
        Ok((Browse { filter, order, limit, cursor, looks, ..Browse::default() }, shown))
    }

    /// Takes the name after which a page of queues begins, and the number of queues on the page.
    ///
    /// # Errors
    /// 422 for a value that is not valid.
    pub fn into_queue_page(mut self) -> Result<(Option<String>, usize), Problem> {
        let limit = self.take_limit(PAGE_LIMIT)?;
        let after = self.take("cursor")?.map(|word| queue_cursor(&word)).transpose()?;
        Ok((after, limit))
    }

    /// Takes `limit`, the number of items on a page; a request without it gets `default`.
    ///
    /// # Errors
    /// 422 for a value that is not valid.
    pub fn take_limit(&mut self, default: usize) -> Result<usize, Problem> {
        self.take("limit")?.map_or(Ok(default), |word| limit(&word))
    }

    /// Takes `timeout_ms`.
    ///
    /// # Errors
    /// 422 for a value that is not valid.
    pub fn into_timeout(mut self) -> Result<Option<Duration>, Problem> {
        milliseconds("timeout_ms", self.take("timeout_ms")?)
    }

    /// Takes `wait_ms`.
    ///
    /// # Errors
    /// 422 for a value that is not valid.
    pub fn into_wait(mut self) -> Result<Option<Duration>, Problem> {
        milliseconds("wait_ms", self.take_word("wait_ms")?)
    }

    /// Takes the parameters that say which parts of a message to show.
    ///
    /// # Errors
    /// 422 for a value that is not valid.
    pub fn into_shown(mut self) -> Result<Shown, Problem> {
        self.take_shown()
    }

    fn take_headers(&mut self) -> Result<Vec<(String, String)>, Problem> {
        let headers = self.take_all(|name| name.strip_prefix("header.").map(ToOwned::to_owned));
        let mut seen = BTreeMap::new();
        for (name, value) in &headers {
            if let Some(before) = seen.insert(name, value) {
                return Err(twice(&format!("header.{name}"), before, value));
            }
        }
        Ok(headers)
    }

    fn take_shown(&mut self) -> Result<Shown, Problem> {
        let body = self.take("body")?.map_or(Ok(true), |word| with_bodies(&word))?;
        let properties = match self.take("properties")?.as_deref() {
            None | Some("text") => PropertiesShown::Text,
            Some("base64") => PropertiesShown::Base64,
            Some(_) => return Err(Problem::bad_value("properties", "must be text or base64")),
        };
        Ok(Shown { body, properties })
    }
}

/// A parameter with two values: 422.
pub fn twice(name: &str, one: &str, other: &str) -> Problem {
    Problem::bad_value(name, format!("the parameter is there twice: `{one}` and `{other}`"))
}

/// Formats the cursor of the next page of messages. The text includes the order, so a cursor is refused in another order. The text needs no percent-encoding.
pub fn cursor_text(cursor: &PageCursor, order: BrowseOrder) -> String {
    let text = match cursor {
        PageCursor::After(seq) => seq.0.to_string(),
        PageCursor::Passed(passed) => passed.to_string(),
        // What is written down of a walk has numbers and plain words only.
        PageCursor::Walk(walk) => {
            URL_SAFE_NO_PAD.encode(serde_json::to_vec(&**walk).expect("a walk can be written"))
        }
        PageCursor::PartitionWalk(walk) => {
            let json = serde_json::to_vec(&**walk).expect("a walk can be written");
            format!("{PARTITIONS_PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
        }
    };
    format!("{}{text}", prefix(order))
}

/// Character before a walk of a queue whose messages are at servers. No JSON text in base64 begins with it, so no other walk does.
const PARTITIONS_PREFIX: char = 's';

/// First character of a cursor of queues. Cursors of messages begin with others, so neither is accepted for the other.
const QUEUE_PREFIX: char = 'q';

fn prefix(order: BrowseOrder) -> char {
    match order {
        BrowseOrder::Dispatch => 'd',
        BrowseOrder::Published => 'p',
        BrowseOrder::Newest => 'n',
    }
}

fn cursor(text: &str, order: BrowseOrder) -> Result<PageCursor, Problem> {
    let text = text.strip_prefix(prefix(order));
    let cursor = match order {
        BrowseOrder::Dispatch => {
            text.and_then(|text| digits(text).map(PageCursor::Passed).or_else(|| walk(text)))
        }
        BrowseOrder::Published | BrowseOrder::Newest => {
            text.and_then(digits).map(|seq| PageCursor::After(Seq(seq)))
        }
    };
    cursor.ok_or_else(|| {
        Problem::bad_value("cursor", "must be the `next_cursor` of the page before, in the same order")
    })
}

fn walk(text: &str) -> Option<PageCursor> {
    if let Some(text) = text.strip_prefix(PARTITIONS_PREFIX) {
        let json = URL_SAFE_NO_PAD.decode(text).ok()?;
        return Some(PageCursor::PartitionWalk(Arc::new(serde_json::from_slice(&json).ok()?)));
    }
    let json = URL_SAFE_NO_PAD.decode(text).ok()?;
    Some(PageCursor::Walk(Arc::new(serde_json::from_slice(&json).ok()?)))
}

/// Formats the cursor of the next page of queues, which begins after the queue `name`. The text needs no percent-encoding.
pub fn queue_cursor_text(name: &str) -> String {
    format!("{QUEUE_PREFIX}{}", URL_SAFE_NO_PAD.encode(name))
}

fn queue_cursor(text: &str) -> Result<String, Problem> {
    let bytes = text.strip_prefix(QUEUE_PREFIX).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    name.filter(|name| overtake_lane::check_queue_name(name).is_ok())
        .ok_or_else(|| Problem::bad_value("cursor", "must be the `next_cursor` of the page before"))
}

fn status(word: &str) -> Result<Status, Problem> {
    match word {
        "ready" => Ok(Status::Ready),
        "delayed" => Ok(Status::Delayed),
        "leased" => Ok(Status::Leased),
        "dead" => Ok(Status::Dead),
        _ => Err(Problem::bad_value("status", "must be ready, delayed, leased or dead")),
    }
}

fn order(word: &str) -> Result<BrowseOrder, Problem> {
    match word {
        "dispatch" => Ok(BrowseOrder::Dispatch),
        "published" => Ok(BrowseOrder::Published),
        "newest" => Ok(BrowseOrder::Newest),
        _ => Err(Problem::bad_value("order", "must be dispatch, published or newest")),
    }
}

fn limit(word: &str) -> Result<usize, Problem> {
    let number = digits(word).and_then(|number| usize::try_from(number).ok());
    number.filter(|number| (1..=BROWSE_LIMIT_MAX).contains(number)).ok_or_else(|| {
        Problem::bad_value("limit", format!("must be a whole number from 1 to {BROWSE_LIMIT_MAX}"))
    })
}

fn looks(word: &str) -> Result<usize, Problem> {
    let number = digits(word).and_then(|number| usize::try_from(number).ok());
    number.filter(|number| (1..=BROWSE_LOOKS_MAX).contains(number)).ok_or_else(|| {
        Problem::bad_value("looks", format!("must be a whole number from 1 to {BROWSE_LOOKS_MAX}"))
    })
}

fn with_bodies(word: &str) -> Result<bool, Problem> {
    match word {
        "full" => Ok(true),
        "none" => Ok(false),
        _ => Err(Problem::bad_value("body", "must be full or none")),
    }
}

/// Reads the priority that the parameter or header `key` gives: a whole number or a name.
///
/// # Errors
/// 422 for blanks only: a value that was lost on its way must not count as none.
pub fn priority(key: &str, text: &str) -> Result<Given, Problem> {
    match text.parse().unwrap_or_default() {
        Given::Missing => Err(Problem::bad_value(key, format!("`{key}` is there without a value"))),
        given => Ok(given),
    }
}

/// Parses a number that consists of digits only. (`u64::from_str` also accepts a leading `+`.)
pub fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| u64::from_str(text).ok())?
}

fn milliseconds(name: &str, given: Option<String>) -> Result<Option<Duration>, Problem> {
    let wrong = || Problem::bad_value(name, format!("must be a number from 0 to {TIMEOUT_MS_MAX}"));
    let given = given.map(|text| digits(&text).filter(|ms| *ms <= TIMEOUT_MS_MAX).ok_or_else(wrong));
    Ok(given.transpose()?.map(Duration::from_millis))
}

fn text(encoded: &str) -> Result<String, Problem> {
    let spaced = encoded.replace('+', " ");
    percent_decode_str(&spaced)
        .decode_utf8()
        .map(|text| text.into_owned())
        .map_err(|_| Problem::bad_value("query", "must be percent-encoded UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<T>(
        query: &str,
        mean: impl FnOnce(Params) -> Result<T, Problem>,
        tell: impl FnOnce(T) -> String,
    ) -> String {
        Params::parse(query)
            .and_then(mean)
            .map_or_else(|problem| format!("{} {:?}", problem.body().code(), problem.body().about()), tell)
    }

    #[test]
    fn a_cursor_of_queues_is_a_name() {
        let check = |query: &str, expect: &str| {
            let told = seen(query, Params::into_queue_page, |(after, limit)| format!("{after:?} {limit}"));
            assert_eq!(told, expect, "{query}");
        };
        check("", "None 50");
        for name in ["a", "team/jobs ü", "~~?>", "a\tb\n", &"n".repeat(255)] {
            check(&format!("limit=7&cursor={}", queue_cursor_text(name)), &format!("{:?} 7", Some(name)));
        }
        check("cursor=", "None 50");
        for cursor in ["q", "d5", "YQ", "qYQ==", "qYR", "q*", "q_w", "qAA"] {
            check(&format!("cursor={cursor}"), r#"value-invalid Some("cursor")"#);
        }
        check(&format!("cursor={}", queue_cursor_text(&"n".repeat(256))), r#"value-invalid Some("cursor")"#);
        check("limit=1001", r#"value-invalid Some("limit")"#);
    }

    fn check(query: &str, expect: &str) {
        let told = seen(query, Params::into_browse, |(browse, Shown { body: with_bodies, .. })| {
            format!(
                "{:?} {:?} {:?} {:?} {:?} {} {:?} {with_bodies}",
                browse.filter.status,
                browse.filter.priority,
                browse.filter.key,
                browse.filter.headers,
                browse.order,
                browse.limit,
                browse.cursor,
            )
        });
        assert_eq!(told, expect, "{query}");
    }

    #[test]
    fn a_query_is_read_strictly() {
        check("", "None None None [] Dispatch 50 None true");
        check("status=&key=&order=&limit=&cursor=", "None None None [] Dispatch 50 None true");
        check("priority=", r#"value-invalid Some("priority")"#);
        check(
            "status=dead&priority=high&key=a%20b+c&header.x=1&header.y=&order=published&limit=1000&cursor=p7&body=none",
            r#"Some(Dead) Some(Name("high")) Some("a b c") [("x", "1"), ("y", "")] Published 1000 Some(After(Seq(7))) false"#,
        );
        check("priority=%20", r#"value-invalid Some("priority")"#);
        check("header.x=1&header.x=1", r#"value-invalid Some("header.x")"#);
        check("status=done", r#"value-invalid Some("status")"#);
        check("limit=0", r#"value-invalid Some("limit")"#);
        check("limit=1001", r#"value-invalid Some("limit")"#);
        check("limit=+5", r#"value-invalid Some("limit")"#);
        check("limit=99999999999999999999", r#"value-invalid Some("limit")"#);
        check("limit=5&limit=6", r#"value-invalid Some("limit")"#);
        check("cursor=p7", r#"value-invalid Some("cursor")"#);
        check("looks=0", r#"value-invalid Some("looks")"#);
        check("looks=100001", r#"value-invalid Some("looks")"#);
        check("key=%ff", r#"value-invalid Some("query")"#);
        check("body=some", r#"value-invalid Some("body")"#);
    }

    #[test]
    fn a_request_looks_at_as_many_messages_as_it_says_and_never_at_all() {
        let looks = |query| seen(query, Params::into_browse, |(browse, _)| format!("{:?}", browse.looks));
        assert_eq!(looks(""), "Some(100000)");
        assert_eq!(looks("looks=7"), "Some(7)");
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written_in_its_own_order() {
        use BrowseOrder::{Dispatch, Newest, Published};
        let walk = |json: &str| PageCursor::Walk(Arc::new(serde_json::from_str(json).expect("a walk")));
        let servers =
            |json: &str| PageCursor::PartitionWalk(Arc::new(serde_json::from_str(json).expect("a walk")));
        let far = r#"{"ready":{"turn":[9,2],"marks":{"-1":[7,9,3],"9":[18446744073709551614,18446744073709551614,0]}}}"#;
        for (cursor, order) in [
            (PageCursor::After(Seq(7)), Published),
            (PageCursor::After(Seq(u64::MAX)), Newest),
            (PageCursor::Passed(7), Dispatch),
            (walk(r#""begin""#), Dispatch),
            (walk(far), Dispatch),
            (walk(r#"{"gather":{"status":"dead","from":7,"found":{"after":[3,4],"seqs":[1,5]}}}"#), Dispatch),
            (servers(r#""begin""#), Dispatch),
            (servers(r#"{"lanes":{"passed":{"-1":7,"9":18446744073709551615},"turn":[9,2]}}"#), Dispatch),
            (
                servers(
                    r#"{"show":{"status":"dead","found":{"after":[3,4],"cut":null,"keys":[[1,5],[0,6]]}}}"#,
                ),
                Dispatch,
            ),
        ] {
            let text = cursor_text(&cursor, order);
            assert_eq!(super::cursor(&text, order).ok(), Some(cursor), "{text}");
            for other in [Dispatch, Published, Newest].into_iter().filter(|other| *other != order) {
                assert!(super::cursor(&text, other).is_err(), "{text} {other:?}");
            }
            assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'), "{text}");
        }
        for forged in ["d", "dx", "dInNob3ci", "deyJzaG93Ijp7fX0", "ds", "dsInNob3ci", "dsdsImJlZ2luIg"] {
            assert!(super::cursor(forged, Dispatch).is_err(), "{forged}");
        }
    }
}

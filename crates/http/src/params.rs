//! Query parameters, read strictly: one that is not known is named, not ignored.

use std::str::FromStr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use overtake_engine::{BROWSE_LIMIT_MAX, Browse, DeleteOnly, Filter};
use overtake_lane::{BrowseOrder, Cursor, Status};
use percent_encoding::percent_decode_str;

use crate::answer::Shown;
use crate::problem::Problem;
use crate::wire::PropertiesShown;

/// Most parameters of one request.
const PARAMS_MAX: usize = 100;
/// Messages or queues of a page, if the request does not say.
const PAGE_LIMIT: usize = 50;

/// Longest `timeout_ms`: a day.
const TIMEOUT_MS_MAX: u64 = 86_400_000;

/// Query parameters that were not looked at yet.
#[derive(Debug)]
pub(crate) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl Params {
    /// From the query of an address.
    ///
    /// # Errors
    /// 422 when it is no text, or too many.
    pub(crate) fn parse(query: &str) -> Result<Self, Problem> {
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

    /// The value of a parameter; an empty one counts as not given.
    ///
    /// # Errors
    /// 422 when it is there twice.
    pub(crate) fn take(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let mut values =
            self.take_all(|key| (key == name).then_some(())).into_iter().map(|((), value)| value);
        match (values.next(), values.next()) {
            (Some(_), Some(_)) => Err(Problem::bad_value(name, "the parameter is there twice")),
            (value, _) => Ok(value.filter(|value| !value.is_empty())),
        }
    }

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

    /// There are no others; these are known.
    ///
    /// # Errors
    /// 422 for the first that is left.
    pub(crate) fn finish(self, known: &str) -> Result<(), Problem> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "parameter-unknown",
                "the request has a query parameter it does not know",
                "",
            )
            .hint(format!("use {known}"))
            .key(name)),
        }
    }

    /// `if=empty`, `if=unused`, or both.
    ///
    /// # Errors
    /// 422 for anything else.
    pub(crate) fn into_delete_only(mut self) -> Result<DeleteOnly, Problem> {
        let mut only = DeleteOnly::default();
        for (_, value) in self.take_all(|key| (key == "if").then_some(())).iter() {
            for word in value.split(',').filter(|word| !word.is_empty()) {
                match word {
                    "empty" => only.if_empty = true,
                    "unused" => only.if_unused = true,
                    _ => return Err(Problem::bad_value("if", "must be `empty`, `unused` or `empty,unused`")),
                }
            }
        }
        self.finish("if=empty or if=unused")?;
        Ok(only)
    }

    /// `if=unused`.
    ///
    /// # Errors
    /// 422 for anything else.
    pub(crate) fn into_if_unused(self) -> Result<bool, Problem> {
        let only = self.into_delete_only()?;
        if only.if_empty { Err(Problem::bad_value("if", "must be `unused`")) } else { Ok(only.if_unused) }
    }

    /// What to browse, and whether with bodies.
    ///
    /// # Errors
    /// 422 for a parameter that is not known, or a value that cannot be.
    pub(crate) fn into_browse(mut self) -> Result<(Browse, Shown), Problem> {
        let filter = Filter {
            status: self.take("status")?.map(|word| status(&word)).transpose()?,
            priority: self.take("priority")?.map(|word| word.parse().unwrap_or_default()),
            key: self.take("key")?,
            headers: self.take_all(|name| name.strip_prefix("header.").map(ToOwned::to_owned)),
            user_id: self.take("user_id")?,
            ending: None,
        };
        let order = self.take("order")?.map_or(Ok(BrowseOrder::Dispatch), |word| order(&word))?;
        let limit = self.take_limit(PAGE_LIMIT)?;
        let cursor = self.take("cursor")?.map(|word| cursor(&word, order)).transpose()?;
        let shown = self.take_shown()?;
        self.finish(
            "status, priority, key, header.NAME, user_id, order, limit, cursor, body and properties",
        )?;
        Ok((Browse { filter, order, limit, cursor, ..Browse::default() }, shown))
    }

    /// After which name to list queues, and how many.
    ///
    /// # Errors
    /// 422 for a parameter that is not known, or a value that cannot be.
    pub(crate) fn into_queue_page(mut self) -> Result<(Option<String>, usize), Problem> {
        let limit = self.take_limit(PAGE_LIMIT)?;
        let after = self.take("cursor")?.map(|word| queue_cursor(&word)).transpose()?;
        self.finish("limit and cursor")?;
        Ok((after, limit))
    }

    /// `limit`, if the request says it.
    ///
    /// # Errors
    /// 422 for a value that cannot be.
    pub(crate) fn take_limit(&mut self, else_this: usize) -> Result<usize, Problem> {
        self.take("limit")?.map_or(Ok(else_this), |word| limit(&word))
    }

    /// `timeout_ms`.
    ///
    /// # Errors
    /// 422 for a parameter that is not known, or a value that cannot be.
    pub(crate) fn into_timeout(mut self) -> Result<Option<Duration>, Problem> {
        let given = self.take("timeout_ms")?;
        let wrong =
            || Problem::bad_value("timeout_ms", format!("must be a number from 0 to {TIMEOUT_MS_MAX}"));
        let timeout = given.map(|text| digits(&text).filter(|ms| *ms <= TIMEOUT_MS_MAX).ok_or_else(wrong));
        self.finish("timeout_ms")?;
        Ok(timeout.transpose()?.map(Duration::from_millis))
    }

    /// Whether to show the body of a message.
    ///
    /// # Errors
    /// 422 for a parameter that is not known, or a value that cannot be.
    pub(crate) fn into_shown(mut self) -> Result<Shown, Problem> {
        let shown = self.take_shown()?;
        self.finish("body=none or body=full, and properties=text or properties=base64")?;
        Ok(shown)
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

/// Where the next page begins, as text. It holds the order, since it means nothing in the other one.
pub(crate) fn cursor_text(cursor: Cursor, order: BrowseOrder) -> String {
    format!("{}{}", prefix(order), cursor.0)
}

/// Before the name in a cursor of queues, so that it is never taken for one of messages.
const QUEUE_PREFIX: char = 'q';

fn prefix(order: BrowseOrder) -> char {
    match order {
        BrowseOrder::Dispatch => 'd',
        BrowseOrder::Published => 'p',
        BrowseOrder::Newest => 'n',
    }
}

fn cursor(text: &str, order: BrowseOrder) -> Result<Cursor, Problem> {
    let number = text.strip_prefix(prefix(order)).and_then(digits);
    number.map(Cursor).ok_or_else(|| {
        Problem::bad_value("cursor", "must be the `next_cursor` of the page before, in the same order")
    })
}

/// After which queue the next page begins, as text that stands in an address as it is.
pub(crate) fn queue_cursor_text(name: &str) -> String {
    format!("{QUEUE_PREFIX}{}", URL_SAFE_NO_PAD.encode(name))
}

fn queue_cursor(text: &str) -> Result<String, Problem> {
    let bytes = text.strip_prefix(QUEUE_PREFIX).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    name.filter(|name| overtake_lane::check_name(name).is_ok())
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

fn with_bodies(word: &str) -> Result<bool, Problem> {
    match word {
        "full" => Ok(true),
        "none" => Ok(false),
        _ => Err(Problem::bad_value("body", "must be full or none")),
    }
}

/// A number of digits only: `u64::from_str` would take a `+`.
pub(crate) fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| u64::from_str(text).ok())?
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
        for name in ["a", "team/jobs ü", "~~?>", &"n".repeat(200)] {
            check(&format!("limit=7&cursor={}", queue_cursor_text(name)), &format!("{:?} 7", Some(name)));
        }
        check("cursor=", "None 50");
        for cursor in ["q", "d5", "YQ", "qYQ==", "qYR", "q*", "q_w", "qCg"] {
            check(&format!("cursor={cursor}"), r#"value-invalid Some("cursor")"#);
        }
        check(&format!("cursor={}", queue_cursor_text(&"n".repeat(201))), r#"value-invalid Some("cursor")"#);
        check("limit=1001", r#"value-invalid Some("limit")"#);
        check("order=published", r#"parameter-unknown Some("order")"#);
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
        check("status=&priority=&key=&order=&limit=&cursor=", "None None None [] Dispatch 50 None true");
        check(
            "status=dead&priority=high&key=a%20b+c&header.x=1&header.y=&order=published&limit=1000&cursor=p7&body=none",
            r#"Some(Dead) Some(Name("high")) Some("a b c") [("x", "1"), ("y", "")] Published 1000 Some(Cursor(7)) false"#,
        );
        check("staus=dead", r#"parameter-unknown Some("staus")"#);
        check("status=done", r#"value-invalid Some("status")"#);
        check("limit=0", r#"value-invalid Some("limit")"#);
        check("limit=1001", r#"value-invalid Some("limit")"#);
        check("limit=+5", r#"value-invalid Some("limit")"#);
        check("limit=99999999999999999999", r#"value-invalid Some("limit")"#);
        check("limit=5&limit=6", r#"value-invalid Some("limit")"#);
        check("cursor=p7", r#"value-invalid Some("cursor")"#);
        check("key=%ff", r#"value-invalid Some("query")"#);
        check("body=some", r#"value-invalid Some("body")"#);
    }
}

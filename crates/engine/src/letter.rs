//! A message as conditions of routes see it.
//!
//! | a condition reads | of the message |
//! |---|---|
//! | `name` | the header of that name, in any case: text as it is, numbers, `true` and `false` as they are written, a header without a value as null |
//! | `$contentType`, `$contentEncoding` | `content_type`, `content_encoding` |
//! | `$messageId`, `$correlationId` | `message_id`, `correlation_id` |
//! | `$userId`, `$appId`, `$type`, `$replyTo` | `user_id`, `app_id`, `type`, `reply_to` |
//! | `$expiration` | `expiration`, as text |
//! | `$connectionDeviceId`, `$connectionModuleId` | who published it ([`Sender`]); the module also of the path `/messages/modules/MODULE`, of whom that is believed |
//! | `$outputName`, `$inputName` | of the path: `/messages/modules/MODULE/outputs/OUTPUT`, `…/inputs/INPUT` |
//! | `$enqueuedTime` | when it was published, RFC 3339 in UTC with milliseconds |
//! | `$body` | the body |
//!
//! All else is undefined.

use std::cell::OnceCell;

use overtake_lane::Time;
use overtake_properties::{PropertiesRef, Short, TableRef, Value};
use overtake_routes::{Body, Shown, Subject, is_same_name};

use crate::api::Content;
use crate::sender::Sender;

/// A message that is routed.
pub struct Letter<'a> {
    /// Where it comes from.
    path: &'a str,
    sender: &'a Sender,
    now: Time,
    /// `now` as text, once it is asked for.
    enqueued: OnceCell<String>,
    content: &'a Content,
    properties: PropertiesRef<'a>,
    headers: Option<TableRef<'a>>,
    /// Headers that are no text, as text.
    written: Vec<(Short<'a>, String)>,
}

impl<'a> Letter<'a> {
    /// A message from a path, by a sender, published now.
    #[must_use]
    pub fn new(path: &'a str, content: &'a Content, sender: &'a Sender, now: Time) -> Self {
        let properties = content.properties.view();
        let headers = properties.headers();
        let all = headers.iter().flat_map(|headers| headers.iter());
        let written = all.filter_map(|(name, value)| Some((name, written(value)?)));
        let enqueued = OnceCell::new();
        Self { path, sender, now, enqueued, content, properties, headers, written: written.collect() }
    }

    /// A system property that says who sent it, and when.
    fn sent(&self, name: &str) -> Option<&str> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        if is("connectionDeviceId") {
            return self.sender.device();
        }
        if is("enqueuedTime") {
            return Some(self.enqueued.get_or_init(|| rfc3339(self.now)));
        }
        let (module, rest) = self.path_of_module().unzip();
        if is("connectionModuleId") {
            return self.sender.module(module);
        }
        let mut rest = rest?.split('/').filter(|part| !part.is_empty());
        let (kind, end) = rest.next().zip(rest.next())?;
        let known = [("outputName", "outputs"), ("inputName", "inputs")];
        let (_, wanted) = known.iter().find(|(known, _)| is(known))?;
        kind.eq_ignore_ascii_case(wanted).then_some(end)
    }

    /// The module of the path, and what follows it.
    fn path_of_module(&self) -> Option<(&str, &str)> {
        let mut rest = self.path;
        for word in ["messages", "modules"] {
            let (part, behind) = next_part(rest)?;
            rest = part.eq_ignore_ascii_case(word).then_some(behind)?;
        }
        next_part(rest)
    }
}

/// The first part of a path that is not empty, and what follows it.
fn next_part(path: &str) -> Option<(&str, &str)> {
    let path = path.trim_start_matches('/');
    let (part, behind) = path.split_once('/').unwrap_or((path, ""));
    (!part.is_empty()).then_some((part, behind))
}

/// As `2026-11-22T09:20:00.000Z`. Not by a library of calendars, since those read clocks, which nothing may that this crate is a part of.
///
/// Source: `civil_from_days` of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March and are counted in eras of 400.
fn rfc3339(at: Time) -> String {
    let (days, ms) = (at.0 / 86_400_000 + 719_468, at.0 % 86_400_000);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (seconds, ms) = (ms / 1_000, ms % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Reads a property.
type Reads<'a> = fn(PropertiesRef<'a>) -> Option<Short<'a>>;

impl<'a> Subject for Letter<'a> {
    fn property(&self, name: &str) -> Shown<'_> {
        let all = || self.headers.into_iter().flat_map(TableRef::iter);
        let exact = all().find(|(known, _)| known.as_bytes() == name.as_bytes());
        let is_same = |known: Short<'_>| known.text().is_some_and(|known| is_same_name(known, name));
        match exact.or_else(|| all().find(|(known, _)| is_same(*known))) {
            None => Shown::Missing,
            Some((_, Value::Void)) => Shown::Null,
            Some((_, value @ Value::String(_))) => value.text().into(),
            Some((found, _)) => {
                let written = self.written.iter().find(|(known, _)| *known == found);
                written.map(|(_, text)| text.as_str()).into()
            }
        }
    }

    fn system(&self, name: &str) -> Shown<'_> {
        let known: [(&str, Reads<'a>); 9] = [
            ("contentType", PropertiesRef::content_type),
            ("contentEncoding", PropertiesRef::content_encoding),
            ("messageId", PropertiesRef::message_id),
            ("correlationId", PropertiesRef::correlation_id),
            ("userId", PropertiesRef::user_id),
            ("appId", PropertiesRef::app_id),
            ("type", PropertiesRef::kind),
            ("replyTo", PropertiesRef::reply_to),
            ("expiration", PropertiesRef::expiration),
        ];
        let found = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        match found {
            Some((_, read)) => read(self.properties).and_then(Short::text).into(),
            None => self.sent(name).into(),
        }
    }

    fn body(&self) -> Body<'_> {
        Body {
            bytes: &self.content.body,
            content_type: self.properties.content_type().and_then(Short::text),
            content_encoding: self.properties.content_encoding().and_then(Short::text),
        }
    }
}

/// A header that is no text, as text; nothing where it is none, or has parts.
fn written(value: Value<'_>) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::Time(seconds) => seconds.to_string(),
        Value::Decimal { scale, value } => decimal(scale, value),
        Value::String(_) | Value::Bytes(_) | Value::Array(_) | Value::Table(_) | Value::Void => return None,
        whole => whole.int()?.to_string(),
    })
}

fn decimal(scale: u8, value: u32) -> String {
    let (digits, scale) = (value.to_string(), usize::from(scale));
    if scale == 0 {
        return digits;
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, parts) = padded.split_at(padded.len() - scale);
    format!("{whole}.{parts}")
}

#[cfg(test)]
mod tests {
    use overtake_properties::{Fields, TableBuilder};
    use overtake_routes::{Condition, Route, Truth};

    use super::*;

    fn condition(text: &str) -> Condition {
        let route = Route::parse(&format!("FROM /* WHERE {text} INTO $upstream"));
        route.unwrap_or_else(|error| panic!("{text}: {error}")).condition.expect("it has one")
    }

    #[test]
    fn what_a_message_says_about_itself_is_what_conditions_read() {
        let entry = |table: TableBuilder, (name, value): (&'static str, Value<'_>)| {
            table.entry(Short::literal(name), value)
        };
        let headers = [
            ("severity", Value::String(b"high")),
            ("count", Value::I32(-7)),
            ("share", Value::F64(0.25)),
            ("price", Value::Decimal { scale: 2, value: 5 }),
            ("ok", Value::Bool(true)),
            ("empty", Value::Void),
            ("raw", Value::String(b"\xff")),
            ("Site", Value::String(b"first")),
            ("SITE", Value::I32(2)),
        ];
        let headers = headers.into_iter().fold(TableBuilder::new(), entry).finish();
        let fields = Fields {
            content_type: Short::new(b"application/json"),
            message_id: Short::new(b"m-1"),
            headers: Some(headers.view()),
            ..Fields::default()
        };
        let content =
            Content { properties: fields.encode(), body: r#"{"x": {"y": 4}}"#.into(), ..Content::default() };
        let sender = Sender::user("edge-7/Cam".into());
        let letter = Letter::new(
            "/messages/Modules/Other/outputs/o1/more",
            &content,
            &sender,
            Time(1_795_339_200_123),
        );
        for (text, truth) in [
            ("severity = 'high'", Truth::True),
            ("as_number(count) < -6", Truth::True),
            ("as_number(share) = 0.25 AND price = '0.05' AND ok = 'true'", Truth::True),
            ("is_null(empty) AND NOT is_defined(raw) AND NOT is_defined(nothing)", Truth::True),
            ("$messageId = 'm-1' AND $MESSAGEID = 'm-1' AND $contentType = 'application/json'", Truth::True),
            ("Severity = 'high' AND COUNT = '-7' AND is_null(EMPTY)", Truth::True),
            ("Site = 'first' AND SITE = '2' AND site = 'first'", Truth::True),
            ("$body.x.y > 3", Truth::True),
            ("$connectionModuleId = 'Cam' AND $OutputName = 'o1'", Truth::True),
            ("$connectionDeviceId = 'edge-7' AND $enqueuedTime = '2026-11-22T09:20:00.123Z'", Truth::True),
            ("is_defined($inputName)", Truth::False),
            ("$userId = 'ann'", Truth::Undefined),
            ("severity = 'low'", Truth::False),
        ] {
            assert_eq!(condition(text).evaluate(&letter), truth, "{text}");
        }
    }

    #[test]
    fn times_are_said_as_rfc_3339_has_them() {
        for (ms, said) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_795_339_200_123, "2026-11-22T09:20:00.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(Time(ms)), said);
        }
    }

    #[test]
    fn a_path_says_who_sent_a_message() {
        let content = Content::default();
        for (path, said) in [
            ("/messages/modules/m/inputs/i", "$connectionModuleId = 'm' AND $inputName = 'i'"),
            ("/messages/modules/m", "$connectionModuleId = 'm' AND NOT is_defined($outputName)"),
            ("/messages/modules/", "NOT is_defined($connectionModuleId)"),
            (
                "/messages/leaf/m/outputs/o",
                "NOT (is_defined($connectionModuleId) OR is_defined($outputName))",
            ),
            ("/twinChangeNotifications", "NOT is_defined($connectionModuleId)"),
        ] {
            let sender = Sender::default();
            let letter = Letter::new(path, &content, &sender, Time(0));
            assert_eq!(condition(said).evaluate(&letter), Truth::True, "{path}");
        }
    }
}

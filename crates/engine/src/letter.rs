//! A message as conditions of routes see it.
//!
//! | a condition reads | of the message |
//! |---|---|
//! | `name` | the header of that name, in any case: text as it is, numbers, `true` and `false` as they are written, a header without a value as null |
//! | `$contentType`, `$contentEncoding` | `content_type`, `content_encoding` |
//! | `$messageId`, `$correlationId` | `message_id`, `correlation_id` |
//! | `$userId`, `$appId`, `$type`, `$replyTo` | `user_id`, `app_id`, `type`, `reply_to` |
//! | `$expiration` | `expiration`, as text |
//! | `$connectionModuleId`, `$outputName`, `$inputName` | of the path: `/messages/modules/MODULE/outputs/OUTPUT`, `…/inputs/INPUT` |
//! | `$body` | the body |
//!
//! All else is undefined.

use overtake_properties::{PropertiesRef, Short, TableRef, Value};
use overtake_routes::{Body, Shown, Subject, is_same_name};

use crate::api::Content;

/// A message that is routed.
pub struct Letter<'a> {
    /// Where it comes from.
    path: &'a str,
    content: &'a Content,
    properties: PropertiesRef<'a>,
    headers: Option<TableRef<'a>>,
    /// Headers that are no text, as text.
    written: Vec<(Short<'a>, String)>,
}

impl<'a> Letter<'a> {
    /// This one, from this path.
    #[must_use]
    pub fn new(path: &'a str, content: &'a Content) -> Self {
        let properties = content.properties.view();
        let headers = properties.headers();
        let all = headers.iter().flat_map(|headers| headers.iter());
        let written = all.filter_map(|(name, value)| Some((name, written(value)?)));
        Self { path, content, properties, headers, written: written.collect() }
    }

    /// What the path says of who sent it.
    fn sender(&self, name: &str) -> Option<&str> {
        let mut segments = self.path.split('/').filter(|part| !part.is_empty());
        let is_of_module = ["messages", "modules"]
            .iter()
            .all(|word| segments.next().is_some_and(|part| part.eq_ignore_ascii_case(word)));
        let module = segments.next().filter(|_| is_of_module)?;
        if name.eq_ignore_ascii_case("connectionModuleId") {
            return Some(module);
        }
        let (kind, end) = segments.next().zip(segments.next())?;
        let known = [("outputName", "outputs"), ("inputName", "inputs")];
        let (_, wanted) = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        kind.eq_ignore_ascii_case(wanted).then_some(end)
    }
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
            None => self.sender(name).into(),
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
        let letter = Letter::new("/messages/Modules/Cam/outputs/o1/more", &content);
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
            ("is_defined($inputName) OR is_defined($connectionDeviceId)", Truth::False),
            ("$userId = 'ann'", Truth::Undefined),
            ("severity = 'low'", Truth::False),
        ] {
            assert_eq!(condition(text).evaluate(&letter), truth, "{text}");
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
            assert_eq!(condition(said).evaluate(&Letter::new(path, &content)), Truth::True, "{path}");
        }
    }
}

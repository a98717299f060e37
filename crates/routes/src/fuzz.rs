//! Any text as a route, with a message for its condition, and as a manifest, for fuzz targets: there is an answer and no panic, and what
//! is accepted is printed, read again and means the same.

use crate::{Body, Manifest, Route, RouteTable, Routing, Shown, Subject, Truth};

/// A message made of what comes behind the route.
struct Message<'a> {
    rest: &'a [u8],
    text: &'a str,
    encoding: Option<&'a str>,
}

impl Subject for Message<'_> {
    fn property(&self, name: &str) -> Shown<'_> {
        match name.len() % 4 {
            0 => Shown::Missing,
            1 => Shown::Text(self.text),
            2 => Shown::Text("5"),
            _ => Shown::Null,
        }
    }

    fn system(&self, name: &str) -> Shown<'_> {
        self.property(name)
    }

    fn body(&self) -> Body<'_> {
        Body { bytes: self.rest, content_type: Some("application/json"), content_encoding: self.encoding }
    }
}

/// Reads the bytes up to a line feed as a route, and what follows as the body of a message and as a manifest.
///
/// # Panics
/// When something was accepted that does not mean the same once it is printed.
pub fn routes(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (route, rest) = bytes.split_at(end);
    let rest = rest.get(1..).unwrap_or_default();
    let route = String::from_utf8_lossy(route);
    one_route(&route, rest);
    one_route(&format!("FROM /* WHERE {route} INTO $upstream"), rest);
    let text = String::from_utf8_lossy(rest);
    for manifest in [Manifest::from_json(&text), Manifest::from_toml(&text)].into_iter().flatten() {
        let again = Manifest::from_json(&manifest.to_json()).expect("what is printed is a manifest");
        assert_eq!(again.to_json(), manifest.to_json());
        RouteTable::compile(&manifest).route(
            "/messages/x",
            &message(rest, "", None),
            &mut Routing::default(),
        );
    }
}

fn message<'a>(rest: &'a [u8], text: &'a str, encoding: Option<&'a str>) -> Message<'a> {
    Message { rest, text, encoding }
}

fn one_route(text: &str, rest: &[u8]) {
    let route = match Route::parse(text) {
        Ok(route) => route,
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "{:?} is a place in the route", error.span);
            assert!(error.render(text).lines().count() >= 2, "there is a line and carets beneath it");
            return;
        }
    };
    let printed = route.to_string();
    let again = Route::parse(&printed).expect("what is printed is a route");
    assert_eq!(again.to_string(), printed);
    let (Some(condition), Some(again)) = (&route.condition, &again.condition) else { return };
    let property = String::from_utf8_lossy(&rest[..rest.len().min(64)]);
    for encoding in [None, Some("utf-16"), Some("utf-32be")] {
        let message = message(rest, &property, encoding);
        let truth = condition.evaluate(&message);
        assert_eq!(truth, again.evaluate(&message), "printed, it means the same");
        let explained = condition.explain(&message);
        assert_eq!(truth, explained.truth, "the explanation is of what it came to");
        assert!(text.get(explained.span).is_some(), "what is explained is a place in the route");
        in_a_table(text, truth, &message);
    }
}

/// A table comes to what the condition alone came to.
fn in_a_table(text: &str, truth: Truth, message: &Message<'_>) {
    let manifest = serde_json::json!({"routes": {"a": {"route": text}, "b": text}}).to_string();
    let table = RouteTable::compile(&Manifest::from_json(&manifest).expect("a route is a manifest"));
    let mut routing = Routing::default();
    let path = Route::parse(text).expect("it was read before").source.path().to_owned();
    table.route(&path, message, &mut routing);
    assert_eq!(routing.matched().len() == 2, truth == Truth::True, "a table comes to the same");
    assert_eq!(routing.undefined().len() == 2, truth == Truth::Undefined, "a table comes to the same");
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_input_panics() {
        overtake_corpus::check("routes", super::routes);
    }
}

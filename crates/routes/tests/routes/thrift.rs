//! What evaluating does not cost: memory for conditions on properties, and a look at the body that nobody asked for.

use std::cell::Cell;

use allocation_counter::measure;
use overtake_routes::{Body, Manifest, Route, RouteTable, Routing, Shown, Subject, Truth};

/// Counts how often its body is looked at.
#[derive(Default)]
struct Watched {
    looks: Cell<u32>,
}

impl Subject for Watched {
    fn property(&self, name: &str) -> Shown<'_> {
        match name {
            "severity" => Shown::Text("high"),
            "temperature" => Shown::Text(" 31.5 "),
            "note" => Shown::Null,
            _ => Shown::Missing,
        }
    }

    fn system(&self, name: &str) -> Shown<'_> {
        if name.eq_ignore_ascii_case("messageId") { Shown::Text("m-7") } else { Shown::Missing }
    }

    fn body(&self) -> Body<'_> {
        self.looks.set(self.looks.get() + 1);
        Body { bytes: br#"{"x": 5}"#, content_type: Some("application/json"), content_encoding: None }
    }
}

const CONDITIONS: [&str; 12] = [
    "severity = 'high'",
    "severity <> 'low' AND $messageId = 'm-7'",
    "as_number(temperature) > 30 OR as_number(temperature) < -5",
    "NOT (severity = 'low') AND is_defined(severity)",
    "power(as_number(temperature), 2) / 3 + 1 >= sqrt(9) * 4 - 1",
    "starts_with(severity, 'h') AND contains(severity, 'ig') AND index_of(severity, 'h') = 0",
    "substring(severity, 1, 2) = 'ig' AND length(severity) = 4",
    "lower(severity) = 'high'",
    "(absent ?? severity) = 'high'",
    "is_null(note) AND NOT is_defined(absent)",
    "floor(as_number(temperature)) = 31 AND abs(-1) = 1",
    "severity = 'high' AND severity = 'high' AND severity = 'high' AND severity = 'high'",
];

#[test]
fn a_condition_on_properties_allocates_nothing() {
    let message = Watched::default();
    for condition in CONDITIONS {
        let route = Route::parse(&format!("FROM /* WHERE {condition} INTO $upstream")).expect("a route");
        let condition = route.condition.expect("a condition");
        let mut truth = Truth::Undefined;
        let used = measure(|| truth = condition.evaluate(&message));
        assert_eq!((used.count_total, truth), (0, Truth::True), "{condition}");
    }
    assert_eq!(message.looks.get(), 0, "nobody asked for the body");
}

fn table(conditions: impl Iterator<Item = String>) -> RouteTable {
    let routes = conditions
        .enumerate()
        .map(|(at, condition)| format!(r#""r{at}": "FROM /* WHERE {condition} INTO Queue('q{}')""#, at % 10));
    let manifest = format!(r#"{{"routes": {{{}}}}}"#, routes.collect::<Vec<_>>().join(", "));
    RouteTable::compile(&Manifest::from_json(&manifest).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_table_allocates_nothing_from_message_to_message() {
    let table = table(CONDITIONS.iter().cycle().take(100).map(|condition| (*condition).to_owned()));
    let (message, mut routing) = (Watched::default(), Routing::default());
    table.route("/m", &message, &mut routing);
    assert_eq!(routing.matched().len(), 100);
    let used = measure(|| {
        for _ in 0..10 {
            table.route("/messages/modules/m", &message, &mut routing);
        }
    });
    assert_eq!((used.count_total, routing.copies().len()), (0, 10));
    assert_eq!(message.looks.get(), 0, "nobody asked for the body");
}

#[test]
fn a_body_is_read_once_however_many_ask() {
    let table = table((0..100).map(|at| format!("$body.x = {at} OR $body.x > {at}")));
    let (message, mut routing) = (Watched::default(), Routing::default());
    table.route("/m", &message, &mut routing);
    assert_eq!((routing.matched().len(), message.looks.get()), (6, 1));
}

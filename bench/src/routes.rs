//! Routes: each message against a whole table, on one core, without publishing it.

use std::hint::black_box;
use std::time::Duration;

use overtake_routes::{Body, Manifest, RouteTable, Routing, Shown, Subject, Truth};

use crate::Plan;
use crate::report::{Row, time};

const PATH: &str = "/messages/modules/m3/outputs/telemetry";
const SEVERITIES: [&str; 4] = ["low", "medium", "high", "critical"];
/// Bytes of a body.
const BODY: usize = 1_024;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let plain = SEVERITIES.map(|severity| Message::new(severity, ""));
    let high = [Message::new("high", "")];
    let json = [Message::new("high", &json())];
    let count = plan.times(1_000_000);
    let mut rows = Vec::new();
    for (what, messages, (routes, route)) in [
        ("100 routes of one source, four severities", &plain[..], (100, by_severity as fn(usize) -> String)),
        ("100 routes of one source, one severity, which it has", &high, (100, by_temperature)),
        ("100 routes of twenty modules", &plain, (100, by_module)),
        ("100 routes without an equality", &plain, (100, by_order)),
        ("100 routes over a property that is not there", &plain, (100, by_what_is_not_there)),
        ("1 route over a body of 1 KiB", &json, (1, by_body)),
        ("100 routes over a body of 1 KiB", &json, (100, by_body)),
    ] {
        if plan.wants(what) {
            let routes = Routes::new(routes, route);
            rows.push(Row::new(what, "messages", count, routes.route(messages, count)));
        }
    }
    if plan.wants("reference") {
        let routes = Routes::new(100, by_severity);
        let count = count / 10;
        let what = "100 conditions of four severities, each by itself";
        rows.push(Row::new(what, "messages", count, routes.one_by_one(&plain, count)).reference());
        let what = "the body of 1 KiB by serde_json";
        rows.push(Row::new(what, "messages", count, parse(&json[0].body, count)).reference());
    }
    rows
}

struct Routes {
    manifest: Manifest,
    table: RouteTable,
}

impl Routes {
    fn new(count: usize, route: fn(usize) -> String) -> Self {
        let routes = (0..count).map(|at| (format!("r{at}"), serde_json::Value::String(route(at))));
        let manifest = serde_json::json!({"routes": routes.collect::<serde_json::Map<_, _>>()});
        let manifest = Manifest::from_json(&manifest.to_string()).expect("the routes are right");
        Self { table: RouteTable::compile(&manifest), manifest }
    }

    fn route(&self, messages: &[Message], count: usize) -> Duration {
        let mut routing = Routing::default();
        time(|| {
            for message in messages.iter().cycle().take(count) {
                self.table.route(black_box(PATH), black_box(message), &mut routing);
                black_box(routing.copies());
            }
        })
    }

    /// As somebody would do it who had the language and no table.
    fn one_by_one(&self, messages: &[Message], count: usize) -> Duration {
        time(|| {
            for message in messages.iter().cycle().take(count) {
                for route in &self.manifest.routes {
                    let route = &route.route;
                    let holds = |condition: &overtake_routes::Condition| {
                        condition.evaluate(black_box(message)) == Truth::True
                    };
                    let matches =
                        route.source.matches(black_box(PATH)) && route.condition.as_ref().is_none_or(holds);
                    black_box(matches);
                }
            }
        })
    }
}

fn parse(body: &[u8], count: usize) -> Duration {
    time(|| {
        for _ in 0..count {
            let value: serde_json::Value = serde_json::from_slice(black_box(body)).expect("it is JSON");
            black_box(value.pointer("/x/y"));
        }
    })
}

// ---- routes ----

fn by_severity(at: usize) -> String {
    let (severity, least, queue) = (SEVERITIES[at % 4], at % 60, at % 10);
    format!(
        "FROM /messages/* WHERE severity = '{severity}' AND as_number(temperature) > {least} INTO Queue('q{queue}')"
    )
}

fn by_temperature(at: usize) -> String {
    let (least, queue) = (20 + at % 60, at % 10);
    format!(
        "FROM /messages/* WHERE severity = 'high' AND as_number(temperature) > {least} INTO Queue('q{queue}')"
    )
}

fn by_module(at: usize) -> String {
    let module = at % 20;
    format!(
        "FROM /messages/modules/m{module}/* WHERE severity = 'high' AND as_number(temperature) > 30 INTO $upstream"
    )
}

fn by_order(at: usize) -> String {
    let queue = at % 10;
    format!(
        "FROM /messages/* WHERE as_number(temperature) > {at} AND starts_with(site, 'be') INTO Queue('q{queue}')"
    )
}

fn by_what_is_not_there(at: usize) -> String {
    format!("FROM /messages/* WHERE absent = 'x{at}' AND as_number(temperature) > 30 INTO $upstream")
}

fn by_body(at: usize) -> String {
    format!("FROM /* WHERE $body.x.y > {at} INTO Queue('q{at}')")
}

// ---- messages ----

/// A message of a machine.
struct Message {
    properties: [(&'static str, &'static str); 5],
    body: Vec<u8>,
}

impl Message {
    fn new(severity: &'static str, body: &str) -> Self {
        let properties = [
            ("severity", severity),
            ("temperature", "31.5"),
            ("site", "berlin"),
            ("line", "7"),
            ("firmware", "1.4.2"),
        ];
        Self { properties, body: body.into() }
    }
}

impl Subject for Message {
    fn property(&self, name: &str) -> Shown<'_> {
        self.properties.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).into()
    }

    fn system(&self, _: &str) -> Shown<'_> {
        Shown::Missing
    }

    fn body(&self) -> Body<'_> {
        Body { bytes: &self.body, content_type: Some("application/json"), content_encoding: None }
    }
}

/// What is asked for stands at the end.
fn json() -> String {
    let mut body = String::from("{\"device\": \"d-17\", \"readings\": [");
    while body.len() < BODY - 60 {
        body += "{\"name\": \"pressure\", \"value\": 17.25, \"unit\": \"bar\"}, ";
    }
    body += "0], \"x\": {\"a\": 1, \"y\": 5}}";
    body
}

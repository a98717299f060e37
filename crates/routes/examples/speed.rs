//! How fast routes are evaluated: `cargo run --release -p overtake-routes --example speed`.
//!
//! Messages per second of one core, each against the whole table.

#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use overtake_routes::{Body, Manifest, RouteTable, Routing, Shown, Subject};

const FOR: Duration = Duration::from_secs(2);

struct Message {
    properties: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
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

fn table(route: impl Fn(usize) -> String, count: usize) -> RouteTable {
    let routes = (0..count).map(|at| format!("{:?}: {:?}", format!("r{at}"), route(at))).collect::<Vec<_>>();
    let manifest = Manifest::from_json(&format!("{{\"routes\": {{{}}}}}", routes.join(", ")));
    RouteTable::compile(&manifest.expect("the routes are right"))
}

fn measure(what: &str, table: &RouteTable, messages: &[Message], wanted: u32) {
    const PATH: &str = "/messages/modules/m3/outputs/telemetry";
    let (mut routing, mut count, mut matched) = (Routing::default(), 0_u32, 0_usize);
    let start = Instant::now();
    while start.elapsed() < FOR {
        for _ in 0..100 {
            for message in messages {
                table.route(black_box(PATH), black_box(message), &mut routing);
                matched += routing.matched().len();
            }
        }
        count += 100 * u32::try_from(messages.len()).expect("a few messages");
    }
    let per_second = f64::from(count) / start.elapsed().as_secs_f64();
    let each = matched as f64 / f64::from(count);
    println!("{what:<66} {per_second:>12.0} messages/s ({wanted} wanted), {each:.1} routes match");
}

fn message(severity: &'static str, temperature: &'static str) -> Message {
    let rest = [("site", "berlin"), ("line", "7"), ("firmware", "1.4.2")];
    let properties = [("severity", severity), ("temperature", temperature)].into_iter().chain(rest).collect();
    Message { properties, body: Vec::new() }
}

fn json(len: usize) -> Message {
    let mut body = String::from("{\"device\": \"d-17\", \"readings\": [");
    while body.len() < len - 60 {
        body += "{\"name\": \"pressure\", \"value\": 17.25, \"unit\": \"bar\"}, ";
    }
    body += "0], \"x\": {\"a\": 1, \"y\": 5}}";
    Message { body: body.into_bytes(), ..message("high", "31") }
}

fn main() {
    const SEVERITIES: [&str; 4] = ["low", "medium", "high", "critical"];
    let messages = SEVERITIES.map(|severity| message(severity, "31.5"));
    let typical = |at: usize| {
        let (severity, least) = (SEVERITIES[at % 4], at % 60);
        format!(
            "FROM /messages/* WHERE severity = '{severity}' AND as_number(temperature) > {least} INTO Queue('q{}')",
            at % 10
        )
    };
    measure("100 routes from one source, four severities", &table(typical, 100), &messages, 1_000_000);
    let same = |at: usize| {
        format!(
            "FROM /messages/* WHERE severity = 'high' AND as_number(temperature) > {} INTO Queue('q{}')",
            20 + at % 60,
            at % 10
        )
    };
    measure(
        "100 routes from one source, one severity, which the message has",
        &table(same, 100),
        &messages[2..3],
        1_000_000,
    );
    let sources = |at: usize| {
        format!(
            "FROM /messages/modules/m{}/* WHERE severity = 'high' AND as_number(temperature) > 30 INTO $upstream",
            at % 20
        )
    };
    measure("100 routes from twenty modules", &table(sources, 100), &messages, 1_000_000);
    let order = |at: usize| {
        format!(
            "FROM /messages/* WHERE as_number(temperature) > {at} AND starts_with(site, 'be') INTO Queue('q{}')",
            at % 10
        )
    };
    measure("100 routes without an equality", &table(order, 100), &messages, 1_000_000);
    let missing = |at: usize| {
        format!("FROM /messages/* WHERE absent = 'x{at}' AND as_number(temperature) > 30 INTO $upstream")
    };
    measure("100 routes over a property that is not there", &table(missing, 100), &messages, 1_000_000);
    let body = [json(1024)];
    measure(
        "1 route over a body of 1 KB: $body.x.y > 3",
        &table(|_| "FROM /* WHERE $body.x.y > 3 INTO $upstream".to_owned(), 1),
        &body,
        150_000,
    );
    let bodies = |at: usize| format!("FROM /* WHERE $body.x.y > {at} INTO Queue('q{at}')");
    measure("100 routes over a body of 1 KB", &table(bodies, 100), &body, 150_000);
}

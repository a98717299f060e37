//! Tables: which copies a message gets.

use expect_test::{Expect, expect};
use overtake_routes::{Manifest, RouteTable, Routing, Subject};
use proptest::prelude::*;

use crate::message::Message;

fn table(routes: &str) -> RouteTable {
    let json =
        format!(r#"{{"routes": {{{routes}}}, "storeAndForwardConfiguration": {{"timeToLiveSecs": 7200}}}}"#);
    RouteTable::compile(&Manifest::from_json(&json).unwrap_or_else(|error| panic!("{error}")))
}

fn picture(table: &RouteTable, path: &str, message: &impl Subject, routing: &mut Routing) -> String {
    table.route(path, message, routing);
    let copies = routing.copies().iter().map(|copy| {
        let ttl = copy.ttl_secs.map_or("for ever".to_owned(), |secs| format!("{secs} s"));
        let priority = copy.priority.map_or("last".to_owned(), |priority| priority.to_string());
        format!("{} by {}, {priority}, {ttl}\n", table.sink(copy.route), table.name(copy.route))
    });
    let mut picture = copies.collect::<String>();
    for (what, routes) in [("matched", routing.matched()), ("undefined", routing.undefined())] {
        let mut names = routes.iter().map(|route| table.name(*route)).collect::<Vec<_>>();
        names.sort_unstable();
        if !names.is_empty() {
            picture += &format!("{what}: {}\n", names.join(" "));
        }
    }
    if routing.is_fallback() {
        picture += "fallback\n";
    }
    picture
}

fn check(routes: &str, path: &str, message: &str, wanted: Expect) {
    let (table, mut routing) = (table(routes), Routing::default());
    let message = Message::parse(message);
    let first = picture(&table, path, &message, &mut routing);
    wanted.assert_eq(&first);
    assert_eq!(picture(&table, path, &message, &mut routing), first, "nothing of an earlier message is left");
}

#[test]
fn each_sink_gets_one_copy_by_its_most_urgent_route() {
    check(
        r#""all": "FROM /messages/* INTO $upstream",
           "data": {"route": "FROM /messages/* INTO $upstream", "priority": 9},
           "alerts": {"route": "FROM /messages/modules/m/outputs/alerts INTO $upstream", "priority": 1, "timeToLiveSecs": 60},
           "copy": {"route": "FROM /messages/* INTO Queue('copy')", "priority": 0}"#,
        "/messages/modules/m/outputs/alerts",
        "-",
        expect![[r#"
            Queue("copy") by copy, 0, 7200 s
            $upstream by alerts, 1, 60 s
            matched: alerts all copy data
        "#]],
    );
}

#[test]
fn between_equals_the_first_by_name_wins_and_none_comes_after_nine() {
    check(
        r#""b": {"route": "FROM /* INTO $upstream", "priority": 3, "timeToLiveSecs": 2},
           "a": {"route": "FROM /* INTO $upstream", "priority": 3, "timeToLiveSecs": 1},
           "0": "FROM /* INTO $upstream""#,
        "/x",
        "-",
        expect![[r#"
            $upstream by a, 3, 1 s
            matched: 0 a b
        "#]],
    );
    check(
        r#""a": "FROM /* INTO $upstream", "b": {"route": "FROM /* INTO $upstream", "priority": 9}"#,
        "/x",
        "-",
        expect![[r#"
            $upstream by b, 9, 7200 s
            matched: a b
        "#]],
    );
}

#[test]
fn a_ttl_of_zero_is_the_global_one_and_a_longer_one_counts() {
    check(
        r#""zero": {"route": "FROM /* INTO Queue('zero')", "timeToLiveSecs": 0},
           "long": {"route": "FROM /* INTO Queue('long')", "timeToLiveSecs": 100000}"#,
        "/x",
        "-",
        expect![[r#"
            Queue("long") by long, last, 100000 s
            Queue("zero") by zero, last, 7200 s
            matched: long zero
        "#]],
    );
    let manifest = Manifest::from_json(r#"{"routes": {"a": "FROM /* INTO $upstream"}}"#).expect("a manifest");
    let picture =
        picture(&RouteTable::compile(&manifest), "/x", &Message::parse("-"), &mut Routing::default());
    assert_eq!(picture, "$upstream by a, last, for ever\nmatched: a\n");
}

const SEVERITIES: &str = r#"
    "critical": "FROM /m WHERE severity = 'critical' INTO Queue('critical')",
    "hot": "FROM /m WHERE severity = 'high' AND as_number(t) > 30 INTO Queue('hot')",
    "high": "FROM /m WHERE 'high' = severity INTO Queue('high')",
    "other": "FROM /m WHERE severity != 'high' INTO Queue('other')",
    "body": "FROM /m WHERE $body.x > 3 INTO Queue('body')""#;

#[test]
fn routes_that_are_undefined_are_told() {
    check(
        SEVERITIES,
        "/m",
        "severity='high' t='31' body={\"x\": 4}",
        expect![[r#"
            Queue("body") by body, last, 7200 s
            Queue("high") by high, last, 7200 s
            Queue("hot") by hot, last, 7200 s
            matched: body high hot
        "#]],
    );
    check(
        SEVERITIES,
        "/m",
        "severity='high'",
        expect![[r#"
        Queue("high") by high, last, 7200 s
        matched: high
        undefined: body hot
    "#]],
    );
    check(
        SEVERITIES,
        "/m",
        "severity='low' body={\"x\": 1}",
        expect![[r#"
        Queue("other") by other, last, 7200 s
        matched: other
    "#]],
    );
    check(
        SEVERITIES,
        "/m",
        "t='30' body={\"x\": 1}",
        expect![[r#"
        undefined: critical high other
    "#]],
    );
    check(SEVERITIES, "/n", "severity='high'", expect![""]);
}

#[test]
fn a_fallback_counts_only_where_nothing_else_matches() {
    let routes = r#"
        "alerts": "FROM /messages/* WHERE severity = 'high' INTO $upstream",
        "lost": {"route": "FROM /* INTO Queue('lost')", "fallback": true, "priority": 0},
        "lost2": {"route": "FROM /messages/* WHERE keep = 'yes' INTO Queue('kept')", "fallback": true}"#;
    check(
        routes,
        "/messages/m",
        "severity='high' keep='yes'",
        expect![[r#"
        $upstream by alerts, last, 7200 s
        matched: alerts
    "#]],
    );
    check(
        routes,
        "/messages/m",
        "severity='low' keep='yes'",
        expect![[r#"
        Queue("lost") by lost, 0, 7200 s
        Queue("kept") by lost2, last, 7200 s
        matched: lost lost2
        fallback
    "#]],
    );
    check(
        routes,
        "/other",
        "-",
        expect![[r#"
        Queue("lost") by lost, 0, 7200 s
        matched: lost
        fallback
    "#]],
    );
}

#[test]
fn an_empty_table_makes_no_copy() {
    check("", "/m", "-", expect![""]);
}

fn condition() -> impl Strategy<Value = String> {
    let property = prop::sample::select(&["a", "b", "$messageId", "$body.x"][..]);
    let op = prop::sample::select(&["=", "=", "!="][..]);
    let equal = (property.clone(), op, "[xy]").prop_map(|(name, op, text)| format!("{name} {op} '{text}'"));
    let number = (prop::sample::select(&["a", "b", "$body.y"][..]), 0..3_u8)
        .prop_map(|(name, number)| format!("as_number({name}) > {number}"));
    let body =
        prop::sample::select(&["$body.y != 1", "2 = $body.y", "$body.x <> null", "is_defined($body.x)"][..]);
    let is_null = property.prop_map(|name| format!("is_null({name})"));
    let leaf = prop_oneof![3 => equal, 1 => number, 1 => is_null, 1 => body.prop_map(str::to_owned)];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} AND {b}")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} OR {b})")),
            1 => inner.prop_map(|of| format!("NOT ({of})")),
        ]
    })
}

fn message() -> impl Strategy<Value = String> {
    let value = prop::sample::select(&["'x'", "'y'", "'1'", "'2'", "null"][..]);
    let property = (prop::sample::select(&["a", "b", "$messageId"][..]), value)
        .prop_map(|(name, value)| format!("{name}={value} "));
    let body = prop::sample::select(
        &[
            "",
            "body={\"x\": \"x\", \"y\": 2}",
            "body={\"x\": null, \"y\": \"2\"}",
            "body={\"x\": {}}",
            "body=5",
        ][..],
    );
    (prop::collection::vec(property, 0..3), body).prop_map(|(properties, body)| properties.concat() + body)
}

proptest! {
    /// The index by path and by property leaves out nothing that would have counted.
    #[test]
    fn a_table_is_its_routes_one_by_one(
        conditions in prop::collection::vec((condition(), prop::sample::select(&["/*", "/m", "/M/n", "/k"][..]), 0..4_usize, prop::option::of(0..3_u8)), 0..12),
        messages in prop::collection::vec((message(), prop::sample::select(&["/m", "/m/n/o", "/k", "/"][..])), 1..6),
    ) {
        let routes = conditions.iter().enumerate().map(|(at, (condition, source, sink, priority))| {
            let priority = priority.map_or(String::new(), |priority| format!(", \"priority\": {priority}"));
            format!(r#""r{at:02}": {{"route": "FROM {source} WHERE {condition} INTO Queue('{sink}')"{priority}}}"#)
        });
        let json = format!(r#"{{"routes": {{{}}}}}"#, routes.collect::<Vec<_>>().join(", "));
        let manifest = Manifest::from_json(&json).unwrap_or_else(|error| panic!("{json}\n{error}"));
        let (table, mut routing) = (RouteTable::compile(&manifest), Routing::default());
        for (message, path) in messages {
            let message = Message::parse(&message);
            table.route(path, &message, &mut routing);
            let mut ranked = manifest.routes.iter().filter(|route| route.route.source.matches(path)).collect::<Vec<_>>();
            ranked.sort_by_key(|route| route.rank());
            let truth = |route: &&overtake_routes::NamedRoute| route.route.condition.as_ref().expect("it has one").evaluate(&message).to_string();
            let names = |wanted: &str| ranked.iter().filter(|route| truth(route) == wanted).map(|route| route.name.as_str()).collect::<Vec<_>>();
            let matched = routing.matched().iter().map(|route| table.name(*route)).collect::<Vec<_>>();
            prop_assert_eq!(&matched, &names("true"));
            let mut undefined = routing.undefined().to_vec();
            undefined.sort_unstable();
            prop_assert_eq!(undefined.iter().map(|route| table.name(*route)).collect::<Vec<_>>(), names("undefined"));
            let mut seen = Vec::new();
            let first = ranked.iter().filter(|route| truth(route) == "true").filter(|route| {
                let is_new = !seen.contains(&&route.route.sink);
                seen.push(&route.route.sink);
                is_new
            });
            let copies = routing.copies().iter().map(|copy| table.name(copy.route)).collect::<Vec<_>>();
            prop_assert_eq!(copies, first.map(|route| route.name.as_str()).collect::<Vec<_>>());
        }
    }
}

//! What is too long, too deep or too much is told at once, and costs no stack.

use overtake_routes::{Body, DEPTH_MAX, ROUTE_LEN_MAX, Route, Shown, Subject, Truth};

struct Bytes(Vec<u8>);

impl Subject for Bytes {
    fn property(&self, name: &str) -> Shown<'_> {
        if name == "long" { Shown::Text(std::str::from_utf8(&self.0).expect("text")) } else { Shown::Missing }
    }

    fn system(&self, _: &str) -> Shown<'_> {
        Shown::Missing
    }

    fn body(&self) -> Body<'_> {
        Body { bytes: &self.0, content_type: Some("application/json"), content_encoding: None }
    }
}

fn wrong(condition: &str) -> String {
    Route::parse(&format!("FROM /* WHERE {condition} INTO $upstream")).expect_err("it is refused").what
}

fn truth(condition: &str, subject: &Bytes) -> Truth {
    let route = Route::parse(&format!("FROM /* WHERE {condition} INTO $upstream")).expect("a route");
    route.condition.expect("a condition").evaluate(subject)
}

#[test]
fn a_route_that_is_too_long_is_refused_whatever_it_says() {
    let too_long = format!("the route is longer than {ROUTE_LEN_MAX} bytes");
    assert_eq!(wrong(&"a".repeat(1 << 20)), too_long);
    assert_eq!(wrong(&"a = b AND ".repeat(1_000_000)), too_long);
    assert_eq!(wrong(&"(".repeat(1 << 20)), too_long);
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let too_deep =
        format!("brackets, functions, `NOT` and minus signs are nested more than {DEPTH_MAX} deep");
    for open in ["(", "abs(", "NOT ", "-", "a = (", "concat('a', ", "true AND ("] {
        assert_eq!(wrong(&open.repeat((ROUTE_LEN_MAX - 50) / open.len())), too_deep, "{open}");
        assert_eq!(wrong(&open.repeat(DEPTH_MAX + 1)), too_deep, "{open}");
    }
    let nested = |depth: usize| format!("{}true{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(truth(&nested(DEPTH_MAX), &Bytes(Vec::new())), Truth::True);
    assert_eq!(wrong(&nested(10_000)), too_deep);
}

#[test]
fn a_chain_is_as_long_as_there_is_room() {
    for (operand, op, result) in [
        ("true", "AND", Truth::True),
        ("a = b", "AND", Truth::Undefined),
        ("false", "OR", Truth::False),
        ("undefined", "??", Truth::Undefined),
        ("true", "=", Truth::True),
    ] {
        let count = (ROUTE_LEN_MAX - 50) / (operand.len() + op.len() + 2);
        let chain = vec![operand; count].join(&format!(" {op} "));
        assert_eq!(truth(&chain, &Bytes(Vec::new())), result, "{op}");
    }
    let sum = format!("1{} = 8001", " +1".repeat(8_000));
    assert_eq!(truth(&sum, &Bytes(Vec::new())), Truth::True);
}

#[test]
fn texts_that_are_made_have_a_bound() {
    let long = Bytes(vec![b'a'; 100_000]);
    assert_eq!(truth("starts_with(long || long, 'a')", &long), Truth::True);
    let many = vec!["long"; 1_000].join(" || ");
    assert_eq!(truth(&format!("starts_with({many}, 'a')"), &long), Truth::Undefined);
}

#[test]
fn brackets_without_end_in_a_body_are_undefined_or_null() {
    let open = Bytes(vec![b'['; 10 << 20]);
    assert_eq!(truth("$body.a > 3", &open), Truth::Undefined);
    assert_eq!(truth("is_defined($body[0][0].a)", &open), Truth::False);
    let deep = Bytes([vec![b'['; 1 << 20], vec![b']'; 1 << 20]].concat());
    assert_eq!(truth("is_null($body.a)", &deep), Truth::True);
    assert_eq!(truth("is_defined($body[0][0])", &deep), Truth::False);
    let keys = Bytes(format!("{{{}\"z\": 1}}", "\"a\": {}, ".repeat(100_000)).into_bytes());
    assert_eq!(truth("$body.z = 1", &keys), Truth::True);
}

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
fn what_is_as_deep_as_may_be_fits_a_small_stack() {
    let open = "$body.a ?? $body.a OR $body.a AND $body.a = $body.a < $body.a + $body.a * (";
    let nested = format!("{}$body.a{}", open.repeat(DEPTH_MAX), ")".repeat(DEPTH_MAX));
    let read = move || {
        let route = Route::parse(&format!("FROM /* WHERE {nested} INTO $upstream")).expect("a route");
        let condition = route.condition.expect("a condition");
        for body in ["{}", "{\"a\": 1}", "no JSON"] {
            let body = Bytes(body.into());
            assert_eq!(condition.evaluate(&body), condition.explain(&body).truth);
        }
        assert_eq!(
            Route::parse(&format!("FROM /* WHERE {condition} INTO $upstream")).expect("a route").condition,
            Some(condition)
        );
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(read).expect("a thread").join().expect("it fits");
}

#[test]
fn what_is_printed_of_a_route_is_no_longer_than_one() {
    let odd = format!("a = '{}'", "\u{1}".repeat(ROUTE_LEN_MAX / 5));
    assert_eq!(wrong(&odd), format!("written out, the route is longer than {ROUTE_LEN_MAX} bytes"));
}

#[test]
fn texts_that_are_made_have_a_bound() {
    let long = Bytes(vec![b'a'; 100_000]);
    assert_eq!(truth("starts_with(long || long, 'a')", &long), Truth::True);
    let many = |count: usize| format!("starts_with({}, 'a')", vec!["long"; count].join(" || "));
    assert_eq!(truth(&many(1_000), &long), Truth::Undefined);
    // What one operand makes takes no room from the next.
    assert_eq!(truth(&vec![many(10); 10].join(" AND "), &long), Truth::True);
    assert_eq!(
        truth(&format!("length({}) + length({0}) > 5", ["long"; 10].join(" || ")), &long),
        Truth::True
    );
    let beside = ["long"; 8].join(" || ");
    assert_eq!(truth(&format!("{beside} = lower({beside})"), &long), Truth::Undefined);
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

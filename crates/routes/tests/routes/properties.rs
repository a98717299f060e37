//! What is printed is read as the same route, and means the same.

use overtake_routes::Route;
use proptest::prelude::*;

use crate::message::Message;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-d]",
        "\\{[a-z $.\\-]{0,3}[a-z$]\\}",
        prop::sample::select(&["$messageId", "$dt-subject"][..]).prop_map(str::to_owned),
        Just("$body.a.b[0][\"c d\"]".to_owned()),
        Just("$body".to_owned()),
    ]
}

fn number() -> impl Strategy<Value = String> {
    let finite = any::<f64>().prop_filter("a literal is finite", |number| number.is_finite());
    prop_oneof![
        (0..100_u32).prop_map(|number| number.to_string()),
        finite.prop_map(|number| format!("{number:e}")),
        (0..u32::MAX).prop_map(|number| format!("0x{number:X}")),
    ]
}

fn text() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| {
        let escaped = text.chars().map(|c| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        });
        format!("'{}'", escaped.collect::<String>())
    })
}

/// Values in the body are of any kind, so most of these are accepted.
fn condition() -> impl Strategy<Value = String> {
    let body = Just("$body.x".to_owned());
    const LITERALS: [&str; 4] = ["true", "false", "null", "undefined"];
    let leaf = prop_oneof![4 => body, 1 => name(), 1 => number(), 1 => text(), 1 => prop::sample::select(&LITERALS[..]).prop_map(str::to_owned)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let op = prop::sample::select(
            &["=", "!=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "AND", "or", "??"][..],
        );
        prop_oneof![
            4 => (inner.clone(), op.clone(), inner.clone()).prop_map(|(left, op, right)| format!("{left} {op} {right}")),
            2 => (inner.clone(), op, inner.clone()).prop_map(|(left, op, right)| format!("({left}) {op} ({right})")),
            1 => inner.clone().prop_map(|of| format!("NOT {of}")),
            1 => inner.clone().prop_map(|of| format!("-({of})")),
            1 => inner.clone().prop_map(|of| format!("is_defined({of})")),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!("Concat({a}, {b})")),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_the_same_route(condition in condition(), sink in prop::sample::select(&["$upstream", "Queue('a\"b')", "BrokeredEndpoint(\"/modules/m/inputs/i\")"][..])) {
        let text = format!("select * from /messages/* where {condition} into {sink}");
        if let Ok(route) = Route::parse(&text) {
            let printed = route.to_string();
            let again = Route::parse(&printed).unwrap_or_else(|error| panic!("{text}\n{}", error.render(&printed)));
            prop_assert_eq!(&again, &route);
            prop_assert_eq!(again.to_string(), printed);
            let message = Message::parse("a='1' b='x' c=null $messageId='7' body={\"x\": 5, \"a\": {\"b\": [{\"c d\": \"x\"}]}}");
            let (one, other) = (route.condition.expect("it has one"), again.condition.expect("it has one"));
            prop_assert_eq!(one.evaluate(&message), other.evaluate(&message));
            prop_assert_eq!(one.explain(&message).truth, one.evaluate(&message));
        }
    }

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        for text in [text.clone(), format!("FROM /* WHERE {text} INTO $upstream"), format!("FROM /* INTO {text}")] {
            if let Err(error) = Route::parse(&text) {
                prop_assert!(text.get(error.span.clone()).is_some(), "{:?} is no place in {text:?}", error.span);
                prop_assert!(error.render(&text).lines().count() >= 2);
            }
        }
    }
}

//! Which bodies are accepted and which are refused.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;
use crate::json::decode;
use crate::problem::Problem;

const LIMITS: Limits = Limits { max_message_bytes: 8 };

fn seen<T: DeserializeOwned, U: std::fmt::Debug>(
    json: &str,
    mean: impl FnOnce(T) -> Result<U, Problem>,
) -> String {
    match decode(json.as_bytes()).and_then(mean) {
        Ok(meaning) => format!("{meaning:?}"),
        Err(problem) => {
            let body = serde_json::to_value(problem.body()).expect("JSON");
            assert!(problem.is_helpful(), "{body}");
            let place = |at: &Value| format!(" at {}:{}", at["line"], at["column"]);
            let at = body.get("at").map(place).unwrap_or_default();
            format!(
                "{} {} {}{at}",
                body["status"],
                problem.body().code(),
                problem.body().about().unwrap_or("-")
            )
        }
    }
}

/// Text that is shown without quotes.
struct Bare(String);

impl std::fmt::Debug for Bare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn publish(json: &str, expect: &str) {
    let queue = "q".into();
    let seen = seen(json, |publish: PublishIn| {
        let brief = |m: &overtake_engine::NewMessage| format!("{} {:?}", m.priority, m.content.body);
        Ok(Bare(publish.into_messages(&queue, LIMITS)?.iter().map(brief).collect::<Vec<_>>().join(" · ")))
    });
    assert_eq!(seen, expect, "{json}");
}

#[test]
fn a_publish_is_one_message_or_many() {
    publish(r#"{"body":"a"}"#, r#"default b"a""#);
    publish(r#"{"priority":7,"body":""}"#, r#"7 b"""#);
    publish(r#"{"priority":"high","body_base64":"YWI"}"#, r#"high b"ab""#);
    publish(r#"{"priority":null,"body_base64":"YQ=="}"#, r#"default b"a""#);
    publish(r#"{"messages":[{"body":"a"},{"priority":-3,"body":"b"}]}"#, r#"default b"a" · -3 b"b""#);
}

#[test]
fn a_publish_has_properties_of_amqp_and_a_number() {
    let seen = |json: &str| {
        seen(json, |publish: PublishIn| {
            let all = publish.into_messages(&"q".into(), LIMITS)?;
            let Some(overtake_engine::NewMessage { content, origin, .. }) = all.into_iter().next() else {
                unreachable!("a publish is a message")
            };
            let number = origin
                .map(|origin| format!("{} {} {}", origin.producer(), origin.sequence(), origin.floor()));
            Ok(Bare(format!("{:?} {:?} {number:?}", content.properties(), content.headers())))
        })
    };
    let listed = r#"{"body":"","properties_base64":"LAAAAAAQAWxBAAAACWwAAAAAAAAABwkDYzQy"}"#;
    assert_eq!(seen(listed), r#"[("correlation_id", "c42")] {"l": List([Int(7)])} None"#);
    let numbered = r#"{"body":"","producer":{"name":"p.1","sequence":7,"floor":5}}"#;
    assert_eq!(seen(numbered), r#"[] {} Some("p.1 7 5")"#);
    publish(r#"{"body":"","producer":{"name":"p 1","sequence":7}}"#, "422 value-invalid producer.name");
    publish(r#"{"body":"","producer":{"name":"p"}}"#, "422 field-missing producer.sequence at 1:34");
    publish(r#"{"body":"","properties_base64":"?"}"#, "422 value-invalid properties_base64");
    publish(r#"{"body":"","properties_base64":"LAAA"}"#, "422 value-invalid properties_base64");
    publish(
        r#"{"body":"","properties_base64":"AAA=","headers":{"a":1}}"#,
        "422 value-invalid properties_base64",
    );
}

#[test]
fn a_publish_that_cannot_be_names_the_field() {
    publish("{", "400 json-malformed - at 1:1");
    publish("{\"body\":\n\"a\",}", "400 json-malformed - at 2:5");
    publish(r#"{"body":"a"} x"#, "400 json-malformed - at 1:14");
    publish("{\"body\":\"\u{1}\"}", "400 json-malformed - at 1:10");
    publish(r#"{"body":"\ud800"}"#, "400 json-malformed - at 1:16");
    publish("[]", "422 value-invalid - at 1:2");
    publish(r#"{"bdy":"a"}"#, "422 field-unknown bdy at 1:6");
    publish(r#"{"messages":[{"body":"a"},{"bdy":"a"}]}"#, "422 field-unknown messages[1].bdy at 1:32");
    publish(r#"{"body":"a","body":"b"}"#, "422 field-duplicate body at 1:18");
    publish(r#"{"body":5}"#, "422 value-invalid body at 1:9");
    publish(r#"{}"#, "422 value-invalid body");
    publish(r#"{"body":"a","body_base64":"YQ"}"#, "422 value-invalid body_base64");
    publish(r#"{"body_base64":"-_"}"#, "422 value-invalid body_base64");
    publish(r#"{"body":"123456789"}"#, "413 message-too-large body");
    publish(r#"{"messages":[]}"#, "422 value-invalid messages at 1:14");
    publish(r#"{"messages":[{"body":"a"}],"priority":1}"#, "422 value-invalid messages");
    publish(r#"{"messages":[{"body":"a"},{}]}"#, "422 value-invalid messages[1].body");
}

#[test]
fn absurd_numbers_name_the_field() {
    for number in ["-1", "1.5", "1e3", "1e999", "315360000001", "99999999999999999999", "\"5\"", "[]", "true"]
    {
        for field in ["ttl_ms", "delay_ms"] {
            let json = format!(r#"{{"body":"a","{field}":{number}}}"#);
            let seen = seen(&json, |publish: PublishIn| publish.into_messages(&"q".into(), LIMITS).map(drop));
            assert!(seen.starts_with(&format!("422 value-invalid {field} at ")), "{json}: {seen}");
        }
    }
    for number in ["1.5", "1e999", "99999999999999999999", "9223372036854775808", "[]", "true"] {
        let json = format!(r#"{{"body":"a","priority":{number}}}"#);
        let seen = seen(&json, |publish: PublishIn| publish.into_messages(&"q".into(), LIMITS).map(drop));
        assert!(seen.starts_with("422 value-invalid priority at "), "{json}: {seen}");
    }
}

#[test]
fn headers_are_scalars_within_limits() {
    publish(r#"{"body":"a","headers":{"a":"b","n":-5,"t":true}}"#, r#"default b"a""#);
    publish(r#"{"body":"a","headers":{"a":null}}"#, "422 value-invalid headers.a at 1:31");
    publish(r#"{"body":"a","headers":{"a":1.5}}"#, "422 value-invalid headers.a at 1:30");
    publish(r#"{"body":"a","headers":{"a":{}}}"#, "422 value-invalid headers.a at 1:29");
    publish(r#"{"body":"a","headers":{"a":1,"a":2}}"#, "422 field-duplicate headers.a at 1:32");
    publish(r#"{"body":"a","headers":{"":1}}"#, "422 value-invalid headers");
    let many: Vec<_> = (0..=HEADERS_MAX).map(|n| format!(r#""{n}":1"#)).collect();
    let json = format!(r#"{{"body":"a","headers":{{{}}}}}"#, many.join(","));
    let seen = seen(&json, |publish: PublishIn| publish.into_messages(&"q".into(), LIMITS).map(drop));
    assert!(seen.starts_with("422 value-invalid headers"), "{seen}");
}

#[test]
fn more_messages_than_allowed_are_refused_while_they_are_read() {
    let json = format!(r#"{{"messages":[{}{{}}]}}"#, "{},".repeat(MESSAGES_MAX));
    let seen = seen(&json, |publish: PublishIn| publish.into_messages(&"q".into(), LIMITS).map(drop));
    assert!(seen.starts_with("422 value-invalid messages at "), "{seen}");
}

#[test]
fn a_lease_request_stays_within_its_bounds() {
    let check = |json: &str, expect: &str| {
        let numbers =
            |l: LeaseIn| (l.max.map(|n| n.0), l.wait_ms.map(|n| n.0), l.visibility_timeout_ms.map(|n| n.0));
        assert_eq!(seen(json, |lease: LeaseIn| Ok(numbers(lease))), expect, "{json}");
    };
    check("{}", "(None, None, None)");
    check(r#"{"max":1000,"wait_ms":60000,"visibility_timeout_ms":0}"#, "(Some(1000), Some(60000), Some(0))");
    check(r#"{"max":0}"#, "422 value-invalid max at 1:8");
    check(r#"{"max":1001}"#, "422 value-invalid max at 1:11");
    check(r#"{"wait_ms":60001}"#, "422 value-invalid wait_ms at 1:16");
    check(r#"{"wait":1}"#, "422 field-unknown wait at 1:7");
}

#[test]
fn settling_takes_a_delay_only_with_nack() {
    let check = |json: &str, expect: &str| {
        assert_eq!(
            seen(json, |settle: SettleIn| Ok((settle.outcome()?, receipts(&settle.receipts.0)?.len()))),
            expect,
            "{json}"
        );
    };
    check(r#"{"receipts":["1-2-3"],"how":"ack"}"#, "(Ack, 1)");
    check(r#"{"receipts":["1-2-3","1-2-4"],"how":"nack","delay_ms":5}"#, "(Nack { delay_ms: Some(5) }, 2)");
    check(r#"{"receipts":["1-2-3"],"how":"release"}"#, "(Release, 1)");
    check(r#"{"receipts":["1-2-3"],"how":"reject","delay_ms":5}"#, "422 value-invalid delay_ms");
    check(r#"{"receipts":["1-2-3"],"how":"drop"}"#, "422 value-invalid how at 1:34");
    check(r#"{"receipts":["1-2-3"]}"#, "422 field-missing how at 1:22");
    check(r#"{"receipts":[],"how":"ack"}"#, "422 value-invalid receipts at 1:14");
    check(r#"{"receipts":["1-2-3","x"],"how":"ack"}"#, "422 value-invalid receipts[1]");
    check(r#"{"receipts":"1-2-3","how":"ack"}"#, "422 value-invalid receipts at 1:19");
}

#[test]
fn everything_must_be_said_aloud() {
    let remove = |json: &str, expect: &str| {
        let short = |select| match select {
            overtake_engine::Select::Id(id) => id,
            overtake_engine::Select::Matching(f) => {
                format!("{:?} {:?} {:?} {:?}", f.status, f.priority, f.key, f.headers)
            }
            overtake_engine::Select::Counted { filter: f, expect } => {
                format!("{:?} {:?} {:?} {:?}, {expect}", f.status, f.priority, f.key, f.headers)
            }
        };
        let seen = seen(json, |select: SelectIn| select.into_select().map(|select| Bare(short(select))));
        assert_eq!(seen, expect, "{json}");
    };
    remove("{}", "422 value-invalid filter");
    remove(r#"{"filter":{}}"#, "422 value-invalid filter");
    remove(r#"{"all":true}"#, "None None None []");
    remove(r#"{"all":true,"expect":3}"#, "None None None [], 3");
    remove(r#"{"filter":{"headers":{"":"a"}}}"#, "422 value-invalid headers");
    for part in [r#""key":"""#, r#""user_id":"""#, r#""headers":{"a":""}"#] {
        remove(&format!(r#"{{"filter":{{"status":"dead",{part}}}}}"#), "422 value-invalid filter");
    }
    remove(r#"{"filter":{},"all":true}"#, "None None None []");
    remove(r#"{"filter":{"key":"k"},"all":true}"#, "422 value-invalid all");
    remove(r#"{"filter":{"key":"k","status":"dead"}}"#, r#"Some(Dead) None Some("k") []"#);
    remove(r#"{"filter":{"headers":{"n":5}}}"#, r#"None None None [("n", "5")]"#);
    remove(r#"{"filter":{"stat":"dead"}}"#, "422 field-unknown filter.stat at 1:17");
    remove(r#"{"filter":{"status":"done"}}"#, "422 value-invalid filter.status at 1:26");
    let replay = |json: &str, expect: &str| {
        assert_eq!(seen(json, |replay: ReplayIn| replay.into_parts()), expect, "{json}");
    };
    replay(r#"{"id":"a","priority":9}"#, r#"(Id("a"), Some(Number(9)))"#);
    replay("{}", "422 value-invalid id");
    replay(r#"{"id":"a","all":true}"#, "422 value-invalid id");
    replay(r#"{"filter":{}}"#, "422 value-invalid filter");
    let purge =
        |json: &str, expect: &str| assert_eq!(seen(json, |purge: PurgeIn| purge.checked()), expect, "{json}");
    purge("{}", "None");
    purge(r#"{"status":"dead"}"#, "Some(Dead)");
    purge(r#"{"status":"leased"}"#, "422 value-invalid status");
}

#[test]
fn a_transaction_goes_to_queues_and_exchanges() {
    let check = |json: &str, expect: &str| {
        let seen = seen(json, |transaction: TransactionIn| {
            let (messages, settlements) = transaction.into_parts(LIMITS)?;
            Ok((messages.into_iter().map(|message| message.to).collect::<Vec<_>>(), settlements.len()))
        });
        assert_eq!(seen, expect, "{json}");
    };
    check("{}", "422 value-invalid publish");
    check(
        r#"{"publish":[{"queue":"a","body":""}],"settle":[{"receipts":["1-1-1","1-1-2"],"how":"ack"}]}"#,
        r#"([Queue("a")], 2)"#,
    );
    check(
        r#"{"publish":[{"exchange":"x","routing_key":"k","mandatory":true,"body":""}]}"#,
        r#"([Exchange { name: "x", routing_key: "k", more_keys: [], mandatory: true }], 0)"#,
    );
    check(r#"{"publish":[{"body":""}]}"#, "422 value-invalid publish[0].queue");
    check(r#"{"publish":[{"queue":"a","exchange":"b","body":""}]}"#, "422 value-invalid publish[0].queue");
    check(
        r#"{"publish":[{"queue":"a","routing_key":"b","body":""}]}"#,
        "422 value-invalid publish[0].routing_key",
    );
    check(r#"{"publish":[{"queue":"a\u0000","body":""}]}"#, "422 name-invalid publish[0].queue");
    check(r#"{"settle":[{"receipts":["1"],"how":"ack"}]}"#, "422 value-invalid settle[0].receipts[0]");
}

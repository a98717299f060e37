//! Tables of what is given and what is shown of it.

use std::collections::BTreeMap;

use overtake_redact::{json_reason, masked, reason, toml_error};
use serde::Deserialize;

#[test]
fn a_url_is_shown_without_password_query_and_fragment() {
    let cases = [
        ("https://h/p", "https://h/p"),
        ("https://h/p?token=x", "https://h/p?***"),
        ("https://h/p#token=x", "https://h/p#***"),
        ("https://h/p?", "https://h/p"),
        ("https://ann:pw@h:1/p?a=b?c", "https://ann:***@h:1/p?***"),
        ("redis://ann@h", "redis://ann@h"),
        ("https://a:p@w@h/@", "https://a:***@h/@"),
        ("a:b@c?d", "a:***@c?***"),
        ("10.0.0.1:6379", "10.0.0.1:6379"),
        ("", ""),
    ];
    for (url, shown) in cases {
        assert_eq!(masked(url), shown, "{url}");
    }
}

#[test]
fn a_password_that_breaks_a_url_is_masked() {
    let passwords =
        ["pw/pw", "pw?pw", "pw#pw", "pw@pw", "pw/p@w", "pw\\pw", "pw:pw", "pw?p#w/@pw", "pw%zz/pw@"];
    for password in passwords {
        for scheme in ["https://", "redis://", "amqp:", "http:", "http:/", "http:///", "redis:///", ""] {
            let shown = masked(&format!("{scheme}ann:{password}@h/path"));
            assert!(!shown.contains('w') && shown.contains("***@h/path"), "{scheme} {password}: {shown}");
        }
    }
    assert_eq!(masked("amqp://ann:pw/pw@h:5672?q=pw#pw"), "amqp://ann:***@h:5672?***");
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "nothing is read from it")]
struct Given {
    count: Option<u8>,
    many: Option<usize>,
    flag: Option<bool>,
    share: Option<f64>,
    text: Option<String>,
    list: Option<Vec<String>>,
    pair: Option<(u8, u8)>,
    table: Option<BTreeMap<String, String>>,
    inner: Option<Inner>,
    word: Option<Word>,
    one: Option<std::num::NonZero<u32>>,
    either: Option<Either>,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "nothing is read from it")]
struct Inner {
    key: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Left,
    Right,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "nothing is read from it")]
enum Either {
    Number(u8),
    Flag(bool),
}

#[test]
fn what_serde_says_of_a_value_is_said_without_it() {
    let cases = [
        (r#"{"count": "hunter2"}"#, "expected a whole number from 0 to 255, found a string"),
        (r#"{"count": 4711}"#, "expected a whole number from 0 to 255, found one outside of that range"),
        (r#"{"count": -1}"#, "expected a whole number from 0 to 255, found one outside of that range"),
        (r#"{"many": 4711.5}"#, "expected a whole number of at least 0, found a decimal number"),
        (r#"{"one": 0}"#, "expected a whole number of at least 1, found one outside of that range"),
        (r#"{"flag": "hunter2"}"#, "expected true or false, found a string"),
        (r#"{"share": "hunter2"}"#, "expected a number, found a string"),
        (r#"{"text": 4711}"#, "expected a string, found a whole number"),
        (r#"{"text": ["hunter2"]}"#, "expected a string, found a list"),
        (r#"{"text": {"a": "hunter2"}}"#, "expected a string, found a table"),
        (r#"{"list": "hunter2"}"#, "expected a list, found a string"),
        (r#"{"list": [null]}"#, "expected a string, found null"),
        (r#"{"pair": [1]}"#, "expected a list of 2, found 1"),
        (
            r#"{"table": "hunter2, expected \", expected u8 at line 1 column 2"}"#,
            "expected a table, found a string",
        ),
        (r#"{"inner": "hunter2"}"#, "expected a table, found a string"),
        (r#"{"inner": {}}"#, "missing field `key`"),
        (r#"{"word": "hunter2`, expected `x"}"#, "expected `left` or `right`, found another name"),
        (r#"{"word": 4711}"#, "expected"),
        (r#"{"either": "hunter2"}"#, "this has none of the forms that are taken here"),
        (r#"{"cuont": 1}"#, "unknown field `cuont`, expected one of `count`, `many`"),
        (r#"{"amqp://ann:hunter2@h": 1}"#, "unknown field `***`, expected one of"),
        (r#"{"count": hunter2}"#, "expected value"),
    ];
    for (json, expect) in cases {
        let error = serde_json::from_str::<Given>(json).expect_err(json);
        let said = reason(&error.to_string());
        assert!(said.starts_with(expect) && said.contains(" at line 1 column "), "{json}: {said}");
        assert!(!said.contains("hunter2") && !said.contains("4711"), "{json}: {said}");
        assert_eq!(reason(&said), said);
        let Ok(value) = serde_json::from_str::<serde_json::Value>(json) else { continue };
        let said = reason(&serde_json::from_value::<Given>(value).expect_err(json).to_string());
        assert!(said.starts_with(expect) && !said.contains("hunter2"), "{json}: {said}");
    }
}

#[test]
fn of_json_it_is_said_in_the_words_of_json() {
    for (json, expect) in [
        (r#"{"text": {"a": 1}}"#, "expected a string, found an object"),
        (r#"{"inner": "a"}"#, "expected an object, found a string"),
    ] {
        let error = serde_json::from_str::<Given>(json).expect_err(json);
        let said = json_reason(&error.to_string());
        assert!(said.starts_with(expect), "{json}: {said}");
    }
}

#[test]
fn of_a_line_of_toml_its_key_is_shown_and_never_its_value() {
    let cases = [
        ("text = \"hunter2", "  1 | text = …\n    |        ^"),
        ("text = hunter2", "  1 | text = …\n    |        ^"),
        ("a = 1\ntext = 'hunter2\nb = 1", "  2 | text = …\n    |        ^"),
        ("pasword = \"hunter2\"", "  1 | pasword = …\n    | ^^^^^^^"),
        ("\t\tpasword = \"hunter2\"", "  1 | \t\tpasword = …\n    | \t\t^^^^^^^"),
        ("count=\"hunter2\"", "  1 | count=…\n    |       ^"),
        ("text \"hunter2\"", "  1 | …\n    | ^"),
        ("text hunter2=", "  1 | …\n    | ^"),
        ("text: hunter2=", "  1 | …\n    | ^"),
        ("\"a key\" = hunter2", "  1 | …\n    | ^"),
        ("list = [\n  \"hunter2\",\n  hunter2=,\n]", "  3 | …\n    | ^"),
        ("text = \"\"\"\naunter2=\nhunter2=\n\\q\"\"\"", "  4 | …\n    | ^"),
        ("text = \"\"\"\nhunter2=\n\"\"\" x", "  3 | …\n    | ^"),
        ("[inner]\nky = \"hunter2\"", "  1 | [inner]\n    | ^^^^^^^"),
        ("[hunter", "  1 | …\n    | ^"),
        ("text =", "  1 | text =\n"),
    ];
    for (text, expect) in cases {
        let error = toml::from_str::<Given>(text).expect_err(text);
        let said = toml_error(text, error.span(), error.message());
        assert!(said.contains(expect), "{text}\n{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn an_excerpt_is_of_any_text_and_any_span() {
    let text = "a = [\n \"ü\", # '\n'''\n\"]\r\nb.ü = {\n";
    for start in 0..=text.len() + 1 {
        for end in start..=text.len() + 1 {
            let said = overtake_redact::excerpt(text, start..end);
            assert!(said.contains(" | ") && said.ends_with('^'), "{start} {end}: {said}");
        }
    }
}

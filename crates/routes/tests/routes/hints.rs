//! What a hint says to write means what was written: it is evaluated beside the expression that it replaces.

use overtake_routes::{Reading, Route, RouteError, Truth};

use crate::message::Message;

/// A value of `k`: as a header, and as a member of the body. A header that is a table shows nothing to conditions.
const VALUES: [(&str, &str); 6] = [
    ("-", "{}"),
    ("k=null", r#"{"k": null}"#),
    ("k='x'", r#"{"k": "x"}"#),
    ("k='5'", r#"{"k": 5}"#),
    ("k='true'", r#"{"k": true}"#),
    ("-", r#"{"k": {}}"#),
];

fn parse(condition: &str) -> Result<Route, RouteError> {
    Route::parse(&format!("FROM /* WHERE {condition} INTO $upstream"))
}

fn truth(condition: &str, message: &str) -> Truth {
    let route = parse(condition).unwrap_or_else(|error| panic!("{condition}: {error}"));
    route.condition.expect("it has one").evaluate(&Message::parse(message))
}

/// The condition with what the hint of its error says in the place of what is wrong.
fn as_the_hint_says(condition: &str, error: &RouteError) -> Option<String> {
    let (_, write) = error.hint.as_ref()?.split_once("write `")?;
    let (write, _) = write.split_once('`')?;
    let from = error.span.start - "FROM /* WHERE ".len();
    let wrong = &condition[from..error.span.end - "FROM /* WHERE ".len()];
    Some(match wrong {
        "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" if write.starts_with("as_number(") => {
            condition.replacen('k', write, 1)
        }
        "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" => write.to_owned(),
        _ => format!("{}({write}){}", &condition[..from], &condition[from + wrong.len()..]),
    })
}

#[test]
fn no_hint_reverses_what_was_written() {
    let literals = ["null", "true", "false", "5", "-1", "'x'", "'5'"];
    let operators = ["=", "!=", "<>", "<", "<=", ">", ">="];
    let compared = literals.iter().flat_map(|literal| {
        operators.iter().flat_map(move |op| [format!("k {op} {literal}"), format!("{literal} {op} k")])
    });
    let alone = [
        "k",
        "NOT k",
        "k AND true",
        "true AND k",
        "k OR false",
        "k + 1 = 6",
        "1 - k < 0",
        "-k < 0",
        "abs(k) = 5",
    ];
    let (mut hints, mut wrong) = (0, String::new());
    for condition in compared.chain(alone.map(str::to_owned)) {
        let Err(error) = parse(&condition) else { continue };
        let Some(instead) = as_the_hint_says(&condition, &error) else { continue };
        hints += 1;
        for (header, body) in VALUES {
            // What may stand in the body may be of any kind, so there the expression is accepted as it was written.
            let meant = truth(&condition.replacen('k', "$body.k", 1), &format!("body={body}"));
            let told = truth(&instead, header);
            // A header that is not there, or is no number, is undefined: nothing is said of it.
            if meant != Truth::Undefined && told != Truth::Undefined && meant != told {
                wrong += &format!("{condition}: {meant}, {instead}: {told}, of {header} and {body}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(hints >= 40, "{hints} hints");
}

#[test]
fn what_a_hint_says_of_null_matches_the_same_messages() {
    for (condition, instead) in
        [("k = null", "NOT is_string(k)"), ("null != k", "is_string(k)"), ("k <> null", "is_string(k)")]
    {
        let error = parse(condition).expect_err("properties are not compared with null");
        assert_eq!(as_the_hint_says(condition, &error).as_deref(), Some(instead));
        for (header, body) in &VALUES[..5] {
            let meant = truth(&condition.replacen('k', "$body.k", 1), &format!("body={body}"));
            assert_eq!(truth(instead, header), meant, "{condition} of {body}");
        }
    }
}

#[test]
fn what_a_hint_says_to_write_is_a_condition_that_was_meant() {
    for (condition, instead) in [
        ("NOT k = 'x'", "NOT (k = 'x')"),
        ("NOT k != 5", "NOT (k != 5)"),
        ("NOT length(k) = 1", "NOT (length(k) = 1)"),
        ("NOT $body.k = 'low'", "NOT ($body.k = 'low')"),
        ("is_null(k) = 'true'", "is_null(k)"),
        ("is_null(k) = 'false'", "NOT is_null(k)"),
        ("is_null(k) != 'true'", "NOT is_null(k)"),
        ("'false' != is_string(k)", "is_string(k)"),
        ("(k = 'x') = 'true'", "k = 'x'"),
        ("(k = 'x') != 'true'", "NOT (k = 'x')"),
    ] {
        let error = parse(condition).expect_err(condition);
        assert_eq!(as_the_hint_says(condition, &error).as_deref(), Some(instead), "{condition}");
    }
    // Nothing is hidden by the first mend: `k` is a string, and 5 a number.
    for condition in
        ["NOT (k = 'x')", "NOT (length(k) = 1)", "is_null(k)", "NOT (k = 'x')", "(k = 'true') ?? true"]
    {
        parse(condition).unwrap_or_else(|error| panic!("{condition}: {error}"));
    }
}

/// What hints say to write in general is accepted, and means what was meant of a message with `k` as `x`.
#[test]
fn the_forms_that_hints_name_hold() {
    for (condition, truth_of_x) in [
        ("(k = 'x') != (k = 'y')", Truth::True),
        ("(k ?? 'y') = 'x'", Truth::True),
        ("starts_with(k, 'x')", Truth::True),
        ("starts_with(lower(k), 'x')", Truth::True),
        ("ends_with(lower(k), 'x')", Truth::True),
        ("contains(lower(k), 'x')", Truth::True),
        ("NOT starts_with(k, 'y') AND NOT ends_with(k, 'y') AND NOT contains(k, 'y')", Truth::True),
        ("k != 'y' AND k != 'z'", Truth::True),
        ("k < 'a' OR k > 'b'", Truth::True),
        ("{k} = 'x'", Truth::True),
        ("k = 'x' /* only floods */", Truth::True),
        (r"k = 'it\'s'", Truth::False),
        ("(k = 'x' AND true) OR (NOT (k = 'x') AND false)", Truth::True),
        ("k = 'true'", Truth::False),
        ("NOT is_defined(k) OR is_null(k)", Truth::False),
        ("NOT is_defined(m) OR is_null(m)", Truth::True),
        ("is_defined(k) AND NOT is_null(k)", Truth::True),
        ("is_defined(m) AND NOT is_null(m)", Truth::False),
    ] {
        assert_eq!(truth(condition, "k='x'"), truth_of_x, "{condition}");
    }
}

const NO_PARAMETERS: &str = "a route has no parameters: write the value itself, as `'high'` or `5`";

/// As SQL's `CASE`, of which `ELSE` counts where the condition is undefined.
#[test]
fn what_a_hint_says_of_case_means_what_case_does() {
    let error = parse("CASE WHEN k = 'x' THEN true ELSE false END").expect_err("there is no CASE");
    let hint = error.hint.expect("a hint");
    let form = hint.split('`').nth(3).expect("a form to write");
    for (message, is_x) in [("k='x'", true), ("k='y'", false), ("k=null", false), ("-", false)] {
        for (then, otherwise) in [("true", "false"), ("false", "true"), ("true", "true"), ("false", "false")]
        {
            let instead = form.split_inclusive(' ').map(|word| {
                let (word, end) = word.trim_end().split_at(word.trim_end().trim_end_matches(')').len());
                let (begin, word) = word.split_at(word.len() - word.trim_start_matches('(').len());
                let word = match word {
                    "a" => "k = 'x'",
                    "b" => then,
                    "c" => otherwise,
                    word => word,
                };
                format!("{begin}{word}{end} ")
            });
            let instead = instead.collect::<String>();
            let wanted = if is_x { then } else { otherwise };
            assert_eq!(truth(&instead, message).to_string(), wanted, "{instead} of {message}");
        }
    }
}

fn notes(condition: &str) -> Vec<String> {
    let route = format!("FROM /* WHERE {condition} INTO $upstream");
    let manifest = serde_json::json!({"routes": {"a": route}}).to_string();
    let notes = Reading::from_json(&manifest).unwrap_or_else(|error| panic!("{condition}: {error}")).notes;
    notes.iter().map(|note| note.strip_prefix("/routes/a: ").expect("it says where").to_owned()).collect()
}

/// A condition that can be read and is probably a slip, the note about it, and what the note says to write.
#[test]
fn a_condition_that_is_probably_a_slip_has_a_note() {
    for (condition, note) in [
        ("body.k = 'x'", "`body.k` is an application property; a value of the body is `$body.k`"),
        ("m.k = 'x'", "`m.k` is an application property; one without a prefix is `k`"),
        (
            "message.properties.k = 'x'",
            "`message.properties.k` is an application property; one without a prefix is `k`",
        ),
        (
            "contentType = 'x'",
            "`contentType` is an application property; the system property is `$contentType`",
        ),
        (
            "$enqueuedTime < CURRENT_TIMESTAMP",
            "`CURRENT_TIMESTAMP` is an application property, and a condition does not know the time; `$enqueuedTime` is when the broker took the message",
        ),
        (
            "{$mesageId} = 'x'",
            "`{$mesageId}` is no system property, and so undefined for every message; did you mean `{$messageId}`?",
        ),
        (
            "{$bdoy.k} = 'x'",
            "`{$bdoy.k}` is no system property, and so undefined for every message; did you mean `$body.k`?",
        ),
        (
            "$mesageId = 'x'",
            "`$mesageId` is no system property, only an application property may be called so; did you mean `$messageId`?",
        ),
        (
            "$k = 'x'",
            "`$k` is no system property, only an application property may be called so; did you mean `k`?",
        ),
        (
            "\"k\" = 'x y'",
            "`'k' = 'x y'` is false for every message; a property is written without quotes: `k`",
        ),
        (
            "contains(\"k\", 'x') AND k = 'x'",
            "`contains('k', 'x')` is false for every message; a property is written without quotes: `k`",
        ),
        ("k = 'x' OR 1 = 1", "`1 = 1` is true for every message"),
        ("NOT (1 = 2)", "`NOT (1 = 2)` is true for every message"),
        ("k = undefined", "`k = undefined` is undefined for every message; write `NOT is_defined(k)`"),
        (
            "undefined != $body.k",
            "`undefined != $body.k` is undefined for every message; write `is_defined($body.k)`",
        ),
    ] {
        assert_eq!(notes(condition), [note], "{condition}");
    }
    // Nothing is said of what is as it should be, whatever it is called.
    for condition in [
        "k = 'x'",
        "service.name = 'x'",
        "$body.k = null AND $messageId = 'x' AND {$enqueuedTime} > '2026'",
        "true",
        "NOT is_defined(k) OR is_null(k)",
        "(k ?? 'none') = concat('a', 'b')",
        "as_number(k) > 2 * 3",
    ] {
        assert_eq!(notes(condition), [] as [String; 0], "{condition}");
    }
}

/// What the hint says where it has nothing to put in the place of what is wrong.
#[test]
fn a_hint_names_what_was_probably_meant() {
    for (condition, hint) in [
        ("k = 'x' || k = 'y'", "`||` joins strings: write `OR` between conditions"),
        ("k IS NULL", "write `NOT is_defined(a) OR is_null(a)`"),
        ("k IS NOT NULL", "write `is_defined(a) AND NOT is_null(a)` for `IS NOT NULL`, else `a != b`"),
        ("k IS 'x'", "write `a = b`"),
        ("NOT $body.k = 'low'", "write `NOT ($body.k = 'low')`"),
        ("(k ?? 5) = 5", "properties are strings: write `as_number(k) ?? 5`"),
        ("k < true", "a bool is compared with `=`"),
        ("k + 'b' = 'ab'", "`+` adds numbers; strings are joined with `||`"),
        ("as_number(k) = 'x'", "this string is no number"),
        ("k = ‘x’", "strings stand in `'` or `\"`"),
        ("k = 'x'; b", "leave it out: a route ends with its sink"),
        (
            "$enqueuedTime > 1700000000",
            "it is a text such as `'2026-11-30T09:20:00.000Z'`: compare it with one like that",
        ),
        (
            "{$enqueuedTime} > 1700000000",
            "it is a text such as `'2026-11-30T09:20:00.000Z'`: compare it with one like that",
        ),
        ("k = 'x' XOR k = 'y'", "write `(a) != (b)`, with a condition in each bracket"),
        ("IFNULL(k, 'x') = 'x'", "write `a ?? b`"),
        ("coalesce(k, 'x') = 'x'", "write `a ?? b`"),
        ("k ~ 'x'", "write `starts_with(a, b)`, `ends_with(a, b)` or `contains(a, b)`"),
        ("k LIKE 'x%'", "write `starts_with(a, b)`, `ends_with(a, b)` or `contains(a, b)`"),
        (
            "k ILIKE 'x%'",
            "write `starts_with(lower(a), 'x')`, `ends_with(lower(a), 'x')` or `contains(lower(a), 'x')`",
        ),
        ("k NOT LIKE 'x%'", "write `NOT starts_with(a, b)`, `NOT ends_with(a, b)` or `NOT contains(a, b)`"),
        ("k NOT IN ('x', 'y')", "write the comparisons with `AND` between them: `a != 'x' AND a != 'y'`"),
        ("k NOT BETWEEN 1 AND 2", "write `a < x OR a > y`"),
        ("[k] = 'x'", "a property is written in braces: `{k}`"),
        ("k = 'x' -- only floods", "a comment is written `/* … */`"),
        ("k = 'it''s'", "within a string a `'` is written `\\'`"),
        (
            "CASE WHEN k = 'x' THEN true ELSE false END",
            "there is no `CASE`: write `((a ?? false) AND b) OR (NOT (a ?? false) AND c)`, with conditions for letters",
        ),
        ("body.k > 5", "a value of the body is written with `$`: write `$body.k`"),
        ("m.body.k = true", "a value of the body is written with `$`: write `$body.k`"),
        ("body.k + 1 = 2", "a value of the body is written with `$`: write `$body.k`"),
        ("NOT body.k", "a value of the body is written with `$`: write `$body.k`"),
        ("body.k", "a value of the body is written with `$`: write `$body.k`"),
        ("(body.k ?? 5) = 5", "a value of the body is written with `$`: write `$body.k`"),
        ("k = N'low'", "a string has no letter before it: leave `N` out"),
        ("k > TIMESTAMP '2026-11-30'", "a time is a string: leave `TIMESTAMP` out"),
        ("k = :sev", NO_PARAMETERS),
        ("k = @sev", NO_PARAMETERS),
        ("k = ?", NO_PARAMETERS),
        ("starts_with(k, ?)", NO_PARAMETERS),
        ("k = $1", NO_PARAMETERS),
        ("k = ${sev}", NO_PARAMETERS),
        ("k = %s", NO_PARAMETERS),
        ("k ? 'x'", "write `??`"),
        ("k::int = 5", "a property is a string; its number is `as_number(a)`"),
        ("CAST(k AS int) = 5", "write `as_number(a)`; a property is a string already"),
        (
            "k = (SELECT 1)",
            "a condition sees one message and asks no other: write the values; a property of that name is written `{SELECT}`",
        ),
        (
            "$enqueuedTime < now()",
            "a condition does not know the time; `$enqueuedTime` is when the broker took the message",
        ),
        ("\"k\" > 5", "this string is no number; a property is written without quotes: `as_number(k)`"),
        ("k = TRUE", "properties are strings: write `'true'`"),
        ("$body.k = TRUE", "write `true`; a property of that name is `{TRUE}`"),
        ("k = 'x' AND", "a value is missing before it; a property of that name is written `{INTO}`"),
    ] {
        let error = parse(condition).expect_err(condition);
        assert_eq!(error.hint.as_deref(), Some(hint), "{condition}");
    }
}

//! What a hint says to write means what was written: it is evaluated beside the expression that it replaces.

use overtake_routes::{Route, RouteError, Truth};

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

/// What the hint says where it has nothing to put in the place of what is wrong.
#[test]
fn a_hint_names_what_was_probably_meant() {
    for (condition, hint) in [
        ("k = 'x' || k = 'y'", "`||` joins strings: write `OR` between conditions"),
        ("k IS NOT NULL", "write `is_string(a)`"),
        ("NOT $body.k = 'low'", "write `NOT ($body.k = 'low')`"),
        ("(k ?? 5) = 5", "properties are strings: write `as_number(k) ?? 5`"),
        ("k < true", "a bool is compared with `=`"),
        ("k + 'b' = 'ab'", "`+` adds numbers; strings are joined with `||`"),
        ("as_number(k) = 'x'", "this string is no number"),
        ("k = ‘x’", "strings stand in `'` or `\"`"),
        ("k = 'x'; b", "leave it out: a route ends with its sink"),
        ("k = 'x' AND", "a value is missing before it; a property of that name is written `{INTO}`"),
    ] {
        let error = parse(condition).expect_err(condition);
        assert_eq!(error.hint.as_deref(), Some(hint), "{condition}");
    }
}

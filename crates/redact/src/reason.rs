//! What serde's messages say, without the value they repeat and in words for people who never saw serde.

/// What serde, `serde_json` or `toml` say of a value that does not fit, without that value: `expected a table, found a string`.
///
/// Every other message stays as it is, so a message may pass through more than once.
#[must_use]
pub fn reason(message: &str) -> String {
    let (what, place) = split_place(message.trim());
    format!("{}{place}", without_value(what))
}

/// As [`reason`], in the words of JSON, which has objects and no tables.
#[must_use]
pub fn json_reason(message: &str) -> String {
    reason(message).replace("a table", "an object")
}

/// The place that `serde_json` appends: ` at line 1 column 9`.
fn split_place(message: &str) -> (&str, &str) {
    let Some(at) = message.rfind(" at line ") else { return (message, "") };
    let is_place = |text: &str| {
        let numbers = text.strip_prefix(" at line ").and_then(|text| text.split_once(" column "));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        numbers.is_some_and(|(line, column)| is_number(line) && is_number(column))
    };
    let (what, place) = message.split_at(at);
    if is_place(place) { (what, place) } else { (message, "") }
}

/// How serde begins a message, and what to say instead of the rest.
type Kind = (&'static str, fn(&str) -> String);

/// The messages that repeat a value or name a type of Rust.
const KINDS: [Kind; 6] = [
    ("invalid type: ", |rest| of_type(rest, false)),
    ("invalid value: ", |rest| of_type(rest, true)),
    ("invalid length ", of_length),
    ("unknown variant `", of_variant),
    ("unknown field `", of_field),
    ("data did not match any variant of ", |_| "this has none of the forms that are taken here".to_owned()),
];

fn without_value(what: &str) -> String {
    let found = KINDS.iter().filter_map(|(begin, say)| Some((what.find(begin)?, begin, say)));
    match found.min_by_key(|(at, ..)| *at) {
        Some((at, begin, say)) => format!("{}{}", &what[..at], say(&what[at + begin.len()..])),
        None => what.to_owned(),
    }
}

/// `FOUND, expected EXPECTED`. The value is in `FOUND` and may hold anything, so the last `, expected ` counts.
fn of_type(rest: &str, is_kind_right: bool) -> String {
    let Some((found, expected)) = rest.rsplit_once(", expected ") else {
        return "this value is not taken here".to_owned();
    };
    let (expected, found) = (in_words(expected), kind(found));
    let found = match found {
        "a whole number" | "a negative number"
            if is_kind_right && expected.starts_with(WHOLE) && expected != WHOLE =>
        {
            "one outside of that range"
        }
        "a string" if is_kind_right => "another string",
        "a table" if expected == ONE_KEY => "one with several keys or none",
        found => found,
    };
    format!("expected {expected}, found {found}")
}

fn of_length(rest: &str) -> String {
    match rest.split_once(", expected ") {
        Some((len, expected)) => format!("expected {}, found {len}", in_words(expected)),
        None => "the number of values is wrong".to_owned(),
    }
}

fn of_variant(rest: &str) -> String {
    match rest.rsplit_once("`, expected ") {
        Some((_, names)) => format!("expected {names}, found another name"),
        None => "no name is taken here".to_owned(),
    }
}

/// The name of a field helps to find it, unless it holds what a value would.
fn of_field(rest: &str) -> String {
    let end = rest.rfind("`, expected ").or_else(|| rest.rfind('`')).unwrap_or(rest.len());
    let (name, known) = rest.split_at(end);
    let is_name = !name.contains("://") && !name.contains('@');
    format!("unknown field `{}{known}", if is_name { name } else { super::MASK })
}

/// The kind of the value that was found: serde writes the kind, then the value.
fn kind(found: &str) -> &'static str {
    const KINDS: [(&str, &str); 16] = [
        ("boolean", "true or false"),
        ("integer `-", "a negative number"),
        ("integer", "a whole number"),
        ("floating point", "a decimal number"),
        ("number", "a number"),
        ("character", "a string"),
        ("string", "a string"),
        ("byte array", "bytes"),
        ("unit variant", "a name"),
        ("unit", "null"),
        ("null", "null"),
        ("Option", "a value"),
        ("sequence", "a list"),
        ("map", "a table"),
        ("datetime", "a time"),
        ("newtype", "a value"),
    ];
    KINDS.iter().find(|(begin, _)| found.starts_with(begin)).map_or("something else", |(_, words)| words)
}

const WHOLE: &str = "a whole number";
const ONE_KEY: &str = "a table with one key";

/// What serde expects, in words. What our own types expect is in words already.
fn in_words(expected: &str) -> String {
    let words = match expected {
        "a boolean" | "bool" => "true or false",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number of at least 0",
        "i8" => "a whole number from -128 to 127",
        "i16" => "a whole number from -32768 to 32767",
        "i32" => "a whole number from -2147483648 to 2147483647",
        "i64" | "isize" | "i128" => WHOLE,
        "f32" | "f64" => "a number",
        "a character" => "one character",
        "a string" | "a borrowed string" | "str" => "a string",
        "path string" => "a path",
        "a sequence" => "a list",
        "a map" | "map" => "a table",
        "a map with a single key" | "map with a single key" => ONE_KEY,
        "string or map" => "a string or a table",
        "unit" => "null",
        "variant identifier" => "a name",
        "field identifier" => "a key",
        _ => return of_rust_type(expected),
    };
    words.to_owned()
}

/// Types by their Rust names: `struct Backoff`, `a tuple of size 2`, `a nonzero u32`.
fn of_rust_type(expected: &str) -> String {
    let len =
        expected.strip_prefix("a tuple of size ").or_else(|| expected.strip_prefix("an array of length "));
    match (expected, len) {
        (_, Some(len)) => format!("a list of {len}"),
        _ if expected.starts_with("a nonzero ") => format!("{WHOLE} of at least 1"),
        _ if expected.starts_with("struct ") || expected.contains("tagged enum ") => "a table".to_owned(),
        _ if expected.starts_with("tuple ") => "a list".to_owned(),
        _ if expected.starts_with("enum ") || expected.starts_with("unit variant ") => "a name".to_owned(),
        _ => expected.to_owned(),
    }
}

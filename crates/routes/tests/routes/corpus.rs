//! The files in `tests/corpus`: a case a line, fields between ` | `, `#` before what is for people.

use std::fmt::Write as _;
use std::path::Path;

use overtake_routes::{Route, RouteError};

use crate::message::Message;

/// The least number of cases, so that none is lost unseen.
const CASES_MIN: usize = 600;

type Check = fn(&[&str]) -> Result<(), String>;

const FILES: [(&str, Check); 8] = [
    ("accepted.txt", accepted),
    ("rejected.txt", rejected),
    ("sources.txt", source),
    ("literals.txt", condition),
    ("operators.txt", condition),
    ("logic.txt", condition),
    ("functions.txt", condition),
    ("values.txt", condition),
];

/// `route | as it is printed`
fn accepted(fields: &[&str]) -> Result<(), String> {
    let [route, printed] = fields else { return Err("two fields".into()) };
    let parsed = Route::parse(route).map_err(|error| shown(&error, route))?;
    same(&parsed.to_string(), printed)?;
    let again = Route::parse(printed).map_err(|error| shown(&error, printed))?;
    if again != parsed {
        Err("printed, it is another route".into())
    } else {
        same(&again.to_string(), printed)
    }
}

/// `route | what the carets are beneath | what is wrong | hint`; a lone `^` is the end of the route.
fn rejected(fields: &[&str]) -> Result<(), String> {
    let [route, place, what, rest @ ..] = fields else { return Err("three fields".into()) };
    let Err(error) = Route::parse(route) else { return Err("it is accepted".into()) };
    same(if error.span.is_empty() { "^" } else { &route[error.span.clone()] }, place)?;
    same(&error.what, what)?;
    same(error.hint.as_deref().unwrap_or_default(), rest.first().unwrap_or(&""))
}

/// `source | path | yes or no`
fn source(fields: &[&str]) -> Result<(), String> {
    let [source, path, matches] = fields else { return Err("three fields".into()) };
    let route = format!("FROM {source} INTO $upstream");
    let parsed = Route::parse(&route).map_err(|error| shown(&error, &route))?;
    same(if parsed.source.matches(path) { "yes" } else { "no" }, matches)
}

/// `condition | message | true, false or undefined [| the expression that decides: why]`
fn condition(fields: &[&str]) -> Result<(), String> {
    let [condition, message, truth, rest @ ..] = fields else { return Err("three fields".into()) };
    let route = format!("FROM /* WHERE {condition} INTO $upstream");
    let parsed = Route::parse(&route).map_err(|error| shown(&error, &route))?;
    let condition = parsed.condition.expect("it has a WHERE");
    let message = Message::parse(message);
    same(&condition.evaluate(&message).to_string(), truth)?;
    let explained = condition.explain(&message);
    same(&explained.truth.to_string(), truth)?;
    let again = Route::parse(&parsed_text(&condition)).expect("what is printed can be read");
    let again = again.condition.expect("it has a WHERE");
    same(&again.to_string(), &condition.to_string())?;
    same(&again.evaluate(&message).to_string(), truth)?;
    rest.first().map_or(Ok(()), |why| same(&format!("{}: {}", explained.expression, explained.why), why))
}

fn parsed_text(condition: &impl std::fmt::Display) -> String {
    format!("FROM /* WHERE {condition} INTO $upstream")
}

fn same(is: &str, wanted: &str) -> Result<(), String> {
    if is == wanted { Ok(()) } else { Err(format!("`{is}` instead of `{wanted}`")) }
}

fn shown(error: &RouteError, route: &str) -> String {
    format!("{error}\n{}", error.render(route))
}

#[test]
fn every_line_of_the_corpus_holds() {
    let (mut cases, mut wrong) = (0, String::new());
    for (file, check) in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(file);
        let text = std::fs::read_to_string(path).expect("the corpus is there");
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            cases += 1;
            let fields = line.split(" | ").map(str::trim).collect::<Vec<_>>();
            if let Err(why) = check(&fields) {
                writeln!(wrong, "{file}:{}: {line}\n  {why}", at + 1).expect("a string takes everything");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(cases >= CASES_MIN, "{cases} cases");
}

//! What `docs/routes.md` shows is so.

use std::path::Path;

use overtake_routes::{Manifest, Reading, Route};

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/routes.md");
    std::fs::read_to_string(page).expect("the page is there")
}

/// What stands in fences of a language, in turn.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

#[test]
fn the_route_on_the_page_is_one_and_so_is_the_error() {
    let page = page();
    let [route, error, ..] = blocks(&page, "")[..] else { panic!("two blocks") };
    assert_eq!(Route::parse(route).map(|parsed| parsed.to_string()).as_deref(), Ok(route));
    let wrong = error.lines().nth(1).expect("the route is the second line");
    let refused = Route::parse(wrong).expect_err("it is wrong");
    assert_eq!(format!("{refused}\n{}", refused.render(wrong)), error);
}

#[test]
fn the_manifests_on_the_page_say_the_same_but_for_the_fallback() {
    let page = page();
    let ([json], [toml]) = (&blocks(&page, "json")[..], &blocks(&page, "toml")[..]) else {
        panic!("two manifests")
    };
    let mut json = Manifest::from_json(json).unwrap_or_else(|error| panic!("{error}"));
    assert!(json.routes.iter().any(|route| route.is_fallback));
    json.routes.retain(|route| !route.is_fallback);
    assert_eq!(Manifest::from_toml(toml).unwrap_or_else(|error| panic!("{error}")), json);
}

#[test]
fn the_page_knows_every_function_and_no_other() {
    let page = page();
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("### Functions"))
        .take_while(|line| !line.starts_with("### Limits"));
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split(" | ").next());
    let mut named = cells
        .flat_map(|cell| cell.split('`'))
        .filter_map(|code| code.split_once('('))
        .map(|(name, _)| name)
        .collect::<Vec<_>>();
    named.dedup();
    let unknown = Route::parse("FROM /* WHERE nothing_like_it(a) INTO $upstream").expect_err("there is none");
    let hint = unknown.hint.expect("it names all");
    let mut known = hint.trim_start_matches("there are ").split(", ").collect::<Vec<_>>();
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known);
}

/// Each row of a table whose first cell has conditions, and those conditions.
fn conditions(page: &str, heading: &str) -> Vec<String> {
    let rows = page.lines().skip_while(|line| *line != heading).skip(1);
    let rows = rows.take_while(|line| !line.starts_with('#'));
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split(" | ").next());
    cells.flat_map(|cell| cell.split("`, `")).map(|it| it.trim_matches('`').to_owned()).collect()
}

fn notes(condition: &str) -> Vec<String> {
    let route = format!("FROM /* WHERE {condition} INTO $upstream");
    let manifest = serde_json::json!({"routes": {"a": route}}).to_string();
    Reading::from_json(&manifest).unwrap_or_else(|error| panic!("{condition}: {error}")).notes
}

#[test]
fn a_condition_has_a_note_where_the_page_says_so() {
    let page = page();
    let noted = conditions(&page, "### Notes");
    assert!(noted.len() >= 10, "{noted:?}");
    for condition in noted {
        assert_eq!(notes(&condition).len(), 1, "{condition}");
    }
}

#[test]
fn each_system_property_of_the_page_is_known() {
    let page = page();
    let rows = page.lines().skip_while(|line| !line.starts_with("**What conditions read**"));
    let cells = rows.filter_map(|row| row.strip_prefix("| `$")?.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split("`, `$")).map(|name| name.trim_matches('`'));
    let names = names.filter(|name| *name != "body").collect::<Vec<_>>();
    assert_eq!(names.len(), 14, "{names:?}");
    for name in names {
        assert_eq!(notes(&format!("{{${name}}} = 'x' OR ${name} = 'x'")), [] as [String; 0], "{name}");
    }
}

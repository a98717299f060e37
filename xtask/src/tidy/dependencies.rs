//! docs/dependencies.md has a line for every crate we chose, and none for one we no longer use.
//!
//! The lines are the rows of its tables: `` | `crate` | where | why | considered | ``. Under the heading `## Coming`
//! stand crates that are decided on and not yet used.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::repo::{Kind, Repo};

const PAGE: &str = "docs/dependencies.md";
const COMING: &str = "## Coming";

struct Line {
    number: usize,
    name: String,
    places: BTreeSet<String>,
    coming: bool,
}

/// Page and manifests say the same.
pub(crate) fn justified(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.text(PAGE) else { return vec![Finding::error(PAGE, 0, "is missing")] };
    let used = used(repo);
    let lines = lines(page);
    let mut found: Vec<_> = lines.iter().filter_map(|line| wrong(line, used.get(&line.name))).collect();
    for (name, places) in &used {
        if !lines.iter().any(|line| line.name == *name) {
            found.push(Finding::error(
                PAGE,
                0,
                format!("has no line for `{name}`, used in {}", join(places)),
            ));
        }
    }
    found
}

fn wrong(line: &Line, used: Option<&BTreeSet<String>>) -> Option<Finding> {
    let say = |text: String| Some(Finding::error(PAGE, line.number, text));
    let name = &line.name;
    match used {
        None if line.coming => None,
        None => say(format!("nothing depends on `{name}` any more: the line is dead")),
        Some(places) if line.coming => {
            say(format!("`{name}` has come: move it up, used in {}", join(places)))
        }
        Some(places) if *places == line.places => None,
        Some(places) => say(format!("`{name}` is used in {}", join(places))),
    }
}

/// Every crate that is not ours, and where: `store`, or `store (dev)` where only tests use it.
fn used(repo: &Repo) -> BTreeMap<String, BTreeSet<String>> {
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut edges: Vec<_> = repo.edges.iter().filter(|edge| !repo.is_ours(&edge.to)).collect();
    edges.sort_by_key(|edge| edge.kind);
    for edge in edges {
        let place = short(&edge.from);
        let places = used.entry(edge.to.clone()).or_default();
        match edge.kind {
            Kind::Normal => places.insert(place.to_owned()),
            Kind::Dev => !places.contains(place) && places.insert(format!("{place} (dev)")),
        };
    }
    used
}

/// The crate's directory.
fn short(package: &str) -> &str {
    match package {
        "overtake" => "cli",
        other => other.strip_prefix("overtake-").unwrap_or(other),
    }
}

fn lines(page: &str) -> Vec<Line> {
    let mut coming = false;
    let mut lines = Vec::new();
    for (at, text) in page.lines().enumerate() {
        if text.starts_with("## ") {
            coming = text.trim_end() == COMING;
        }
        if let Some((name, places)) = row(text) {
            lines.push(Line { number: at + 1, name, places, coming });
        }
    }
    lines
}

/// A table row whose first cell is a name in backticks.
fn row(text: &str) -> Option<(String, BTreeSet<String>)> {
    let mut cells = text.strip_prefix('|')?.split('|').map(str::trim);
    let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
    let places =
        cells.next()?.split(',').map(|place| place.trim().to_owned()).filter(|place| !place.is_empty());
    Some((name.to_owned(), places.collect()))
}

fn join(places: &BTreeSet<String>) -> String {
    places.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    fn repo(page: &str) -> Repo {
        Repo::of(&[(PAGE, page)])
            .with_members(&["overtake-lane", "overtake"])
            .with_edge("overtake-lane", "serde", Kind::Normal)
            .with_edge("overtake", "serde", Kind::Dev)
            .with_edge("overtake", "overtake-lane", Kind::Normal)
    }

    #[test]
    fn a_page_that_is_right_is_left_alone() {
        check(justified, repo("| `serde` | cli (dev), lane | why | what else |"), &[]);
    }

    #[test]
    fn a_dependency_without_a_line_is_found() {
        check(
            justified,
            repo(""),
            &["docs/dependencies.md: has no line for `serde`, used in cli (dev), lane"],
        );
    }

    #[test]
    fn a_dead_line_is_found() {
        let page = "| `serde` | lane, cli (dev) | |\n| `time` | lane | |";
        let said = "docs/dependencies.md:2: nothing depends on `time` any more: the line is dead";
        check(justified, repo(page), &[said]);
    }

    #[test]
    fn a_line_that_names_the_wrong_crate_is_found() {
        let said = "docs/dependencies.md:1: `serde` is used in cli (dev), lane";
        check(justified, repo("| `serde` | lane | |"), &[said]);
    }

    #[test]
    fn what_is_coming_may_be_unused_and_what_has_come_moves_up() {
        let page = "## Coming\n\n| `time` | store | |\n| `serde` | lane | |";
        let said = "docs/dependencies.md:4: `serde` has come: move it up, used in cli (dev), lane";
        check(justified, repo(page), &[said]);
    }

    #[test]
    fn a_missing_page_is_found() {
        check(justified, Repo::default(), &["docs/dependencies.md: is missing"]);
    }
}

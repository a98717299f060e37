//! Markdown: relative links lead to files that exist, tests that tables name exist, and the changelog has a place for the next change.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use super::Finding;
use super::repo::{Repo, Text};

/// Every relative link of every page.
pub(crate) fn links(repo: &Repo) -> Vec<Finding> {
    repo.ending(".md").flat_map(|page| dead_links(repo, page)).collect()
}

/// A section for what is not released yet.
pub(crate) fn changelog(repo: &Repo) -> Vec<Finding> {
    let path = "CHANGELOG.md";
    let Some(text) = repo.text(path) else { return vec![Finding::error(path, 0, "is missing")] };
    let open = text.lines().any(|line| matches!(line.trim_end(), "## Unreleased" | "## [Unreleased]"));
    if open { Vec::new() } else { vec![Finding::error(path, 0, "has no section `## Unreleased`")] }
}

fn dead_links(repo: &Repo, page: &Text) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, line) in prose_lines(&page.text) {
        for target in targets(&line) {
            if !leads_somewhere(repo, &page.path, target) {
                found.push(Finding::error(&page.path, at, format!("`{target}` leads nowhere")));
            }
        }
    }
    found
}

/// Every row of a table in docs/ whose last column is headed `Test` names tests that exist: `crate::path::test_name`, with the package
/// as the crate, or `tests::…` for those of other people's clients.
pub(crate) fn named_tests(repo: &Repo) -> Vec<Finding> {
    let known: BTreeSet<String> = repo.texts.iter().flat_map(tests).collect();
    let pages = repo.ending(".md").filter(|page| page.path.starts_with("docs/"));
    pages.flat_map(|page| missing_tests(page, &known)).collect()
}

fn missing_tests(page: &Text, known: &BTreeSet<String>) -> Vec<Finding> {
    let (mut found, mut names_tests) = (Vec::new(), false);
    for (at, line) in page.text.lines().enumerate() {
        let row = line.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|'));
        let cell = row.and_then(|row| row.rsplit('|').next()).map(str::trim);
        match cell {
            None => names_tests = false,
            Some("Test") => names_tests = true,
            Some(cell) if names_tests && cell.contains(|letter| !"-: ".contains(letter)) => {
                let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
                if names.is_empty() {
                    found.push(Finding::error(&page.path, at + 1, "the row names no test"));
                }
                let missing = names.iter().filter(|name| !known.contains(&plain(name)));
                found
                    .extend(missing.map(|name| {
                        Finding::error(&page.path, at + 1, format!("there is no test `{name}`"))
                    }));
            }
            Some(_) => {}
        }
    }
    found
}

/// A test's name as it is compared: `overtake-amqp::client::x` as `amqp::client::x`.
fn plain(name: &str) -> String {
    let name = name.replace('-', "_");
    match name.strip_prefix("overtake") {
        Some(rest) if rest.starts_with("::") => format!("cli{rest}"),
        Some(rest) => rest.trim_start_matches('_').to_owned(),
        None => name,
    }
}

/// The tests in a file, in Rust by their attribute, in Python by their name.
fn tests(file: &Text) -> Vec<String> {
    let Some((path, extension)) = file.path.rsplit_once('.') else { return Vec::new() };
    let mut parts: Vec<&str> = path.strip_prefix("crates/").unwrap_or(path).split('/').collect();
    if parts.get(1).is_some_and(|part| ["src", "tests"].contains(part)) {
        parts.remove(1);
    }
    parts.pop_if(|part| ["lib", "main", "mod"].contains(part));
    let names = match extension {
        "rs" => rust_tests(&file.text),
        "py" => python_tests(&file.text),
        _ => Vec::new(),
    };
    names.iter().map(|name| plain(&format!("{}::{name}", parts.join("::")))).collect()
}

fn rust_tests(text: &str) -> Vec<String> {
    let (mut found, mut modules, mut is_test) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        let code = line.trim_start();
        let depth = line.len() - code.len();
        if code == "}" {
            modules.pop_if(|(at, _)| *at == depth);
        } else if let Some(name) = code.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            modules.push((depth, name));
        }
        if code.starts_with("#[") {
            is_test |= code.contains("test") && !code.contains("cfg");
            continue;
        }
        let name = code
            .strip_prefix("async ")
            .unwrap_or(code)
            .strip_prefix("fn ")
            .and_then(|rest| rest.split(['(', '<']).next());
        if let Some(name) = name.filter(|_| is_test) {
            let path = modules.iter().map(|(_, module)| *module).chain([name]);
            found.push(path.collect::<Vec<_>>().join("::"));
        }
        is_test = false;
    }
    found
}

fn python_tests(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let code = line.strip_prefix("async ").unwrap_or(line).strip_prefix("def ")?;
        code.split('(').next().filter(|name| name.starts_with("test_")).map(str::to_owned)
    };
    text.lines().filter_map(name).collect()
}

/// The lines outside code, numbered from 1, with code spans cut out.
fn prose_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((at + 1, line.split('`').step_by(2).collect::<Vec<_>>().join("·")));
        }
    }
    lines
}

/// What stands in `](…)`, and after `[name]:` at the start of a line.
fn targets(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let defined = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    inline.chain(defined.and_then(|(_, target)| target.split_whitespace().next())).collect()
}

fn leads_somewhere(repo: &Repo, page: &str, target: &str) -> bool {
    let outside = target.contains("://") || target.starts_with("mailto:") || target.starts_with('#');
    if outside || target.is_empty() {
        return outside;
    }
    let file = target.split('#').next().expect("split gives a first part");
    let Some(path) = resolve(page, file) else { return false };
    let folder = format!("{path}/");
    path.is_empty() || repo.paths.iter().any(|known| *known == path || known.starts_with(&folder))
}

/// The path from the root; `None` when it leaves the repository.
fn resolve(page: &str, link: &str) -> Option<String> {
    let from = Path::new(page).parent()?;
    let mut parts: Vec<String> = Vec::new();
    for component in from.join(link).components() {
        match component {
            Component::ParentDir => drop(parts.pop()?),
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    fn page(text: &str) -> Repo {
        Repo::of(&[("docs/a.md", text), ("docs/b.md", ""), ("LICENSE", "")])
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        check(links, page("\n[c](c.md) [b](b.md)"), &["docs/a.md:2: `c.md` leads nowhere"]);
        check(links, page("[c]: ../c.md"), &["docs/a.md:1: `../c.md` leads nowhere"]);
        check(links, page("[out](../../a.md)"), &["docs/a.md:1: `../../a.md` leads nowhere"]);
    }

    #[test]
    fn a_link_to_a_file_a_folder_a_heading_or_the_world_is_fine() {
        check(
            links,
            page("[b](b.md#part) [l](../LICENSE) [d](../docs) [h](#top) [w](https://example.org/x)"),
            &[],
        );
    }

    #[test]
    fn code_holds_no_links() {
        check(links, page("```\n[c](c.md)\n```\n`[c](c.md)`"), &[]);
    }

    #[test]
    fn a_test_that_is_named_and_not_there_is_found() {
        let rust = "#[cfg(test)]\nmod tests {\n    #[tokio::test]\n    async fn one() {\n    }\n}\n\n#[test]\nfn two() {}\n\nfn helper() {}\n";
        let look = |names: &str| {
            let page = format!("| a | Test |\n|---|---|\n| b | {names} |\n\n| c | `d` |\n");
            Repo::of(&[
                ("docs/a.md", &page),
                ("crates/amqp-session/src/pending.rs", rust),
                ("crates/cli/tests/cli/main.rs", rust),
                ("tests/clients/with_pika/test_acks.py", "def test_three():\n    pass\n"),
            ])
        };
        let all = "`overtake-amqp-session::pending::tests::one` `overtake::cli::two` \
                   `tests::clients::with_pika::test_acks::test_three`";
        check(named_tests, look(all), &[]);
        check(named_tests, look("nothing"), &["docs/a.md:3: the row names no test"]);
        for missing in
            ["overtake-amqp::pending::two", "overtake::cli::helper", "overtake-amqp-session::pending::one"]
        {
            let found = format!("docs/a.md:3: there is no test `{missing}`");
            check(named_tests, look(&format!("`{missing}`")), &[&found]);
        }
    }

    #[test]
    fn a_changelog_without_a_place_for_the_next_change_is_found() {
        check(changelog, Repo::default(), &["CHANGELOG.md: is missing"]);
        let closed = Repo::of(&[("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n")]);
        check(changelog, closed, &["CHANGELOG.md: has no section `## Unreleased`"]);
        check(changelog, Repo::of(&[("CHANGELOG.md", "## [Unreleased]\n")]), &[]);
    }
}

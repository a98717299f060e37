//! Markdown: relative links lead to files that exist, and the changelog has a place for the next change.

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
    fn a_changelog_without_a_place_for_the_next_change_is_found() {
        check(changelog, Repo::default(), &["CHANGELOG.md: is missing"]);
        let closed = Repo::of(&[("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n")]);
        check(changelog, closed, &["CHANGELOG.md: has no section `## Unreleased`"]);
        check(changelog, Repo::of(&[("CHANGELOG.md", "## [Unreleased]\n")]), &[]);
    }
}

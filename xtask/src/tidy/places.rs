//! Nothing here knows the machine it was written on, or the network it was written in.

use super::Finding;
use super::repo::{Repo, Text};

/// Where checkouts and homes lie on a machine; a person's path in an example starts with `~`.
const MACHINE_ROOTS: &[&str] = &["work", "home", "root", "Users"];

/// Where lock files may say a package came from.
const PUBLIC: &[&str] = &[
    "registry+https://github.com/rust-lang/crates.io-index",
    "https://pypi.org/simple",
    "https://registry.npmjs.org/",
];

/// Settings that send a package manager elsewhere.
const REDIRECTS: &[&str] =
    &["replace-with", "[registries", "[source.", "index-url", "find-links", "GOPROXY", "--registry"];

/// An absolute path below a machine's root directories.
pub(crate) fn machine_paths(repo: &Repo) -> Vec<Finding> {
    let roots: Vec<String> = MACHINE_ROOTS.iter().map(|name| format!("/{name}/")).collect();
    in_lines(&repo.texts, |line| {
        let root = roots.iter().find(|root| starts_a_path(line, root))?;
        Some(format!("a path below {root} is a path of one machine"))
    })
}

/// A lock file or a setting that names another registry than the public ones.
pub(crate) fn registries(repo: &Repo) -> Vec<Finding> {
    let ours = |text: &&Text| !text.path.ends_with(".rs") && !text.path.ends_with(".md");
    let texts: Vec<_> = repo.texts.iter().filter(ours).collect();
    in_lines(texts, |line| {
        let redirect = REDIRECTS.iter().find(|word| line.contains(*word));
        let strange = locked_to(line).filter(|from| !PUBLIC.iter().any(|public| from.starts_with(public)));
        let why = redirect.map(|word| format!("`{word}` sends the package manager elsewhere"));
        why.or_else(|| strange.map(|from| format!("locked to {from}")))
    })
}

/// `source = "registry+…"` in Cargo.lock, `registry = "…"` in uv.lock, `"resolved": "…"` in package-lock.json.
fn locked_to(line: &str) -> Option<&str> {
    let keys = ["source = \"registry+", "source = \"sparse+", "registry = \"", "\"resolved\": \""];
    let key = keys.iter().find(|key| line.contains(*key))?;
    let value = &line[line.find(key)? + key.find('"')?..];
    value.split('"').find(|part| part.contains("://"))
}

/// Whether the root stands at the start of a path, and not inside one.
fn starts_a_path(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | '}' | '*' | '/'))
    })
}

fn in_lines<'a>(
    texts: impl IntoIterator<Item = &'a Text>,
    wrong: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for text in texts {
        let lines = text.text.lines().enumerate();
        found.extend(lines.filter_map(|(at, line)| Some(Finding::error(&text.path, at + 1, wrong(line)?))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_found_in_any_text() {
        for root in ["work", "home"] {
            let text = format!("see \"/{root}/me/notes\"");
            let said = format!("docs/a.md:1: a path below /{root}/ is a path of one machine");
            check(machine_paths, Repo::of(&[("docs/a.md", &text)]), &[&said]);
        }
    }

    #[test]
    fn a_path_that_only_contains_such_a_name_is_fine() {
        for path in ["docs/work/a.md", "~/work/a", "$HOME/work/a", "https://host/home/a", "//work/a"] {
            check(machine_paths, Repo::of(&[("docs/a.md", path)]), &[]);
        }
    }

    #[test]
    fn a_lock_to_a_mirror_is_found() {
        let lock = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"sparse+https://mirror.example/\"";
        check(
            registries,
            Repo::of(&[("Cargo.lock", lock)]),
            &["Cargo.lock:2: locked to sparse+https://mirror.example/"],
        );
        let lock = "    \"resolved\": \"https://mirror.example/a.tgz\",";
        check(
            registries,
            Repo::of(&[("p.json", lock)]),
            &["p.json:1: locked to https://mirror.example/a.tgz"],
        );
    }

    #[test]
    fn a_redirect_is_found() {
        let said = ".cargo/config.toml:1: `replace-with` sends the package manager elsewhere";
        check(registries, Repo::of(&[(".cargo/config.toml", "replace-with = \"mirror\"")]), &[said]);
    }
}

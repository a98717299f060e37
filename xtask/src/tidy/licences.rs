//! Everything the product is built from is under a licence deny.toml allows. The list there is the one list;
//! this guard reads it where cargo-deny is not installed.

use super::Finding;
use super::repo::Repo;

const LIST: &str = "deny.toml";

/// Each package's expression can be met with allowed licences only.
pub(crate) fn allowed(repo: &Repo) -> Vec<Finding> {
    let Some(list) = repo.text(LIST) else { return vec![Finding::error(LIST, 0, "is missing")] };
    let list = allow_list(list);
    let refused = repo.licences.iter().filter(|(_, licence)| !meets(licence, &list));
    refused.map(|(package, licence)| Finding::error(package, 0, format!("is under `{licence}`"))).collect()
}

/// The quoted names between `allow = [` and `]` under `[licenses]`.
fn allow_list(toml: &str) -> Vec<&str> {
    let section = toml.split_once("[licenses]").map_or("", |(_, rest)| rest);
    let list = section.split_once("allow = [").map_or("", |(_, rest)| rest);
    let list = list.split_once(']').map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).collect()
}

/// An SPDX expression, or the old form with slashes: `OR` binds less than `AND`, brackets most.
fn meets(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any(&mut rest, allowed);
    met && rest.is_empty()
}

fn any(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = all(rest, allowed);
    while take(rest, "OR") {
        met |= all(rest, allowed);
    }
    met
}

fn all(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = one(rest, allowed);
    while take(rest, "AND") {
        met &= one(rest, allowed);
    }
    met
}

fn one(rest: &mut &[&str], allowed: &[&str]) -> bool {
    if take(rest, "(") {
        return any(rest, allowed) & take(rest, ")");
    }
    let Some((first, tail)) = rest.split_first() else { return false };
    *rest = tail;
    if !take(rest, "WITH") {
        return allowed.contains(first);
    }
    let Some((exception, tail)) = rest.split_first() else { return false };
    *rest = tail;
    allowed.contains(&format!("{first} WITH {exception}").as_str())
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    let taken = rest.first() == Some(&word);
    if taken {
        *rest = &rest[1..];
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    fn repo(licence: &str) -> Repo {
        let deny = "[licenses]\nallow = [\n    \"MIT\",\n    \"Apache-2.0 WITH LLVM-exception\",\n    \"Unicode-3.0\",\n]\n";
        Repo { licences: vec![("some v1.0.0".into(), licence.into())], ..Repo::of(&[(LIST, deny)]) }
    }

    #[test]
    fn an_expression_that_can_be_met_is_fine() {
        for licence in ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR MIT", "(MIT OR GPL-3.0) AND Unicode-3.0"] {
            check(allowed, repo(licence), &[]);
        }
        check(allowed, repo("GPL-3.0 OR Apache-2.0 WITH LLVM-exception"), &[]);
    }

    #[test]
    fn an_expression_that_cannot_be_met_is_found() {
        for licence in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(MIT", ""] {
            check(allowed, repo(licence), &[&format!("some v1.0.0: is under `{licence}`")]);
        }
    }
}

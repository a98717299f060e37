//! The repository as the guards see it: its texts, and who depends on whom. Read once; made by hand in tests.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};

use super::direction::PURE;
use crate::shell::{cargo, read};

/// Everything a guard may look at.
#[derive(Default)]
pub(crate) struct Repo {
    /// Path from the root, with `/`; text files only, in order.
    pub(crate) texts: Vec<Text>,
    /// Every file, texts or not.
    pub(crate) paths: Vec<String>,
    /// Direct dependencies of the workspace's members and of the fuzz package.
    pub(crate) edges: Vec<Edge>,
    /// The workspace's members.
    pub(crate) members: Vec<String>,
    /// Everything a pure crate is built from, by crate; see [`PURE`].
    pub(crate) trees: BTreeMap<String, Vec<String>>,
    /// `package version` and licence of everything the product is built from.
    pub(crate) licences: Vec<(String, String)>,
}

/// A file that can be read as text.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// One line of some `[dependencies]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) kind: Kind,
}

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The product, or a build script.
    Normal,
    /// Tests, examples, benchmarks.
    Dev,
}

impl Repo {
    /// Reads it with git and cargo; the root is the working directory.
    pub(crate) fn load() -> Result<Self> {
        let mut repo = Self::default();
        repo.load_files()?;
        repo.load_edges("Cargo.toml")?;
        repo.members = members(&tree("Cargo.toml", &["--workspace", "--depth", "0", "--format", "{p}"])?);
        repo.load_edges("fuzz/Cargo.toml")?;
        for pure in PURE {
            let args = ["--package", pure.name, "--edges", "normal,build", "--no-dedupe", "--format", "{p}"];
            repo.trees.insert(pure.name.to_owned(), members(&tree("Cargo.toml", &args)?));
        }
        let licences =
            tree("Cargo.toml", &["--workspace", "--edges", "normal,build", "--format", "{p}|{l}"])?;
        repo.licences = parse_licences(&licences);
        Ok(repo)
    }

    /// What git tracks or would track.
    fn load_files(&mut self) -> Result<()> {
        let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
        for path in read(Command::new("git").args(args))?.split_terminator('\0') {
            // A deleted file is tracked until the next commit.
            let Ok(bytes) = std::fs::read(path) else { continue };
            self.paths.push(path.to_owned());
            if let Ok(text) = String::from_utf8(bytes) {
                self.texts.push(Text { path: path.to_owned(), text });
            }
        }
        Ok(())
    }

    fn load_edges(&mut self, manifest: &str) -> Result<()> {
        for (edges, kind) in [("normal,build", Kind::Normal), ("dev", Kind::Dev)] {
            let args = ["--workspace", "--edges", edges, "--depth", "1", "--no-dedupe", "--format", " {p}"];
            self.edges.extend(parse_edges(&tree(manifest, &args)?, kind));
        }
        Ok(())
    }

    /// The texts whose path ends so.
    pub(crate) fn ending(&self, end: &'static str) -> impl Iterator<Item = &Text> {
        self.texts.iter().filter(move |text| text.path.ends_with(end))
    }

    /// The text at this path.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.iter().find(|text| text.path == path).map(|text| text.text.as_str())
    }

    /// Whether the package is one of ours.
    pub(crate) fn is_ours(&self, package: &str) -> bool {
        self.members.iter().any(|member| member == package)
    }
}

/// `cargo tree`, over every platform and feature, each line with its depth in front where the format starts with a space.
fn tree(manifest: &str, args: &[&str]) -> Result<String> {
    let prefix = if args.contains(&" {p}") { "depth" } else { "none" };
    let common =
        ["tree", "--manifest-path", manifest, "--all-features", "--target", "all", "--prefix", prefix];
    read(&mut cargo(common.into_iter().chain(args.iter().copied())))
        .context("asking cargo who depends on whom")
}

/// `0 overtake-lane v0.1.0 (…)`, then `1 serde v1.0.229` for each of its dependencies.
fn parse_edges(tree: &str, kind: Kind) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut from = "";
    for line in tree.lines() {
        match line.split_once(' ').map(|(depth, package)| (depth, name(package))) {
            Some(("0", package)) => from = package,
            Some(("1", package)) => edges.push(Edge { from: from.to_owned(), to: package.to_owned(), kind }),
            // A blank line between packages, or a heading such as [dev-dependencies].
            _ => {}
        }
    }
    edges
}

/// Package names, one a line.
fn members(tree: &str) -> Vec<String> {
    let mut names: Vec<String> = tree
        .lines()
        .map(name)
        .filter(|name| !name.is_empty() && !name.starts_with('['))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// `serde v1.0.229|MIT OR Apache-2.0`, a line each; `(*)` marks what was shown before.
fn parse_licences(tree: &str) -> Vec<(String, String)> {
    let pairs = tree.lines().filter_map(|line| line.split_once('|'));
    let mut pairs: Vec<_> = pairs
        .map(|(package, licence)| {
            let version = package.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            (version, licence.trim_end_matches(" (*)").trim().to_owned())
        })
        .collect();
    pairs.sort();
    pairs.dedup();
    pairs
}

fn name(package: &str) -> &str {
    package.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
impl Repo {
    /// A repository of these files and nothing else.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let texts =
            files.iter().map(|(path, text)| Text { path: (*path).to_owned(), text: (*text).to_owned() });
        let paths = files.iter().map(|(path, _)| (*path).to_owned());
        Self { texts: texts.collect(), paths: paths.collect(), ..Self::default() }
    }

    /// `from` and `to` are members; `to` may be an outsider.
    pub(crate) fn with_edge(mut self, from: &str, to: &str, kind: Kind) -> Self {
        self.edges.push(Edge { from: from.to_owned(), to: to.to_owned(), kind });
        self
    }

    pub(crate) fn with_members(mut self, members: &[&str]) -> Self {
        self.members = members.iter().map(|name| (*name).to_owned()).collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_depth_one_is_a_list_of_edges() {
        let tree = "0 a v0.1.0 (path)\n1 serde v1.0.0\n\n0 b v0.1.0 (path)\n1 a v0.1.0 (path)\n";
        let edges: Vec<_> =
            parse_edges(tree, Kind::Dev).into_iter().map(|edge| (edge.from, edge.to)).collect();
        assert_eq!(edges, [("a".to_owned(), "serde".to_owned()), ("b".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn a_package_shown_twice_has_one_licence() {
        let tree = "a v1.0.0|MIT\nb v1.0.0 (proc-macro)|Zlib\na v1.0.0|MIT (*)\n";
        let pair = |package: &str, licence: &str| (package.to_owned(), licence.to_owned());
        assert_eq!(parse_licences(tree), [pair("a v1.0.0", "MIT"), pair("b v1.0.0", "Zlib")]);
    }
}

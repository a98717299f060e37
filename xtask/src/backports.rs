//! Debian's backports, added to the sources of apt where a package is only there: from the mirror that apt has already.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The suite, and the one whose mirror has it, too.
const SUITE: &str = "bookworm-backports";
const BASE: &str = "bookworm";
const SOURCES: &str = "/etc/apt";

/// Adds the suite; `false` where no source of apt's has the suite that it is for.
pub(crate) fn add() -> Result<bool> {
    let dir = Path::new(SOURCES);
    for file in files(dir) {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let stanza = if file.extension().is_some_and(|end| end == "sources") {
            text.split("\n\n").find_map(of_stanza)
        } else {
            text.lines().find_map(of_line)
        };
        if let Some(stanza) = stanza {
            let to = dir.join("sources.list.d").join(format!("{SUITE}.sources"));
            std::fs::write(&to, stanza).with_context(|| to.display().to_string())?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// What apt reads, in its order.
fn files(dir: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(dir.join("sources.list.d")).into_iter().flatten().flatten();
    let is_read = |path: &PathBuf| path.extension().is_some_and(|end| end == "list" || end == "sources");
    let mut all: Vec<_> = inside.map(|entry| entry.path()).filter(is_read).collect();
    all.sort();
    [dir.join("sources.list")].into_iter().filter(|path| path.is_file()).chain(all).collect()
}

/// The same mirror, believed for the same reason, with the other suite; of a stanza as in sources.list(5), "DEB822-style".
fn of_stanza(text: &str) -> Option<String> {
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let has =
        |name, word: &str| field(name).is_some_and(|words| words.split_whitespace().any(|one| one == word));
    if !has("Types", "deb") || !has("Suites", BASE) || has("Enabled", "no") {
        return None;
    }
    Some(stanza(field("URIs")?, field("Signed-By")))
}

/// Of `deb [signed-by=KEYS] URI SUITE COMPONENTS`.
fn of_line(line: &str) -> Option<String> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    (suite == BASE).then(|| stanza(uri, signed_by))
}

fn stanza(uris: &str, signed_by: Option<&str>) -> String {
    let signed_by = signed_by.map(|keys| format!("Signed-By: {keys}\n")).unwrap_or_default();
    format!("Types: deb\nURIs: {uris}\nSuites: {SUITE}\nComponents: main\n{signed_by}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIRROR: &str = "http://mirror.example/debian";

    #[test]
    fn the_mirror_of_the_suite_is_that_of_its_backports() {
        let found = of_stanza(&format!(
            "Types: deb deb-src\n# as it was\nURIs: {MIRROR}\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /keys.gpg\n"
        ));
        let expect = format!(
            "Types: deb\nURIs: {MIRROR}\nSuites: bookworm-backports\nComponents: main\nSigned-By: /keys.gpg\n"
        );
        assert_eq!(found.as_ref(), Some(&expect));
        assert_eq!(
            of_line(&format!("deb [arch=amd64 signed-by=/keys.gpg] {MIRROR} bookworm main")),
            Some(expect)
        );
        assert!(
            of_line(&format!("deb {MIRROR} bookworm main contrib"))
                .is_some_and(|it| !it.contains("Signed-By"))
        );
    }

    #[test]
    fn other_sources_are_no_mirrors_of_it() {
        for stanza in [
            format!("Types: deb\nURIs: {MIRROR}\nSuites: bookworm-security\n"),
            format!("Types: deb-src\nURIs: {MIRROR}\nSuites: bookworm\n"),
            format!("Enabled: no\nTypes: deb\nURIs: {MIRROR}\nSuites: bookworm\n"),
            String::new(),
        ] {
            assert_eq!(of_stanza(&stanza), None, "{stanza}");
        }
        for line in ["# deb x bookworm main", "deb-src x bookworm main", "deb x trixie main", "deb"] {
            assert_eq!(of_line(line), None, "{line}");
        }
    }
}

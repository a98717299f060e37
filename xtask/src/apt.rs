//! Debian's packages: one update and one installation for all that is missing. A package that Debian 12 has in its backports only comes
//! from there, by the mirror that apt already uses.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell::{read, say, show, works};

/// The suite with the backports, and the suite whose mirror has it too.
const SUITE: &str = "bookworm-backports";
const BASE: &str = "bookworm";
const SOURCES: &str = "/etc/apt";
/// The file that names the backports.
const BACKPORTS: &str = "/etc/apt/sources.list.d/bookworm-backports.sources";

/// Whether packages may be installed: by root, where apt is.
pub(crate) fn may_install() -> bool {
    is_root() && works("apt-get", &["--version"])
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Installs these packages, without what they only recommend.
///
/// # Errors
/// What apt said last, when a package is unknown or cannot be downloaded.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    say("   apt shows nothing while it works; this may take minutes");
    apt(&["update"])?;
    if packages.iter().any(|package| !is_known(package)) && add_backports()? {
        apt(&["update"])?;
    }
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

/// Whether apt could install it.
fn is_known(package: &str) -> bool {
    let policy = read(Command::new("apt-cache").args(["policy", package])).unwrap_or_default();
    policy.lines().any(|line| line.trim().starts_with("Candidate:") && !line.contains("(none)"))
}

/// Runs apt without its progress; the first of its errors is ours.
fn apt(args: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    show(&command);
    let output = command.output().context("starting apt-get")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let why = said.lines().find(|line| line.starts_with("E: ")).unwrap_or("it did not say why");
    bail!("apt could not install what is missing ({why}); is there a network, and are apt's sources right?")
}

/// Adds the suite with the backports to apt's sources; `false` where no source has the suite that it is for.
fn add_backports() -> Result<bool> {
    let Some(stanza) = backports()? else { return Ok(false) };
    std::fs::write(BACKPORTS, stanza).context(BACKPORTS)?;
    Ok(true)
}

/// What adds the backports, as a command for the user, if a package is only there.
pub(crate) fn backports_command(packages: &[&str]) -> Option<String> {
    if packages.iter().all(|package| is_known(package)) {
        return None;
    }
    let stanza = backports().ok().flatten()?.replace('\n', "\\n");
    Some(format!("printf '{stanza}' | sudo tee {BACKPORTS}"))
}

/// The source of the backports, by the first source of apt's that has the suite that they are for.
fn backports() -> Result<Option<String>> {
    files(Path::new(SOURCES)).iter().find_map(|file| stanza_in(file).transpose()).transpose()
}

/// The mirror of Debian 12 that apt uses.
pub(crate) fn mirror() -> Option<String> {
    backports().ok().flatten()?.lines().find_map(|line| line.strip_prefix("URIs: ")).map(str::to_owned)
}

/// The files that apt reads, in its order.
fn files(dir: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(dir.join("sources.list.d")).into_iter().flatten().flatten();
    let is_read = |path: &PathBuf| path.extension().is_some_and(|end| end == "list" || end == "sources");
    let mut all: Vec<_> = inside.map(|entry| entry.path()).filter(is_read).collect();
    all.sort();
    [dir.join("sources.list")].into_iter().filter(|path| path.is_file()).chain(all).collect()
}

/// The source of the backports that goes with a file's source of Debian 12.
fn stanza_in(file: &Path) -> Result<Option<String>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    Ok(if file.extension().is_some_and(|end| end == "sources") {
        text.split("\n\n").find_map(of_stanza)
    } else {
        text.lines().find_map(of_line)
    })
}

/// The same mirror and key with the other suite, of a stanza as in sources.list(5), "DEB822-style".
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

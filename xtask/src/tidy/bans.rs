//! A crate that must not touch something says so in its own clippy.toml, where clippy enforces it.
//!
//! Such a file replaces the workspace's, it does not add to it; so what the workspace bans is looked for there too.

use super::Finding;
use super::repo::Repo;

/// What each pure crate's clippy.toml must ban, at the least.
const BANS: &[(&str, &[&str])] = &[
    (
        "crates/lane/clippy.toml",
        &[
            "std::time::Instant::now",
            "std::time::SystemTime::now",
            "std::thread::spawn",
            "std::thread::sleep",
            "std::fs::File",
            "std::collections::HashMap",
            "std::collections::HashSet",
            "f32",
            "f64",
            "std::env::set_var",
        ],
    ),
    (
        "crates/store/clippy.toml",
        &[
            "std::time::Instant::now",
            "std::time::SystemTime::now",
            "std::thread::spawn",
            "std::thread::sleep",
            "std::env::set_var",
        ],
    ),
    ("crates/amqp/clippy.toml", OF_AMQP),
    ("crates/amqp-session/clippy.toml", OF_AMQP),
];

const OF_AMQP: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::thread::sleep",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::env::set_var",
];

/// The files are there, with every ban.
pub(crate) fn written(repo: &Repo) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, bans) in BANS {
        let Some(text) = repo.text(path) else {
            found.push(Finding::error(path, 0, "is missing"));
            continue;
        };
        let lifted = bans.iter().filter(|ban| !bans_it(text, ban));
        found.extend(lifted.map(|ban| Finding::error(path, 0, format!("no longer bans {ban}"))));
    }
    found
}

/// A line that is not a comment has the path in quotes.
fn bans_it(text: &str, ban: &str) -> bool {
    let quoted = format!("path = \"{ban}\"");
    text.lines().any(|line| !line.trim_start().starts_with('#') && line.contains(&quoted))
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    fn all_but(left_out: &str) -> Repo {
        let text = |bans: &&[&str]| -> String {
            let kept = bans.iter().filter(|ban| **ban != left_out);
            kept.map(|ban| format!("    {{ path = \"{ban}\" }},\n"))
                .chain([format!("# path = \"{left_out}\"")])
                .collect()
        };
        let files: Vec<_> = BANS.iter().map(|(path, bans)| (*path, text(bans))).collect();
        Repo::of(&files.iter().map(|(path, text)| (*path, text.as_str())).collect::<Vec<_>>())
    }

    #[test]
    fn a_ban_that_is_commented_out_is_found() {
        check(written, all_but("f64"), &["crates/lane/clippy.toml: no longer bans f64"]);
    }

    #[test]
    fn every_ban_in_place_is_fine() {
        check(written, all_but("nothing"), &[]);
    }

    #[test]
    fn a_missing_file_is_found() {
        check(
            written,
            Repo::default(),
            &[
                "crates/lane/clippy.toml: is missing",
                "crates/store/clippy.toml: is missing",
                "crates/amqp/clippy.toml: is missing",
                "crates/amqp-session/clippy.toml: is missing",
            ],
        );
    }
}

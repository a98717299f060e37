//! Which rights the user lacks: each command is tried in a way that does nothing, since one who may not ask for rights can still be told no.

use overtake_peer::redis::{Fault, Line};
use redis::{Cmd, cmd};

use super::super::library::Library;
use super::super::nodes::{Durability, Kind};

/// A name that nobody has.
const NOBODY: &str = "{overtake_probe}";

/// What `ACL SETUSER` must be told besides, each once: `+fcall`, `~{*`.
///
/// # Errors
/// The connection is lost.
pub(super) async fn missing(
    line: &mut Line,
    kind: Kind,
    durability: Durability,
    library: Library,
) -> Result<Vec<String>, String> {
    let mut missing = Vec::new();
    for (right, keys, command) in probes(kind, durability, library) {
        // Anything but this is an answer to somebody who may: there is no such function, the slot is elsewhere.
        if let Err(fault) = line.ask(&command).await?
            && fault.is_forbidden()
        {
            let named = right_named(&fault, right, &keys);
            if !missing.contains(&named) {
                missing.push(named);
            }
        }
    }
    Ok(missing)
}

/// Rights to commands, the pattern of what they are about, and a command that does nothing. Servers look at rights before anything but the number of words.
fn probes(kind: Kind, durability: Durability, library: Library) -> Vec<(&'static str, String, Cmd)> {
    let probe = |right, words: &[&str]| (right, "~{*".to_owned(), cmd(words[0]).arg(&words[1..]).take());
    let mut all = vec![
        probe("+function|list", &["FUNCTION", "LIST", "LIBRARYNAME", NOBODY]),
        probe("+function|load", &["FUNCTION", "LOAD", "no library"]),
        probe("+fcall", &["FCALL", NOBODY, "1", NOBODY]),
        probe("+fcall_ro", &["FCALL_RO", NOBODY, "1", NOBODY]),
    ];
    if durability.is_waited_for() {
        let pattern = format!("{}:*", library.mark());
        let mark = format!("{}:{NOBODY}", library.mark());
        let set = cmd("SET").arg(&[&*mark, "", "no option"]).take();
        all.push(("+set", format!("~{pattern}"), set));
        all.push(probe("+wait", &["WAIT", "0", "0"]));
    }
    if durability.is_fsync_acked {
        all.push(probe("+waitaof", &["WAITAOF", "0", "0", "0"]));
    }
    if kind == Kind::Cluster {
        all.push(probe("+cluster|slots", &["CLUSTER", "SLOTS"]));
        all.push(probe("+asking", &["ASKING"]));
    }
    // Last: what comes behind it could be no command.
    all.push(probe("+sunsubscribe", &["SUNSUBSCRIBE", NOBODY]));
    all.push(("+ssubscribe", "&{*".to_owned(), cmd("SSUBSCRIBE").arg(NOBODY).take()));
    all
}

/// `this user has no permissions to run the 'get' command`, or `… to access one of the keys …`, `a channel`.
fn right_named(fault: &Fault, right: &str, keys: &str) -> String {
    if fault.details().contains("to run the") { right.to_owned() } else { keys.to_owned() }
}

//! What `--help` says, and the completions, as they really appear.

use expect_test::expect_file;

use crate::support;

/// Every command, by its words.
const COMMANDS: &[&str] = &[
    "serve",
    "config check",
    "config show",
    "queue declare",
    "queue list",
    "queue show",
    "queue delete",
    "publish",
    "consume",
    "work",
    "subscribe",
    "category declare",
    "category list",
    "category show",
    "category delete",
    "relay",
    "relay init",
    "relay status",
    "relay show",
    "relay retry",
    "relay reconcile",
    "dlq list",
    "dlq inspect",
    "dlq replay",
    "dlq replay-all",
    "dlq purge",
    "routes apply",
    "routes diff",
    "routes list",
    "routes export",
    "routes test",
    "routes fmt",
    "peek",
    "top",
    "watch",
    "reprioritise",
    "remove",
    "cancel",
    "purge",
    "replay",
    "move",
    "exec create",
    "exec submit",
    "exec list",
    "exec show",
    "exec cancel",
    "exec retry",
    "exec reprioritise",
    "exec status",
    "exec pause",
    "exec resume",
    "exec limit",
    "endpoint put",
    "endpoint list",
    "endpoint show",
    "endpoint test",
    "endpoint pause",
    "endpoint resume",
    "endpoint delete",
    "source put",
    "source list",
    "source show",
    "source test",
    "source pause",
    "source resume",
    "source delete",
    "schedule put",
    "schedule list",
    "schedule show",
    "schedule delete",
    "exchange declare",
    "exchange list",
    "exchange delete",
    "exchange bind",
    "exchange unbind",
    "exchange publish",
    "store check",
    "store stats",
    "store snapshot",
    "store repair",
    "store restore",
    "user put",
    "user list",
    "user show",
    "user delete",
    "user allow",
    "user deny",
    "vhost put",
    "vhost list",
    "vhost delete",
    "policy set",
    "policy list",
    "policy remove",
    "definitions export",
    "definitions import",
    "token make",
    "token list",
    "token revoke",
    "whoami",
    "audit",
    "health",
    "cluster status",
    "cluster orphans",
    "cluster adopt",
    "cluster discard",
    "doctor",
    "drain",
    "completions",
    "man",
];

fn help(words: &str) -> String {
    let words: Vec<_> = words.split_whitespace().chain(["--help"]).collect();
    support::run(&words, b"").ok()
}

#[test]
fn the_first_help_names_every_command_and_exit_code() {
    let text = help("");
    expect_file!["snapshots/overtake.txt"].assert_eq(&text);
    for command in COMMANDS {
        let first = command.split_whitespace().next().expect("a word");
        assert!(text.contains(&format!("\n  {first} ")), "{first}");
    }
    for code in ["0", "1", "2", "69", "75", "77", "78"] {
        assert!(text.contains(&format!("\n  {code:<3} ")), "{code}");
    }
}

#[test]
fn every_help_ends_with_examples_that_begin_as_the_command_does() {
    for command in COMMANDS {
        let text = help(command);
        let (_, examples) = text.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{command}: {text}"));
        let examples: Vec<_> = examples.lines().filter(|line| !line.is_empty()).collect();
        assert!((2..=4).contains(&examples.len()), "{command}: {examples:#?}");
        let of_command =
            |line: &&&str| line.contains("overtake ") && command.split(' ').all(|word| line.contains(word));
        assert_eq!(examples.iter().filter(of_command).count(), examples.len(), "{command}: {examples:#?}");
        expect_file![format!("snapshots/{}.txt", command.replace(' ', "-"))].assert_eq(&text);
    }
}

#[test]
fn completions_know_every_command_and_setting() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = support::run(&["completions", shell], b"").ok();
        for word in ["serve", "reprioritise", "unbind", "segment-bytes", "in-flight", "completions"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    expect_file!["snapshots/completions.fish"].assert_eq(&support::run(&["completions", "fish"], b"").ok());
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = tempfile::tempdir().expect("a directory");
    let pages = dir.path().join("man1");
    support::run(&["man", pages.to_str().expect("a path in UTF-8")], b"").ok();
    for command in COMMANDS {
        let page = pages.join(format!("overtake-{}.1", command.replace(' ', "-")));
        let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{command}: {error}"));
        // roff takes a bare hyphen for one at which a line may end.
        let words = command.replace('-', "\\-");
        assert!(text.contains(&format!("\\fBovertake {words}\\fR")), "{command}: {text}");
    }
}

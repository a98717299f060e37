//! What Rust source must not hold. Comments and strings are not looked at.

use super::Finding;
use super::code::code_of;
use super::repo::{Repo, Text};

/// A longer file has become the place where everything meets.
const LINES_MAX: usize = 600;

/// A test that does not run says nothing.
pub(crate) fn ignored(repo: &Repo) -> Vec<Finding> {
    in_code(repo, |line| {
        let attribute = line.contains("#[ignore") || (line.contains("cfg_attr") && has_word(line, "ignore"));
        attribute.then(|| "a test is run or deleted, never ignored".to_owned())
    })
}

/// Unfinished code is not committed.
pub(crate) fn unfinished(repo: &Repo) -> Vec<Finding> {
    in_code(repo, |line| {
        let word = ["todo!", "unimplemented!"].into_iter().find(|word| line.contains(word))?;
        Some(format!("{word} is unfinished code"))
    })
}

/// An assertion that cannot fail says nothing.
pub(crate) fn empty_assertions(repo: &Repo) -> Vec<Finding> {
    in_code(repo, |line| {
        let squeezed: String = line.split_whitespace().collect();
        let empty = squeezed.contains("assert!(true)") || squeezed.contains("assert!(true,");
        empty.then(|| "this assertion cannot fail".to_owned())
    })
}

/// A test that waits for time to pass is slow or flaky, and mostly both: wait for an event.
pub(crate) fn sleeps(repo: &Repo) -> Vec<Finding> {
    let mut found = Vec::new();
    for text in repo.ending(".rs") {
        let code = code_of(&text.text);
        let from = tests_begin(text, &code);
        let slept = code.lines().enumerate().skip(from).filter(|(_, line)| calls_sleep(line));
        found
            .extend(slept.map(|(at, _)| {
                Finding::error(&text.path, at + 1, "a test waits for an event, not for time")
            }));
    }
    found
}

/// Files a person can hold in the head.
pub(crate) fn long_files(repo: &Repo) -> Vec<Finding> {
    let lens = repo.ending(".rs").map(|text| (&text.path, text.text.lines().count()));
    let long = lens.filter(|(_, len)| *len > LINES_MAX);
    long.map(|(path, len)| Finding::warning(path, 0, format!("has {len} lines, more than {LINES_MAX}")))
        .collect()
}

fn in_code(repo: &Repo, wrong: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut found = Vec::new();
    for text in repo.ending(".rs") {
        let code = code_of(&text.text);
        let lines = code.lines().enumerate();
        found.extend(lines.filter_map(|(at, line)| Some(Finding::error(&text.path, at + 1, wrong(line)?))));
    }
    found
}

/// The first line that belongs to tests: all of a file that is one, else the tests module at its end.
fn tests_begin(text: &Text, code: &str) -> usize {
    let is_test = text.path.split(['/', '.']).any(|part| matches!(part, "tests" | "conformance" | "sim"));
    if is_test {
        return 0;
    }
    let mut lines = code.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let opens = lines.peek().is_some_and(|(_, next)| has_word(next, "mod") && next.contains('{'));
        if line.trim_start().starts_with("#[cfg(") && has_word(line, "test") && opens {
            return at;
        }
    }
    usize::MAX
}

/// `sleep(…)` and `sleep_until(…)` by any path; not a method, which waits for something of our own.
fn calls_sleep(line: &str) -> bool {
    ["sleep(", "sleep_until("].iter().any(|call| {
        line.match_indices(call).any(|(at, _)| {
            let before = line[..at].trim_end_matches(' ');
            let whole = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            whole && !before.ends_with('.') && !before.ends_with("fn")
        })
    })
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    fn file(text: &str) -> Repo {
        Repo::of(&[("a/src/b.rs", text)])
    }

    #[test]
    fn an_ignored_test_is_found() {
        let said = "a/src/b.rs:2: a test is run or deleted, never ignored";
        check(ignored, file("#[test]\n#[ignore]\nfn a() {}"), &[said]);
        check(ignored, file("#[test]\n#[ignore = \"slow\"]\nfn a() {}"), &[said]);
        check(ignored, file("#[test]\n#[cfg_attr(unix, ignore)]\nfn a() {}"), &[said]);
        check(ignored, file("// #[ignore]\nfn a() { b(\"#[ignore]\") }"), &[]);
    }

    #[test]
    fn unfinished_code_is_found() {
        check(unfinished, file("fn a() { todo!(\"later\") }"), &["a/src/b.rs:1: todo! is unfinished code"]);
        check(
            unfinished,
            file("fn a() { unimplemented!() }"),
            &["a/src/b.rs:1: unimplemented! is unfinished code"],
        );
    }

    #[test]
    fn an_empty_assertion_is_found() {
        let said = "a/src/b.rs:1: this assertion cannot fail";
        check(empty_assertions, file("assert!(true);"), &[said]);
        check(empty_assertions, file("assert!( true, \"fine\");"), &[said]);
        check(empty_assertions, file("assert!(truth);"), &[]);
    }

    #[test]
    fn a_sleep_in_a_tests_module_is_found_and_one_in_the_product_is_not() {
        let text =
            "fn wait() { thread::sleep(d) }\n#[cfg(test)]\nmod tests {\n    fn a() { thread::sleep(d) }\n}";
        check(sleeps, file(text), &["a/src/b.rs:4: a test waits for an event, not for time"]);
    }

    #[test]
    fn a_sleep_in_a_file_of_tests_is_found_by_any_path() {
        let said = "a/tests/b.rs:1: a test waits for an event, not for time";
        for call in
            ["std::thread::sleep(d)", "tokio::time::sleep(d).await", "sleep(d)", "time::sleep_until(t)"]
        {
            check(sleeps, Repo::of(&[("a/tests/b.rs", call)]), &[said]);
        }
        for other in ["clock.sleep(d)", "fn sleep(d: u64) {}", "asleep(d)", "use tokio::time::sleep;"] {
            check(sleeps, Repo::of(&[("a/tests/b.rs", other)]), &[]);
        }
    }

    #[test]
    fn a_long_file_is_worth_a_thought() {
        check(long_files, file(&"\n".repeat(601)), &["a/src/b.rs: consider: has 601 lines, more than 600"]);
        check(long_files, file(&"\n".repeat(600)), &[]);
    }
}

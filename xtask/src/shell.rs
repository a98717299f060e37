//! Other programs: each is shown before it runs, and its exit status is never ignored.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Makes the repository's root the working directory; every path in this crate is relative to it.
pub(crate) fn enter_root() -> Result<()> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&here).parent().context("xtask lies in the repository")?;
    std::env::set_current_dir(root).with_context(|| format!("entering {}", root.display()))
}

/// Where builds go: as cargo says, which knows its variables and its configuration.
pub(crate) fn target_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let metadata =
            read(Command::new(cargo_program()).args(["metadata", "--no-deps", "--format-version=1"]));
        let dir = metadata.ok().as_deref().and_then(|json| Some(target_directory(json)?.into()));
        dir.unwrap_or_else(|| "target".into())
    })
    .clone()
}

/// Whether nothing may be skipped: the variable CI is set, as the tests ask, too.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// Of what `cargo metadata` prints; the path of a directory that cargo can use has no quotes.
fn target_directory(metadata: &str) -> Option<&str> {
    let (_, rest) = metadata.split_once(r#""target_directory":""#)?;
    Some(rest.split_once('"')?.0)
}

fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// `cargo ARGS…`, with the toolchain that runs xtask. Where OpenSSL is installed, it is not built.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(cargo_program());
    command.args(args);
    if works("pkg-config", &["--exists", "openssl"]) {
        command.env("OPENSSL_NO_VENDOR", "1");
    }
    // Nothing is built twice there, and what would make that quick takes gigabytes; nor does anybody step through it. A panic names its line all
    // the same.
    if is_ci() {
        command.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "false");
        // librdkafka is C that configures itself, and does not know the profile: 85 s of processor time, 32 without optimisation.
        command.env("CFLAGS", "-O0 -g0");
    }
    command
}

/// The first of these words that looks like an option and is none.
pub(crate) fn unknown_option<'a>(args: &'a [String], options: &[&str]) -> Option<&'a str> {
    let name = |word: &'a String| word.split_once('=').map_or(&**word, |(name, _)| name);
    args.iter().map(name).find(|word| word.starts_with('-') && !options.contains(word))
}

/// Whether `program ARGS…` can be run and succeeds; says nothing.
pub(crate) fn works(program: &str, args: &[&str]) -> bool {
    let quiet = Command::new(program).args(args).stdin(Stdio::null()).output();
    quiet.is_ok_and(|output| output.status.success())
}

thread_local! {
    /// What this thread has printed since it began to hold it back.
    static HELD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Prints a line, or keeps it while this thread holds back what it prints.
pub(crate) fn say(line: &str) {
    HELD.with_borrow_mut(|held| match held {
        Some(text) => {
            text.push_str(line);
            text.push('\n');
        }
        None => println!("{line}"),
    });
}

/// Runs the body and returns what it and its programs printed, so that several can run side by side.
pub(crate) fn holding_back<T>(body: impl FnOnce() -> T) -> (T, String) {
    HELD.set(Some(String::new()));
    let done = body();
    (done, HELD.take().unwrap_or_default())
}

/// Runs it with our own terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    if HELD.with_borrow(Option::is_some) {
        return run_hearing(command, |_| ());
    }
    show(command);
    let status = command.status().with_context(|| format!("starting {}", words(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", program(command));
    }
    Ok(())
}

/// What it prints on stdout; its stderr is shown only when it fails.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("starting {}", words(command)))?;
    if !output.status.success() {
        bail!("{} failed:\n{}", words(command), String::from_utf8_lossy(&output.stderr).trim_end());
    }
    String::from_utf8(output.stdout).context("output is not UTF-8")
}

/// As [`run_hearing`]; if it has not ended by then, it and all it started are killed.
pub(crate) fn run_hearing_for(command: &mut Command, limit: Duration, hear: impl FnMut(&str)) -> Result<()> {
    let (ended, end) = sync_channel::<()>(0);
    command.process_group(0);
    let guard = |pid: u32| {
        std::thread::spawn(move || {
            let is_late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            // The group has the number of its first process, which has not been waited for yet.
            is_late && works("kill", &["-KILL", "--", &format!("-{pid}")])
        })
    };
    let mut guarded = None;
    let result = hearing(command, |pid| guarded = Some(guard(pid)), hear);
    drop(ended);
    if guarded.is_some_and(|guard| guard.join().expect("the guard does not panic")) {
        bail!("`{}` did not end within {} s", program(command), limit.as_secs());
    }
    result
}

/// Runs it, passes its output through line by line, and lets `hear` read along (without colours).
pub(crate) fn run_hearing(command: &mut Command, hear: impl FnMut(&str)) -> Result<()> {
    hearing(command, |_| (), hear)
}

fn hearing(command: &mut Command, started: impl FnOnce(u32), mut hear: impl FnMut(&str)) -> Result<()> {
    if std::io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    show(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("starting {}", words(command)))?;
    started(child.id());
    let (lines, heard) = sync_channel(1024);
    let out = pump(child.stdout.take().expect("stdout is piped"), lines.clone());
    let err = pump(child.stderr.take().expect("stderr is piped"), lines);
    for line in heard {
        say(&line);
        hear(&plain(&line));
    }
    for thread in [out, err] {
        thread.join().expect("a pump does not panic");
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}` ended with {status}", program(command));
    }
    Ok(())
}

fn pump(from: impl Read + Send + 'static, to: SyncSender<String>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut bytes = Vec::new();
        while from.read_until(b'\n', &mut bytes).is_ok_and(|len| len > 0) {
            let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
            // The listener outlives the pumps: it stops when both have hung up.
            to.send(line).expect("someone listens");
            bytes.clear();
        }
    })
}

/// The line without terminal colours.
fn plain(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    plain
}

pub(crate) fn show(command: &Command) {
    say(&format!("   $ {}", words(command)));
}

fn program(command: &Command) -> String {
    let name =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let first = command.get_args().next().map(|arg| format!(" {}", arg.to_string_lossy()));
    if name == "cargo" { name + &first.unwrap_or_default() } else { name }
}

fn words(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_directory_is_what_cargo_says() {
        let said = r#"{"packages":[],"target_directory":"/var/built","version":1}"#;
        assert_eq!((target_directory(said), target_directory("{}")), (Some("/var/built"), None));
        assert!(target_dir().is_absolute(), "cargo says it here");
    }

    #[test]
    fn an_unknown_option_is_found_before_a_value_after_it() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let unknown = |line: &str| unknown_option(&words(line), &["--seed"]).map(str::to_owned);
        assert_eq!(unknown("--seed 7 word"), None);
        assert_eq!(unknown("--seed=7 --sed=8"), Some("--sed".to_owned()));
    }

    #[test]
    fn colours_are_not_heard() {
        assert_eq!(
            plain("\x1b[32;1m   Summary\x1b[0m [ 0.1s] \x1b[1m3\x1b[0m tests"),
            "   Summary [ 0.1s] 3 tests"
        );
    }

    #[test]
    fn who_does_not_end_is_killed_with_all_he_started() {
        let mut script = Command::new("sh");
        let end =
            run_hearing_for(script.args(["-c", "sleep 3600 & wait"]), Duration::from_millis(50), |_| ());
        assert!(end.unwrap_err().to_string().contains("did not end"));
    }

    #[test]
    fn what_is_held_back_is_of_its_own_thread() {
        let ((), held) = holding_back(|| {
            std::thread::spawn(|| say("elsewhere")).join().unwrap();
            run(Command::new("sh").args(["-c", "echo here"])).unwrap();
        });
        assert_eq!(held, "   $ sh -c echo here\nhere\n");
    }

    #[test]
    fn both_streams_are_heard_and_a_bad_end_is_an_error() {
        let mut heard = Vec::new();
        let mut script = Command::new("sh");
        let end = run_hearing(script.args(["-c", "echo out; echo err >&2; exit 3"]), |line| {
            heard.push(line.to_owned())
        });
        heard.sort();
        assert_eq!(heard, ["err", "out"]);
        assert!(end.unwrap_err().to_string().contains("3"));
    }
}

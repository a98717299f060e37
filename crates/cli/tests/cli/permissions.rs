//! Directories and stores that belong to somebody else.
//!
//! Root may do everything, so under root the binary runs as a user who may do nothing.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support;
use crate::support::{Broker, Run};

/// The user and the group who own nothing.
const NOBODY: u32 = 65_534;

/// A directory that everybody reaches, and the binary as a user runs it whom permissions bind.
struct Bound {
    dir: TempDir,
    binary: PathBuf,
    is_root: bool,
}

impl Bound {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        set_mode(dir.path(), 0o755);
        let is_root = rustix::process::geteuid().is_root();
        let binary = if is_root { copy(&dir.path().join("overtake")) } else { support::binary() };
        Self { dir, binary, is_root }
    }

    fn command(&self) -> Command {
        let mut command = support::unconfigured(Command::new(&self.binary));
        command.current_dir(self.dir.path());
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// A place for data.
    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A store with a message in it, which this test's own user made.
    fn store(&self) -> PathBuf {
        let data = self.data();
        let broker = Broker::start_with(&data, &["--queue", "q"]);
        broker.run(&["publish", "q", "one"]).ok();
        broker.stop();
        data
    }

    /// Starts a broker, which must fail and change nothing here; answers with what it says.
    #[track_caller]
    fn serve(&self, data: &Path) -> String {
        let mut command = self.command();
        command
            .args([
                "serve",
                "--http",
                "127.0.0.1:0",
                "--amqp",
                "127.0.0.1:0",
                "--segment-bytes",
                "4MiB",
                "--data-dir",
            ])
            .arg(data);
        let before = contents(self.dir.path());
        let (status, said) = Broker::spawn(command).end();
        assert_eq!(status.code(), Some(1), "{said}");
        assert_eq!(contents(self.dir.path()), before, "nothing is left half-done");
        said
    }

    /// Checks a store, which must change nothing here.
    #[track_caller]
    fn check(&self, data: &Path) -> Run {
        let before = contents(self.dir.path());
        let check = self.command().args(["store", "check"]).arg(data).output();
        assert_eq!(contents(self.dir.path()), before, "a check changes nothing");
        Run::of(check.expect("it is reached and runs"))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // What nobody may look into cannot be removed either.
        if self.data().is_dir() {
            set_mode(&self.data(), 0o700);
        }
    }
}

/// The binary, where everybody reaches it.
///
/// Another process writes it: what is open for writing here would be open in every child that is started at that
/// moment, and a file that is open for writing cannot be run.
fn copy(to: &Path) -> PathBuf {
    let copied = Command::new("cp").arg(support::binary()).arg(to).status().expect("cp runs");
    assert!(copied.success(), "{copied}");
    set_mode(to, 0o755);
    to.to_owned()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// Of every file of a store.
fn set_modes(data: &Path, mode: u32) {
    for entry in fs::read_dir(data).expect("a store") {
        set_mode(&entry.expect("a file").path(), mode);
    }
}

/// What is in a directory and below: by path the inode, the mode, the length, and when it was changed.
fn contents(dir: &Path) -> BTreeMap<PathBuf, (u64, u32, u64, i64, i64)> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        // Our own user may be one who cannot look into it.
        for entry in fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let is = path.symlink_metadata().expect("it is there");
            if is.is_dir() {
                dirs.push(path.clone());
            }
            found.insert(path, (is.ino(), is.mode(), is.len(), is.ctime(), is.ctime_nsec()));
        }
    }
    found
}

#[test]
fn a_directory_that_cannot_be_written_to_is_named() {
    let bound = Bound::new();
    let data = bound.data();
    fs::create_dir(&data).expect("a directory");
    set_mode(&data, 0o555);
    let dir = data.display();
    let expect = format!(
        "error: cannot keep data in {dir} (flag --data-dir): Permission denied (os error 13)\n \
         hint: give {dir} to the user the server runs as, or name another directory with --data-dir"
    );
    assert_eq!(bound.serve(&data), expect);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let bound = Bound::new();
    let parent = bound.data();
    fs::create_dir(&parent).expect("a directory");
    set_mode(&parent, 0o555);
    let data = parent.join("deep").join("down");
    let said = bound.serve(&data);
    let expect =
        format!("error: cannot keep data in {} (flag --data-dir): Permission denied", data.display());
    assert!(said.contains(&expect), "{said}");
    assert!(said.contains("or name another directory with --data-dir"), "{said}");
}

#[test]
fn a_store_whose_files_are_somebody_elses_is_named() {
    let bound = Bound::new();
    let data = bound.store();
    set_mode(&data, 0o777);
    set_modes(&data, 0o000);
    let said = bound.serve(&data);
    let dir = data.display();
    assert!(said.starts_with(&format!("error: cannot open the store in {dir}: cannot ")), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    let hint = format!(" hint: give {dir} and what is in it to the user the server runs as");
    assert!(said.ends_with(&hint), "{said}");
}

#[test]
fn a_store_that_cannot_be_read_is_not_called_damaged() {
    let bound = Bound::new();
    let data = bound.store();
    set_mode(&data, 0o755);
    set_modes(&data, 0o000);
    let files = bound.check(&data);
    set_mode(&data, 0o000);
    let dir = bound.check(&data);
    for run in [files, dir] {
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
        assert!(
            run.stderr.starts_with(&format!("error: cannot check {}: cannot ", data.display())),
            "{run:?}"
        );
        assert!(run.stderr.contains("Permission denied"), "{run:?}");
        assert!(run.stderr.contains("and run as a user who may read it"), "{run:?}");
    }
}

#[test]
fn a_store_that_can_only_be_read_is_checked_all_the_same() {
    let bound = Bound::new();
    let data = bound.store();
    set_modes(&data, 0o444);
    set_mode(&data, 0o555);
    assert!(bound.check(&data).ok().ends_with("is clean\n"));
}

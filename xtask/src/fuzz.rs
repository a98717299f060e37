//! `cargo xtask fuzz`: builds the targets in `fuzz/fuzz_targets` and runs each for a bounded time.
//!
//! Does what cargo-fuzz does, without cargo-fuzz: libFuzzer comes with `libfuzzer-sys`, coverage and the address
//! sanitizer from the compiler. The sanitizer flag is unstable, hence RUSTC_BOOTSTRAP=1; leaving the sanitizer out would
//! leave its memcmp hooks out too, and without those libFuzzer does not guess so much as a four-byte magic.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::needs::{self, Needs};
use crate::report::Done;
use crate::seed;
use crate::shell::{cargo, read, run, target_dir};
use crate::test::Run;

/// As cargo-fuzz passes them to a release build on Linux, but for `-Ccodegen-units=1`, which `fuzz/Cargo.toml` says.
const RUSTFLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-sanitizer-coverage-stack-depth \
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    -Zsanitizer=address --cfg fuzzing";

/// How long each target runs, unless the command says otherwise.
const SECONDS: u64 = 5;
/// The same in a run with `--long`.
const SECONDS_LONG: u64 = 300;
const RUNS_PER_SECOND: u64 = 20_000;

/// libFuzzer is built from source.
pub(crate) const NEEDS: Needs = Needs { must: &[&needs::CXX], ..Needs::NONE };

/// How one target runs.
struct Bounds {
    seconds: u64,
    seed: u64,
    /// Adds inputs that reach new code to the corpus in the repository.
    keep: bool,
}

/// `cargo xtask fuzz [TARGET…] [--seconds N] [--keep]`
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let mut bounds = Bounds { seconds: SECONDS, seed: seed::of_commit(), keep: false };
    let mut named = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let seconds = args.next().and_then(|word| word.parse().ok());
                bounds.seconds = seconds.context("--seconds wants a whole number: --seconds 60")?;
            }
            "--keep" => bounds.keep = true,
            option if option.starts_with('-') => {
                bail!("there is no option `{option}`; cargo xtask fuzz [TARGET…] [--seconds N] [--keep]")
            }
            name => named.push(name.to_owned()),
        }
    }
    let targets = targets()?;
    if let Some(stranger) = named.iter().find(|name| !targets.contains(name)) {
        bail!("there is no fuzz target `{stranger}`; there are: {}", targets.join(" "));
    }
    needs::require("fuzz", NEEDS)?;
    match fuzz(if named.is_empty() { &targets } else { &named }, &bounds)? {
        Done::Ok => Ok(ExitCode::SUCCESS),
        Done::Skipped(why) => bail!("{why}"),
    }
}

/// Downloads the crates that only fuzz targets use.
pub(crate) fn download() -> Result<()> {
    run(&mut cargo(["fetch", "--quiet", "--locked", "--manifest-path", "fuzz/Cargo.toml"]))
}

/// Each target for a moment.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    let seconds = if run.long { SECONDS_LONG } else { SECONDS };
    fuzz(&targets()?, &Bounds { seconds, seed: run.base_seed, keep: false })
}

fn fuzz(targets: &[String], bounds: &Bounds) -> Result<Done> {
    if targets.is_empty() {
        return Ok(Done::Skipped("fuzz/fuzz_targets has no target yet".to_owned()));
    }
    if !cfg!(target_os = "linux") {
        return Ok(Done::Skipped("the sanitizer flags are known for Linux only".to_owned()));
    }
    let triple = host()?;
    build(&triple)?;
    // One that fails does not keep the others from being looked at.
    let failed = targets.iter().filter_map(|target| {
        let binary = build_dir().join(&triple).join("release").join(target);
        let failed = fuzz_one(target, &binary, bounds).err()?;
        Some(format!("{failed:#}"))
    });
    let failed: Vec<_> = failed.collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(Done::Ok)
}

/// The targets by name: a file each.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir("fuzz/fuzz_targets").context("reading fuzz/fuzz_targets")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.push(path.file_stem().expect("a .rs file has a stem").to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// With `--target`, flags reach the targets and not the build scripts; with a directory of their own, nobody's cache.
fn build(triple: &str) -> Result<()> {
    let mut command =
        cargo(["build", "--manifest-path", "fuzz/Cargo.toml", "--release", "--bins", "--target", triple]);
    command.arg("--target-dir").arg(build_dir());
    run(command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", RUSTFLAGS))
}

fn build_dir() -> PathBuf {
    target_dir().join("fuzz")
}

fn host() -> Result<String> {
    let version = read(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names its host")?.to_owned())
}

/// New inputs go to a scratch corpus, so that a run changes nothing in the repository unless it is to keep them.
fn fuzz_one(target: &str, binary: &Path, bounds: &Bounds) -> Result<()> {
    if !binary.exists() {
        bail!("fuzz/Cargo.toml has no [[bin]] entry for fuzz_targets/{target}.rs");
    }
    let scratch = build_dir().join("corpus").join(target);
    let artifacts = format!("fuzz/artifacts/{target}/");
    std::fs::create_dir_all(&scratch)?;
    std::fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(binary);
    command.args([
        format!("-max_total_time={}", bounds.seconds),
        format!("-runs={}", bounds.seconds * RUNS_PER_SECOND),
        // libFuzzer's seed has 32 bits, and 0 means "by the clock".
        format!("-seed={}", bounds.seed % u64::from(u32::MAX) + 1),
        format!("-artifact_prefix={artifacts}"),
        "-timeout=10".to_owned(),
        "-verbosity=0".to_owned(),
        "-print_final_stats=1".to_owned(),
    ]);
    command.arg(&scratch);
    let kept = Path::new("fuzz/corpus").join(target);
    if kept.is_dir() {
        command.arg(&kept);
    }
    run(&mut command).with_context(|| {
        format!("{target} failed; run the input again: {} {artifacts}FILE", binary.display())
    })?;
    if bounds.keep {
        std::fs::create_dir_all(&kept)?;
        // Of inputs that reach the same code, libFuzzer takes the shortest, and none where the corpus has one already.
        run(Command::new(binary).args(["-merge=1", "-verbosity=0"]).arg(&kept).arg(&scratch))?;
    }
    Ok(())
}

//! `cargo xtask clients`: programs written with AMQP clients that nobody here wrote, and our own libraries, run against our
//! broker.
//!
//! A row in [`PROGRAMS`] each. Every program gets a broker of its own, so that none meets what another left behind, and
//! the broker must end well too. What the programs need is kept below the target directory, or in OVERTAKE_CLIENTS_DIR.

mod amqplib;
pub(crate) mod broker;
mod kombu;
mod lapin;
mod python;
mod python_client;
mod skips;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::counts::{Counts, run_counted};
use crate::needs::{self, Need, Needs};
use crate::report::{Done, Report, Row};
use crate::shell::{holding_back, is_ci, say, target_dir};
use crate::slowest::Slowest;
use crate::test::Run;
use broker::{Broker, Ports};

const HERE: &str = "tests/clients";

/// A guard against hanging; the slowest program takes a tenth of it.
const LIMIT: Duration = Duration::from_secs(600);

/// Programs that run at a time.
const AT_ONCE: usize = 3;

struct Program {
    name: &'static str,
    what: &'static str,
    needs: &'static [&'static Need],
    /// What some of its tests need.
    wants: &'static [&'static Need],
    /// Downloads what it gets from package registries.
    download: fn(&Path) -> Result<()>,
    body: fn(&mut Stage) -> Result<Done>,
}

/// What most programs are: tests in Python.
const IN_PYTHON: Program = Program {
    name: "",
    what: "",
    needs: &[&needs::PYTHON],
    wants: &[],
    download: |dir| python::environment(dir).map(drop),
    body: |_| Ok(Done::Ok),
};

/// The slowest first, so that none of them is left when the others are done.
const PROGRAMS: &[Program] = &[
    Program {
        name: "lapin",
        what: "the tests of lapin's release",
        needs: &[],
        download: |dir| lapin::download(dir).map(drop),
        body: lapin::tests,
        ..IN_PYTHON
    },
    Program {
        name: "browser",
        what: "the page, in Chromium",
        needs: &[&needs::PYTHON, &needs::CHROMIUM],
        body: browser,
        ..IN_PYTHON
    },
    Program {
        name: "python-client",
        what: "our own, for Python",
        wants: &[&needs::REDIS, &needs::POSTGRESQL, &needs::MARIADB],
        body: python_client::tests,
        ..IN_PYTHON
    },
    Program {
        name: "kombu",
        what: "the integration suite of Kombu's release",
        download: |dir| kombu::download(dir, &python::environment(dir)?).map(drop),
        body: kombu::tests,
        ..IN_PYTHON
    },
    Program { name: "py-amqp", what: "py-amqp", body: |s| python::tests(s, "with_py_amqp"), ..IN_PYTHON },
    Program {
        name: "openapi",
        what: "schemathesis, by /openapi.json",
        body: |s| over_http(s, "test_openapi.py"),
        ..IN_PYTHON
    },
    Program {
        name: "celery",
        what: "a Celery worker",
        body: |s| python::tests(s, "with_celery"),
        ..IN_PYTHON
    },
    Program {
        name: "pika",
        what: "pika, blocking and with callbacks",
        body: |s| python::tests(s, "with_pika"),
        ..IN_PYTHON
    },
    Program { name: "aio-pika", what: "aio-pika", body: |s| python::tests(s, "with_aio_pika"), ..IN_PYTHON },
    Program {
        name: "amqplib",
        what: "amqplib, on Node",
        needs: &[&needs::NODE],
        download: |dir| amqplib::download(dir).map(drop),
        body: amqplib::tests,
        ..IN_PYTHON
    },
    Program {
        name: "tools",
        what: "Flower and KEDA, by the management API",
        body: |s| over_http(s, "test_tools.py"),
        ..IN_PYTHON
    },
];

/// The broker is built as the suite is; each program has needs of its own, and tests of our own library talk to servers.
pub(crate) const NEEDS: Needs = Needs {
    must: &[&needs::MAKE, &needs::CXX, &needs::OPENSSL],
    part: &[
        &needs::PYTHON,
        &needs::NODE,
        &needs::CHROMIUM,
        &needs::REDIS,
        &needs::POSTGRESQL,
        &needs::MARIADB,
    ],
};

/// Where the brokers come from.
enum Brokers {
    /// A new one of ours for each program: the binary.
    Ours(PathBuf),
    /// This one for all, whoever's it is.
    Other(String),
}

/// What a program is run with.
struct Stage {
    program: &'static str,
    /// Where the broker listens.
    url: String,
    /// Where it serves HTTP, if it is ours.
    http: Option<String>,
    /// The broker is not ours: what only we promise is left out.
    is_other: bool,
    /// Our binary, for programs that start brokers of their own.
    binary: Option<PathBuf>,
    /// What the programs need is kept here.
    dir: PathBuf,
    /// Where pictures of what was seen are kept.
    pictures: Option<PathBuf>,
    tests: Tests,
}

/// What the programs' tests say of themselves.
#[derive(Default)]
struct Tests {
    counts: Counts,
    slowest: Slowest,
}

impl Stage {
    /// Runs the program's tests, counting them; nothing run, nothing passed.
    fn run(&mut self, command: &mut Command) -> Result<Done> {
        command.env("OVERTAKE_AMQP_URL", &self.url);
        if let Some(http) = &self.http {
            command.env("OVERTAKE_HTTP_URL", http);
        }
        if let Some(pictures) = &self.pictures {
            command.env("OVERTAKE_ARTEFACTS", pictures);
        }
        if self.is_other {
            command.env("OVERTAKE_AMQP_OTHER", "1");
        }
        run_counted(command, LIMIT, &mut self.tests.counts, &mut self.tests.slowest)
    }

    /// `host` and `port` of the broker, for those who want them apart.
    fn address(&self) -> Result<(&str, &str)> {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        let host = rest.split('/').next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        host.rsplit_once(':').with_context(|| format!("{} names no port", self.url))
    }
}

/// Tests of what we say over HTTP, which another broker does not.
fn over_http(stage: &mut Stage, file: &str) -> Result<Done> {
    if stage.http.is_none() {
        return Ok(Done::Skipped("it is about our own port".to_owned()));
    }
    python::tests(stage, &format!("with_http/{file}"))
}

/// Our page in a browser. Pictures of it are kept beside what the programs need.
fn browser(stage: &mut Stage) -> Result<Done> {
    if stage.http.is_none() {
        return Ok(Done::Skipped("it is about our own page".to_owned()));
    }
    let pictures = stage.dir.join("pictures");
    say(&format!("pictures of the page are kept in {}", pictures.display()));
    stage.pictures = Some(pictures);
    python::tests(stage, "with_browser")
}

/// `cargo xtask clients [--url URL] [--skip-missing] [NAME…]`
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let (mut url, mut skip_missing) = (None, false);
    let mut named = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--skip-missing" => skip_missing = true,
            "--url" => url = Some(args.next().context("--url wants amqp://…")?.clone()),
            name if PROGRAMS.iter().any(|program| program.name == name) => named.push(name),
            other => {
                let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
                bail!("there is no program or option `{other}`; there are: {}", names.join(" "))
            }
        }
    }
    let is_wanted = |program: &&Program| named.is_empty() || named.contains(&program.name);
    let wanted: Vec<_> = PROGRAMS.iter().filter(is_wanted).collect();
    let builds = Needs { must: if url.is_some() { &[] } else { NEEDS.must }, part: &[] };
    let mut needs = vec![("the broker", builds)];
    needs.extend(
        wanted.iter().map(|program| (program.name, Needs { must: program.needs, part: program.wants })),
    );
    match needs::gather(&needs) {
        Some(missing) if skip_missing && builds.lacking().is_none() => println!("{missing}"),
        Some(missing) => bail!("{missing}\nall but the programs that need it: add --skip-missing"),
        None => {}
    }
    download_for(&wanted)?;
    let brokers = url.map_or_else(|| broker::build().map(Brokers::Ours), |url| Ok(Brokers::Other(url)))?;
    let (report, tests) = perform(&brokers, &wanted)?;
    print!("{}{}", tests.slowest, report.close(tests.counts));
    Ok(if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every program, against our broker.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    let (report, tests) = perform(&Brokers::Ours(broker::build()?), &PROGRAMS.iter().collect::<Vec<_>>())?;
    run.counts.add(tests.counts);
    run.slowest.add(tests.slowest);
    print!("{}", report.close(Counts::default()));
    ensure!(report.is_ok(), "{} of {} programs failed", report.failed(), PROGRAMS.len());
    Ok(match report.skipped() {
        0 => Done::Ok,
        left_out => Done::Skipped(format!("{left_out} of {} programs", PROGRAMS.len())),
    })
}

/// Downloads what all programs get from package registries.
pub(crate) fn download() -> Result<()> {
    download_for(&PROGRAMS.iter().collect::<Vec<_>>())
}

/// Downloads what these programs get from package registries, as far as this machine has what they need.
fn download_for(programs: &[&Program]) -> Result<()> {
    let dir = std::path::absolute(kept())?;
    std::fs::create_dir_all(&dir)?;
    for program in programs.iter().filter(|program| needs::missing_of(program.needs).is_none()) {
        (program.download)(&dir)?;
    }
    Ok(())
}

/// Runs the programs side by side, as each waits most of the time; what one prints is shown when it ends.
fn perform(brokers: &Brokers, wanted: &[&Program]) -> Result<(Report, Tests)> {
    let dir = std::path::absolute(kept())?;
    let next = AtomicUsize::new(0);
    let together = Mutex::new((Report::new(is_ci()), Tests::default()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(wanted.len()) {
            scope.spawn(|| {
                while let Some(program) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut tests = Tests::default();
                    let played = || Row::of(program.name, || play(program, brokers, &dir, &mut tests));
                    let (row, printed) = holding_back(played);
                    let mut together = together.lock().expect("no program panics");
                    together.0.begin(program.name, program.what);
                    print!("{printed}");
                    together.0.end(row);
                    together.1.counts.add(tests.counts);
                    together.1.slowest.add(tests.slowest);
                }
            });
        }
    });
    Ok(together.into_inner().expect("no program panics"))
}

/// Where what the programs need is kept.
fn kept() -> PathBuf {
    std::env::var_os("OVERTAKE_CLIENTS_DIR").map_or_else(|| target_dir().join("clients"), PathBuf::from)
}

/// `cargo xtask bench python`
pub(crate) fn bench_python(args: &[String]) -> Result<ExitCode> {
    python_client::bench(args)?;
    Ok(ExitCode::SUCCESS)
}

/// One program and its broker, which must end well too.
fn play(program: &Program, brokers: &Brokers, dir: &Path, tests: &mut Tests) -> Result<Done> {
    if let Some(missing) = needs::missing_of(program.needs) {
        return Ok(Done::Skipped(format!("this machine has no {missing}")));
    }
    let (url, http, broker, binary) = match brokers {
        Brokers::Ours(binary) => {
            let broker = Broker::start(binary, program.name)?;
            let Ports { amqp, http } = broker.ports().clone();
            (amqp, Some(http), Some(broker), Some(binary.clone()))
        }
        Brokers::Other(url) => (url.clone(), None, None, None),
    };
    let (program_name, is_other, dir) = (program.name, broker.is_none(), dir.to_owned());
    let mut stage = Stage {
        program: program_name,
        url,
        http,
        is_other,
        binary,
        dir,
        pictures: None,
        tests: Tests::default(),
    };
    let done = (program.body)(&mut stage);
    *tests = stage.tests;
    let end = broker.map_or(Ok(()), |broker| broker.stop(done.is_err()));
    done.and_then(|done| end.map(|()| done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_needs_is_a_need_of_the_step() {
        let of_step = |need: &&Need| NEEDS.must.iter().chain(NEEDS.part).any(|one| std::ptr::eq(*one, *need));
        for program in PROGRAMS {
            assert!(program.needs.iter().chain(program.wants).all(of_step), "{}", program.name);
        }
    }

    #[test]
    fn an_address_is_what_the_url_says() {
        for url in ["amqp://guest:guest@127.0.0.1:5672/%2f", "amqp://127.0.0.1:5672", "127.0.0.1:5672/"] {
            let (url, dir) = (url.to_owned(), PathBuf::new());
            let stage = Stage {
                program: "",
                url,
                http: None,
                is_other: false,
                binary: None,
                dir,
                pictures: None,
                tests: Tests::default(),
            };
            assert_eq!(stage.address().unwrap(), ("127.0.0.1", "5672"));
        }
    }
}

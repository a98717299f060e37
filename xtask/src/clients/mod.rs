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
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::counts::{Counts, run_counted};
use crate::needs;
use crate::report::{Done, Report};
use crate::shell::target_dir;
use crate::test::Run;
use broker::{Broker, Ports};

const HERE: &str = "tests/clients";

/// A guard against hanging; the slowest program takes a tenth of it.
const LIMIT: Duration = Duration::from_secs(600);

struct Program {
    name: &'static str,
    what: &'static str,
    body: fn(&mut Stage) -> Result<Done>,
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "pika",
        what: "pika, blocking and with callbacks",
        body: |s| python::tests(s, "with_pika"),
    },
    Program { name: "aio-pika", what: "aio-pika", body: |s| python::tests(s, "with_aio_pika") },
    Program { name: "py-amqp", what: "py-amqp", body: |s| python::tests(s, "with_py_amqp") },
    Program { name: "amqplib", what: "amqplib, on Node", body: amqplib::tests },
    Program { name: "lapin", what: "the tests of lapin's release", body: lapin::tests },
    Program { name: "celery", what: "a Celery worker", body: |s| python::tests(s, "with_celery") },
    Program {
        name: "openapi",
        what: "schemathesis, by /openapi.json",
        body: |s| over_http(s, "test_openapi.py"),
    },
    Program {
        name: "tools",
        what: "Flower and KEDA, by the management API",
        body: |s| over_http(s, "test_tools.py"),
    },
    Program { name: "browser", what: "the page, in Chromium", body: browser },
    Program { name: "python-client", what: "our own, for Python", body: python_client::tests },
    Program { name: "kombu", what: "the integration suite of Kombu's release", body: kombu::tests },
];

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
    counts: Counts,
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
        run_counted(command, LIMIT, &mut self.counts)
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
    if let Some(why) = needs::chromium()? {
        return Ok(Done::Skipped(why));
    }
    let pictures = stage.dir.join("pictures");
    println!("pictures of the page are kept in {}", pictures.display());
    stage.pictures = Some(pictures);
    python::tests(stage, "with_browser")
}

/// `cargo xtask clients [--url URL] [NAME…]`
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let mut url = None;
    let mut named = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--url" => url = Some(args.next().context("--url wants amqp://…")?.clone()),
            name if PROGRAMS.iter().any(|program| program.name == name) => named.push(name),
            other => {
                let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
                bail!("there is no program or option `{other}`; there are: {}", names.join(" "))
            }
        }
    }
    let brokers = url.map_or_else(|| broker::build().map(Brokers::Ours), |url| Ok(Brokers::Other(url)))?;
    let (report, counts) = perform(&brokers, |program| named.is_empty() || named.contains(&program.name))?;
    print!("{}", report.close(counts));
    Ok(if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every program, against our broker.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    let (report, counts) = perform(&Brokers::Ours(broker::build()?), |_| true)?;
    run.counts.add(counts);
    print!("{}", report.close(Counts::default()));
    ensure!(report.is_ok(), "{} of {} programs failed", report.failed(), PROGRAMS.len());
    Ok(match report.skipped() {
        0 => Done::Ok,
        left_out => Done::Skipped(format!("{left_out} of {} programs", PROGRAMS.len())),
    })
}

fn perform(brokers: &Brokers, wanted: impl Fn(&Program) -> bool) -> Result<(Report, Counts)> {
    let dir = std::path::absolute(kept())?;
    let mut counts = Counts::default();
    let mut report = Report::new(std::env::var_os("CI").is_some_and(|ci| ci == "true"));
    for program in PROGRAMS.iter().filter(|program| wanted(program)) {
        report.step(program.name, program.what, || play(program, brokers, &dir, &mut counts));
    }
    Ok((report, counts))
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
fn play(program: &Program, brokers: &Brokers, dir: &Path, counts: &mut Counts) -> Result<Done> {
    let (url, http, broker, binary) = match brokers {
        Brokers::Ours(binary) => {
            let broker = Broker::start(binary)?;
            let Ports { amqp, http } = broker.ports().clone();
            (amqp, Some(http), Some(broker), Some(binary.clone()))
        }
        Brokers::Other(url) => (url.clone(), None, None, None),
    };
    let (program_name, is_other, dir) = (program.name, broker.is_none(), dir.to_owned());
    let counted = Counts::default();
    let mut stage =
        Stage { program: program_name, url, http, is_other, binary, dir, pictures: None, counts: counted };
    let done = (program.body)(&mut stage);
    counts.add(stage.counts);
    let end = broker.map_or(Ok(()), |broker| broker.stop(done.is_err()));
    done.and_then(|done| end.map(|()| done))
}

#[cfg(test)]
mod tests {
    use super::*;

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
                counts: Counts::default(),
            };
            assert_eq!(stage.address().unwrap(), ("127.0.0.1", "5672"));
        }
    }
}

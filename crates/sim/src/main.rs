//! `overtake-sim`: runs seeds until one breaks a promise.

use std::io::Write;
use std::process::ExitCode;

use overtake_sim::{Config, Outcome, Tally, run};

/// Seeds that once failed, run before all others.
const KEPT_SEEDS: &str = include_str!("../seeds.txt");
/// So many seeds of each run are run twice, to see that a seed is one story.
const TWICE: u64 = 50;

const HELP: &str = "\
overtake-sim [--seeds N] [--start S] [--steps M] [--twice]   N seeds from S on (default 2000 from 0)
overtake-sim --seed X [--steps M] [--trace]                  one seed, with --trace as a story
";

struct Arguments {
    seeds: u64,
    start: u64,
    only: Option<u64>,
    twice: bool,
    config: Config,
}

fn parse() -> Result<Arguments, String> {
    let mut arguments =
        Arguments { seeds: 2_000, start: 0, only: None, twice: false, config: Config::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().ok_or_else(|| format!("{word} needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("{word} needs a number, not `{value}`"))
        };
        match word.as_str() {
            "--seeds" => arguments.seeds = number()?,
            "--start" => arguments.start = number()?,
            "--steps" => arguments.config.steps = Some(number()?),
            "--seed" => arguments.only = Some(number()?),
            "--twice" => arguments.twice = true,
            "--trace" => arguments.config.told = true,
            other => return Err(format!("there is no option `{other}`")),
        }
    }
    Ok(arguments)
}

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    match parse() {
        Ok(arguments) => match go(&arguments, &mut out) {
            Ok(code) => code,
            Err(_) => ExitCode::FAILURE,
        },
        Err(why) => {
            let _ = write!(out, "{why}\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn go(arguments: &Arguments, out: &mut impl Write) -> std::io::Result<ExitCode> {
    if let Some(seed) = arguments.only {
        let outcome = judged(seed, arguments, !arguments.config.told);
        return close(seed, &outcome, &outcome.tally, out);
    }
    let kept = KEPT_SEEDS.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
    let drawn = (0..arguments.seeds).map(|n| arguments.start.wrapping_add(n));
    let mut tally = Tally::default();
    for (at, seed) in kept.chain(drawn).enumerate() {
        let outcome = judged(seed, arguments, arguments.twice || (at as u64) < TWICE);
        tally.add(&outcome.tally);
        if outcome.failure.is_some() {
            return close(seed, &outcome, &tally, out);
        }
    }
    writeln!(out, "{} seeds, {} events, {} crashes, passed", tally.seeds, tally.events, tally.crashes)?;
    writeln!(out, "{tally}")?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a seed; a panic is a failure like others, and so is a seed that is not the same story twice.
fn judged(seed: u64, arguments: &Arguments, twice: bool) -> Outcome {
    let once = || {
        std::panic::catch_unwind(|| run(seed, arguments.config)).unwrap_or_else(|panic| {
            let what = panic.downcast_ref::<String>().cloned();
            let what = what.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Outcome::panicked(what.unwrap_or_else(|| "something".to_owned()))
        })
    };
    let mut outcome = once();
    if twice && outcome.failure.is_none() {
        let again = once();
        if again.hash != outcome.hash {
            outcome.failure = Some(overtake_sim::Failure {
                promise: overtake_sim::Promise::Alive,
                what: "the same seed is another story the second time".to_owned(),
            });
        }
    }
    outcome
}

fn close(seed: u64, outcome: &Outcome, tally: &Tally, out: &mut impl Write) -> std::io::Result<ExitCode> {
    match &outcome.failure {
        None => {
            writeln!(out, "seed {seed} passed, {} events, {} crashes\n{tally}", tally.events, tally.crashes)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(failure) => {
            writeln!(out, "seed {seed} failed: {failure}\nreplay it: cargo xtask sim --seed {seed}")?;
            if let Some(steps) = fewer_steps(seed, failure) {
                writeln!(out, "as a short story: cargo xtask sim --seed {seed} --steps {steps} --trace")?;
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

/// How many acts of clients are enough to break the same promise.
fn fewer_steps(seed: u64, failure: &overtake_sim::Failure) -> Option<u64> {
    let mut tried =
        std::iter::successors(Some(4), |steps| Some(steps + steps / 4)).take_while(|steps| *steps < 500);
    tried.find(|steps| {
        let config = Config { steps: Some(*steps), ..Config::default() };
        let again = std::panic::catch_unwind(|| run(seed, config)).map(|outcome| outcome.failure);
        again.is_ok_and(|again| again.is_some_and(|again| again.promise == failure.promise))
    })
}

//! `overtake-sim`: runs seeds until one breaks a promise.

use std::io::Write;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use overtake_sim::{Config, Outcome, Tally, run};

/// Seeds that once failed, run before all others.
const KEPT_SEEDS: &str = include_str!("../seeds.txt");
/// So many seeds of each run are run twice, to see that a seed is one story.
const TWICE: usize = 50;

const HELP: &str = "\
overtake-sim [--seeds N] [--start S] [--steps M] [--twice]   N seeds from S on (default 2000 from 0), on all cores
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
        return close(seed, &outcome, out);
    }
    let kept = KEPT_SEEDS.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
    let drawn = (0..arguments.seeds).map(|n| arguments.start.wrapping_add(n));
    let seeds: Vec<_> = kept.chain(drawn).collect();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let (tally, failed) =
        on_cores(cores, seeds.len(), |at| judged(seeds[at], arguments, arguments.twice || at < TWICE));
    if let Some((at, outcome)) = failed {
        return close(seeds[at], &outcome, out);
    }
    writeln!(out, "{} seeds, {} events, {} crashes, passed", tally.seeds, tally.events, tally.crashes)?;
    writeln!(out, "{tally}")?;
    Ok(ExitCode::SUCCESS)
}

/// Runs so many on so many cores, each whole on one. How much happened, and which was the first that failed, and how: they are taken
/// in their order, and what was taken is ended, so that it is the same one however many cores there are.
fn on_cores(
    cores: usize,
    count: usize,
    judge: impl Fn(usize) -> Outcome + Sync,
) -> (Tally, Option<(usize, Outcome)>) {
    let next = AtomicUsize::new(0);
    let heard = Mutex::new((Tally::default(), None::<(usize, Outcome)>));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return;
            }
            let outcome = judge(at);
            let mut heard = heard.lock().expect("who holds it does not panic");
            let (tally, first) = &mut *heard;
            tally.add(&outcome.tally);
            if outcome.failure.is_some() {
                next.store(count, Ordering::Relaxed);
                if first.as_ref().is_none_or(|(its, _)| at < *its) {
                    *first = Some((at, outcome));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    heard.into_inner().expect("who held it did not panic")
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

fn close(seed: u64, outcome: &Outcome, out: &mut impl Write) -> std::io::Result<ExitCode> {
    let tally = &outcome.tally;
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn ended(failed: bool) -> Outcome {
        let mut outcome = Outcome::panicked(String::new());
        outcome.tally.seeds = 1;
        outcome.failure.take_if(|_| !failed);
        outcome
    }

    #[test]
    fn all_are_run_once() {
        let (tally, failed) = on_cores(4, 1_000, |_| ended(false));
        assert!(failed.is_none());
        assert_eq!(tally.seeds, 1_000);
    }

    #[test]
    fn the_first_that_fails_is_named_whichever_is_done_first() {
        let both = Barrier::new(2);
        let (_, failed) = on_cores(2, 1_000, |at| {
            both.wait();
            ended(at < 2)
        });
        assert_eq!(failed.map(|(at, _)| at), Some(0));
    }
}

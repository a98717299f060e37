//! The work on a message as bytes: what goes on, what was tried, and how it went.
//!
//! | field of work | bytes |
//! |---|---|
//! | when it was begun | number, milliseconds |
//! | when it has taken too long | optional time |
//! | whether it is wanted back | a byte: 0 no, 1 yes |
//!
//! | field of a record | bytes |
//! |---|---|
//! | how it ended | a byte: 0 completed, 1 failed, 2 timeout, 3 cancelled |
//! | queue, lane | text |
//! | when it was published, when it was begun last, when it ended | number, optional time, number |
//! | how often it was begun | number |
//! | what is said of it | a byte of bits: 1 exit code, 2 error, 4 output; then those there are: signed, text, text |
//!
//! Attempts are a number, then each, the oldest first. The number is how many there are, 1 to 8, and 16 for each older one that is not kept:
//!
//! | field of an attempt | bytes |
//! |---|---|
//! | how it ended | as of a record |
//! | when it was begun, when it ended | optional time, number |
//! | what is said of it | as of a record |

use std::sync::Arc;

use overtake_lane::{Attempt, Attempts, Ending, Record, Report, Time, Work};

use crate::codec::{Reader, number, signed, text};
use crate::message::time;

const ENDINGS: [Ending; 5] =
    [Ending::Completed, Ending::Failed, Ending::Timeout, Ending::Cancelled, Ending::LeaseExpired];

/// Added to the number of kept attempts for each attempt that is not kept.
const FORGOTTEN: u64 = 16;

/// Appends work that goes on.
pub(crate) fn work(out: &mut Vec<u8>, work: &Work) {
    number(out, work.started.0);
    time(out, work.ends);
    out.push(u8::from(work.is_cancelled));
}

/// Appends a record of work.
pub(crate) fn record(out: &mut Vec<u8>, record: &Record) {
    out.push(ending_code(record.ending));
    text(out, &record.queue);
    text(out, &record.lane);
    number(out, record.queued.0);
    time(out, record.started.unwrap_or(Time::NEVER));
    number(out, record.finished.0);
    number(out, u64::from(record.attempts));
    report(out, &record.report);
}

/// Appends attempts at work.
pub(crate) fn attempts(out: &mut Vec<u8>, attempts: &Attempts) {
    number(out, attempts.iter().len() as u64 + u64::from(attempts.forgotten()) * FORGOTTEN);
    for attempt in attempts.iter() {
        out.push(ending_code(attempt.ending));
        time(out, attempt.started.unwrap_or(Time::NEVER));
        number(out, attempt.finished.0);
        report(out, &attempt.report);
    }
}

fn ending_code(ending: Ending) -> u8 {
    ENDINGS.iter().position(|known| *known == ending).expect("every ending has a code") as u8
}

fn report(out: &mut Vec<u8>, report: &Report) {
    let Report { exit_code, error, output } = report;
    out.push(
        u8::from(exit_code.is_some()) | u8::from(error.is_some()) << 1 | u8::from(output.is_some()) << 2,
    );
    if let Some(code) = exit_code {
        signed(out, i64::from(*code));
    }
    for said in [error, output].into_iter().flatten() {
        text(out, said);
    }
}

/// What the functions above wrote. `None` where the bytes end early or make no sense.
impl Reader<'_> {
    pub(crate) fn work(&mut self) -> Option<Work> {
        let (started, ends) = (Time(self.number()?), self.time()?);
        let is_cancelled = match self.byte()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Work { started, ends, is_cancelled })
    }

    pub(crate) fn record(&mut self) -> Option<Record> {
        let ending = self.ending()?;
        let (queue, lane) = (self.text()?.into(), self.text()?.into());
        let (queued, started) = (Time(self.number()?), self.time()?.some());
        let (finished, attempts) = (Time(self.number()?), self.small()?);
        let report = self.report()?;
        Some(Record { ending, queue, lane, queued, started, finished, attempts, report })
    }

    pub(crate) fn attempts(&mut self) -> Option<Arc<Attempts>> {
        let mut all = Vec::new();
        let number = self.number()?;
        let forgotten = u32::try_from(number / FORGOTTEN).ok()?;
        for _ in 0..number % FORGOTTEN {
            let (ending, started, finished) = (self.ending()?, self.time()?.some(), Time(self.number()?));
            all.push(Attempt { ending, started, finished, report: self.report()? });
        }
        Attempts::new(all, forgotten).map(Arc::new)
    }

    fn ending(&mut self) -> Option<Ending> {
        ENDINGS.get(usize::from(self.byte()?)).copied()
    }

    fn report(&mut self) -> Option<Report> {
        let has = self.byte()?;
        if has > 7 {
            return None;
        }
        let mut report = Report::default();
        if has & 1 != 0 {
            report.exit_code = Some(i32::try_from(self.signed()?).ok()?);
        }
        if has & 2 != 0 {
            report.error = Some(self.text()?.into());
        }
        if has & 4 != 0 {
            report.output = Some(self.text()?.into());
        }
        Some(report)
    }
}

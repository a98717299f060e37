//! When: a line of five fields, read in a time zone.
//!
//! Where clocks change, the rule is Vixie cron's. A line with a fixed hour and minute runs once a day whatever happens: at the end of
//! the gap where its time does not exist, at the first of the two where it exists twice. A line with `*` or a step in hours or
//! minutes goes by the clock on the wall: nothing in a gap, both where an hour comes twice.

use std::fmt;

use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use overtake_lane::Time;

/// Longest cron line, bytes: every minute of an hour fits, one by one.
pub const CRON_LEN_MAX: usize = 500;
/// Longest name of a time zone, bytes.
const TIMEZONE_LEN_MAX: usize = 100;
/// Lines are looked at from here whether they ever come true: the calendar repeats itself.
const EPOCH: Time = Time(0);

/// A cron line in a time zone.
#[derive(Clone, Debug)]
pub struct Cron {
    line: String,
    timezone: String,
    pattern: croner::Cron,
    zone: TimeZone,
}

/// The same words; what they mean follows.
impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        (&self.line, &self.timezone) == (&other.line, &other.timezone)
    }
}

/// Why something is no cron line in a time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadCron {
    /// The line cannot be read: why.
    Line(String),
    /// There is no such time zone.
    Timezone(String),
    /// No day is like that.
    Never,
}

impl BadCron {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Line(_) => {
                "give five fields (minute, hour, day of month, month, day of week), for example `30 9 * * MON-FRI`, or @hourly, @daily, \
                 @weekly, @monthly, @yearly"
            }
            Self::Timezone(_) => {
                "use a name of the IANA time zone database, for example `Europe/Berlin`; without one it is UTC"
            }
            Self::Never => "check day and month: there is no 30 February, for example",
        }
    }
}

impl fmt::Display for BadCron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(why) => write!(f, "the cron line cannot be read: {why}"),
            Self::Timezone(name) => write!(f, "there is no time zone `{name}`"),
            Self::Never => f.write_str("the cron line never comes true"),
        }
    }
}

impl std::error::Error for BadCron {}

impl Cron {
    /// Reads a line of five fields, or a word like `@daily`, in a time zone of the IANA database.
    ///
    /// # Errors
    /// [`BadCron`].
    pub fn parse(line: &str, timezone: &str) -> Result<Self, BadCron> {
        let zone = (timezone.len() <= TIMEZONE_LEN_MAX).then(|| TimeZone::get(timezone).ok()).flatten();
        let zone =
            zone.ok_or_else(|| BadCron::Timezone(timezone.chars().take(TIMEZONE_LEN_MAX).collect()))?;
        let timezone = zone.iana_name().unwrap_or(timezone).to_owned();
        let line = line.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let cron = Self { pattern: pattern(&line)?, line, timezone, zone };
        cron.after(EPOCH).map(|_| cron.clone()).ok_or(BadCron::Never)
    }

    /// The line, with one space between its fields.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The name of the time zone.
    #[must_use]
    pub fn timezone(&self) -> &str {
        &self.timezone
    }

    /// The first occurrence after a moment; a whole minute. `None`: never again.
    #[must_use]
    pub fn after(&self, now: Time) -> Option<Time> {
        let seconds = i64::try_from(now.0 / 1_000).ok()?;
        let from = Timestamp::from_second(seconds).ok()?.to_zoned(self.zone.clone());
        let next = self.pattern.find_next_occurrence(&from, false).ok()?;
        u64::try_from(next.timestamp().as_second()).ok().map(|seconds| Time(seconds * 1_000))
    }
}

fn pattern(line: &str) -> Result<croner::Cron, BadCron> {
    if line.len() > CRON_LEN_MAX {
        return Err(BadCron::Line(format!("it is longer than {CRON_LEN_MAX} bytes")));
    }
    let fields = line.split(' ').filter(|field| !field.is_empty()).count();
    if !line.starts_with('@') && fields != 5 {
        return Err(BadCron::Line(format!("it has {fields} fields instead of five")));
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(line).map_err(|why| BadCron::Line(why.to_string().trim_end_matches('.').to_owned()))
}

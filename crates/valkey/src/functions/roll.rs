//! Brokers that are there, and what each says of itself.

use bytes::Bytes;
use overtake_lane::Time;
use redis::Value;

use super::define::{DEFINITIONS, Process};
use super::told::{Malformed, Part};
use crate::cluster::Call;

/// A broker says what it is, and hears who else is there.
#[derive(Clone, Debug)]
pub struct Introduce {
    /// The process.
    pub process: Process,
    /// Its version.
    pub version: &'static str,
    /// When it started.
    pub since: Time,
}

/// A broker that is enrolled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduced {
    /// The name of the process.
    pub process: String,
    /// Until when the servers believe that it is there.
    pub until: Time,
    /// Its version, and when it started, if it has said so.
    pub about: Option<(String, Time)>,
}

impl Introduce {
    /// As a call.
    #[must_use]
    pub fn call(&self) -> Call {
        let Self { process, version, since } = self;
        let arguments = [process.to_string(), format!("{version} {}", since.0)];
        Call::write_below("ot_introduce", DEFINITIONS, arguments.map(Bytes::from).into())
    }

    /// What it comes to.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(value: &Value) -> Result<Vec<Introduced>, Malformed> {
        let one = |part: &Value| {
            let [process, until, about] = Part(part).parts()? else { return Err(Malformed) };
            let about = Part(about).text()?.split_once(' ');
            let about =
                about.and_then(|(version, since)| Some((version.to_owned(), Time(since.parse().ok()?))));
            Ok(Introduced { process: Part(process).text()?.to_owned(), until: Part(until).time()?, about })
        };
        Part(value).parts()?.iter().map(one).collect()
    }
}

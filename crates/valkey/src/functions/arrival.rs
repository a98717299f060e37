//! A message that left one place and comes to another: what it brings along.

use overtake_lane::{Attempt, Attempts, Death, Deaths, PlaceNumber, QueueId, Record, Report, Route, Time};
use serde_json::{Map, Value, json};

use super::told::REASONS;

/// Which leave of which place a message comes by: that is once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Provenance {
    /// The queue it left.
    pub queue: QueueId,
    /// Which of its places.
    pub place: PlaceNumber,
    /// The number of the leave there ([`Leaver::number`](super::Leaver)).
    pub number: u64,
}

/// What a message is that comes from another place. A place remembers for a day what it answered to one, and answers the same again: a refusal, too, so that all who bring it see
/// it end in the same way. It is new where it comes but for this: it keeps no time to live of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where from.
    pub from: Provenance,
    /// When it left there: it counts as published here then.
    pub since: Time,
    /// It was evicted: where what is evicted goes on, nobody pays for it.
    pub is_evicted: bool,
    /// It comes into a history: what waits with its id gives way to it, where else it would be refused ([`Refusal::IdPending`](overtake_lane::Refusal)).
    pub is_record: bool,
    /// Its deaths, with the way by which it comes. A way that is empty is the one that its content says.
    pub deaths: Option<Deaths>,
    /// How the work on it went.
    pub record: Option<Record>,
    /// The attempts at the work on it that did not end it.
    pub attempts: Option<Attempts>,
}

impl Arrival {
    pub(super) fn json(&self) -> Map<String, Value> {
        let Provenance { queue, place, number } = self.from;
        let said = [
            ("from", format!("{}:{place}:{number}", queue.0).into()),
            ("since", self.since.0.into()),
            ("is_evicted", self.is_evicted.into()),
            ("is_record", self.is_record.into()),
            ("deaths", self.deaths.as_ref().map_or(Value::Bool(false), deaths)),
            ("record", self.record.as_ref().map_or(Value::Bool(false), record)),
            ("attempts", self.attempts.as_ref().map_or(Value::Bool(false), attempts)),
        ];
        said.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// As a place keeps them.
fn deaths(deaths: &Deaths) -> Value {
    let list: Vec<Value> =
        deaths.iter().enumerate().map(|(at, one)| death(one, at == deaths.first_at())).collect();
    json!([deaths.first_at() + 1, list, route(deaths.from()), route(deaths.route())])
}

fn death(death: &Death, is_first: bool) -> Value {
    let Death { reason, queue, lane, first_at, at, times, count, route: way, .. } = death;
    let reason = REASONS.iter().find(|(known, _)| known == reason).map(|(_, word)| *word);
    json!([reason, queue, lane, first_at.0, at.0, times, count, route(way), is_first])
}

fn route(route: &Route) -> Value {
    if *route == Route::default() {
        return Value::Bool(false);
    }
    std::iter::once(&route.exchange).chain(&route.keys).map(|name| Value::from(&**name)).collect()
}

fn record(record: &Record) -> Value {
    let Record { ending, queue, lane, queued, started, finished, attempts, report } = record;
    let [exit_code, error, output] = said(report);
    let started = begun(*started);
    json!([ending.word(), queue, lane, queued.0, started, finished.0, attempts, exit_code, error, output])
}

fn attempts(attempts: &Attempts) -> Value {
    let attempt = |Attempt { ending, started, finished, report }: &Attempt| {
        let [exit_code, error, output] = said(report);
        json!([ending.word(), begun(*started), finished.0, exit_code, error, output])
    };
    let mut all: Value = attempts.iter().map(attempt).collect();
    if let (forgotten @ 1.., Some(first)) = (attempts.forgotten(), all[0].as_array_mut()) {
        first.push(forgotten.into());
    }
    all
}

fn begun(started: Option<Time>) -> Value {
    started.map_or(Value::Bool(false), |started| started.0.into())
}

fn said(Report { exit_code, error, output }: &Report) -> [Value; 3] {
    let text = |text: &Option<Box<str>>| text.as_deref().map_or(Value::Bool(false), Value::from);
    [exit_code.map_or(Value::Bool(false), Value::from), text(error), text(output)]
}

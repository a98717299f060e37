//! Signs of life: again and again a process says to the places at which it holds something that it is there, and hears what is out to it.
//!
//! A message may be out to a process in which nobody knows of it: the answer of its lease was lost, or a server has lost how the lease ended. It goes back. One of whose lease the
//! answer is on its way is none of those, so it is told apart: what is unknown goes back with the next sign, if everything that was under way when it was heard of has come by then, and it is
//! unknown still; and only by a lease that was given before it was heard of.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use overtake_engine::Failure;
use overtake_lane::PlaceNumber;

use super::House;
use super::hosted::Hosted;
use crate::functions::{Alive, Unknown};
use crate::places::together;

/// How long a process is believed to be there that says nothing more, ms.
pub(super) const ALIVE_MS: u64 = 15_000;
/// The same.
pub(super) const ALIVE: Duration = Duration::from_millis(ALIVE_MS);
/// How often it says so.
const SIGN: Duration = Duration::from_millis(ALIVE_MS / 5);
/// In which of those rounds it is looked for transactions whose end is overdue.
const OVERDUE_ROUNDS: u64 = 10;

/// What is under way, in the order in which it began.
#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<Trips>);

#[derive(Debug, Default)]
struct Trips {
    next: u64,
    open: BTreeSet<u64>,
}

/// Something that is under way until this is dropped.
#[derive(Debug)]
pub(super) struct Trip {
    all: Arc<UnderWay>,
    number: u64,
}

/// What was out to this process at a place when nobody here knew of it.
#[derive(Debug)]
pub(super) struct Overlooked {
    unknown: Unknown,
    /// What was under way then has begun before this.
    before: u64,
}

impl UnderWay {
    fn with<T>(&self, change: impl FnOnce(&mut Trips) -> T) -> T {
        change(&mut self.0.lock().expect("nobody panics with it"))
    }

    /// Begins something.
    pub(super) fn begin(self: &Arc<Self>) -> Trip {
        let number = self.with(|trips| {
            trips.next += 1;
            trips.open.insert(trips.next);
            trips.next
        });
        Trip { all: Arc::clone(self), number }
    }

    /// What begins from now on is not before this.
    fn now(&self) -> u64 {
        self.with(|trips| trips.next + 1)
    }

    /// Whether all is over that began before this.
    fn is_over(&self, before: u64) -> bool {
        self.with(|trips| trips.open.first().is_none_or(|oldest| *oldest >= before))
    }
}

impl Drop for Trip {
    fn drop(&mut self) {
        self.all.with(|trips| trips.open.remove(&self.number));
    }
}

impl House {
    /// Says to a place that this process is there, has go back what nobody here knows of, and looks at what is out.
    async fn give_sign(&self, hosted: &Arc<Hosted>, place: PlaceNumber) -> Result<(), Failure> {
        let before = hosted.unknown.lock().expect("nobody panics with it").remove(&place);
        let known = |seq| self.floor().knows(hosted.queue, hosted.known_as(place, seq));
        let overlooked = before.filter(|overlooked| hosted.under_way.is_over(overlooked.before));
        let unknown = overlooked.map(|Overlooked { mut unknown, .. }| {
            unknown.seqs.retain(|seq| !known(*seq));
            unknown
        });
        let sign = Alive { holder: self.caller.clone(), ms: ALIVE_MS, unknown };
        let out = hosted.ask(place, &sign).await?;
        if out.lost > 0 {
            let messages = out.lost;
            tracing::info!(queue = %hosted.name, place, messages, "what was out to this broker and nobody knew of went back");
        }
        let before = hosted.under_way.now();
        let mut seqs = out.seqs;
        seqs.retain(|seq| !known(*seq));
        if !seqs.is_empty() {
            let overlooked = Overlooked { unknown: Unknown { last: out.last, seqs }, before };
            hosted.unknown.lock().expect("nobody panics with it").insert(place, overlooked);
        }
        Ok(())
    }
}

/// Says again and again that this process is there, to the places at which it holds something.
pub(super) async fn give_signs(house: Weak<House>) {
    let mut every = tokio::time::interval(SIGN);
    let mut rounds = 0_u64;
    loop {
        every.tick().await;
        let Some(house) = house.upgrade() else { return };
        let hosted: Vec<_> = house.all_hosted().into_iter().filter(|hosted| hosted.may_hold()).collect();
        for hosted in hosted.iter().filter(|hosted| house.floor().holds(hosted.queue)) {
            hosted.holds();
        }
        let all =
            hosted.iter().flat_map(|hosted| (0..hosted.places().count()).map(move |place| (hosted, place)));
        // What cannot be said now is said again before it is too late.
        drop(together(all.map(|(hosted, place)| house.give_sign(hosted, place))).await);
        let attending = house.all_hosted();
        let attending = attending.iter().filter(|hosted| hosted.attendance.is_said());
        drop(together(attending.map(|hosted| house.attend_again(hosted))).await);
        house.strike_off_the_gone().await;
        rounds += 1;
        if rounds.is_multiple_of(OVERDUE_ROUNDS) {
            for hosted in house.all_hosted() {
                if let Err(why) = house.end_overdue(&hosted).await {
                    tracing::debug!(queue = %hosted.name, %why, "a transaction that is overdue is not ended yet");
                }
            }
        }
    }
}

/// Says again and again that this process is there, whatever else takes its time: others would take it for gone.
pub(super) async fn stay_enrolled(house: Weak<House>) {
    let mut every = tokio::time::interval(SIGN);
    loop {
        every.tick().await;
        let Some(house) = house.upgrade() else { return };
        drop(house.enrol().await);
        house.introduce().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_later_is_not_waited_for() {
        let under_way = Arc::new(UnderWay::default());
        assert!(under_way.is_over(under_way.now()));
        let first = under_way.begin();
        let mark = under_way.now();
        let second = under_way.begin();
        assert!(!under_way.is_over(mark));
        drop(first);
        assert!(under_way.is_over(mark), "the second has begun since");
        assert!(!under_way.is_over(under_way.now()));
        drop(second);
        assert!(under_way.is_over(under_way.now()));
    }
}

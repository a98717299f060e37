//! Cleaning: what is needed of the oldest part of the journal is written again at the tail.
//!
//! When the journal is more than twice as long as what it keeps, the messages and the records of runs in its oldest quarter are
//! written again, so that the chunks there can be given back. It goes in bites: how long one takes does not depend on how much
//! there is, and there are as many as what is appended asks for. On a full disk it begins earlier, and a file that publishes may
//! not fill is left for it.

use overtake_lane::{Fact, QueueId, RunId, Seq};
use overtake_store::{Lsn, Writer};

use super::Core;
use super::house::MESSAGE_COST;
use crate::place::Where;
use crate::shelf::record_len;

/// For so many bytes appended there is one large bite: in that many are fewer messages than are looked at.
const BYTES_PER_BITE: u64 = 64 << 10;
/// Large bites in one step, if no more than four times as many are due: else a quarter of them, so that it keeps up with what is appended.
const BITES_AT_ONCE: u64 = 4;

/// How much is cleaned without a pause.
pub(super) struct Bite {
    /// Messages looked at, and as many for each run of which something may have been fetched.
    looks: usize,
    /// Bytes of messages that are carried, about, but one message at least.
    bytes: u64,
    /// Runs whose records are written again.
    runs: usize,
}

impl Bite {
    /// For what is appended: twice as many bytes.
    pub(super) fn large() -> Self {
        Self { looks: 1_024, bytes: 2 * BYTES_PER_BITE, runs: 8 }
    }

    /// The one of every turn.
    fn small() -> Self {
        Self { looks: 128, bytes: BYTES_PER_BITE / 4, runs: 1 }
    }
}

/// Where in the order of queues and sequences something goes on.
type Cursor = (QueueId, Seq);
const START: Cursor = (QueueId(0), Seq(0));

/// How far cleaning is.
#[derive(Debug)]
pub(super) struct Cleaning {
    round: Option<Round>,
    /// Up to where what was appended has been answered with bites.
    cleaned_at: Lsn,
    /// The last bite got on, and there is more.
    pub(super) has_more: bool,
    fetched: Fetched,
}

/// What is needed in chunks before `before` is written again: messages, of which those before `next` have been, and the
/// records of runs.
#[derive(Clone, Copy, Debug)]
struct Round {
    before: u32,
    next: Option<Cursor>,
}

/// The search for what was fetched from one run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fetched(Option<(RunId, Cursor)>);

/// What came of a bite of carrying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    All,
    Some,
    /// There is no room for more.
    NoRoom,
}

/// Messages that are to be written again do not fit beside what must always go.
struct NoRoom;

impl Cleaning {
    pub(super) fn new(tail: Lsn) -> Self {
        Self { round: None, cleaned_at: tail, has_more: false, fetched: Fetched::default() }
    }
}

impl<T> Core<T> {
    /// Whether [`Core::keep_house`] has more to clean, and got on with it the last time.
    #[must_use]
    pub fn has_more_to_clean(&self) -> bool {
        self.house.cleaning.has_more
    }

    /// Cleans as much as has been appended since it did last, and a little: who appends much at once must not outrun it. While definitions
    /// are written again nothing is given back, so the journal stays long, and all of it would be carried in vain: it waits.
    pub(super) fn clean_some(&mut self) {
        self.house.cleaning.has_more = false;
        if self.house.restating.is_some() {
            self.house.cleaning.cleaned_at = self.writer.tail();
            return;
        }
        let mut owed = self.writer.tail().0 - self.house.cleaning.cleaned_at.0;
        let due = owed / BYTES_PER_BITE;
        self.clean(Bite::small());
        for _ in 0..BITES_AT_ONCE.max(due / 4).min(due) {
            if self.house.cleaning.round.is_none() {
                break;
            }
            self.clean(Bite::large());
            owed -= BYTES_PER_BITE;
        }
        let owed = if self.house.cleaning.round.is_some() { owed } else { 0 };
        self.house.cleaning.cleaned_at = Lsn(self.writer.tail().0 - owed);
    }

    fn clean(&mut self, mut bite: Bite) {
        let Some(Round { before, next }) = self.house.cleaning.round.or_else(|| self.next_round()) else {
            return;
        };
        let is_old = |place| Where::of(place).chunk().is_some_and(|chunk| chunk < before);
        let (found, next) =
            next.map_or_else(Default::default, |next| self.broker.scan(next, bite.looks, is_old));
        let Ok(rest) = self.carry_some(found, &mut bite) else {
            self.house.cleaning.round = None;
            return;
        };
        let next = rest.or(next);
        let tail = self.writer.tail();
        let are_recorded = self.record_runs(before, &mut bite);
        let goes_on = next.is_some() || !are_recorded;
        self.house.cleaning.round = goes_on.then_some(Round { before, next });
        self.house.cleaning.has_more = if goes_on {
            next.is_some() || self.writer.tail() > tail
        } else {
            self.oldest_chunk().is_some_and(|oldest| oldest >= before) && self.next_round().is_some()
        };
    }

    fn next_round(&self) -> Option<Round> {
        let (oldest, tail) = (self.oldest_chunk()?, self.chunk());
        // On a full disk one file at a time: there is room to carry what is in one.
        let files = if self.is_at_end() { 1 } else { (tail.saturating_sub(oldest) / 4).max(1) };
        let round = Round { before: oldest + files, next: Some(START) };
        // What is being cleared is neither carried nor given back: it is gone soon.
        let may_begin = self.is_long() && self.kept_for_missing().is_none() && !self.is_clearing();
        (oldest < tail && may_begin).then_some(round)
    }

    /// The oldest chunk with a message or the record of a run that is needed.
    fn oldest_chunk(&self) -> Option<u32> {
        let of_runs = self.holds.oldest().map(|(chunk, _)| chunk);
        self.contents.oldest_chunk().into_iter().chain(of_runs).min()
    }

    /// Writes the records of runs in chunks before this one again, a bite of them. True: all are written.
    pub(super) fn record_runs(&mut self, before: u32, bite: &mut Bite) -> bool {
        let old = |core: &Self| core.holds.oldest().filter(|(chunk, _)| *chunk < before);
        for _ in 0..bite.runs {
            let Some((_, run)) = old(self) else { break };
            if !self.record_again(run, bite) {
                return false;
            }
        }
        old(self).is_none()
    }

    /// Writes the record of a run again. What was fetched from it is written first, with its content: what was said of it stands
    /// behind the old record, and would be about nothing without it. False when that needs more time, or room.
    fn record_again(&mut self, run: RunId, bite: &mut Bite) -> bool {
        let mut fetched = self.house.cleaning.fetched;
        let carried = self.carry_fetched(run, &mut fetched, bite);
        self.house.cleaning.fetched = fetched;
        if carried != Carried::All {
            return false;
        }
        let Some(held) = self.holds.get(run) else { return true };
        let Some(fact) = self.broker.run_fact(held.queue, run) else {
            // Nothing waits in it, and what was fetched was carried.
            self.end_runs();
            return true;
        };
        let holes = if let Fact::RunRestated { run, .. } = &fact { run.holes.len() } else { 0 };
        if self.is_behind() || !self.reckon().has_beside_reserve(Writer::cost(record_len(holes))) {
            return false;
        }
        let chunk = self.chunk();
        self.record(&[fact], false);
        self.holds.recorded(run, chunk, holes);
        true
    }

    /// Writes what was fetched from a run with its content, a bite of it.
    pub(super) fn carry_fetched(&mut self, run: RunId, fetched: &mut Fetched, bite: &mut Bite) -> Carried {
        let next = fetched.0.filter(|(other, _)| *other == run).map_or(START, |(_, next)| next);
        let is_all = |core: &Self| {
            let held = core.holds.get(run);
            held.is_none_or(|held| held.messages == core.broker.run_waiting(held.queue, run))
        };
        *fetched = Fetched::default();
        if is_all(self) {
            return Carried::All;
        }
        let is_of_it = |place| Where::of(place).run() == Some(run);
        let (found, next) = self.broker.scan(next, bite.looks, is_of_it);
        let Ok(rest) = self.carry_some(found, bite) else { return Carried::NoRoom };
        if is_all(self) {
            return Carried::All;
        }
        let next = rest.or(next);
        // More may have been fetched meanwhile, so at the end it begins again.
        *fetched = Fetched(Some((run, next.unwrap_or(START))));
        Carried::Some
    }

    /// Writes messages again, as many of them as the bite has bytes for; answers the first of the others. All room may be used for that but what must always
    /// go, since a whole file is given back for it.
    ///
    /// # Errors
    /// The room is not enough.
    fn carry_some(&mut self, messages: Vec<Cursor>, bite: &mut Bite) -> Result<Option<Cursor>, NoRoom> {
        for (at, (queue, seq)) in messages.into_iter().enumerate() {
            let Some(message) = self.broker.message_at(queue, seq) else { continue };
            let len = u64::from(message.bytes) + MESSAGE_COST;
            if at > 0 && bite.bytes < len {
                return Ok(Some((queue, seq)));
            }
            let cost = Writer::cost(message.bytes as usize + MESSAGE_COST as usize * 8);
            if self.is_behind() || !self.reckon().has_beside_reserve(cost) {
                return Err(NoRoom);
            }
            bite.bytes = bite.bytes.saturating_sub(len);
            self.carry(queue, seq);
        }
        Ok(None)
    }
}

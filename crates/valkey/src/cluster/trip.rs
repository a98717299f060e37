//! What is done over one connection, until it is lost.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use overtake_peer::redis::{Answers, Commands, Fault, Line};
use redis::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::asked::Errand;
use super::batch::{Batch, Entry, Mark, Unacked, Wait, gather};
use super::call::CallError;
use super::counts::{Trips, add};
use super::lane::{Lane, holds_slots, not_done};
use super::map::Map;
use super::roads::Roads;
use super::slot::{SLOTS, Slot};
use super::verdict::Verdict;
use super::ways::Trouble;

/// Most pipelines under way: so many that the server always has one while another is read here.
const BATCHES_MAX: usize = 4;
/// The same where each waits for replicas: one by one they are larger, and there are fewer waits, which cost more than calls.
const WAITING_MAX: usize = 1;
/// How long a node that holds no slots any more may take for what is under way: it may have been handed over in good order.
const GRACE: Duration = Duration::from_millis(250);

pub(super) struct Trip<'a> {
    roads: &'a Arc<Roads>,
    lane: &'a Lane,
    trips: Arc<Trips>,
    answers: Answers,
    commands: Commands,
    /// Bytes to write, and how many are.
    out: Vec<u8>,
    written: usize,
    is_flushed: bool,
    batches: VecDeque<Batch>,
    /// Done, and not by enough replicas; confirmed by the next wait that is long enough.
    unacked: Vec<Unacked>,
    /// Not before this a wait by itself.
    wait_at: Instant,
    waits_failed: u32,
    /// A slot of this node in which marks are written, and a tag that lies there: kept, as it takes longer to find one than to send a batch.
    mark_at: Option<(Slot, String)>,
    heard_at: Instant,
    /// After that what is under way is given up.
    cut_at: Option<Instant>,
    /// Nothing new is begun: the functions are to be looked after.
    is_closing: bool,
    /// No newer ones are there.
    has_ours: bool,
}

impl<'a> Trip<'a> {
    pub(super) fn new(roads: &'a Arc<Roads>, lane: &'a Lane, line: Line, has_ours: bool) -> Self {
        let Line { answers, commands } = line;
        let now = Instant::now();
        Self {
            roads,
            lane,
            trips: roads.counters.trips(&lane.place),
            answers,
            commands,
            out: Vec::new(),
            written: 0,
            is_flushed: true,
            batches: VecDeque::new(),
            unacked: Vec::new(),
            wait_at: now,
            waits_failed: 0,
            mark_at: None,
            heard_at: now,
            cut_at: None,
            is_closing: false,
            has_ours,
        }
    }

    /// Why the connection is lost; `None` where it is to be made again at once.
    pub(super) async fn run(mut self, maps: &mut watch::Receiver<Arc<Map>>) -> Option<String> {
        let mut was_there = holds_slots(&maps.borrow_and_update(), &self.lane.place);
        let lost = loop {
            self.begin();
            if self.is_closing && self.batches.is_empty() {
                break None;
            }
            let ends_at = self.ends_at();
            tokio::select! {
                answer = self.answers.next() => {
                    if let Err(why) = answer.and_then(|answer| self.heard(answer)) {
                        break Some(why);
                    }
                }
                written = self.commands.write(&self.out[self.written..]), if !self.is_flushed => match written {
                    Ok(len) => {
                        self.is_flushed = self.written == self.out.len();
                        self.written += len;
                    }
                    Err(why) => break Some(why),
                },
                () = self.lane.filled.notified() => {}
                changed = maps.changed() => if changed.is_ok() {
                    let is_there = holds_slots(&maps.borrow_and_update(), &self.lane.place);
                    if was_there && !is_there {
                        self.cut_at = Some(Instant::now() + GRACE);
                    } else if is_there {
                        self.cut_at = None;
                    }
                    was_there = is_there;
                },
                () = at(ends_at) => match self.late() {
                    Some(why) => break Some(why),
                    None => continue,
                },
            }
        };
        let why = lost.as_deref().unwrap_or("the functions are loaded again");
        self.give_up(why);
        lost
    }

    /// Writes what waits, if that can be.
    fn begin(&mut self) {
        if !self.can_begin() {
            return;
        }
        let (entries, over) = self.lane.take(gather);
        self.roads.returned(over.into_iter().map(|entry| (entry.errand, None)));
        self.forget_unacked();
        let has_unacked = !self.unacked.is_empty() && Instant::now() >= self.wait_at;
        if entries.is_empty() && !has_unacked {
            if self.batches.is_empty() && self.unacked.is_empty() {
                self.lane.rest();
            }
            return;
        }
        let durability = self.roads.nodes.durability;
        let waits = durability.is_waited_for()
            && (has_unacked || entries.iter().any(|entry| entry.errand.call().waits()));
        let mark = waits.then(|| self.mark(&entries));
        let unacked = if waits { std::mem::take(&mut self.unacked) } else { Vec::new() };
        add(&self.roads.counters.calls, entries.len());
        add(&self.roads.counters.batches, 1);
        let patience_ms = self.roads.nodes.patience.replicas_ms;
        self.out.clear();
        let waits = mark.map(|mark| (durability, patience_ms, mark));
        self.batches.push_back(Batch::new(entries, unacked, waits, &mut self.out));
        (self.written, self.is_flushed) = (0, false);
    }

    fn can_begin(&self) -> bool {
        let most = if self.lane.waits { WAITING_MAX } else { BATCHES_MAX };
        self.is_flushed && self.batches.len() < most && !self.is_closing
    }

    /// Where something can be written at this node.
    fn mark(&mut self, entries: &[Entry]) -> Mark {
        let map = self.roads.map();
        let own: Vec<_> = map.slots_of(&self.lane.place).collect();
        let holds = |slot: Slot| own.iter().any(|slots| slots.contains(&slot.number()));
        let kept = self.mark_at.take().filter(|(slot, _)| holds(*slot));
        self.mark_at = kept.or_else(|| {
            let slots = if own.is_empty() { None } else { own.get(chance(own.len())) }?;
            let count = slots.end() - slots.start() + 1;
            let slot = Slot::new(slots.start() + u16::try_from(chance(usize::from(count))).unwrap_or(0))?;
            Some((slot, slot.a_tag()))
        });
        let function = self.roads.library.mark();
        if let Some((_, tag)) = &self.mark_at {
            return Mark { key: format!("{function}:mark:{{{tag}}}"), function, is_asking: false };
        }
        // A node that holds none is asked for something that comes to it; that key is of another name, or the one that is there could not come, too.
        let asked = entries.iter().map(|entry| entry.errand.slot()).next();
        let slot = asked.unwrap_or_else(|| Slot::new(0).expect("there is a first"));
        Mark { key: format!("{function}:asked:{{{}}}", slot.a_tag()), function, is_asking: true }
    }

    /// Takes an answer, and what is there behind it.
    fn heard(&mut self, first: Result<Value, Fault>) -> Result<(), String> {
        let mut next = Some(first);
        while let Some(answer) = next {
            let batch = self.batches.front_mut();
            let batch = batch.ok_or_else(|| format!("{} says what nobody asked", self.lane.place))?;
            if batch.answered(answer) {
                let batch = self.batches.pop_front().expect("it was looked at");
                self.trips.took(batch.sent_at.elapsed());
                self.judge(batch);
            }
            next = self.answers.buffered()?;
        }
        self.heard_at = Instant::now();
        Ok(())
    }

    fn judge(&mut self, batch: Batch) {
        let (is_waiting, since) = (batch.is_waiting(), batch.sent_at);
        let (of_calls, mut unacked, wait) = batch.take_apart();
        let mut back = Vec::with_capacity(of_calls.len());
        for (entry, answer) in of_calls {
            match answer {
                Ok(value) if is_waiting && entry.errand.call().waits() => {
                    unacked.push(Unacked { entry, value, since });
                }
                Ok(value) => back.push(done(entry.errand, Ok(value))),
                Err(fault) => back.push(self.refused(entry.errand, fault)),
            }
        }
        self.confirm(unacked, wait, &mut back);
        self.roads.returned(back);
    }

    fn refused(&mut self, errand: Errand, fault: Fault) -> (Errand, Option<Trouble>) {
        let place = &self.lane.place;
        let why = format!("{place} answers {} {}", fault.code(), fault.details());
        match Verdict::of(&fault, &place.host) {
            Verdict::Moved(to) => {
                add(&self.roads.counters.moves, 1);
                self.roads.moved(errand.slot(), &to);
                not_done(errand, Trouble::Moved, &why)
            }
            Verdict::Ask(to) => {
                add(&self.roads.counters.moves, 1);
                not_done(errand, Trouble::Ask(to), &why)
            }
            Verdict::Later => {
                self.roads.look.notify_one();
                not_done(errand, Trouble::Later, &why)
            }
            // With ours there, and loaded once more, it would be known.
            Verdict::Unknown if self.has_ours && self.roads.library.names(errand.call().function) => {
                self.is_closing = true;
                not_done(errand, Trouble::Later, &why)
            }
            Verdict::Unknown | Verdict::Refused => {
                if fault.code() == "OOM" {
                    self.roads.standing.refused_for_memory(place);
                }
                done(errand, Err(CallError::Refused(fault)))
            }
        }
    }

    /// What the wait behind a batch says of its writes.
    fn confirm(&mut self, unacked: Vec<Unacked>, wait: Wait, back: &mut Vec<(Errand, Option<Trouble>)>) {
        let why = match wait {
            wait @ (Wait::None | Wait::Enough) => {
                if wait == Wait::Enough {
                    self.roads.standing.acknowledged(&self.lane.place, None);
                }
                self.waits_failed = 0;
                back.extend(
                    unacked.into_iter().map(|Unacked { entry, value, .. }| done(entry.errand, Ok(value))),
                );
                return;
            }
            Wait::Short(why) => {
                add(&self.roads.counters.wait_shortfalls, 1);
                self.roads.standing.acknowledged(&self.lane.place, Some(&why));
                format!("{}: {why}", self.lane.place)
            }
            Wait::Unmarked(fault) => {
                let is_unknown = Verdict::of(&fault, "") == Verdict::Unknown;
                self.is_closing |= is_unknown;
                self.mark_at = None;
                format!("{} answers {} {}", self.lane.place, fault.code(), fault.details())
            }
        };
        self.waits_failed += 1;
        self.roads.look.notify_one();
        self.wait_at = Instant::now() + self.roads.nodes.patience.backoff(self.waits_failed);
        // Callers are told before long: replicas may lack it for hours.
        let most = Duration::from_millis(self.roads.nodes.patience.shortfall_ms);
        let (late, early): (Vec<_>, Vec<_>) =
            unacked.into_iter().partition(|unacked| unacked.since.elapsed() >= most);
        for Unacked { entry, .. } in &early {
            entry.errand.unsure(&why);
        }
        self.unacked.extend(early);
        back.extend(late.into_iter().map(|Unacked { entry, since, .. }| {
            let ms = since.elapsed().as_millis();
            done(entry.errand, Err(CallError::InDoubt(format!("{why}, after {ms} ms"))))
        }));
    }

    fn forget_unacked(&mut self) {
        if self.unacked.is_empty() {
            return;
        }
        let (over, kept) = self.unacked.drain(..).partition(|unacked| unacked.entry.errand.is_over());
        self.unacked = kept;
        let over: Vec<Unacked> = over;
        self.roads.returned(over.into_iter().map(|unacked| (unacked.entry.errand, None)));
    }

    /// When something is to be done though nothing is heard.
    fn ends_at(&self) -> Option<Instant> {
        let waits = !self.unacked.is_empty() && self.can_begin();
        [self.silent_at(), waits.then_some(self.wait_at), self.cut_at].into_iter().flatten().min()
    }

    /// When the server counts as lost.
    fn silent_at(&self) -> Option<Instant> {
        let patience = &self.roads.nodes.patience;
        let batch = self.batches.front()?;
        let waits = if batch.is_waiting() { 2 * patience.replicas_ms } else { 0 };
        Some(batch.sent_at.max(self.heard_at) + patience.answer() + Duration::from_millis(waits))
    }

    /// Why it is over, if it is.
    fn late(&self) -> Option<String> {
        let now = Instant::now();
        let is_past = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_past(self.cut_at) {
            return Some(format!("{} holds no slots any more", self.lane.place));
        }
        let patience_ms = self.roads.nodes.patience.answer_ms;
        is_past(self.silent_at())
            .then(|| format!("{} does not answer within {patience_ms} ms", self.lane.place))
    }

    /// Nobody knows of what is under way whether it was done.
    fn give_up(self, why: &str) {
        let under_way = self.batches.into_iter().flat_map(|batch| {
            let waiting = batch.unacked.into_iter().map(|unacked| unacked.entry);
            waiting.chain(batch.entries).collect::<Vec<_>>()
        });
        let all = self.unacked.into_iter().map(|unacked| unacked.entry).chain(under_way);
        let back: Vec<_> = all
            .map(|entry| {
                let errand = entry.errand;
                let trouble = if !errand.call().is_write {
                    errand.not_done(why);
                    Some(Trouble::Later)
                } else {
                    add(&self.roads.counters.in_doubt, 1);
                    errand.in_doubt(why).then_some(Trouble::Later)
                };
                (errand, trouble)
            })
            .collect();
        self.roads.returned(back);
    }
}

fn done(errand: Errand, answer: Result<Value, CallError>) -> (Errand, Option<Trouble>) {
    errand.done(answer);
    (errand, None)
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}

/// A number under so many.
fn chance(below: usize) -> usize {
    getrandom::u32().unwrap_or_default() as usize % below.min(usize::from(SLOTS))
}

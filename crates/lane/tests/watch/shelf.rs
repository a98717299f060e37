//! Segments that are no files: what was spilled, by run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;

use overtake_lane::{Backlog, Message, Place, QueueId, RunId, Seq};

/// Every run that was ever written, and what of them cannot be read for now.
#[derive(Debug, Default)]
pub(crate) struct Shelf(
    Mutex<BTreeMap<RunId, Vec<(Message, Place)>>>,
    Mutex<BTreeSet<(RunId, u32)>>,
    Mutex<Option<Near>>,
);

/// What a look that waits for the disk may read, and what it asked for beside that.
#[derive(Debug, Default)]
struct Near {
    read: BTreeSet<(RunId, u32)>,
    missing: BTreeSet<(RunId, u32)>,
    /// Blocks that the look expects to ask for later.
    expected: BTreeSet<(RunId, u32)>,
}

/// A step needs no more blocks of a run before it ends: one to find where it goes on, the one before that, and one with the content of a
/// message that was fetched.
const NEEDS_OF_RUN: usize = 3;

/// Messages that are read together.
const BLOCK: u32 = 3;

/// Places of spilled messages are told from others by this bit.
const SPILLED: u64 = 1 << 63;

impl Shelf {
    /// Writes a run.
    pub(crate) fn put(&self, run: RunId, messages: Vec<Message>) {
        let shelved = (0..).zip(messages).map(|(ordinal, message)| {
            let place = Place(SPILLED | run.0 << 20 | ordinal);
            (Message { place, ..message.clone() }, message.place)
        });
        self.0.lock().expect("sound").insert(run, shelved.collect());
    }

    /// These cannot be read from now on; all others can.
    #[allow(dead_code, reason = "not every test damages")]
    pub(crate) fn damage(&self, run: RunId, ordinals: impl IntoIterator<Item = u32>) {
        *self.1.lock().expect("sound") = ordinals.into_iter().map(|ordinal| (run, ordinal)).collect();
    }

    /// Does one step of a look, which reads only what earlier steps of it asked for.
    pub(crate) fn step_of_look<R>(&self, read: &mut BTreeSet<(RunId, u32)>, step: impl FnOnce() -> R) -> R {
        let near = Near { read: std::mem::take(read), ..Near::default() };
        *self.2.lock().expect("sound") = Some(near);
        let result = step();
        let near = self.2.lock().expect("sound").take().expect("it looks");
        if near.missing.is_empty() {
            assert!(near.expected.is_empty(), "it goes on without them");
        } else {
            for (run, _) in &near.missing {
                let of_run = near.missing.iter().filter(|(other, _)| other == run);
                assert!(of_run.count() <= NEEDS_OF_RUN, "{:?}", near.missing);
            }
            // What was read before stays only until a step gets by without more.
            *read = near.read.into_iter().chain(near.missing).chain(near.expected).collect();
        }
        result
    }

    /// As [`Broker::browse`](overtake_lane::Broker::browse) wants it: takes all, and reads the content for that.
    pub(crate) fn takes(&self, place: Place) -> bool {
        if let Some(run) = run_of(place) {
            self.is_near(run, (place.0 & 0xf_ffff) as u32);
        }
        true
    }

    /// Whether the block of a message may be read.
    fn is_near(&self, run: RunId, ordinal: u32) -> bool {
        let mut near = self.2.lock().expect("sound");
        let Some(near) = &mut *near else { return true };
        let block = (run, ordinal / BLOCK);
        let is_near = near.read.contains(&block);
        if !is_near {
            near.missing.insert(block);
        }
        is_near
    }

    /// The place that content had before it was spilled, however often.
    pub(crate) fn first_place(&self, mut place: Place) -> Place {
        while let Some(run) = run_of(place) {
            place = self.0.lock().expect("sound")[&run][(place.0 & 0xf_ffff) as usize].1;
        }
        place
    }
}

/// The run in which the content of a place is.
pub(crate) fn run_of(place: Place) -> Option<RunId> {
    (place.0 & SPILLED != 0).then_some(RunId((place.0 & !SPILLED) >> 20))
}

impl Backlog for Shelf {
    fn awaits_disk(&self) -> bool {
        self.2.lock().expect("sound").as_ref().is_some_and(|near| !near.missing.is_empty())
    }

    fn block(&self, _: RunId, ordinal: u32) -> Range<u32> {
        let start = ordinal / BLOCK * BLOCK;
        start..start + BLOCK
    }

    fn expect(&self, run: RunId, ordinal: u32) {
        let mut near = self.2.lock().expect("sound");
        let near = near.as_mut().expect("only a look expects something");
        assert!(!near.missing.is_empty(), "it ends because something is missing");
        near.expected.insert((run, ordinal / BLOCK));
    }

    fn read(&self, run: RunId, from: u32, max: usize) -> Vec<Message> {
        if self.lost(run, from) > 0 || !self.is_near(run, from) {
            return Vec::new();
        }
        let is_looking = self.2.lock().expect("sound").is_some();
        let max = if is_looking { max.min((BLOCK - from % BLOCK) as usize) } else { max };
        let runs = self.0.lock().expect("sound");
        let damaged = self.1.lock().expect("sound");
        let messages = (0_u32..).zip(runs.get(&run).into_iter().flatten()).skip(from as usize).take(max);
        let whole = messages.take_while(|(ordinal, _)| !damaged.contains(&(run, *ordinal)));
        whole.map(|(_, (message, _))| message.clone()).collect()
    }

    fn lost(&self, run: RunId, ordinal: u32) -> u32 {
        let damaged = self.1.lock().expect("sound");
        (ordinal..).take_while(|ordinal| damaged.contains(&(run, *ordinal))).count() as u32
    }

    /// Every id as long as this one: of whatever run and queue, waiting or not.
    fn find_id(&self, _: QueueId, id: &str) -> Vec<(RunId, u32)> {
        let runs = self.0.lock().expect("sound");
        let may = |message: &Message| message.id().is_some_and(|other| other.len() == id.len());
        let named = runs.iter().flat_map(|(run, messages)| {
            let ordinals = (0..).zip(messages).filter(move |(_, (message, _))| may(message));
            ordinals.map(|(ordinal, _)| (*run, ordinal))
        });
        named.collect()
    }

    fn rank(&self, run: RunId, seq: Seq) -> u32 {
        let runs = self.0.lock().expect("sound");
        let rank =
            runs.get(&run).map_or(0, |run| run.partition_point(|(message, _)| message.seq < seq) as u32);
        if self.is_near(run, rank) { rank } else { self.block(run, rank).start }
    }

    fn find(&self, run: RunId, seq: Seq) -> Option<u32> {
        let ordinal = self.rank(run, seq);
        if self.awaits_disk() {
            return None;
        }
        self.read(run, ordinal, 1).pop().filter(|message| message.seq == seq).map(|_| ordinal)
    }
}

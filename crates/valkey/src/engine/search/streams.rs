//! Lists of messages of several partitions, merged into the order in which they go: each is read a few messages at a time.

use std::collections::{BTreeMap, VecDeque};

use overtake_engine::Failure;
use overtake_lane::{Head, Merger, PlaceNumber, Seq};

use super::{List, Search, Seen};
use crate::places::together;

/// A message that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    pub(super) seen: Seen,
    /// Whether the filter takes it.
    pub(super) is_taken: bool,
}

/// What is known of one list of a partition.
struct Stream {
    list: List,
    /// The last message that was read, by its sequence in the partition.
    after: Option<Seq>,
    ready: VecDeque<Looked>,
    /// Nothing is left to be read.
    is_over: bool,
}

/// Lists of partitions, merged. A list has the level of its lane; lists of one level go by sequence, others as the picker says.
pub(super) struct Streams<'s> {
    search: &'s Search<'s>,
    merger: Merger,
    streams: BTreeMap<(PlaceNumber, i32), Stream>,
}

impl<'s> Streams<'s> {
    pub(super) fn new(search: &'s Search<'s>, merger: Merger) -> Self {
        Self { search, merger, streams: BTreeMap::new() }
    }

    /// Adds a list, from behind the message that is known by this sequence.
    pub(super) fn add(&mut self, place: PlaceNumber, level: i32, list: List, passed: Option<Seq>) {
        let after = passed.and_then(|seq| self.search.hosted.after_there(place, seq));
        let stream = Stream { list, after, ready: VecDeque::new(), is_over: false };
        self.streams.insert((place, level), stream);
    }

    pub(super) fn count(&self) -> usize {
        self.streams.len()
    }

    /// Has it be this level's turn, which gives so many more messages.
    pub(super) fn set_turn(&mut self, (level, left): (i32, u32)) {
        // The picker knows a lane once something was shown there.
        let head = Head { level, seq: Seq(0), since: overtake_lane::Time(0) };
        self.merger.show(PlaceNumber::MAX, level, Some(head));
        let given = self.merger.turns(level).saturating_sub(left).max(1);
        (0..given).for_each(|_| self.merger.charge(level));
        self.merger.show(PlaceNumber::MAX, level, None);
    }

    /// Where the next message is; `None`: nothing is left. Where lists have to be read for it, about so many messages of each are.
    pub(super) async fn next(&mut self, most: usize) -> Result<Option<(PlaceNumber, i32)>, Failure> {
        while self.streams.values().any(Stream::is_to_be_read) {
            self.read(most).await?;
        }
        let picked = self.merger.pick(|_| true);
        Ok(picked.map(|(place, head)| (place, head.level)))
    }

    /// The next message of a list that has one.
    pub(super) fn head(&self, at: (PlaceNumber, i32)) -> &Looked {
        self.streams[&at].ready.front().expect("it was picked")
    }

    /// Takes the next message of a list. Answers it, and how many more the lane gives before another may.
    pub(super) fn take(&mut self, at: (PlaceNumber, i32)) -> (Looked, u32) {
        let left = self.merger.turns(at.1).saturating_sub(1);
        self.merger.charge(at.1);
        let stream = self.streams.get_mut(&at).expect("it was picked");
        let looked = stream.ready.pop_front().expect("it was picked");
        self.show(at);
        (looked, left)
    }

    fn show(&mut self, at @ (place, level): (PlaceNumber, i32)) {
        let head = self.streams[&at].ready.front().map(|looked| {
            let message = &looked.seen.message;
            Head { level, seq: message.seq, since: message.since }
        });
        self.merger.show(place, level, head);
    }

    /// Reads the lists of which no message is known, those of all partitions at once.
    async fn read(&mut self, most: usize) -> Result<(), Failure> {
        let mut wanted: BTreeMap<PlaceNumber, Vec<(i32, List, Option<Seq>)>> = BTreeMap::new();
        for ((place, level), stream) in self.streams.iter().filter(|(_, stream)| stream.is_to_be_read()) {
            wanted.entry(*place).or_default().push((*level, stream.list, stream.after));
        }
        let search = self.search;
        let of = |(place, lists): (PlaceNumber, Vec<(i32, List, Option<Seq>)>)| async move {
            let mut read = Vec::new();
            for (level, list, after) in lists {
                let look = search.look(vec![list], false, after, most);
                let (seen, next) = search.ask(place, &look).await?;
                read.push((level, seen, next));
            }
            Ok::<_, Failure>((place, read))
        };
        for read in together(wanted.into_iter().map(of)).await {
            let (place, read) = read?;
            for (level, seen, next) in read {
                let taken = search.image(seen.iter().cloned())?.matching(search.filter)?;
                let looked = |seen: Seen| Looked { is_taken: taken.contains(&seen.message.seq), seen };
                let stream = self.streams.get_mut(&(place, level)).expect("it was asked for");
                stream.ready.extend(seen.into_iter().map(looked));
                (stream.after, stream.is_over) = (next, next.is_none());
                self.show((place, level));
            }
        }
        Ok(())
    }
}

impl Stream {
    fn is_to_be_read(&self) -> bool {
        self.ready.is_empty() && !self.is_over
    }
}

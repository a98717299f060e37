//! Which segments are still needed.
//!
//! Every message of a segment that is neither settled nor carried into the journal *holds* it, whether it waits in its run or
//! was fetched. And as long as a segment is held, the journal must say so: its last record, and all that was said later of
//! its messages, is needed.
//!
//! A segment goes once nobody holds it and the journal says that it is over. Then a recovery passes over its record, and finds
//! its messages as they were published, if the journal goes back so far; each is settled, or moved, or written again later on.
//! Only where all that waited was settled at once, by one word, nothing later names them. Such a segment *lingers*: it stays until
//! the journal no longer goes back to its first record, so that a recovery can read what is settled.

use std::collections::{BTreeMap, BTreeSet};

use overtake_lane::{QueueId, RunId};

/// Bytes of a run's record, but for its holes, at most.
const RECORD_LEN_MAX: usize = 128;
/// Bytes that a hole takes in it, at most.
const HOLE_LEN_MAX: usize = 5;

/// The segments that are needed.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    runs: BTreeMap<RunId, Held>,
    by_chunk: BTreeSet<(u32, RunId)>,
    messages: u64,
    record_bytes: u64,
    /// Bytes of all files.
    file_bytes: u64,
    /// Bytes of them that are needed, about.
    live_bytes: u64,
}

/// The file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Messages in it.
    pub(crate) count: u64,
    /// Its length, bytes.
    pub(crate) len: u64,
}

impl File {
    /// Bytes of it that so many messages take, about.
    fn share(self, messages: u64) -> u64 {
        self.len / self.count.max(1) * messages.min(self.count)
    }
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The queue whose run it was.
    pub(crate) queue: QueueId,
    /// Messages that hold it.
    pub(crate) messages: u64,
    pub(crate) file: File,
    /// The chunk of the journal with its last record, or one before.
    chunk: u32,
    /// That of the first one there still is, or one before.
    pub(crate) first_chunk: u32,
    record_len: usize,
    /// What waited in it is gone all at once.
    pub(crate) is_settled: bool,
}

/// The most bytes that the record of a run with so many holes takes.
pub(crate) fn record_len(holes: usize) -> usize {
    RECORD_LEN_MAX + holes * HOLE_LEN_MAX
}

impl Holds {
    /// A segment is needed by so many messages from now on. Its record, in this chunk or a later one, has so many holes.
    pub(crate) fn begin(
        &mut self,
        run: RunId,
        queue: QueueId,
        file: File,
        messages: u64,
        chunk: u32,
        holes: usize,
    ) {
        let record_len = record_len(holes);
        let held = Held { queue, messages, file, chunk, first_chunk: chunk, record_len, is_settled: false };
        let before = self.runs.insert(run, held);
        assert!(before.is_none(), "a run begins once");
        self.by_chunk.insert((chunk, run));
        self.messages += messages;
        self.record_bytes += record_len as u64;
        self.file_bytes += file.len;
        self.live_bytes += file.share(messages);
    }

    /// Its record was written again.
    pub(crate) fn recorded(&mut self, run: RunId, chunk: u32, holes: usize) {
        let held = self.runs.get_mut(&run).expect("only what is held is recorded");
        self.by_chunk.remove(&(held.chunk, run));
        self.by_chunk.insert((chunk, run));
        let record_len = record_len(holes);
        self.record_bytes = self.record_bytes - held.record_len as u64 + record_len as u64;
        (held.chunk, held.record_len) = (chunk, record_len);
    }

    /// One message more holds it.
    pub(crate) fn share(&mut self, run: RunId) {
        self.change(run, |messages| messages + 1);
    }

    /// So many messages fewer hold it. True: none does any more.
    pub(crate) fn release(&mut self, run: RunId, messages: u64) -> bool {
        self.change(run, |before| before.checked_sub(messages).expect("what holds is released once")) == 0
    }

    /// Changes how many messages hold a segment. Answers how many do now.
    fn change(&mut self, run: RunId, change: impl Fn(u64) -> u64) -> u64 {
        let held = self.runs.get_mut(&run).expect("only what is held is shared and released");
        let (before, file) = (held.messages, held.file);
        let now = change(before);
        held.messages = now;
        self.messages = self.messages - before + now;
        self.live_bytes = self.live_bytes - file.share(before) + file.share(now);
        now
    }

    /// What waited in it is gone, by one word in the journal.
    pub(crate) fn settle(&mut self, run: RunId) {
        if let Some(held) = self.runs.get_mut(&run) {
            held.is_settled = true;
        }
    }

    /// Its first record is in this chunk.
    pub(crate) fn began(&mut self, run: RunId, first_chunk: u32) {
        self.runs.get_mut(&run).expect("only what is held began").first_chunk = first_chunk;
    }

    /// Nobody holds it any more. Answers what it was.
    pub(crate) fn end(&mut self, run: RunId) -> Option<Held> {
        let held = self.runs.remove(&run)?;
        assert_eq!(held.messages, 0, "what is held does not end");
        self.by_chunk.remove(&(held.chunk, run));
        self.record_bytes -= held.record_len as u64;
        self.file_bytes -= held.file.len;
        Some(held)
    }

    /// Segments that nobody holds.
    pub(crate) fn idle(&self) -> Vec<RunId> {
        self.runs.iter().filter(|(_, held)| held.messages == 0).map(|(run, _)| *run).collect()
    }

    /// Bytes of all segments, and those of them that are needed, about.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.file_bytes, self.live_bytes)
    }

    /// All segments.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RunId, Held)> + '_ {
        self.runs.iter().map(|(run, held)| (*run, *held))
    }

    /// Segments.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(crate) fn get(&self, run: RunId) -> Option<Held> {
        self.runs.get(&run).copied()
    }

    /// The segment whose record is the oldest, and its chunk.
    pub(crate) fn oldest(&self) -> Option<(u32, RunId)> {
        self.by_chunk.first().copied()
    }

    /// Messages that hold segments.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Bytes that the records of all runs take, at most.
    pub(crate) fn record_bytes(&self) -> u64 {
        self.record_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_needed_until_nobody_holds_it() {
        let (one, two, queue) = (RunId(1), RunId(2), QueueId(3));
        let file = File { count: 2, len: 200 };
        let mut holds = Holds::default();
        holds.begin(one, queue, file, 2, 5, 0);
        holds.begin(two, queue, file, 1, 6, 10);
        assert_eq!(holds.bytes(), (400, 300));
        assert_eq!((holds.messages(), holds.oldest()), (3, Some((5, one))));
        holds.share(one);
        holds.recorded(one, 9, 1);
        assert_eq!((holds.messages(), holds.oldest()), (4, Some((6, two))));
        assert!(!holds.release(one, 2));
        assert!(holds.release(one, 1));
        assert_eq!(holds.end(one).map(|held| held.queue), Some(queue));
        assert!(holds.end(one).is_none());
        assert!(holds.release(two, 1));
        holds.end(two);
        assert_eq!(
            (holds.messages(), holds.record_bytes(), holds.bytes(), holds.oldest()),
            (0, 0, (0, 0), None)
        );
    }
}

//! What a recovery would find on a disk, by another way than the engine's: the journal of a copy read, each fact folded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_engine::Options;
use overtake_lane::{Broker, Fact, Ordinals, QueueId, RunId, RunRecord, Seq, Step};
use overtake_properties::{Limits, PropertiesRef};
use overtake_store::codec::Reader;
use overtake_store::record::Decoder;
use overtake_store::{Journal, Lsn, MemoryDisk, OnDamage, Report, Segments, StoreError};

use crate::audit::Audit;
use crate::failure::{Checked, Promise, hold};
use crate::post::Post;
use crate::rng::mix;
use crate::shelf::Shelf;

/// What a recovery finds.
pub(crate) struct Refold {
    /// The facts folded, and no time let pass. The place of a message is the mark in its content.
    pub(crate) broker: Broker,
    pub(crate) audit: Audit,
    /// Where each record is, and a hash of what it says.
    pub(crate) records: Vec<(Lsn, u64)>,
    pub(crate) report: Report,
    /// Facts about what is not there.
    pub(crate) unfounded: u64,
    /// Runs whose segments are gone, and nothing says that they are over.
    pub(crate) missing: BTreeSet<RunId>,
}

/// A disk with the same files.
pub(crate) fn copy(disk: &MemoryDisk) -> MemoryDisk {
    let other = MemoryDisk::new(0);
    for name in disk.names() {
        other.put(&name, disk.read(&name).expect("a listed file is there"));
    }
    other
}

/// Reads a disk that nobody needs any more. `drop_every`: leaves out each so many-th lease or put-back (0: none).
pub(crate) fn refold(
    disk: MemoryDisk,
    options: &Options,
    on_damage: OnDamage,
    drop_every: u64,
) -> Result<Refold, StoreError> {
    let journal = overtake_store::Options {
        segment_bytes: options.segment_bytes,
        on_damage,
        ..overtake_store::Options::new(options.seed)
    };
    let mut opened = Journal::open(disk.clone(), &journal)?;
    let post = Arc::new(Post::default());
    let segments = Segments::open(disk, opened.store_id, opened.life, usize::MAX, usize::MAX)?;
    let shelf = Arc::new(Shelf::new(segments, post.clone()));
    let Options { seed, default_ttl_ms, step_max, .. } = *options;
    let options =
        overtake_lane::Options { seed, default_ttl_ms, step_max, ..overtake_lane::Options::default() };
    let mut broker = Broker::with_backlog(options, shelf.clone()).with_letters(post.clone());
    let mut missing = BTreeSet::new();
    let (mut records, mut unfounded, mut step, mut facts) = (Vec::new(), 0, Step::default(), 0);
    while let Some((lsn, payload)) = opened.recovery.next_record()? {
        records.push((lsn, hash_bytes(payload)));
        for fact in Decoder::new(payload) {
            let Ok((mut fact, content)) = fact else {
                unfounded += 1;
                break;
            };
            if let (Fact::Stored { message, .. }, Some(content)) = (&mut fact, content) {
                message.place = post.note(content);
            }
            facts += u64::from(matches!(fact, Fact::Leased { .. } | Fact::PutBack { .. }));
            if drop_every > 0 && facts == drop_every {
                facts = 0;
                continue;
            }
            match &fact {
                Fact::RunStored { run, .. } | Fact::RunRestated { run, .. } if !shelf.has(run.run) => {
                    missing.insert(run.run);
                    continue;
                }
                Fact::RunsRewritten { queue, run, of } if !shelf.has(run.run) => {
                    missing.insert(run.run);
                    let gone = RunRecord {
                        next: run.count,
                        bytes: 0,
                        holes: Ordinals::default(),
                        ..(**run).clone()
                    };
                    let (queue, of) = (*queue, of.clone());
                    let fact = Fact::RunsRewritten { queue, run: Box::new(gone), of };
                    unfounded += u64::from(broker.fold(fact, &mut step).is_err());
                }
                Fact::RunSettled { run, .. } => {
                    missing.remove(run);
                    // It may be said twice, and of a queue that is gone.
                    let _ = broker.fold(fact, &mut step);
                }
                _ => unfounded += u64::from(broker.fold(fact, &mut step).is_err()),
            }
            step.clear();
        }
    }
    Ok(Refold { audit: Audit::of(&broker), broker, records, report: opened.report, unfounded, missing })
}

impl Refold {
    /// No segment is gone that is needed.
    pub(crate) fn check_segments(&self) -> Checked {
        hold(self.missing.is_empty(), Promise::Kept, || {
            format!("segments are gone, and nothing says that they may: {:?}", self.missing)
        })
    }

    /// The mark of every message.
    pub(crate) fn marks(&self) -> BTreeMap<(QueueId, Seq), u64> {
        self.audit.messages().map(|(queue, message)| ((queue, message.seq), message.place.0)).collect()
    }

    pub(crate) fn last_record(&self) -> Lsn {
        self.records.last().map_or(Lsn(0), |(lsn, _)| *lsn)
    }

    pub(crate) fn tail(&self) -> Lsn {
        self.report.tail.lsn
    }
}

/// The mark stands where the media type does: `m/` and a number.
pub(crate) fn mark_of(content_type: Option<&str>) -> Option<u64> {
    content_type?.strip_prefix("m/")?.parse().ok()
}

pub(crate) fn mark_in(content: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(content);
    let len = usize::try_from(reader.number()?).ok()?;
    let properties = PropertiesRef::check(reader.take(len)?, &Limits::default()).ok()?;
    mark_of(properties.content_type()?.text())
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_le_bytes(word))
    })
}

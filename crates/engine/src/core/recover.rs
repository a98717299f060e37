//! From the disk to a broker: every record folded, then time let pass.

use std::fmt;
use std::sync::Arc;

use overtake_lane::{Broker, Effect, Fact, Step, Time};
use overtake_store::record::Decoder;
use overtake_store::{Committer, Disk, Journal, Lsn, Opened, Report, StoreError};

use super::{Core, house};
use crate::api::Content;
use crate::contents::Contents;
use crate::options::Options;

/// Why a store could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The store refuses.
    Store(StoreError),
    /// A record is intact and makes no sense: it was written by a newer version.
    Unknown {
        /// Which.
        lsn: Lsn,
        /// From which byte on.
        at: usize,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Unknown { lsn, at } => write!(
                f,
                "the record at {} makes no sense from its byte {at} on: it was written by a newer version",
                lsn.0
            ),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What a recovery found.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Queues.
    pub queues: usize,
    /// Messages, whatever their state.
    pub messages: u64,
    /// How often the store has been opened, this time included.
    pub life: u32,
    /// Facts about what is no longer kept: leases and settlements of messages whose records are gone.
    pub left_over: u64,
    /// What the journal found.
    pub journal: Report,
}

impl<T> Core<T> {
    /// Opens the store on a disk and makes the broker that it describes.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open<D: Disk>(
        disk: D,
        options: &Options,
        now: Time,
    ) -> Result<(Self, Committer<D>, Recovered), OpenError> {
        let opened = Journal::open(disk, &options.journal())?;
        let Opened { writer, committer, mut recovery, report, life, .. } = opened;
        let mut broker = Broker::new(options.broker(life, writer.record_len_max()));
        let mut contents = Contents::default();
        let mut step = Step::default();
        let mut left_over = 0;
        let first = writer.oldest_lsn();
        while let Some((lsn, payload)) = recovery.next_record()? {
            let chunk =
                u32::try_from(lsn.0 / options.segment_bytes).expect("a journal has fewer than 2^32 chunks");
            let mut content = None;
            for fact in Decoder::new(payload) {
                let (mut fact, bytes) =
                    fact.map_err(|malformed| OpenError::Unknown { lsn, at: malformed.at })?;
                if let Fact::RunStored { .. } | Fact::RunsRewritten { .. } | Fact::RunSettled { .. } = fact {
                    // This engine cannot read segments.
                    return Err(OpenError::Unknown { lsn, at: 0 });
                }
                if let (Fact::Stored { message, .. }, Some(bytes)) = (&mut fact, bytes) {
                    let said = match &content {
                        Some((same, said)) if *same == bytes.as_ptr() => Arc::clone(said),
                        _ => Arc::new(Content::decode(bytes).ok_or(OpenError::Unknown { lsn, at: 0 })?),
                    };
                    content = Some((bytes.as_ptr(), Arc::clone(&said)));
                    message.place = contents.insert(said, chunk);
                }
                left_over += fold(&mut broker, &mut contents, fact, &mut step);
            }
        }
        drop(recovery);
        let topology_chunk =
            u32::try_from(first.0 / options.segment_bytes).expect("a journal has fewer than 2^32 chunks");
        broker.wake(now, &mut step);
        let mut core = Self {
            broker,
            writer,
            contents,
            options: options.clone(),
            pulls: std::collections::BTreeMap::new(),
            outs: Vec::new(),
            step,
            record: Vec::new(),
            overdue: std::collections::VecDeque::new(),
            scratch: Vec::new(),
            house: house::House::new(topology_chunk),
        };
        core.keep(false);
        let recovered = Recovered {
            queues: core.broker.queue_count(),
            messages: core.contents.messages(),
            life,
            left_over,
            journal: report,
        };
        Ok((core, committer, recovered))
    }
}

/// Folds one fact; answers 1 if it was about something that is no longer kept.
fn fold(broker: &mut Broker, contents: &mut Contents, fact: Fact, step: &mut Step) -> u64 {
    let place = if let Fact::Stored { message, .. } = &fact { Some(message.place) } else { None };
    let unfounded = broker.fold(fact, step).is_err();
    for effect in step.effects.drain(..) {
        match effect {
            Effect::Released(place) => contents.release(place),
            Effect::Shared(place) => contents.share(place),
            Effect::Deliver(_) | Effect::Served { .. } | Effect::Cancelled { .. } => {
                unreachable!("nobody consumes during a recovery")
            }
            Effect::Forgotten { .. } => unreachable!("a store with runs is not opened"),
        }
    }
    if let Some(place) = place.filter(|_| unfounded) {
        contents.release(place);
    }
    u64::from(unfounded)
}

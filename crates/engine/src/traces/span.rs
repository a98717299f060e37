//! One span, ended; and how it is called.

use std::fmt;
use std::sync::Arc;

use overtake_lane::{Given, QueueId, Seq};

use super::context::TraceContext;

/// Names a span within its trace. Ours are made of what is known of the message at any time, so that one can be named that was told
/// in an earlier life of the broker, and nothing has to be stored with a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is done to a message for as long as a span lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// From when the broker takes it until it is durable.
    Publish,
    /// From then, or from when it was put back, until it is leased or ends.
    Wait,
    /// From its lease until it is settled or put back.
    Handle,
}

impl Operation {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Wait => "wait",
            Self::Handle => "handle",
        }
    }
}

/// How a wait or the handling of a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// A wait: it was leased.
    Leased,
    /// It was acknowledged.
    Acked,
    /// Its consumer says that it failed, and it was put back.
    Failed,
    /// Its consumer gave it back untouched.
    Released,
    /// The lease ran out, or its consumer went away.
    Lost,
    /// It was put back by a transaction.
    Returned,
    /// It died: rejected, out of attempts, or out of time.
    DeadLettered,
    /// It was rejected, or out of attempts, where dead letters are dropped.
    Dropped,
    /// Its time to live was over.
    Expired,
    /// The queue was full and it was the least urgent.
    Evicted,
    /// It was removed, purged or cancelled, or its queue was deleted.
    Removed,
    /// A newer message took its place.
    Replaced,
}

impl Outcome {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Leased => "leased",
            Self::Acked => "acked",
            Self::Failed => "failed",
            Self::Released => "released",
            Self::Lost => "lost",
            Self::Returned => "returned",
            Self::DeadLettered => "dead_lettered",
            Self::Dropped => "dropped",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
            Self::Removed => "removed",
            Self::Replaced => "replaced",
        }
    }

    /// Whether somebody who looks for what went wrong is to find it.
    #[must_use]
    pub fn is_error(self) -> bool {
        matches!(
            self,
            Self::Failed | Self::Lost | Self::DeadLettered | Self::Dropped | Self::Expired | Self::Evicted
        )
    }
}

/// The message that a span is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The trace, and the parent of the span.
    pub context: TraceContext,
    /// The virtual host.
    pub vhost: Arc<str>,
    /// The queue.
    pub queue: Arc<str>,
    /// Its number.
    pub queue_id: QueueId,
    /// Its place in the order of publishing.
    pub seq: Seq,
    /// Its id: its publisher's, else `seq-N`.
    pub id: String,
    /// Its priority, in the words of the queue's scheme.
    pub priority: Given,
    /// Its lane.
    pub lane: Arc<str>,
    /// Bytes of content.
    pub bytes: u32,
}

/// One span, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What was done.
    pub operation: Operation,
    /// Its name.
    pub span_id: SpanId,
    /// What came before it in the life of the message, in the same trace.
    pub link: Option<SpanId>,
    /// When it began, ns since 1970.
    pub start: u64,
    /// When it ended, ns since 1970, not before it began.
    pub end: u64,
    /// Which lease of the message it is of, or is waited for, from 1; 0 for a publish.
    pub attempt: u32,
    /// How it ended; `None` for a publish.
    pub outcome: Option<Outcome>,
    /// The message.
    pub about: Arc<About>,
}

/// What tells the spans of one store from those of others, and those of one life of the broker from those of others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) store: u64,
    pub(crate) life: u32,
}

impl Origin {
    /// The span of the publish, whichever life it was in.
    pub(crate) fn publish(self, context: &TraceContext, queue: QueueId, seq: Seq) -> SpanId {
        self.name(context, Operation::Publish, (queue, seq), [0; 2], 0)
    }

    /// A span of this life. When it began is in its name, too: attempts are counted anew when a dead letter is replayed.
    pub(crate) fn span(self, about: &About, operation: Operation, attempt: u32, start: u64) -> SpanId {
        self.name(&about.context, operation, (about.queue_id, about.seq), [attempt, self.life], start)
    }

    fn name(
        self,
        context: &TraceContext,
        operation: Operation,
        (queue, seq): (QueueId, Seq),
        [attempt, life]: [u32; 2],
        start: u64,
    ) -> SpanId {
        let mut hash = Hash::new();
        hash.take(&context.trace_id.0);
        hash.take(&context.parent.0);
        hash.take(&self.store.to_be_bytes());
        hash.take(&seq.0.to_be_bytes());
        hash.take(&start.to_be_bytes());
        for number in [queue.0, attempt, life, operation as u32] {
            hash.take(&number.to_be_bytes());
        }
        SpanId(hash.end().to_be_bytes())
    }
}

/// FNV-1a, then the finaliser of `SplitMix64`, since the low bits of FNV see little of what came first. It has to be the same in every
/// version of the broker, and nobody gains by making two the same.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Never 0, which would be no span.
    fn end(self) -> u64 {
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn context() -> TraceContext {
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().expect("a context")
    }

    #[test]
    fn every_span_has_a_name_of_its_own() {
        let mut names = BTreeSet::new();
        let mut count = 0;
        for store in [1, 2, 1 << 60] {
            for life in 1..4 {
                let origin = Origin { store, life };
                for queue in (1..4).map(QueueId) {
                    for seq in (1..20).map(Seq) {
                        for attempt in 1..4 {
                            for operation in [Operation::Wait, Operation::Handle] {
                                for start in [7, 8] {
                                    let numbers = [attempt, life];
                                    names.insert(origin.name(
                                        &context(),
                                        operation,
                                        (queue, seq),
                                        numbers,
                                        start,
                                    ));
                                    count += 1;
                                }
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_publish_is_called_the_same_in_every_life() {
        let of = |life| Origin { store: 7, life }.publish(&context(), QueueId(1), Seq(2));
        assert_eq!(of(1), of(9));
        // Told by an earlier version: it must not change.
        assert_eq!(of(1).to_string(), "0ee0a0897a667e55");
    }
}

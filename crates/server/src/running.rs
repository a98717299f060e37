//! An engine as whoever runs it sees it: how full it is, when it fails, how it ends.
//!
//! Front ends see an [`Engine`] and no more, wherever it keeps its messages.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use overtake_engine::{Engine, Full, ShardedEngine};
use tokio::sync::watch::{self, Receiver};

use crate::ServeError;

/// Something that is waited for.
pub(crate) type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An engine that this process runs.
pub(crate) trait Running: Engine {
    /// Why publishes are refused, now and whenever it changes; `None` while they are taken.
    fn full(&self) -> Receiver<Option<Full>>;

    /// Waits until it can serve no more, and answers why. Never ends while all is well.
    fn failed(&self) -> Waiting<'_, Arc<str>>;

    /// Does what was asked before, makes it durable, and ends.
    fn close(self: Arc<Self>) -> Waiting<'static, Result<(), ServeError>>;
}

/// An engine that was opened.
pub(crate) struct Opened {
    /// It.
    pub(crate) running: Arc<dyn Running>,
    /// Where its messages are.
    pub(crate) found: Found,
}

/// Where messages are kept, and what was found there.
#[derive(Clone, Debug)]
pub enum Found {
    /// In a directory, which is this process's own.
    Store(FoundStore),
    /// On servers of Redis or Valkey, which other processes share.
    Servers {
        /// Where those are that take writes.
        primaries: Vec<String>,
    },
}

/// A store that was opened.
#[derive(Clone, Debug)]
pub struct FoundStore {
    /// Its directory.
    pub dir: PathBuf,
    /// Shards it has.
    pub shards: usize,
    /// Queues that were in it.
    pub queues: u64,
    /// Messages that were in them.
    pub messages: u64,
    /// How often it was opened, this time included.
    pub life: u32,
    /// Sentences for the operator, such as about damage.
    pub notices: Vec<Notice>,
}

/// A sentence about a store that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether something is lost for good.
    pub is_loss: bool,
    /// The sentence.
    pub text: String,
}

impl Running for ShardedEngine {
    /// As soon as one of its shards is full: where one has no room, the others soon have none.
    fn full(&self) -> Receiver<Option<Full>> {
        let mut each = Self::full(self);
        if let [_] = each[..] {
            return each.swap_remove(0);
        }
        let (to, full) = watch::channel(None);
        for shard in each.clone() {
            tokio::spawn(tell_full(shard, each.clone(), to.clone()));
        }
        full
    }

    fn failed(&self) -> Waiting<'_, Arc<str>> {
        Box::pin(Self::failed(self))
    }

    fn close(self: Arc<Self>) -> Waiting<'static, Result<(), ServeError>> {
        Box::pin(crate::open::blocking(move || Self::close(&self)))
    }
}

/// Tells whether one of all is full, whenever that of one shard changes, until it is gone or nobody listens.
async fn tell_full(
    mut shard: Receiver<Option<Full>>,
    all: Vec<Receiver<Option<Full>>>,
    to: watch::Sender<Option<Full>>,
) {
    loop {
        shard.mark_unchanged();
        let full = all.iter().find_map(|one| one.borrow().clone());
        to.send_if_modified(|told| {
            let is_new = *told != full;
            *told = full;
            is_new
        });
        tokio::select! {
            changed = shard.changed() => if changed.is_err() { return },
            () = to.closed() => return,
        }
    }
}

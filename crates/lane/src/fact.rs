//! What happened, said so that it can be made durable and folded into a new broker.
//!
//! Facts are absolute: each says the new state of what it names, never a difference, so folding one needs no decision.

use std::sync::Arc;

use crate::deaths::Deaths;
use crate::identity::Identity;
use crate::ids::{LeaseId, QueueId, Seq, Time, VhostId};
use crate::message::{Message, Settled};
use crate::policy::{Policy, PolicyKind};
use crate::priority::{Original, Priority};
use crate::record::{Attempts, Work};
use crate::run::{Rewritten, RunId, RunRecord};
use crate::settings::Settings;
use crate::topology::{Binding, ExchangeSettings};
use crate::vhosts::VhostSettings;

/// One durable change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A virtual host is there, and is so.
    VhostStored {
        /// Which.
        vhost: VhostId,
        /// Its name.
        name: Arc<str>,
        /// What is said of it.
        settings: Box<VhostSettings>,
    },
    /// A virtual host is gone, with all that was in it. That its queues are deleted is said once more of each.
    VhostDeleted {
        /// Which.
        vhost: VhostId,
    },
    /// A queue is there, with these settings.
    QueueStored {
        /// Which.
        queue: QueueId,
        /// Where its name is one.
        vhost: VhostId,
        /// Its name.
        name: Arc<str>,
        /// Its settings.
        settings: Box<Settings>,
        /// What it is besides.
        identity: Identity,
        /// The sequence its next message gets.
        next_seq: Seq,
    },
    /// A queue is gone, with all its messages.
    QueueDeleted {
        /// Which.
        queue: QueueId,
    },
    /// An exchange is there, and is so.
    ExchangeStored {
        /// Where it is.
        vhost: VhostId,
        /// Its name.
        name: Arc<str>,
        /// What it is.
        settings: Box<ExchangeSettings>,
    },
    /// An exchange is gone, with the bindings of it and to it.
    ExchangeDeleted {
        /// Where it was.
        vhost: VhostId,
        /// Its name.
        name: Arc<str>,
    },
    /// A binding is there.
    Bound {
        /// Where.
        vhost: VhostId,
        /// The binding.
        binding: Box<Binding>,
    },
    /// A binding is gone.
    Unbound {
        /// Where it was.
        vhost: VhostId,
        /// The binding.
        binding: Box<Binding>,
    },
    /// A value of metadata is there, and is so.
    MetadataStored {
        /// Its name.
        key: Arc<str>,
        /// The value.
        value: Arc<[u8]>,
    },
    /// A value of metadata is gone.
    MetadataRemoved {
        /// Its name.
        key: Arc<str>,
    },
    /// A policy is there, and is so.
    PolicyStored {
        /// Where it holds.
        vhost: VhostId,
        /// Whose.
        kind: PolicyKind,
        /// Its name.
        name: Arc<str>,
        /// What it is.
        policy: Box<Policy>,
    },
    /// A policy is gone.
    PolicyRemoved {
        /// Where it held.
        vhost: VhostId,
        /// Whose.
        kind: PolicyKind,
        /// Its name.
        name: Arc<str>,
    },
    /// A message is there, exactly so. Its content goes with it.
    Stored {
        /// The queue.
        queue: QueueId,
        /// The message.
        message: Message,
    },
    /// A message was lent by a pull.
    Leased {
        /// The queue.
        queue: QueueId,
        /// The message.
        seq: Seq,
        /// The lease.
        lease: LeaseId,
        /// When it ends.
        deadline: Time,
        /// How often it has been leased.
        count: u32,
        /// The work that goes on, where that is noted.
        work: Option<Work>,
    },
    /// A lease came back, or its message's wait began or ended.
    PutBack {
        /// The queue.
        queue: QueueId,
        /// The message.
        seq: Seq,
        /// How often it has been leased.
        count: u32,
        /// When it is ready; `None`: now.
        due: Option<Time>,
        /// Its attempts from now on; `None`: as they are.
        attempts: Option<Arc<Attempts>>,
    },
    /// A message has another priority.
    Reprioritised {
        /// The queue.
        queue: QueueId,
        /// The message.
        seq: Seq,
        /// The new one.
        priority: Priority,
        /// As it was given.
        original: Original,
    },
    /// A message is gone.
    Settled {
        /// The queue.
        queue: QueueId,
        /// The message.
        seq: Seq,
        /// How.
        how: Settled,
    },
    /// A message became a dead letter of its own queue.
    Died {
        /// The queue.
        queue: QueueId,
        /// The message.
        seq: Seq,
        /// How often it has been leased.
        count: u32,
        /// Why, where, when, and how often before.
        deaths: Arc<Deaths>,
        /// Its attempts from now on; `None`: as they are.
        attempts: Option<Arc<Attempts>>,
    },
    /// A dead letter is ready again, in its own queue.
    Replayed {
        /// The queue.
        queue: QueueId,
        /// The message.
        seq: Seq,
        /// The priority it has now.
        priority: Priority,
        /// As it was given.
        original: Original,
        /// When it expires.
        expires: Time,
    },
    /// Messages of a queue wait in a run, and those of it that wait are not in memory.
    RunStored {
        /// The queue.
        queue: QueueId,
        /// The run as it is now.
        run: Box<RunRecord>,
    },
    /// A run as it is now, said again, since what said it first may be given back. What waits in it is not in memory.
    RunRestated {
        /// The queue.
        queue: QueueId,
        /// The run as it is now.
        run: Box<RunRecord>,
    },
    /// Every message that waited in a run is in memory again, and the run is no more.
    RunFetched {
        /// The queue.
        queue: QueueId,
        /// The run.
        run: RunId,
    },
    /// The queue has other lanes from now on: what waits in runs by then is of several of them, and moves to these. The fact with the new settings may be no longer
    /// in the log when the records of the runs still are.
    LanesChanged {
        /// The queue.
        queue: QueueId,
    },
    /// What still waited in runs that followed each other waits in a new one. The old ones are over.
    RunsRewritten {
        /// The queue.
        queue: QueueId,
        /// The new run as it is now.
        run: Box<RunRecord>,
        /// The old ones, each with what went from it. What else waited in one by the facts before has been fetched.
        of: Vec<Rewritten>,
    },
    /// Every message that waited in a run is gone.
    RunSettled {
        /// The queue.
        queue: QueueId,
        /// The run.
        run: RunId,
        /// How.
        how: Settled,
    },
    /// Every message of a queue is gone that was there, wherever it waited, but for those that are named.
    Purged {
        /// The queue.
        queue: QueueId,
        /// All that was there had a lesser sequence.
        before: Seq,
        /// The sequences of those that stay, in order.
        kept: Vec<Seq>,
    },
    /// A message left one queue and is, with the same content, in others.
    Moved {
        /// The queue it left.
        from: QueueId,
        /// The message there.
        seq: Seq,
        /// What it has become.
        to: Vec<crate::message::Located>,
    },
}

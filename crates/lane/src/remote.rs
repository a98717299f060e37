//! Queues whose messages are kept elsewhere: here is only who takes from them, and what is handed to whom.
//!
//! ```text
//!   where it is kept ── lease ──▶ hand ──▶ held by a taker of this broker ──▶ settled
//!          ▲                                          │
//!          └────────────── Effect::Returned ──────────┘ (cancelled, session ended, held for too long)
//! ```
//!
//! Consumers, windows, pulls and gets are those of every queue; limits, rates, keys, expiry, retry and dead letters are those of where the messages are kept, and
//! not looked at here. Facts say nothing of such queues that matters.

use std::sync::Arc;

use crate::broker::Broker;
use crate::command::{Few, Get, Step};
use crate::fold::Unfounded;
use crate::identity::Identity;
use crate::ids::{Asker, ConsumerId, LeaseId, QueueId, Receipt, Seq, SessionId, Time, VhostId};
use crate::message::Message;
use crate::policy::Ruled;
use crate::queue::{Described, Handed, Queue};
use crate::refusal::Refusal;
use crate::roster::{Terms, Want};
use crate::settings::Settings;

/// A queue whose messages are kept elsewhere.
#[derive(Clone, Debug)]
pub struct RemoteQueue {
    /// Its number, which whoever keeps it has given it.
    pub queue: QueueId,
    /// Where its name is one. It must be there.
    pub vhost: VhostId,
    /// Its name.
    pub name: Arc<str>,
    /// What holds for it, by policies as well.
    pub settings: Box<Settings>,
    /// What it is besides. That it goes with its last consumer is seen to where all of them are known.
    pub identity: Identity,
    /// Whose it is, if it is exclusive to somebody who is connected here.
    pub owner: Option<SessionId>,
}

impl Broker {
    /// There is a queue whose messages are kept elsewhere; or, if it is there already, other settings hold for it.
    ///
    /// # Errors
    /// [`Unfounded`]: there is no such virtual host, or its number or name is another queue's. Then nothing has changed but what time itself has brought about.
    pub fn store_remote(&mut self, now: Time, remote: RemoteQueue, step: &mut Step) -> Result<(), Unfounded> {
        self.tick(now, step);
        let RemoteQueue { queue: id, vhost, name, settings, identity, owner } = remote;
        let settings = Box::new(for_takers(&settings));
        let named = self.vhosts.get(vhost).map_err(|_| Unfounded)?.queue(&name);
        match (self.queues.get_mut(&id), named) {
            (Some(queue), Ok(named)) if named == id && queue.is_remote() => {
                queue.rule(Ruled::by_none(settings));
                self.dispatch_all(std::iter::once(id), step);
                Ok(())
            }
            (None, Err(_)) => {
                crate::check_queue_name(&name).map_err(|_| Unfounded)?;
                let identity = Identity { auto_delete: false, ..identity };
                self.store_queue(id, Described { vhost, name, settings, identity, next_seq: Seq(1) });
                if let Some(session) = owner {
                    self.sessions.own(session, id);
                }
                let queue = self.queue_mut(id);
                (queue.owner, queue.handed) = (owner, Some(Handed::default()));
                self.use_queue(id);
                Ok(())
            }
            _ => Err(Unfounded),
        }
    }

    /// A queue whose messages are kept elsewhere is gone: its consumers and pulls are cancelled, and what was held of it is nobody's. False: there is none of this number.
    pub fn end_remote(&mut self, now: Time, queue: QueueId, step: &mut Step) -> bool {
        self.tick(now, step);
        if self.remote_mut(queue).is_none() {
            return false;
        }
        let shared = self.end_queue(queue, step);
        self.dispatch_all(shared.into_iter(), step);
        true
    }

    /// Whether the single active consumer of a queue whose messages are kept elsewhere is a consumer of another broker: then none of those here is served, if only one is to be.
    pub fn set_active_elsewhere(&mut self, now: Time, queue: QueueId, is_elsewhere: bool, step: &mut Step) {
        self.tick(now, step);
        if let Some(remote) = self.remote_mut(queue) {
            remote.roster.set_elsewhere(is_elsewhere);
            self.dispatch_all(std::iter::once(queue), step);
        }
    }

    /// How many consumers that stay a queue has whose messages are kept elsewhere, and whether one of them is to be the only one.
    #[must_use]
    pub fn consumers_of(&self, queue: QueueId) -> (u64, bool) {
        let queue = self.queues.get(&queue).filter(|queue| queue.is_remote());
        queue.map_or((0, false), |queue| (queue.roster.counts().0, queue.roster.has_exclusive()))
    }

    /// What takers of a queue whose messages are kept elsewhere would take now, in the order of service, as far as can be told: what is on its way to them is not
    /// known here. The first of them whose lanes have something to give is served next; then it is to be asked anew.
    #[must_use]
    pub fn wants(&self, queue: QueueId) -> Few<Want> {
        let queue = self.queues.get(&queue).filter(|queue| queue.is_remote() && !self.held);
        queue.map(|queue| queue.roster.wants(&queue.settings)).unwrap_or_default()
    }

    /// Hands messages that were leased where they are kept, in this order, each to the taker whose turn it is, of those who have it on these terms and take from
    /// its lane; with that lease, and the count that the message says. Pulls that get something are over after the last. Answers which nobody took, counted from 0:
    /// they are to be given back. Among them is one that is held already.
    ///
    /// Only what is held ([`Terms::Held`]) stays here. A lease that ends by itself does so where the message is kept, and is not known here any more.
    pub fn hand(
        &mut self,
        now: Time,
        queue: QueueId,
        messages: impl IntoIterator<Item = (Message, LeaseId)>,
        terms: Terms,
        step: &mut Step,
    ) -> Few<usize> {
        self.tick(now, step);
        let now = self.now;
        let Some(remote) = self.remote_mut(queue) else {
            return messages.into_iter().enumerate().map(|(at, _)| at).collect();
        };
        let untaken = remote.hand(now, messages, terms, step);
        self.dispatch_all(std::iter::once(queue), step);
        untaken
    }

    /// Hands the message that was leased for a get. It is held until it is settled or the session of whoever asks ends; with `no_ack` it is given for good.
    ///
    /// # Errors
    /// As [`Command::Get`](crate::Command::Get), and [`Refusal::StaleReceipt`] if it is held already. Then the message is to be given back.
    pub fn hand_to(
        &mut self,
        now: Time,
        asker: Asker,
        get: &Get,
        (message, lease): (Message, LeaseId),
        step: &mut Step,
    ) -> Result<(), Refusal> {
        self.tick(now, step);
        self.asking = asker;
        let id = self.usable(&get.queue, step)?;
        let receipt = Receipt { queue: id, seq: message.seq, lease };
        let now = self.now;
        let remote = self.remote_mut(id).ok_or(Refusal::NoSuchQueue)?;
        remote.used = now;
        if remote.handed(&receipt).is_some() {
            return Err(Refusal::StaleReceipt);
        }
        if get.no_ack {
            if self.has_consumer(get.consumer) {
                return Err(Refusal::ConsumerKnown);
            }
            self.queue_mut(id).hand_to(now, message, lease, get.consumer, Terms::Settled, step);
            return Ok(());
        }
        self.admit_consumer(get.consumer, id)?;
        let remote = self.queue_mut(id);
        remote.roster.hold(get.consumer);
        remote.hand_to(now, message, lease, get.consumer, Terms::Held, step);
        self.reschedule(id);
        Ok(())
    }

    /// A lease has ended where its message is kept, by the word of its holder or of whoever else has the receipt: nobody holds it any more, and there is room in the
    /// window. False: it is not held here, or not any more.
    pub fn settled(&mut self, now: Time, receipt: &Receipt, step: &mut Step) -> bool {
        self.tick(now, step);
        let Some(remote) = self.remote_mut(receipt.queue) else { return false };
        let Some(slot) = remote.handed(receipt) else { return false };
        remote.take_back(slot);
        self.dispatch_all(std::iter::once(receipt.queue), step);
        true
    }

    /// Who holds what was handed with this receipt; `None`: nobody does here, or not any more.
    #[must_use]
    pub fn holder_of(&self, receipt: &Receipt) -> Option<ConsumerId> {
        let queue = self.queues.get(&receipt.queue)?;
        queue.entries[queue.handed(receipt)?].holder()
    }

    /// Whether somebody here holds this message of a queue whose messages are kept elsewhere, by whatever lease.
    #[must_use]
    pub fn is_out(&self, queue: QueueId, seq: Seq) -> bool {
        self.queues.get(&queue).is_some_and(|queue| queue.is_out(seq))
    }

    fn remote_mut(&mut self, id: QueueId) -> Option<&mut Queue> {
        self.queues.get_mut(&id).map(|queue| &mut **queue).filter(|queue| queue.is_remote())
    }
}

/// What concerns those who take: all else is seen to where the messages are kept.
fn for_takers(settings: &Settings) -> Settings {
    Settings {
        scheme: settings.scheme,
        order: settings.order.clone(),
        visibility_timeout_ms: settings.visibility_timeout_ms,
        max_unacked: settings.max_unacked,
        max_consumers: settings.max_consumers,
        consumer_timeout_ms: settings.consumer_timeout_ms,
        single_active_consumer: settings.single_active_consumer,
        ..Settings::default()
    }
}

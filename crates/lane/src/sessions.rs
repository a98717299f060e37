//! Whoever is connected: what each one has that ends with it. Sessions need no registration.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::{ConsumerId, QueueId, SessionId};

/// What a session has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Belongings {
    /// Its consumers, and what holds its leases.
    pub(crate) takers: BTreeSet<ConsumerId>,
    /// The queues that it owns.
    pub(crate) queues: BTreeSet<QueueId>,
}

/// Every session that has something, and what remains of those that have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    all: BTreeMap<SessionId, Belongings>,
    /// Takers of ended sessions that held something. What they hold is put back in this order.
    pub(crate) retired: VecDeque<ConsumerId>,
}

impl Sessions {
    pub(crate) fn take(&mut self, session: Option<SessionId>, consumer: ConsumerId) {
        if let Some(session) = session {
            self.all.entry(session).or_default().takers.insert(consumer);
        }
    }

    pub(crate) fn own(&mut self, session: SessionId, queue: QueueId) {
        self.all.entry(session).or_default().queues.insert(queue);
    }

    pub(crate) fn forget_taker(&mut self, session: Option<SessionId>, consumer: ConsumerId) {
        self.change(session, |has| has.takers.remove(&consumer));
    }

    pub(crate) fn forget_queue(&mut self, session: Option<SessionId>, queue: QueueId) {
        self.change(session, |has| has.queues.remove(&queue));
    }

    /// What a session had, which has nothing from now on.
    pub(crate) fn end(&mut self, session: SessionId) -> Belongings {
        self.all.remove(&session).unwrap_or_default()
    }

    fn change(&mut self, session: Option<SessionId>, change: impl FnOnce(&mut Belongings) -> bool) {
        let Some(session) = session else { return };
        let Some(has) = self.all.get_mut(&session) else { return };
        change(has);
        if *has == Belongings::default() {
            self.all.remove(&session);
        }
    }
}

//! The sessions as the broker thread knows them: what each is to hear, gathered so that it wakes up once a turn.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{ConsumerId, Receipt, SessionId};
use tokio::sync::mpsc;

use super::disk_thread::Told;
use crate::api::Failure;
use crate::core::Answer;
use crate::session::{Delivered, Event, leased};

/// Every session that has begun and has not ended.
#[derive(Default)]
pub(super) struct Sessions {
    all: BTreeMap<SessionId, Side>,
    consumers: BTreeMap<ConsumerId, SessionId>,
    /// Those with something to hear now.
    stirred: Vec<SessionId>,
    /// Those with something to hear once it is durable.
    waiting: Vec<SessionId>,
}

/// The engine's side of a session.
struct Side {
    to: mpsc::UnboundedSender<Vec<Event>>,
    consumers: BTreeSet<ConsumerId>,
    now: Vec<Event>,
    durable: Vec<Event>,
}

impl Sessions {
    pub(super) fn begin(&mut self, session: SessionId, to: mpsc::UnboundedSender<Vec<Event>>) {
        let side = Side { to, consumers: BTreeSet::new(), now: Vec::new(), durable: Vec::new() };
        self.all.insert(session, side);
    }

    /// Whether it has begun, and is not over.
    pub(super) fn is_there(&self, session: SessionId) -> bool {
        self.all.contains_key(&session)
    }

    /// Forgets it. Answers the consumers that it leaves behind, and what was leased and would have been heard this turn.
    pub(super) fn end(&mut self, session: SessionId) -> (BTreeSet<ConsumerId>, Vec<Receipt>) {
        let Some(side) = self.all.remove(&session) else { return Default::default() };
        for consumer in &side.consumers {
            self.consumers.remove(consumer);
        }
        (side.consumers, side.now.iter().chain(&side.durable).flat_map(leased).collect())
    }

    /// A consumer is there; nobody's but this session's.
    pub(super) fn owns(&mut self, session: SessionId, consumer: ConsumerId) {
        let Some(side) = self.all.get_mut(&session) else { return };
        if let Entry::Vacant(free) = self.consumers.entry(consumer) {
            free.insert(session);
            side.consumers.insert(consumer);
        }
    }

    /// A consumer is no more. Answers whose it was.
    pub(super) fn forget(&mut self, consumer: ConsumerId) -> Option<SessionId> {
        let session = self.consumers.remove(&consumer)?;
        if let Some(side) = self.all.get_mut(&session) {
            side.consumers.remove(&consumer);
        }
        Some(session)
    }

    /// A session has published so many messages at once: their answers will be heard together once they are durable.
    pub(super) fn expect(&mut self, session: SessionId, answers: usize) {
        if let Some(side) = self.all.get_mut(&session) {
            side.durable.reserve(answers);
        }
    }

    /// An answer, to be heard now or once it is durable. It comes back if nobody is there to hear it.
    pub(super) fn answer(
        &mut self,
        session: SessionId,
        token: u64,
        result: Result<Answer, Failure>,
        durable: bool,
    ) -> Option<Result<Answer, Failure>> {
        let Some(side) = self.all.get_mut(&session) else { return Some(result) };
        let (events, marked) =
            if durable { (&mut side.durable, &mut self.waiting) } else { (&mut side.now, &mut self.stirred) };
        if events.is_empty() {
            marked.push(session);
        }
        events.push(Event::Answer { token, result });
        None
    }

    /// A message for a consumer. One that is gone is cancelled in a moment, and gives it back.
    pub(super) fn deliver(&mut self, consumer: ConsumerId, message: Delivered) {
        if let Some(session) = self.consumers.get(&consumer) {
            self.hear(*session, Event::Deliver { consumer, message });
        }
    }

    /// A consumer held something for too long, or a `get` of this session did, or a consumer of it that has left.
    pub(super) fn timed_out(&mut self, consumer: ConsumerId, session: Option<SessionId>, receipt: Receipt) {
        if let Some(session) = self.consumers.get(&consumer).copied().or(session) {
            self.hear(session, Event::TimedOut { consumer, receipt });
        }
    }

    /// A consumer is gone with its queue.
    pub(super) fn ended(&mut self, consumer: ConsumerId) {
        if let Some(session) = self.forget(consumer) {
            self.hear(session, Event::Ended { consumer });
        }
    }

    fn hear(&mut self, session: SessionId, event: Event) {
        if let Some(side) = self.all.get_mut(&session) {
            if side.now.is_empty() {
                self.stirred.push(session);
            }
            side.now.push(event);
        }
    }

    /// Hands out what is to be heard now. Answers what was leased and not heard.
    pub(super) fn tell(&mut self) -> Vec<Receipt> {
        let mut unheard = Vec::new();
        for session in self.stirred.drain(..) {
            let Some(side) = self.all.get_mut(&session) else { continue };
            if let Err(mpsc::error::SendError(events)) = side.to.send(std::mem::take(&mut side.now)) {
                unheard.extend(events.iter().flat_map(leased));
            }
        }
        unheard
    }

    /// What is to be heard once it is durable.
    pub(super) fn take_durable(&mut self) -> Vec<Told> {
        let mut all = Vec::with_capacity(self.waiting.len());
        for session in self.waiting.drain(..) {
            if let Some(side) = self.all.get_mut(&session) {
                all.push((side.to.clone(), std::mem::take(&mut side.durable)));
            }
        }
        all
    }

    /// Whether nobody waits for anything to be durable.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Nothing can be made durable any more: everybody hears so, and then nothing.
    pub(super) fn go_down(&mut self, why: &Arc<str>) {
        for (_, Side { to, now, mut durable, .. }) in std::mem::take(self).all {
            durable.iter_mut().for_each(|event| event.fail(why));
            for events in [now, durable].into_iter().filter(|events| !events.is_empty()) {
                // Whoever no longer hears need not be told.
                let _ = to.send(events);
            }
        }
    }
}

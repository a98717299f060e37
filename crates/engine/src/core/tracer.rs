//! Spans of the messages whose producers trace them, told of by what each step brought about.
//!
//! Every fact and every delivery passes here, once, before anything is let go of. What is under way is remembered for traced messages
//! only, and for so many of them; where a wait was not seen to begin, the message itself says its trace when it is leased.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{
    Broker, Command, DeathReason, Delivery, Effect, Ending, Fact, Given, Located, Message, MessageView,
    Place, QueueId, Seq, Settled, Status, Step, public_id,
};

use super::Core;
use crate::traces::{About, Operation, Origin, Outcome, Published, Span, SpanId, TraceContext, Traces};

/// Most waits, and most leases, that are remembered at once.
const UNDER_WAY_MAX: usize = 1 << 16;

type Key = (QueueId, Seq);

/// A message that waits for its lease.
#[derive(Debug)]
struct Waiting {
    about: Arc<About>,
    since: u64,
    /// What came before.
    after: Option<SpanId>,
    /// How often it was leased.
    count: u32,
}

/// A message that is leased.
#[derive(Debug)]
struct Handled {
    about: Arc<About>,
    since: u64,
    attempt: u32,
    wait: SpanId,
}

/// What is under way.
#[derive(Debug)]
pub(super) struct Tracer {
    traces: Traces,
    origin: Origin,
    waiting: BTreeMap<Key, Waiting>,
    handled: BTreeMap<Key, Handled>,
    /// To be told once they are durable.
    published: Vec<Span>,
    /// What it means now that a message is put back.
    returned: Outcome,
    /// Some wait that are not remembered: they were there when the store was opened, or there was no room.
    is_partial: bool,
}

impl Tracer {
    /// For a store in which messages may wait already.
    pub(super) fn new(traces: Traces, origin: Origin, is_partial: bool) -> Self {
        Self {
            traces,
            origin,
            waiting: BTreeMap::new(),
            handled: BTreeMap::new(),
            published: Vec::new(),
            returned: Outcome::Lost,
            is_partial,
        }
    }

    /// What it means that a message is put back by this.
    pub(super) fn is_asked(&mut self, command: &Command) {
        use overtake_lane::Outcome as How;
        self.returned = match command {
            Command::Settle { outcome, .. } | Command::Finish { outcome, .. } => match outcome {
                How::Nack { .. } => Outcome::Failed,
                How::Ack | How::Release | How::Reject | How::Timeout => Outcome::Released,
            },
            Command::Transact { .. } => Outcome::Returned,
            _ => Outcome::Lost,
        };
    }

    /// What is put back now was lost.
    pub(super) fn time_passes(&mut self) {
        self.returned = Outcome::Lost;
    }

    fn sampled(&self, context: Option<TraceContext>) -> Option<TraceContext> {
        context.filter(|context| self.traces.samples(context))
    }

    fn wait(&mut self, waiting: Waiting) {
        if self.waiting.len() >= UNDER_WAY_MAX {
            self.is_partial = true;
            return;
        }
        self.waiting.insert((waiting.about.queue_id, waiting.about.seq), waiting);
    }

    /// The wait is over. Answers its span.
    fn tell_wait(&self, now: u64, waiting: &Waiting, attempt: u32, outcome: Outcome) -> SpanId {
        let Waiting { about, since, after, .. } = waiting;
        self.tell(now, Operation::Wait, about, *since, *after, attempt, outcome)
    }

    /// The lease is over. Answers its span.
    fn tell_handled(&self, now: u64, handled: &Handled, outcome: Outcome) -> SpanId {
        let Handled { about, since, attempt, wait } = handled;
        self.tell(now, Operation::Handle, about, *since, Some(*wait), *attempt, outcome)
    }

    #[expect(clippy::too_many_arguments, reason = "each is a field of the span")]
    fn tell(
        &self,
        now: u64,
        operation: Operation,
        about: &Arc<About>,
        start: u64,
        link: Option<SpanId>,
        attempt: u32,
        outcome: Outcome,
    ) -> SpanId {
        let span_id = self.origin.span(about, operation, attempt, start);
        let (about, outcome) = (Arc::clone(about), Some(outcome));
        let span = Span { operation, span_id, link, start, end: now.max(start), attempt, outcome, about };
        self.traces.sink().ended(span);
        span_id
    }

    /// Whatever goes on with a message is over. Answers what it was about, and the last of its spans.
    fn end(&mut self, now: u64, key: Key, outcome: Outcome) -> Option<(Arc<About>, SpanId)> {
        if let Some(handled) = self.handled.remove(&key) {
            let span = self.tell_handled(now, &handled, outcome);
            return Some((handled.about, span));
        }
        let waiting = self.waiting.remove(&key)?;
        let span = self.tell_wait(now, &waiting, waiting.count + 1, outcome);
        Some((waiting.about, span))
    }

    /// The same for what of a queue is not there any more.
    fn end_gone(&mut self, now: u64, queue: QueueId, outcome: Outcome, is_there: impl Fn(Seq) -> bool) {
        let all = (queue, Seq(0))..=(queue, Seq(u64::MAX));
        let waiting = self.waiting.range(all.clone()).map(|(key, _)| *key);
        let handled = self.handled.range(all).map(|(key, _)| *key);
        let gone: Vec<Key> = waiting.chain(handled).filter(|(_, seq)| !is_there(*seq)).collect();
        for key in gone {
            self.end(now, key, outcome);
        }
    }

    fn put_back(&mut self, now: u64, key: Key, count: u32) {
        let Some(handled) = self.handled.remove(&key) else { return };
        let span = self.tell_handled(now, &handled, self.returned);
        self.wait(Waiting { about: handled.about, since: now, after: Some(span), count });
    }
}

impl<T> Core<T> {
    /// Tells what a step was for the traces of its messages, before its effects are carried out.
    pub(super) fn trace(&mut self, step: &Step) {
        let Some(mut boxed) = self.tracer.take() else { return };
        let tracer = &mut *boxed;
        let now = tracer.traces.now();
        // Runs hold many messages, and their facts name none; nor do purges.
        let mut purged: BTreeSet<(QueueId, Outcome)> = BTreeSet::new();
        for fact in &step.facts {
            match fact {
                Fact::Stored { queue, message } => self.trace_stored(tracer, now, *queue, message, step),
                // Said of what is held still, because what it was fetched from is over.
                Fact::PutBack { queue, seq, .. } if self.is_held_on(*queue, *seq, step) => {}
                Fact::PutBack { queue, seq, count, .. } => tracer.put_back(now, (*queue, *seq), *count),
                // What is settled by being delivered was waiting: told of with its delivery.
                Fact::Settled { queue, seq, how: Settled::Acked }
                    if !tracer.handled.contains_key(&(*queue, *seq)) => {}
                Fact::Settled { queue, seq, how } => {
                    tracer.end(now, (*queue, *seq), settled(*how));
                }
                Fact::Died { queue, seq, deaths, .. } => {
                    tracer.end(now, (*queue, *seq), died(deaths.last().reason));
                }
                Fact::Replayed { queue, seq, .. } => self.trace_replayed(tracer, now, *queue, *seq),
                Fact::Moved { from, seq, to } => self.trace_moved(tracer, now, (*from, *seq), to),
                Fact::QueueDeleted { queue } => tracer.end_gone(now, *queue, Outcome::Removed, |_| false),
                Fact::RunSettled { queue, how, .. } => {
                    purged.insert((*queue, settled(*how)));
                }
                Fact::Purged { queue, .. } => {
                    purged.insert((*queue, Outcome::Removed));
                }
                _ => {}
            }
        }
        for (queue, outcome) in purged {
            let broker = &self.broker;
            tracer.end_gone(now, queue, outcome, |seq| broker.message_at(queue, seq).is_some());
        }
        for effect in &step.effects {
            if let Effect::Deliver(delivery) = effect {
                self.trace_delivered(tracer, now, delivery);
            }
        }
        self.tracer = Some(boxed);
    }

    /// Whether a message was leased before this step, and is by the same lease.
    fn is_held_on(&self, queue: QueueId, seq: Seq, step: &Step) -> bool {
        let is_leased =
            || self.broker.message_at(queue, seq).is_some_and(|view| view.status == Status::Leased);
        let is_given = |effect: &Effect| matches!(effect, Effect::Deliver(given) if (given.receipt.queue, given.receipt.seq) == (queue, seq));
        is_leased() && !step.effects.iter().any(is_given)
    }

    fn trace_stored(&self, tracer: &mut Tracer, now: u64, queue: QueueId, message: &Message, step: &Step) {
        let Some(context) = tracer.sampled(self.content(message.place).trace()) else { return };
        let span_id = tracer.origin.publish(&context, queue, message.seq);
        let about = self.about(context, queue, message, step);
        let (operation, attempt, outcome) = (Operation::Publish, 0, None);
        let publish = Span {
            operation,
            span_id,
            link: None,
            start: now,
            end: now,
            attempt,
            outcome,
            about: Arc::clone(&about),
        };
        tracer.published.push(publish);
        tracer.wait(Waiting { about, since: now, after: Some(span_id), count: message.count });
    }

    /// A dead letter waits again.
    fn trace_replayed(&self, tracer: &mut Tracer, now: u64, queue: QueueId, seq: Seq) {
        let Some(view) = self.broker.message_at(queue, seq) else { return };
        let Some(context) = tracer.sampled(self.content(view.place).trace()) else { return };
        let (count, about) = (view.count, self.about_view(context, queue, view));
        tracer.wait(Waiting { about, since: now, after: None, count });
    }

    /// A message died or was done, and is in other queues. In a history nobody waits for it.
    fn trace_moved(&self, tracer: &mut Tracer, now: u64, from: Key, to: &[Located]) {
        let Some(Located { message: first, .. }) = to.first() else { return };
        let ended = tracer.end(now, from, moved(first));
        let goes_on = |located: &&Located| located.message.record().is_none();
        for Located { queue, message } in to.iter().filter(goes_on) {
            let (context, after) = match &ended {
                Some((about, span)) => (Some(about.context.clone()), Some(*span)),
                None => (tracer.sampled(self.content(message.place).trace()), None),
            };
            let Some(context) = context else { return };
            let Some(view) = self.broker.message_at(*queue, message.seq) else { continue };
            let about = self.about_view(context, *queue, view);
            tracer.wait(Waiting { about, since: now, after, count: 0 });
        }
    }

    fn trace_delivered(&self, tracer: &mut Tracer, now: u64, delivery: &Delivery) {
        let key = (delivery.receipt.queue, delivery.receipt.seq);
        let remembered = tracer.waiting.remove(&key);
        let waiting = remembered
            .or_else(|| if tracer.is_partial { self.forgotten(tracer, key, delivery.place) } else { None });
        let Some(waiting) = waiting else { return };
        let attempt = delivery.count;
        let wait = tracer.tell_wait(now, &waiting, attempt, Outcome::Leased);
        if delivery.settled.is_some() {
            return;
        }
        if tracer.handled.len() >= UNDER_WAY_MAX {
            return tracer.traces.sink().missed(1);
        }
        tracer.handled.insert(key, Handled { about: waiting.about, since: now, attempt, wait });
    }

    /// A message whose wait was not seen to begin.
    fn forgotten(&self, tracer: &Tracer, (queue, seq): Key, place: Place) -> Option<Waiting> {
        let context = tracer.sampled(self.content(place).trace())?;
        let view = self.broker.message_at(queue, seq).filter(|view| view.record.is_none())?;
        // When it was put back is not known, and it was published elsewhere if it is a dead letter.
        let is_first = view.count <= 1 && view.deaths.is_none();
        let after = is_first.then(|| tracer.origin.publish(&context, queue, seq));
        let (since, count) = (view.since.0.saturating_mul(1_000_000), view.count);
        Some(Waiting { about: self.about_view(context, queue, view), since, after, count })
    }

    fn about(&self, context: TraceContext, queue: QueueId, message: &Message, step: &Step) -> Arc<About> {
        let is_it =
            |delivery: &&Delivery| (delivery.receipt.queue, delivery.receipt.seq) == (queue, message.seq);
        let given = || {
            let deliveries = step.effects.iter().filter_map(|effect| match effect {
                Effect::Deliver(delivery) => Some(delivery),
                _ => None,
            });
            deliveries.filter(is_it).find_map(|delivery| Some(delivery.settled.as_deref()?.view.clone()))
        };
        if let Some(view) = self.broker.message_at(queue, message.seq).or_else(given) {
            return self.about_view(context, queue, view);
        }
        // It came and went in the same step: evicted, or over at once.
        let (vhost, queue_name) = self.place_of(queue);
        Arc::new(About {
            context,
            vhost,
            queue: queue_name,
            queue_id: queue,
            seq: message.seq,
            id: public_id(message.id(), message.seq),
            priority: Given::Number(message.priority.0.into()),
            lane: "".into(),
            bytes: message.bytes,
        })
    }

    fn about_view(&self, context: TraceContext, queue_id: QueueId, view: MessageView) -> Arc<About> {
        let (vhost, queue) = self.place_of(queue_id);
        let MessageView { seq, id, priority, lane, bytes, .. } = view;
        Arc::new(About { context, vhost, queue, queue_id, seq, id, priority, lane, bytes })
    }

    /// The names of its virtual host and of it.
    fn place_of(&self, queue: QueueId) -> (Arc<str>, Arc<str>) {
        let name_of = |broker: &Broker| {
            let vhost = broker.vhost_of(queue).and_then(|vhost| broker.vhost_name(vhost).cloned());
            Some((vhost?, Arc::clone(broker.name(queue)?)))
        };
        name_of(&self.broker).unwrap_or_else(|| ("".into(), "".into()))
    }

    /// What was published since this was last taken, to be told once all that was handed out before is durable.
    pub fn take_published(&mut self) -> Published {
        match &mut self.tracer {
            // Some of it may wait for room.
            Some(tracer) if self.overdue.is_empty() && !tracer.published.is_empty() => {
                Published::of(&tracer.traces, std::mem::take(&mut tracer.published))
            }
            _ => Published::default(),
        }
    }
}

fn settled(how: Settled) -> Outcome {
    match how {
        Settled::Acked => Outcome::Acked,
        Settled::Dropped => Outcome::Dropped,
        Settled::Expired => Outcome::Expired,
        Settled::Evicted => Outcome::Evicted,
        Settled::Removed => Outcome::Removed,
        Settled::Replaced => Outcome::Replaced,
    }
}

fn died(reason: DeathReason) -> Outcome {
    match reason {
        DeathReason::Expired => Outcome::Expired,
        DeathReason::Maxlen => Outcome::Evicted,
        DeathReason::Rejected | DeathReason::DeliveryLimit | DeathReason::Timeout => Outcome::DeadLettered,
    }
}

/// Why it moved: with a record it is at its end, without one it died.
fn moved(message: &Message) -> Outcome {
    let ending = message.record().map(|record| record.ending);
    match (ending, message.death().map(|death| death.reason)) {
        (Some(Ending::Completed), _) => Outcome::Acked,
        (Some(Ending::Cancelled), None) => Outcome::Removed,
        (_, Some(reason)) => died(reason),
        (Some(Ending::Failed | Ending::Timeout | Ending::LeaseExpired), None) => Outcome::DeadLettered,
        (None, None) => Outcome::Removed,
    }
}

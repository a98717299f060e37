//! What one step did with one queue: which messages it leased, in order, and what was left.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_engine::{Delivered, LeasedMessage};
use overtake_lane::{
    ConsumerId, Given, LaneChoice, MessageView, Place, QueueId, Seq, Settings, State, Status, Time,
};

use crate::audit::Audit;
use crate::book::{Book, lane_of};
use crate::keys::Group;

/// A message that could be leased, as a picker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) lane: i64,
    pub(crate) since: Time,
    pub(crate) seq: Seq,
    /// What has its key, if it has one.
    pub(crate) group: Option<Group>,
}

/// A lease given.
#[derive(Clone, Debug)]
pub(crate) struct Lent {
    pub(crate) consumer: ConsumerId,
    /// Which lanes it takes from.
    pub(crate) lanes: LaneChoice,
    pub(crate) message: LeasedMessage,
    /// It was settled as it was given.
    pub(crate) is_given: bool,
}

impl Lent {
    /// What a consumer that stays was given, as if it had pulled it.
    pub(crate) fn delivered(consumer: ConsumerId, message: &Delivered, is_given: bool) -> Self {
        let Delivered { receipt, count, level, since, expires, .. } = *message;
        let view = MessageView {
            seq: receipt.seq,
            id: message.id(),
            scheme: None,
            priority: Given::Missing,
            given: message.given,
            level,
            lane: "".into(),
            status: Status::Leased,
            since,
            expires: expires.some(),
            due: None,
            deadline: None,
            count,
            bytes: message.content.size() as u32,
            key: message.extras.as_ref().and_then(|extras| extras.key.as_deref()).map(ToOwned::to_owned),
            key_weight: message.extras.as_ref().and_then(|extras| extras.key_weight),
            deaths: message.extras.as_ref().and_then(|extras| extras.deaths.clone()),
            work: message.extras.as_ref().and_then(|extras| extras.work.as_deref().copied()),
            record: message.extras.as_ref().and_then(|extras| extras.record.clone()),
            attempts: message.extras.as_ref().and_then(|extras| extras.attempts.clone()),
            place: Place(0),
        };
        let content = Arc::clone(&message.content);
        let message = LeasedMessage { receipt, deadline: None, message: view, content };
        Self { consumer, lanes: LaneChoice::default(), message, is_given }
    }
}

/// The leases a step gave in one queue.
pub(crate) struct Round<'a> {
    pub(crate) queue: QueueId,
    pub(crate) settings: &'a Settings,
    /// In the order in which they were given.
    pub(crate) picks: Vec<(Candidate, &'a Lent)>,
    /// What was still ready after the last one.
    pub(crate) rest: Vec<Candidate>,
    /// Dead letters arrived meanwhile, so the order of things within the step is not known; or messages move to other lanes, and it is not known which have.
    pub(crate) is_blurred: bool,
}

impl<'a> Round<'a> {
    /// The rounds of a step, by queue. `lent` is in the order of leases.
    pub(crate) fn of_step(book: &'a Book, before: &Audit, after: &Audit, lent: &'a [Lent]) -> Vec<Self> {
        let mut rounds: BTreeMap<QueueId, Self> = BTreeMap::new();
        for one in lent {
            let queue = one.message.receipt.queue;
            let Some(settings) = book.settings.get(&queue) else { continue };
            let message = &one.message.message;
            let pick = Candidate {
                lane: lane_of(settings, message.level),
                since: message.since,
                seq: message.seq,
                group: Group::of(message.key.as_deref()),
            };
            let round = rounds.entry(queue).or_insert_with(|| Self {
                queue,
                settings,
                picks: Vec::new(),
                rest: ready(book, after, queue),
                is_blurred: is_blurred(before, after, queue),
            });
            // A dead letter that came and was given for good is seen nowhere else.
            let next = before.queues.get(&queue).map_or(Seq(0), |seen| seen.next_seq);
            round.is_blurred |= one.is_given && message.deaths.is_some() && message.seq >= next;
            round.picks.push((pick, one));
        }
        rounds.into_values().collect()
    }
}

/// What is ready in a queue and leased to nobody.
pub(crate) fn ready(book: &Book, audit: &Audit, queue: QueueId) -> Vec<Candidate> {
    let (Some(seen), Some(settings)) = (audit.queues.get(&queue), book.settings.get(&queue)) else {
        return Vec::new();
    };
    let free = seen
        .messages
        .iter()
        .filter(|message| message.state == State::Ready && !book.holds.contains_key(&(queue, message.seq)));
    free.map(|message| Candidate {
        lane: lane_of(settings, message.priority),
        since: message.since,
        seq: message.seq,
        group: Group::of(message.key()),
    })
    .collect()
}

fn is_blurred(before: &Audit, after: &Audit, queue: QueueId) -> bool {
    if before.may_move(queue, after) {
        return true;
    }
    let next = before.queues.get(&queue).map_or(Seq(0), |seen| seen.next_seq);
    let seen = &after.queues[&queue];
    seen.messages
        .iter()
        .rev()
        .take_while(|message| message.seq >= next)
        .any(|message| message.home().is_some())
}

//! *Seen*: a look at messages that goes on step by step shows every message once that matched from its first step to its last (in dispatch
//! order: and stood as it stood), in its order, and none twice.

use std::collections::{BTreeMap, BTreeSet};

use overtake_engine::core::Answer;
use overtake_engine::{Browse, Refused};
use overtake_lane::{BrowseOrder, Message, QueueId, Seq, State, Status};

use crate::audit::Audit;
use crate::failure::{Checked, Promise, hold};

/// The looks that are not answered, by their tickets.
#[derive(Debug, Default)]
pub(crate) struct Looks(BTreeMap<u64, Look>);

#[derive(Debug)]
struct Look {
    queue: QueueId,
    browse: Browse,
    /// Messages that have matched ever since the look began; `None`: the simulator cannot tell what matches.
    matching: Option<BTreeSet<Seq>>,
}

impl Looks {
    pub(crate) fn begin(&mut self, ticket: u64, queue: QueueId, browse: &Browse, audit: &Audit) {
        let filter = &browse.filter;
        // An audit has no headers, and does not tell which of the ready messages a consumer holds.
        let is_known = filter.headers.is_empty()
            && filter.priority.is_none()
            && match filter.status {
                // In dispatch order a message that stands otherwise meanwhile may be missed.
                None => browse.order != BrowseOrder::Dispatch,
                Some(status) => matches!(status, Status::Delayed | Status::Dead),
            };
        let mut look = Look { queue, browse: browse.clone(), matching: None };
        let messages = audit.queues.get(&queue).map_or(&[][..], |seen| &seen.messages);
        let matching = messages.iter().filter(|message| look.takes(message)).map(|message| message.seq);
        look.matching = is_known.then(|| matching.collect());
        self.0.insert(ticket, look);
    }

    /// After a step.
    pub(crate) fn look(&mut self, audit: &Audit) {
        for look in self.0.values_mut() {
            let seen = audit.queues.get(&look.queue);
            let mut matching = look.matching.take();
            if let Some(matching) = &mut matching {
                let still =
                    |seq: &Seq| seen.and_then(|seen| seen.find(*seq)).is_some_and(|it| look.takes(it));
                matching.retain(still);
            }
            look.matching = matching;
        }
    }

    /// A look is answered.
    pub(crate) fn check(&mut self, ticket: u64, result: &Result<Answer, Refused>) -> Checked {
        let Some(Look { queue, browse, matching }) = self.0.remove(&ticket) else { return Ok(()) };
        let Ok(Answer::Page(page)) = result else { return Ok(()) };
        let seqs: Vec<Seq> = page.messages.iter().map(|shown| shown.message.seq).collect();
        let shown: BTreeSet<Seq> = seqs.iter().copied().collect();
        let is_in_order = browse.order != BrowseOrder::Published || seqs.is_sorted();
        hold(shown.len() == seqs.len() && is_in_order, Promise::Seen, || {
            format!("of queue {} messages are shown in the order {seqs:?}", queue.0)
        })?;
        let is_reached = |seq: &&Seq| match browse.order {
            BrowseOrder::Published => page.next.is_none_or(|next| seq.0 <= next.0),
            // The cursor counts what was shown.
            BrowseOrder::Dispatch => page.next.is_none(),
            BrowseOrder::Newest => false,
        };
        let missing = matching.iter().flatten().filter(is_reached).find(|seq| !shown.contains(seq));
        hold(missing.is_none(), Promise::Seen, || {
            format!("of queue {} message {missing:?} is not shown: {seqs:?}, next {:?}", queue.0, page.next)
        })
    }

    /// The engine is gone, and whoever looked is told so.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

impl Look {
    fn takes(&self, message: &Message) -> bool {
        let filter = &self.browse.filter;
        let stands = match filter.status {
            Some(Status::Delayed) => matches!(message.state, State::Delayed { .. }),
            Some(Status::Dead) => message.state == State::Dead,
            _ => true,
        };
        stands && filter.key.as_deref().is_none_or(|key| message.key() == Some(key))
    }
}

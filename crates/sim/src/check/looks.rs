//! *Seen*: a look at messages that goes on step by step shows every message once that matched from its first step to its last (in dispatch
//! order: and stood as it stood), in its order, and none twice. A change of many messages that goes on so has changed every such message.

use std::collections::{BTreeMap, BTreeSet};

use overtake_engine::core::{Answer, Request};
use overtake_engine::{Browse, PageCursor, Refused, Select, Started};
use overtake_lane::{Broker, BrowseOrder, Command, Message, QueueId, Seq, State, Status, Which};

use crate::audit::Audit;
use crate::book::asked_by;
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
    /// Of a change, what it does, and to which messages it was done.
    change: Option<(&'static str, BTreeSet<Seq>)>,
}

impl Looks {
    /// Somebody asks for something, which may be a look, or a change of many messages.
    pub(crate) fn asked(&mut self, ticket: u64, request: &Request, broker: &Broker, audit: &Audit) {
        let (asker, request) = asked_by(request);
        let (queue, browse, change) = match request {
            Request::Browse { queue, browse } => (queue, browse.clone(), None),
            Request::Change { queue, select: Select::Matching(filter), change, .. } => {
                let order = BrowseOrder::Published;
                let browse = Browse { filter: filter.clone(), order, ..Browse::default() };
                (queue, browse, Some((change.name(), BTreeSet::new())))
            }
            _ => return,
        };
        if let Ok(queue) = broker.id_of(asker.vhost, queue) {
            let mut look = Look { queue, browse, matching: None, change };
            look.matching = look.is_known().then(|| look.matching(audit));
            self.0.insert(ticket, look);
        }
    }

    /// Messages were changed, as one step of such a change.
    pub(crate) fn changed(&mut self, request: &Request, broker: &Broker) {
        let (asker, Request::Do(command)) = asked_by(request) else { return };
        let Some((name, queue, Which::Seqs(seqs))) = change_of(command) else { return };
        let Ok(queue) = broker.id_of(asker.vhost, queue) else { return };
        for look in self.0.values_mut().filter(|look| look.queue == queue) {
            if let Some((_, changed)) = look.change.as_mut().filter(|(other, _)| *other == name) {
                changed.extend(seqs);
            }
        }
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
        let Some(Look { queue, browse, matching, change }) = self.0.remove(&ticket) else { return Ok(()) };
        if let (Some((name, changed)), Ok(Answer::Count(_) | Answer::Started(Started::Done(_)))) =
            (&change, result)
        {
            let left_out = matching.iter().flatten().find(|seq| !changed.contains(seq));
            return hold(left_out.is_none(), Promise::Seen, || {
                format!("a {name} of queue {} leaves out message {left_out:?}", queue.0)
            });
        }
        let Ok(Answer::Page(page)) = result else { return Ok(()) };
        let seqs: Vec<Seq> = page.messages.iter().map(|shown| shown.message.seq).collect();
        let shown: BTreeSet<Seq> = seqs.iter().copied().collect();
        let is_in_order = browse.order != BrowseOrder::Published || seqs.is_sorted();
        hold(shown.len() == seqs.len() && is_in_order, Promise::Seen, || {
            format!("of queue {} messages are shown in the order {seqs:?}", queue.0)
        })?;
        let is_reached = |seq: &&Seq| match browse.order {
            BrowseOrder::Published => {
                page.next.as_ref().is_none_or(|next| matches!(next, PageCursor::After(last) if *seq <= last))
            }
            // The cursor does not tell which messages it has passed.
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
    /// Whether an audit tells what matches: it has no headers, and does not tell which of the ready messages a consumer holds.
    fn is_known(&self) -> bool {
        let filter = &self.browse.filter;
        filter.headers.is_empty()
            && filter.priority.is_none()
            && match filter.status {
                // In dispatch order a message that stands otherwise meanwhile may be missed.
                None => self.browse.order != BrowseOrder::Dispatch,
                Some(status) => matches!(status, Status::Delayed | Status::Dead),
            }
    }

    /// The messages that match now.
    fn matching(&self, audit: &Audit) -> BTreeSet<Seq> {
        let messages = audit.queues.get(&self.queue).map_or(&[][..], |seen| &seen.messages);
        messages.iter().filter(|message| self.takes(message)).map(|message| message.seq).collect()
    }

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

/// What a command does to which messages of a queue.
fn change_of(command: &Command) -> Option<(&'static str, &str, &Which)> {
    match command {
        Command::Reprioritise { queue, which, .. } => Some(("reprioritise", queue, which)),
        Command::Remove { queue, which } => Some(("remove", queue, which)),
        Command::CancelMessages { queue, which } => Some(("cancel", queue, which)),
        Command::Replay { queue, which, .. } => Some(("replay", queue, which)),
        _ => None,
    }
}

/// A planted bug: of the messages that a command is about, the last is forgotten.
pub(crate) fn leave_one_out(request: &mut Request) {
    let asked = match request {
        Request::By { request, .. } => &mut **request,
        request => request,
    };
    if let Request::Do(
        Command::Reprioritise { which: Which::Seqs(seqs), .. }
        | Command::Remove { which: Which::Seqs(seqs), .. }
        | Command::CancelMessages { which: Which::Seqs(seqs), .. }
        | Command::Replay { which: Which::Seqs(seqs), .. },
    ) = asked
    {
        seqs.pop();
    }
}

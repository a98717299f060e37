//! *Budget*: what happens by itself, because its time has come or a queue has too many messages, happens a few messages a step, so that
//! whoever asks for something waits for no more than those; and a step of a look looks at a few.

use std::collections::BTreeSet;

use overtake_lane::{Message, QueueId, Seq, State};

use crate::audit::Audit;
use crate::book::Book;
use crate::failure::{Checked, Promise, hold};

/// Set in the place of a message whose content is on the shelf: all of a run may go as one.
const ON_SHELF: u64 = 1 << 63;

/// A step in which time passed, and which may have ended or moved so many messages at most. What it leased is not among them, nor what it
/// has `given` for good.
pub(crate) fn check_tick(
    book: &Book,
    before: &Audit,
    after: &Audit,
    given: &BTreeSet<(QueueId, Seq)>,
    step_max: usize,
) -> Checked {
    let is_moved = |message: &Message, now: Option<&Message>| match (message.state, now.map(|now| now.state))
    {
        (State::Ready, Some(State::Ready | State::Leased { .. })) => false,
        (State::Ready, None) => message.place.0 & ON_SHELF == 0,
        (was, now) => Some(was) != now,
    };
    let mut moved = Vec::new();
    for (queue, seen) in &before.queues {
        let Some(now) = after.queues.get(queue) else { continue };
        let here = seen.messages.iter().filter(|message| {
            is_moved(message, now.find(message.seq)) && !given.contains(&(*queue, message.seq))
        });
        // A message that comes from another queue may push out one, and replace another.
        let replaces = book.settings.get(queue).is_some_and(|settings| settings.last_value.is_some());
        let came = (now.next_seq.0 - seen.next_seq.0) * (1 + u64::from(replaces));
        let change = |message: &Message| {
            let state = now.find(message.seq).map(|now| now.state);
            (*queue, message.seq, message.state, state)
        };
        moved.extend(here.skip(came as usize).map(change));
    }
    hold(moved.len() <= step_max, Promise::Budget, || {
        format!("{moved:?} ended, came due or were put back in one step, which may do that to {step_max}")
    })
}

/// A step of a look, or of a change of many messages, that may look at so many and has looked at so many. It may take the messages that are leased, delayed or dead four at a
/// time, and find those of a page a second time where not all of them fit.
pub(crate) fn check_looks(looks: usize, looked: u64) -> Checked {
    hold(looked <= 8 * looks as u64, Promise::Budget, || {
        format!("a step that may look at {looks} messages has looked at {looked}")
    })
}

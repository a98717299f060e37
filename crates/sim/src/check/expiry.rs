//! *Expiry*: nothing is delivered after it expired or before it is due, no lease outlives its deadline, and what a
//! message's time to live is was settled when it was published.

use overtake_engine::NewMessage;
use overtake_lane::{Settings, State, Time};

use crate::audit::Audit;
use crate::book::Book;
use crate::check::Step;
use crate::failure::{Checked, Promise, hold};
use crate::round::Lent;

/// Each lease of a step.
pub(crate) fn check_lent(step: &Step<'_>, lent: &Lent) -> Checked {
    let message = &lent.message.message;
    let receipt = lent.message.receipt;
    // What is taken in the step in which it comes may be over in it.
    let is_new = |expires: Time| expires == step.now && message.since == step.now;
    let is_in_time = message.expires.is_none_or(|expires| expires > step.now || is_new(expires));
    hold(is_in_time, Promise::Expiry, || {
        format!("{receipt} is delivered at {} though it expired at {:?}", step.now.0, message.expires)
    })?;
    let due = match step.before.find(receipt.queue, receipt.seq).map(|message| message.state) {
        Some(State::Delayed { due }) => due,
        _ => Time(0),
    };
    hold(due <= step.now, Promise::Expiry, || {
        format!("{receipt} is delivered at {} though it is due at {}", step.now.0, due.0)
    })
}

/// What stands in the broker once time has passed.
pub(crate) fn check_standing(book: &Book, now: Time, audit: &Audit) -> Checked {
    for (queue, message) in audit.messages() {
        let until = match message.state {
            State::Ready => book
                .holds
                .get(&(queue, message.seq))
                .map_or(message.expires, |hold| hold.until.min(hold.work_ends)),
            State::Delayed { due } => due.min(message.expires),
            State::Leased { deadline, .. } => message.work().map_or(deadline, |work| deadline.min(work.ends)),
            State::Dead => Time::NEVER,
        };
        hold(until > now, Promise::Expiry, || {
            format!(
                "message {} of queue {} is {:?} at {} until {}",
                message.seq.0, queue.0, message.state, now.0, until.0
            )
        })?;
    }
    Ok(())
}

/// When a message that is published now expires. What its route says stands in for its queue and the broker.
pub(crate) fn expected(
    now: Time,
    settings: &Settings,
    default_ttl_ms: u64,
    message: &NewMessage,
    route_ttl_ms: Option<u64>,
) -> Time {
    let base = if settings.ttl_ms > 0 { settings.ttl_ms } else { default_ttl_ms };
    let base = route_ttl_ms.unwrap_or(base);
    let set = [base, settings.max_ttl_ms].into_iter().filter(|ms| *ms > 0);
    let ends_at_once = settings.evict_at_once || (settings.expire_at_once && route_ttl_ms.is_none());
    let set = set.chain(message.ttl_ms).chain(ends_at_once.then_some(0));
    set.min().map_or(Time::NEVER, |ms| now.after(ms))
}

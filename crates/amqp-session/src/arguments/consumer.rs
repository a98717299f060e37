//! A consumer as a client starts it.

use std::sync::Arc;

use overtake_amqp::connection::{Consume, Refused};
use overtake_engine::{ConsumeRequest, Holder};
use overtake_lane::{Given, Scheme, UrgentCredit};
use serde::Deserialize;

use super::Arguments;

/// Messages that a consumer without acknowledgements may have unread: enough to keep a wire busy.
const UNREAD_MAX: u32 = 1_000;

/// `x-urgent-credit`: extra window, and for whom. A table `{"from": 7, "messages": 1}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Urgent {
    /// The least urgent priority that may use it, in the words of the queue's scheme.
    from: Given,
    /// So many messages beyond the window.
    messages: u32,
}

impl Urgent {
    /// As the queue understands it.
    pub(crate) fn credit(&self, scheme: Scheme, queue: &str) -> Result<UrgentCredit, Refused> {
        let at = scheme.map(&self.from).map_err(|refusal| {
            let text =
                format!("invalid arg 'x-urgent-credit' for queue '{queue}': {refusal}; {}", refusal.hint());
            Refused::because(overtake_amqp::ReplyCode::PreconditionFailed, text)
        })?;
        Ok(UrgentCredit { at, extra: self.messages })
    }
}

/// The extra window that the client wants.
pub(crate) fn urgent(consume: &Consume, vhost: &str) -> Result<Option<Urgent>, Refused> {
    Arguments::new(consume.arguments.view(), "queue", &consume.queue, vhost).setting("x-urgent-credit")
}

/// The request of a client that consumes this queue. A prefetch of 0 is no limit by count: the bytes that the connection has not read are bounded.
/// `holder` is who wants it.
pub(crate) fn consume(consume: &Consume, queue: &str, holder: Holder) -> ConsumeRequest {
    let window = match (consume.no_ack, consume.prefetch) {
        (true, _) => Some(UNREAD_MAX),
        (false, 0) => None,
        (false, prefetch) => Some(prefetch.into()),
    };
    ConsumeRequest {
        window,
        priority: consume.priority,
        shared: consume.shared.map(u32::from),
        exclusive: consume.exclusive,
        no_ack: consume.no_ack,
        holder: Some(Arc::new(Holder { consumer_tag: Some(consume.tag.as_str().into()), ..holder })),
        ..ConsumeRequest::new(queue.into())
    }
}

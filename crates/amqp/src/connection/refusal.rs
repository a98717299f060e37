//! The broker's "no", in the words of the wire: one code for each refusal.

use overtake_lane::Refusal;

use super::asks::{DeclareExchange, DeclareQueue, Destination, Operation, Refused};
use crate::reply::ReplyCode;
use crate::violation::Violation;

/// What RabbitMQ answers where the broker refuses so.
pub(super) fn reply(refusal: Refusal) -> ReplyCode {
    match refusal {
        Refusal::NoSuchQueue
        | Refusal::NoSuchOrphan
        | Refusal::NoSuchExchange
        | Refusal::NoSuchBinding
        | Refusal::NoSuchMessage
        | Refusal::NoSuchPolicy
        | Refusal::NoSuchVhost => ReplyCode::NotFound,
        Refusal::ExchangeReserved
        | Refusal::ExchangeInternal
        | Refusal::ConsumerExclusive
        | Refusal::VhostReserved => ReplyCode::AccessRefused,
        Refusal::QueueLocked => ReplyCode::ResourceLocked,
        Refusal::NameInvalid
        | Refusal::ExchangeDiffers(_)
        | Refusal::ExchangeInUse
        | Refusal::QueueDiffers
        | Refusal::CountDiffers { .. }
        | Refusal::ImportPriorityMissing { .. }
        | Refusal::WeightInvalid
        | Refusal::ArgumentsInvalid
        | Refusal::SettingFixed(_)
        | Refusal::HistoryCircular
        | Refusal::NotEmpty
        | Refusal::InUse
        | Refusal::PriorityOutOfRange
        | Refusal::PriorityUnknown
        | Refusal::MessageTooLarge
        | Refusal::TooLargeAtOnce
        | Refusal::IdInvalid
        | Refusal::IdPending
        | Refusal::KeyInvalid
        | Refusal::KeyWeightInvalid
        | Refusal::KeyWeightAlone
        | Refusal::KeyMissing
        | Refusal::StaleReceipt
        | Refusal::CancelAsked
        | Refusal::ReportTooLarge
        | Refusal::Leased
        | Refusal::Dead
        | Refusal::NotDead
        | Refusal::QueueFull
        | Refusal::BelowPriority
        | Refusal::TooManyLanes
        | Refusal::TooManyCopies
        | Refusal::TooManyConsumers
        | Refusal::QueueExists
        | Refusal::TooManyQueues
        | Refusal::VhostQueuesMax
        | Refusal::TooManyVhosts
        | Refusal::VhostInvalid
        | Refusal::MetadataInvalid
        | Refusal::MetadataFull
        | Refusal::PolicyInvalid
        | Refusal::TooManyPolicies
        | Refusal::StoreFull => ReplyCode::PreconditionFailed,
        Refusal::Unroutable => ReplyCode::NoRoute,
        Refusal::ConsumerKnown | Refusal::NoSuchConsumer => ReplyCode::InternalError,
    }
}

/// Whether a publish that is refused so is answered with `basic.nack`, and costs nothing else: it may be taken later.
pub(super) fn is_for_now(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::QueueFull
            | Refusal::BelowPriority
            | Refusal::TooManyLanes
            | Refusal::TooManyCopies
            | Refusal::StoreFull
    )
}

/// What an operation is about, for texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) queue: String,
    pub(super) exchange: String,
}

impl Subject {
    pub(super) fn of(operation: &Operation) -> Self {
        let queue = |name: &str| Self { queue: name.to_owned(), ..Self::default() };
        let exchange = |name: &str| Self { exchange: name.to_owned(), ..Self::default() };
        match operation {
            Operation::DeclareExchange(DeclareExchange { name, .. })
            | Operation::DeleteExchange { name, .. } => exchange(name),
            Operation::DeclareQueue(DeclareQueue { name, .. })
            | Operation::DeleteQueue { name, .. }
            | Operation::PurgeQueue { name } => queue(name),
            Operation::Bind(link) | Operation::Unbind(link) => match &link.destination {
                Destination::Queue(name) => Self { queue: name.clone(), exchange: link.source.clone() },
                Destination::Exchange(name) => exchange(&format!("{}' or '{name}", link.source)),
            },
            Operation::Consume(consume) => queue(&consume.queue),
            Operation::Get { queue: name, .. } => queue(name),
            Operation::Cancel { .. } | Operation::Transact { .. } => Self::default(),
        }
    }
}

/// What it costs, in the words that clients know (RabbitMQ's).
pub(super) fn violation(refused: Refused, subject: &Subject, vhost: &str) -> Violation {
    match refused {
        Refused::Declined(refusal) => Violation::of(reply(refusal), text(refusal, subject, vhost)),
        Refused::Because { code, text } => Violation::of(code, text),
    }
}

fn text(refusal: Refusal, subject: &Subject, vhost: &str) -> String {
    let Subject { queue, exchange } = subject;
    let is_known = |name: &str| !name.is_empty();
    match refusal {
        Refusal::NoSuchQueue if is_known(queue) => format!("no queue '{queue}' in vhost '{vhost}'"),
        Refusal::NoSuchExchange if is_known(exchange) => {
            format!("no exchange '{exchange}' in vhost '{vhost}'")
        }
        Refusal::NoSuchVhost => format!("vhost '{vhost}' not found"),
        Refusal::QueueLocked => format!(
            "cannot obtain exclusive access to locked queue '{queue}' in vhost '{vhost}'. It could be originally declared \
             on another connection or the exclusive property value does not match that of the original declaration."
        ),
        Refusal::ConsumerExclusive => format!("queue '{queue}' in vhost '{vhost}' in exclusive use"),
        Refusal::NotEmpty => format!("queue '{queue}' in vhost '{vhost}' not empty"),
        Refusal::InUse => format!("queue '{queue}' in vhost '{vhost}' in use"),
        Refusal::ExchangeInUse => format!("exchange '{exchange}' in vhost '{vhost}' in use"),
        Refusal::ExchangeReserved if exchange.is_empty() => {
            "operation not permitted on the default exchange".to_owned()
        }
        Refusal::ExchangeReserved => {
            let prefix = exchange.split('.').next().unwrap_or_default();
            format!("exchange name '{exchange}' contains reserved prefix '{prefix}.*'")
        }
        Refusal::ExchangeInternal => {
            format!("cannot publish to internal exchange '{exchange}' in vhost '{vhost}'")
        }
        refusal => format!("{refusal}; {}", refusal.hint()),
    }
}

//! The broker's "no", in the words of the wire: one code for each refusal.

use overtake_lane::Refusal;

use super::asks::Refused;
use super::violation::Violation;
use crate::reply::ReplyCode;

/// What RabbitMQ answers where the broker refuses so.
pub(super) fn reply(refusal: Refusal) -> ReplyCode {
    match refusal {
        Refusal::NoSuchQueue | Refusal::NoSuchExchange | Refusal::NoSuchBinding | Refusal::NoSuchMessage => {
            ReplyCode::NotFound
        }
        Refusal::ExchangeReserved | Refusal::ExchangeInternal => ReplyCode::AccessRefused,
        Refusal::NameInvalid
        | Refusal::ExchangeDiffers(_)
        | Refusal::ExchangeInUse
        | Refusal::WeightInvalid
        | Refusal::ArgumentsInvalid
        | Refusal::SettingFixed(_)
        | Refusal::NotEmpty
        | Refusal::InUse
        | Refusal::PriorityOutOfRange
        | Refusal::PriorityUnknown
        | Refusal::MessageTooLarge
        | Refusal::IdInvalid
        | Refusal::IdPending
        | Refusal::KeyInvalid
        | Refusal::KeyMissing
        | Refusal::StaleReceipt
        | Refusal::Leased
        | Refusal::Dead
        | Refusal::NotDead
        | Refusal::QueueFull
        | Refusal::BelowPriority
        | Refusal::TooManyLanes
        | Refusal::TooManyCopies
        | Refusal::TooManyQueues => ReplyCode::PreconditionFailed,
        Refusal::Unroutable => ReplyCode::NoRoute,
        Refusal::StoreFull => ReplyCode::ResourceError,
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

/// What it costs.
pub(super) fn violation(refused: Refused) -> Violation {
    let text = refused.text.unwrap_or_else(|| format!("{}; {}", refused.refusal, refused.refusal.hint()));
    Violation::of(reply(refused.refusal), text)
}

//! Exchanges that are the broker's own: one publishes to them, and can do nothing else with them.

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::Refused;
use overtake_engine::ROUTES_EXCHANGE;

use crate::control;

/// Their names.
const OWN: [&str; 2] = [control::EXCHANGE, ROUTES_EXCHANGE];

/// Whether an exchange is the broker's own.
pub(crate) fn is_own(exchange: &str) -> bool {
    OWN.contains(&exchange)
}

/// Refuses what would make, bind or delete one of them.
pub(crate) fn check_not_own(exchange: &str) -> Result<(), Refused> {
    if !is_own(exchange) {
        return Ok(());
    }
    Err(Refused::because(ReplyCode::AccessRefused, format!("operation not permitted on {exchange}")))
}

//! What librdkafka says about its connections, and what to do about it.
//!
//! It connects on its own, as often as it likes, and says what went wrong on the side. Who waits for it in vain asks here for the reason.

use std::sync::{Mutex, PoisonError};

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use tokio::sync::Notify;

/// The last that went wrong, since something went well.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    last: Mutex<Option<String>>,
    unreachable: Notify,
}

impl Trouble {
    pub(crate) fn heard(&self, error: &KafkaError, reason: &str) {
        tracing::debug!("librdkafka: {error}: {reason}");
        if error.rdkafka_error_code() == Some(Code::AllBrokersDown) {
            self.unreachable.notify_one();
        } else {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(told(error, reason));
        }
    }

    /// Something went well.
    pub(crate) fn is_over(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn last(&self) -> Option<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends when no broker can be reached, and says why.
    pub(crate) async fn unreachable(&self) -> String {
        self.unreachable.notified().await;
        self.last().unwrap_or_else(|| "no broker can be reached".to_owned())
    }
}

fn told(error: &KafkaError, reason: &str) -> String {
    match error.rdkafka_error_code().and_then(advice) {
        Some(advice) => format!("{reason}: {advice}"),
        None => reason.to_owned(),
    }
}

/// What to do about it.
pub(crate) fn advice(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::BrokerTransportFailure => "is it up, and what `brokers` names?",
        Code::Resolve => "is `brokers` written as its name is?",
        Code::SSL => "see `tls.ca_file` and `security_protocol`",
        Code::Authentication | Code::SaslAuthenticationFailed => {
            "see `sasl_mechanism`, `username` and `password`"
        }
        Code::TopicAuthorizationFailed | Code::GroupAuthorizationFailed => "let the user do that in Kafka",
        Code::UnknownTopicOrPartition | Code::UnknownTopic => "create it in Kafka, or name another one",
        _ => return None,
    })
}

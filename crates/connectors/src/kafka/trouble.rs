//! What librdkafka says about its connections, and what to do about it.
//!
//! It connects on its own, as often as it likes, and says what went wrong on the side. Who waits for it in vain asks here for the reason.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use tokio::sync::Notify;

/// What went wrong since something went well.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    state: Mutex<State>,
    outage: Notify,
}

#[derive(Debug, Default)]
struct State {
    last: Option<String>,
    /// Said of a connection that was idle, too, and then without a reason.
    all_down: bool,
}

impl Trouble {
    pub(crate) fn heard(&self, error: &KafkaError, reason: &str) {
        tracing::debug!("librdkafka: {error}: {reason}");
        let mut state = self.state();
        match error.rdkafka_error_code() {
            Some(Code::AllBrokersDown) => state.all_down = true,
            code => state.last = Some(told(code, reason)),
        }
        if state.outage().is_some() {
            self.outage.notify_one();
        }
    }

    /// Something went well.
    pub(crate) fn is_over(&self) {
        *self.state() = State::default();
    }

    pub(crate) fn last(&self) -> Option<String> {
        self.state().last.clone()
    }

    /// Why no broker can be reached, if none can.
    pub(crate) fn outage(&self) -> Option<String> {
        self.state().outage()
    }

    /// Ends when no broker can be reached, and says why.
    pub(crate) async fn until_outage(&self) -> String {
        loop {
            self.outage.notified().await;
            if let Some(why) = self.outage() {
                return why;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The reason comes before or after.
    fn outage(&self) -> Option<String> {
        self.last.clone().filter(|_| self.all_down)
    }
}

fn told(code: Option<Code>, reason: &str) -> String {
    // A handshake that fails is first told as a connection that does.
    let code = if reason.contains("SSL") { Some(Code::SSL) } else { code };
    match code.and_then(advice) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(all: &[(Code, &str)]) -> Trouble {
        let trouble = Trouble::default();
        all.iter().for_each(|(code, reason)| trouble.heard(&KafkaError::Global(*code), reason));
        trouble
    }

    #[test]
    fn an_outage_is_one_with_its_reason_whichever_is_told_first() {
        let (down, refused) =
            ((Code::AllBrokersDown, "1/1"), (Code::BrokerTransportFailure, "kafka: refused"));
        let why = Some("kafka: refused: is it up, and what `brokers` names?".to_owned());
        assert_eq!(heard(&[down, refused]).outage(), why);
        assert_eq!(heard(&[refused, down]).outage(), why);
        assert_eq!(heard(&[refused]).outage(), None, "one of several");
        assert_eq!(heard(&[down]).outage(), None, "an idle connection");
        let trouble = heard(&[refused, down]);
        trouble.is_over();
        assert_eq!((trouble.outage(), trouble.last()), (None, None));
    }

    #[test]
    fn a_handshake_that_fails_is_not_a_broker_that_is_down() {
        let failed = "kafka: SSL routines::certificate verify failed (in state SSL_HANDSHAKE)";
        let last = heard(&[(Code::BrokerTransportFailure, failed)]).last();
        assert!(
            last.as_ref().is_some_and(|last| last.ends_with("see `tls.ca_file` and `security_protocol`")),
            "{last:?}"
        );
    }
}

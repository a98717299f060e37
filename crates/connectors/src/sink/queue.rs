//! A queue or an exchange of this broker as a receiver.

use overtake_engine::{Connection, Failure, NewMessage, Target};
use overtake_forward::Answer;
use overtake_lane::{Outcome, Refusal};
use serde::{Deserialize, Serialize};

use super::{Link, LinkError, Sink, Work};
use crate::outbox::Outbox;
use crate::outgoing::Outgoing;

/// A queue of this broker, or an exchange, in the same virtual host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueReceiver {
    /// The queue; or, where an exchange is named, the routing key.
    pub name: String,
    /// The exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<String>,
}

pub(crate) struct QueueSink {
    engine: Connection,
    receiver: QueueReceiver,
}

impl QueueReceiver {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn check(&self, queue: &str) -> Result<(), String> {
        if self.exchange.is_none() && self.name.is_empty() {
            return Err("`name` must be a queue, or `exchange` an exchange".to_owned());
        }
        if self.exchange.is_none() && self.name == queue {
            return Err(format!("{queue} would be sent to itself"));
        }
        Ok(())
    }

    /// What the broker says, with the queue or the exchange that it is about.
    fn said(&self, why: impl std::fmt::Display) -> String {
        format!("{}: {why}", self.exchange.as_ref().unwrap_or(&self.name))
    }

    pub(crate) fn sink(&self, engine: &Connection) -> QueueSink {
        QueueSink { engine: engine.clone(), receiver: self.clone() }
    }
}

impl Sink for QueueSink {
    fn connect(&self) -> Work<'_, Result<Box<dyn Link>, LinkError>> {
        Box::pin(async {
            let QueueReceiver { name, exchange } = &self.receiver;
            let there = match exchange {
                Some(exchange) => self.engine.exchange(exchange).await.map(drop),
                None => self.engine.check_queue(name).await.map(drop),
            };
            there.map_err(|failure| self.receiver.said(failure))?;
            let link = QueueLink { engine: self.engine.clone(), receiver: self.receiver.clone() };
            Ok(Box::new(link) as Box<dyn Link>)
        })
    }
}

struct QueueLink {
    engine: Connection,
    receiver: QueueReceiver,
}

impl QueueLink {
    fn copy(&self, message: &Outgoing, now: overtake_lane::Time) -> NewMessage {
        let QueueReceiver { name, exchange } = &self.receiver;
        let to = match exchange {
            None => Target::Queue(name.as_str().into()),
            Some(exchange) => Target::Exchange {
                name: exchange.as_str().into(),
                routing_key: name.as_str().into(),
                more_keys: Vec::new(),
                mandatory: true,
            },
        };
        NewMessage {
            to,
            priority: message.priority(),
            id: Some(message.id().into_owned()),
            key: message.key().map(ToOwned::to_owned),
            key_weight: message.key_weight(),
            ttl_ms: message.expires().some().map(|at| at.since(now).max(1)),
            content: (*message.leased().content).clone(),
            ..NewMessage::default()
        }
    }
}

impl Link for QueueLink {
    fn send<'a>(&'a mut self, outbox: &'a mut Outbox<'_>) -> Work<'a, Result<(), LinkError>> {
        Box::pin(async move {
            while let Some(at) = outbox.next() {
                let message = outbox.get(at);
                let bytes = message.leased().content.size() as u64;
                // In one: no crash leaves it in both queues, or in none.
                let copy = vec![self.copy(message, outbox.now())];
                let moved = self.engine.transact(copy, vec![(message.receipt(), Outcome::Ack)]).await;
                let answer = match moved {
                    Ok(_) => Answer::Accepted { bytes },
                    Err(Failure::Refused(refused)) if is_for_good(refused.refusal) => {
                        Answer::Refused { why: self.receiver.said(refused.refusal).into() }
                    }
                    Err(Failure::Refused(refused)) => {
                        Answer::Failed { busy_ms: None, why: self.receiver.said(refused.refusal).into() }
                    }
                    Err(failure @ Failure::Unavailable(_)) => return Err(failure.to_string().into()),
                };
                outbox.answer(at, answer);
            }
            Ok(())
        })
    }
}

/// Whether the same message would be refused again.
fn is_for_good(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::MessageTooLarge
            | Refusal::TooLargeAtOnce
            | Refusal::KeyMissing
            | Refusal::KeyInvalid
            | Refusal::KeyWeightInvalid
            | Refusal::KeyWeightAlone
            | Refusal::IdInvalid
            | Refusal::PriorityOutOfRange
            | Refusal::PriorityUnknown
    )
}

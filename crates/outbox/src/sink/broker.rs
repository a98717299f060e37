//! An Overtake broker: what is published is confirmed once it is on its disk. Other brokers of AMQP 0-9-1 with confirms take it, too.

use std::time::{Duration, Instant};

use overtake_client::{Client, Confirm, ConnectOptions, Error, Message, To};
use overtake_lane::Scheme;
use tokio::time::timeout_at;

use super::{Answer, Sink, envelope};
use crate::row::{Outcome, Row};

/// The header with the scheme of a message's priority, by which each queue takes what is as urgent in its own.
const PRIORITY_SCHEME: &str = "x-overtake-priority-scheme";
/// The header with a row's metadata.
const METADATA: &str = "x-metadata";
/// How long confirms may take, where the claim's lock leaves so much: a broker that is started again is back by then, and the client with it.
const PATIENCE: Duration = Duration::from_secs(10);
/// No such exchange, and no right to it: an operator may change both, so the row waits.
const MAY_CHANGE: [u16; 2] = [404, 403];

/// What a message's body is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// The column `data` as it is; the metadata are in the header `x-metadata`.
    #[default]
    Data,
    /// `{"data": …, "metadata": …}`.
    Envelope,
}

/// How rows become messages. In names, `{stream}` and `{type}` stand for the row's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSettings {
    /// The exchange; empty: the routing key is the name of a queue.
    pub exchange: String,
    /// By which the exchange knows where it goes.
    pub routing_key: String,
    /// Whether a message that no queue gets counts as failed, and is tried again.
    pub is_mandatory: bool,
    /// What the body is.
    pub body: Body,
    /// What is said of the body's type; empty: nothing.
    pub content_type: String,
    /// The scheme of the rows' priorities.
    pub priority_scheme: Scheme,
}

impl Default for BrokerSettings {
    fn default() -> Self {
        Self {
            exchange: "{stream}".to_owned(),
            routing_key: "{stream}".to_owned(),
            is_mandatory: true,
            body: Body::Data,
            content_type: "application/json".to_owned(),
            priority_scheme: Scheme::Signed,
        }
    }
}

/// A broker, reached whenever it is needed.
pub struct BrokerSink {
    options: ConnectOptions,
    settings: BrokerSettings,
    client: Option<Client>,
}

impl BrokerSink {
    /// Rows become messages of the broker that is there.
    #[must_use]
    pub fn new(options: ConnectOptions, settings: BrokerSettings) -> Self {
        // The relay itself connects again, and says why it could not.
        Self { options: options.login_retry(None), settings, client: None }
    }

    async fn publish_all(&mut self, rows: &[&Row], until: Instant) -> Vec<Outcome> {
        let Some(client) = &self.client else {
            return vec![Outcome::Lost("there is no connection to the broker".to_owned()); rows.len()];
        };
        let until = until.min(Instant::now() + PATIENCE).into();
        let mut sent: Vec<Result<Confirm, Outcome>> = Vec::with_capacity(rows.len());
        for row in rows {
            let confirm = match self.settings.letter(row) {
                Err(why) => Err(Outcome::Refused(why)),
                Ok(Letter { exchange, routing_key, message }) => {
                    let to = To::exchange(&exchange, &routing_key);
                    let to = if self.settings.is_mandatory { to.mandatory() } else { to };
                    match timeout_at(until, client.send(to, message)).await {
                        Ok(sent) => sent.map_err(outcome),
                        Err(_) => Err(too_late()),
                    }
                }
            };
            sent.push(confirm);
        }
        let mut outcomes = Vec::with_capacity(rows.len());
        for confirm in sent {
            outcomes.push(match confirm {
                Err(outcome) => outcome,
                Ok(confirm) => match timeout_at(until, confirm).await {
                    Ok(Ok(())) => Outcome::Published,
                    Ok(Err(error)) => outcome(error),
                    Err(_) => too_late(),
                },
            });
        }
        if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Lost(_))) {
            // What it still has on its way must not be published once somebody else may have it.
            self.client = None;
        }
        outcomes
    }
}

impl Sink for BrokerSink {
    fn ready(&mut self) -> Answer<'_, Result<(), String>> {
        Box::pin(async {
            if self.client.is_none() {
                let client = Client::connect(self.options.clone()).await;
                self.client = Some(client.map_err(|error| error.to_string())?);
            }
            Ok(())
        })
    }

    fn publish<'a>(&'a mut self, rows: &'a [&'a Row], until: Instant) -> Answer<'a, Vec<Outcome>> {
        Box::pin(self.publish_all(rows, until))
    }
}

/// A row as a message, and where it goes.
struct Letter {
    exchange: String,
    routing_key: String,
    message: Message,
}

impl BrokerSettings {
    fn letter(&self, row: &Row) -> Result<Letter, String> {
        let stream = row.stream.as_ref().map_err(Clone::clone)?;
        let filled = |template: &str| template.replace("{stream}", stream).replace("{type}", &row.kind);
        let body = match self.body {
            Body::Data => row.data.clone(),
            Body::Envelope => envelope(row, row.metadata.as_deref())?,
        };
        let mut message = Message::new(body).id(&row.message_id).priority(row.priority);
        message = message.header(PRIORITY_SCHEME, self.priority_scheme.to_string().as_str());
        if !self.content_type.is_empty() {
            message = message.content_type(&self.content_type);
        }
        if !row.kind.is_empty() {
            message = message.kind(&row.kind);
        }
        if let Some(key) = &row.partition_key {
            message = message.key(key);
        }
        if let (Some(metadata), Body::Data) = (&row.metadata, self.body) {
            message = message.header(METADATA, metadata.as_str());
        }
        Ok(Letter { exchange: filled(&self.exchange), routing_key: filled(&self.routing_key), message })
    }
}

fn too_late() -> Outcome {
    Outcome::Lost("the broker did not confirm in time".to_owned())
}

fn outcome(error: Error) -> Outcome {
    let text = error.to_string();
    match error {
        Error::NotConfirmed | Error::Unroutable(_) => Outcome::Failed(text),
        Error::Refused { code, .. } if MAY_CHANGE.contains(&code) => Outcome::Failed(text),
        Error::Invalid(_) | Error::Refused { .. } => Outcome::Refused(text),
        _ => Outcome::Lost(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Key;

    fn row() -> Row {
        Row {
            key: Key::Number(1),
            message_id: "m".into(),
            stream: Ok("order".into()),
            kind: "Placed".into(),
            data: b"{\"a\": 1}".into(),
            metadata: Some("{}".into()),
            priority: 0,
            is_prioritized: true,
            partition_key: None,
            attempts: 0,
            max_attempts: None,
        }
    }

    #[test]
    fn names_are_filled_and_an_envelope_needs_json() {
        let settings = BrokerSettings {
            routing_key: "{stream}.{type}".into(),
            body: Body::Envelope,
            ..Default::default()
        };
        let letter = settings.letter(&row()).expect("a letter");
        assert_eq!((letter.exchange.as_str(), letter.routing_key.as_str()), ("order", "order.Placed"));
        assert_eq!(letter.message.body(), "{\"data\":{\"a\": 1},\"metadata\":{}}");
        let why = settings.letter(&Row { data: b"\xff".into(), ..row() }).err().expect("refused");
        assert!(why.starts_with("its data is no JSON"), "{why}");
        assert!(BrokerSettings::default().letter(&Row { data: b"\xff".into(), ..row() }).is_ok());
    }

    #[test]
    fn what_may_change_is_tried_again_and_what_cannot_is_not() {
        let refused = |code| outcome(Error::Refused { code, text: "no".into() });
        assert!(matches!(refused(404), Outcome::Failed(_)) && matches!(refused(406), Outcome::Refused(_)));
        assert!(matches!(outcome(Error::NotConfirmed), Outcome::Failed(_)));
        assert!(matches!(outcome(Error::Invalid("long".into())), Outcome::Refused(_)));
        assert!(matches!(outcome(Error::ConnectionLost("gone".into())), Outcome::Lost(_)));
    }
}

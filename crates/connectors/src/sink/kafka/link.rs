//! A producer, and its reports of how records fared.

use std::sync::Arc;

use overtake_forward::Answer;
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::producer::{DeliveryResult, NoCustomPartitioner, Producer, ProducerContext, ThreadedProducer};
use tokio::sync::mpsc;

use super::KafkaKey;
use super::flight::{Flight, IN_FLIGHT};
use super::record::{self, Record};
use super::topic::Topic;
use crate::kafka::KafkaCluster;
use crate::kafka::client::{self, Aside, see};
use crate::kafka::trouble::{Trouble, advice};
use crate::outbox::Outbox;
use crate::outgoing::Outgoing;
use crate::sink::{Link, LinkError, Sink, Work};

/// What a receiver is once it is checked.
pub(super) struct KafkaSink {
    pub(super) cluster: KafkaCluster,
    pub(super) config: ClientConfig,
    pub(super) topic: Topic,
    pub(super) key: KafkaKey,
}

impl Sink for KafkaSink {
    fn left_out(&self, message: &Outgoing) -> Vec<String> {
        record::left_out(message)
    }

    fn connect(&self) -> Work<'_, Result<Box<dyn Link>, LinkError>> {
        Box::pin(async {
            let link = KafkaLink::open(self)?;
            link.see(self.topic.name().map(ToOwned::to_owned)).await?;
            Ok(Box::new(link) as Box<dyn Link>)
        })
    }
}

/// How a record fared, by the number of its message.
type Report = (usize, Result<(), KafkaError>);

/// What librdkafka tells.
struct Reports {
    tell: mpsc::Sender<Report>,
    trouble: Arc<Trouble>,
}

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        client::log(level, facility, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.trouble.heard(&error, reason);
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, at: usize) {
        let fared = result.as_ref().map(drop).map_err(|(error, _)| error.clone());
        // There is room for what is on its way, and nobody listens to a link that is gone.
        let _ = self.tell.try_send((at, fared));
    }
}

type Client = ThreadedProducer<Reports, NoCustomPartitioner>;

struct KafkaLink {
    topic: Topic,
    key: KafkaKey,
    producer: Aside<Client>,
    reports: mpsc::Receiver<Report>,
    trouble: Arc<Trouble>,
    flight: Flight,
}

impl KafkaLink {
    fn open(sink: &KafkaSink) -> Result<Self, String> {
        let (tell, reports) = mpsc::channel(IN_FLIGHT);
        let trouble = Arc::new(Trouble::default());
        let config = sink.cluster.with_password(&sink.config)?;
        let context = Reports { tell, trouble: Arc::clone(&trouble) };
        let producer =
            Client::from_config_and_context(&config, context).map_err(|error| error.to_string())?;
        let (topic, key) = (sink.topic.clone(), sink.key);
        Ok(Self { topic, key, producer: Aside::new(producer), reports, trouble, flight: Flight::default() })
    }

    /// Whether the topic is there, or, where each message has its own, the cluster.
    async fn see(&self, topic: Option<String>) -> Result<(), String> {
        let producer = self.producer.share();
        let seen = tokio::task::spawn_blocking(move || see(producer.client(), topic.as_deref()));
        tokio::select! {
            seen = seen => match seen.map_err(|error| error.to_string())? {
                Ok(()) => self.trouble.is_over(),
                Err(why) => return Err(self.trouble.last().map_or(why.clone(), |last| format!("{why}: {last}"))),
            },
            why = self.trouble.until_outage() => return Err(why),
        }
        Ok(())
    }

    async fn send_all(&mut self, outbox: &mut Outbox<'_>) -> Result<(), LinkError> {
        let mut lost = None;
        loop {
            while lost.is_none()
                && self.flight.has_room()
                && let Some(at) = outbox.next()
            {
                lost = self.start(outbox, at).err();
            }
            if self.flight.is_empty() {
                return lost.map_or(Ok(()), Err);
            }
            // What is on its way when something is lost is waited for: it may have arrived.
            let (at, report) = self.reports.recv().await.expect("the producer holds the other end");
            lost = lost.or(self.land(outbox, at, report).err());
        }
    }

    fn start(&mut self, outbox: &Outbox<'_>, at: usize) -> Result<(), LinkError> {
        let message = outbox.get(at);
        let record = Record::new(&self.topic, self.key, message);
        match self.producer.send(record.produce(message, at)) {
            Ok(()) => self.flight.start(at, record.bytes(message)),
            // It went nowhere, alone.
            Err((error, _)) => {
                let answer = self.judge(&error, true).map_err(|why| outbox.not_sent(at, why))?;
                outbox.answer(at, answer);
            }
        }
        Ok(())
    }

    fn land(
        &mut self,
        outbox: &Outbox<'_>,
        at: usize,
        report: Result<(), KafkaError>,
    ) -> Result<(), LinkError> {
        let record = self.flight.land(at);
        let is_in_doubt = report.as_ref().is_err_and(is_in_doubt);
        let answer = match report {
            Ok(()) => {
                self.trouble.is_over();
                Answer::Accepted { bytes: record.bytes }
            }
            Err(error) => {
                if is_of_request(&error) {
                    self.flight.go_one_by_one();
                }
                self.judge(&error, record.alone)?
            }
        };
        if is_in_doubt {
            outbox.answer_in_doubt(at, answer);
        } else {
            outbox.answer(at, answer);
        }
        Ok(())
    }

    fn judge(&self, error: &KafkaError, alone: bool) -> Result<Answer, LinkError> {
        match self.producer.client().fatal_error() {
            Some((_, why)) => Err(LinkError::Lost(why)),
            None => judge(error, alone, self.trouble.last()),
        }
    }
}

impl Link for KafkaLink {
    fn send<'a>(&'a mut self, outbox: &'a mut Outbox<'_>) -> Work<'a, Result<(), LinkError>> {
        Box::pin(self.send_all(outbox))
    }
}

/// Whether Kafka refused a request for what was in it, which may be one record of it only.
fn is_of_request(error: &KafkaError) -> bool {
    matches!(error.rdkafka_error_code(), Some(Code::MessageSizeTooLarge | Code::InvalidRecord))
}

/// Whether the record may be in the topic all the same.
fn is_in_doubt(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(Code::MessageTimedOut | Code::RequestTimedOut | Code::NotEnoughReplicasAfterAppend)
    )
}

/// What a report of failure means.
///
/// # Errors
/// It is not the message that failed.
fn judge(error: &KafkaError, alone: bool, trouble: Option<String>) -> Result<Answer, LinkError> {
    let code = error.rdkafka_error_code();
    let why = code.map_or_else(|| error.to_string(), |code| code.to_string());
    let why = match code.and_then(advice) {
        Some(advice) => format!("{why}: {advice}"),
        None => why,
    };
    match (code, trouble) {
        _ if is_of_request(error) && alone => Ok(Answer::Refused { why: why.into() }),
        (Some(Code::MessageTimedOut), Some(trouble)) => Err(LinkError::Lost(trouble)),
        (Some(Code::Fatal | Code::PurgeQueue | Code::PurgeInflight), _) => Err(LinkError::Lost(why)),
        _ => Ok(Answer::Failed { busy_ms: None, why: why.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(code: Code, alone: bool, trouble: Option<&str>) -> &'static str {
        let error = KafkaError::MessageProduction(code);
        match judge(&error, alone, trouble.map(ToOwned::to_owned)) {
            Ok(Answer::Refused { .. }) => "refused",
            Ok(Answer::Failed { .. }) => "failed",
            Err(LinkError::Lost(_)) => "lost",
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_report_means_what_the_table_says() {
        for (code, means) in [
            (Code::MessageSizeTooLarge, "refused"),
            (Code::InvalidRecord, "refused"),
            (Code::MessageTimedOut, "failed"),
            (Code::TopicAuthorizationFailed, "failed"),
            (Code::InvalidTopic, "failed"),
            (Code::UnknownTopicOrPartition, "failed"),
            (Code::NotEnoughReplicas, "failed"),
            (Code::PurgeInflight, "lost"),
        ] {
            assert_eq!(judged(code, true, None), means, "{code}");
        }
        assert_eq!(judged(Code::MessageTimedOut, true, Some("kafka:9092: refused")), "lost");
        assert_eq!(judged(Code::MessageSizeTooLarge, false, None), "failed");
    }
}

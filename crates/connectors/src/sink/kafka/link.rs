//! A producer: records on their way, few at once, and the reports of how they fared.
//!
//! At most [`IN_FLIGHT`] records or [`IN_FLIGHT_BYTES`] are on their way, whichever is less, but one at least. That is one request's worth, so a
//! line is not waiting for each report; and when something urgent makes the line halt, no more than that goes before it: a tenth of a second at
//! 20 Mbit/s.

use std::collections::HashMap;
use std::sync::Arc;

use overtake_forward::Answer;
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::producer::{DeliveryResult, NoCustomPartitioner, Producer, ProducerContext, ThreadedProducer};
use tokio::sync::mpsc;

use super::KafkaKey;
use super::record::Record;
use super::topic::Topic;
use crate::kafka::KafkaCluster;
use crate::kafka::client::{self, Aside, see};
use crate::kafka::trouble::Trouble;
use crate::outbox::Outbox;
use crate::sink::{Link, LinkError, Sink, Work};

/// Most records on their way.
const IN_FLIGHT: usize = 32;
/// Most bytes on their way.
const IN_FLIGHT_BYTES: u64 = 256 << 10;

/// What a receiver is once it is checked.
pub(super) struct KafkaSink {
    pub(super) cluster: KafkaCluster,
    pub(super) config: ClientConfig,
    pub(super) topic: Topic,
    pub(super) key: KafkaKey,
}

impl Sink for KafkaSink {
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
        Ok(Self { topic, key, producer: Aside::new(producer), reports, trouble })
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
        let mut flight = Flight::default();
        let mut lost = None;
        loop {
            while lost.is_none()
                && flight.has_room()
                && let Some(at) = outbox.next()
            {
                let message = outbox.get(at);
                let record = Record::new(&self.topic, self.key, message);
                match self.producer.send(record.produce(message, at)) {
                    Ok(()) => flight.start(at, record.bytes(message)),
                    Err((error, _)) => self.answer(outbox, at, Err(error), 0, &mut lost),
                }
            }
            if flight.is_empty() {
                return lost.map_or(Ok(()), Err);
            }
            // What is on its way when something is lost is waited for: it may have arrived.
            let (at, report) = self.reports.recv().await.expect("the producer holds the other end");
            let bytes = flight.land(at);
            self.answer(outbox, at, report, bytes, &mut lost);
        }
    }

    fn answer(
        &self,
        outbox: &Outbox<'_>,
        at: usize,
        report: Result<(), KafkaError>,
        bytes: u64,
        lost: &mut Option<LinkError>,
    ) {
        let fatal = || self.producer.client().fatal_error().map(|(_, why)| why);
        let verdict = match report {
            Ok(()) => {
                self.trouble.is_over();
                Ok(Answer::Accepted { bytes })
            }
            Err(error) => judge(&error, self.trouble.last(), fatal()),
        };
        match verdict {
            Ok(answer) => outbox.answer(at, answer),
            Err(why) => *lost = Some(why),
        }
    }
}

impl Link for KafkaLink {
    fn send<'a>(&'a mut self, outbox: &'a mut Outbox<'_>) -> Work<'a, Result<(), LinkError>> {
        Box::pin(self.send_all(outbox))
    }
}

/// What is on its way, by the numbers of messages, with bytes.
#[derive(Default)]
struct Flight {
    records: HashMap<usize, u64>,
    bytes: u64,
}

impl Flight {
    fn has_room(&self) -> bool {
        self.records.len() < IN_FLIGHT && self.bytes < IN_FLIGHT_BYTES
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn start(&mut self, at: usize, bytes: u64) {
        self.records.insert(at, bytes);
        self.bytes += bytes;
    }

    fn land(&mut self, at: usize) -> u64 {
        let bytes = self.records.remove(&at).unwrap_or(0);
        self.bytes -= bytes;
        bytes
    }
}

/// What a report of failure means.
///
/// # Errors
/// It is not the message that failed.
fn judge(error: &KafkaError, trouble: Option<String>, fatal: Option<String>) -> Result<Answer, LinkError> {
    if let Some(why) = fatal {
        return Err(LinkError::Lost(why));
    }
    let code = error.rdkafka_error_code();
    let advice = code.and_then(crate::kafka::trouble::advice);
    let why = code.map_or_else(|| error.to_string(), |code| code.to_string());
    let why = advice.map_or(why.clone(), |advice| format!("{why}: {advice}"));
    match (code, trouble) {
        (Some(Code::MessageSizeTooLarge | Code::InvalidRecord), _) => Ok(Answer::Refused { why: why.into() }),
        (Some(Code::MessageTimedOut), Some(trouble)) => Err(LinkError::Lost(trouble)),
        (Some(Code::Fatal | Code::PurgeQueue | Code::PurgeInflight), _) => Err(LinkError::Lost(why)),
        _ => Ok(Answer::Failed { busy_ms: None, why: why.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(code: Code, trouble: Option<&str>) -> &'static str {
        let error = KafkaError::MessageProduction(code);
        match judge(&error, trouble.map(ToOwned::to_owned), None) {
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
            assert_eq!(judged(code, None), means, "{code}");
        }
        assert_eq!(judged(Code::MessageTimedOut, Some("kafka:9092: refused")), "lost");
        let fatal =
            judge(&KafkaError::MessageProduction(Code::InvalidTopic), None, Some("fenced".to_owned()));
        assert_eq!(fatal, Err(LinkError::Lost("fenced".to_owned())));
    }

    #[test]
    fn few_are_on_their_way_and_of_large_ones_fewer() {
        let mut flight = Flight::default();
        (0..IN_FLIGHT).for_each(|at| flight.start(at, 100));
        assert!(!flight.has_room());
        assert_eq!(flight.land(0), 100);
        assert!(flight.has_room());
        flight.start(99, IN_FLIGHT_BYTES);
        assert!(!flight.has_room());
    }
}

//! A member of a consumer group: what it received, and what of that is committed.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset, TopicPartitionList};

use super::incoming::incoming;
use crate::inlet::{Fate, Incoming, Inlet, Origin};
use crate::kafka::KafkaCluster;
use crate::kafka::client::{self, Aside, see};
use crate::kafka::trouble::Trouble;
use crate::sink::{LinkError, Work};

/// A topic and one of its partitions.
type Place = (String, i32);

/// What topics are once they are checked.
pub(super) struct KafkaOrigin {
    pub(super) cluster: KafkaCluster,
    pub(super) config: ClientConfig,
    pub(super) topics: Vec<String>,
}

impl Origin for KafkaOrigin {
    fn connect(&self) -> Work<'_, Result<Box<dyn Inlet>, LinkError>> {
        Box::pin(async {
            let mut member = KafkaMember::open(self)?;
            member.see().await?;
            let topics: Vec<&str> = self.topics.iter().map(String::as_str).collect();
            member.consumer.subscribe(&topics).map_err(|error| error.to_string())?;
            Ok(Box::new(member) as Box<dyn Inlet>)
        })
    }
}

/// What librdkafka tells.
#[derive(Default)]
struct Membership {
    trouble: Trouble,
    /// What was taken away since somebody looked.
    revoked: Mutex<HashSet<Place>>,
}

impl Membership {
    fn take_revoked(&self) -> HashSet<Place> {
        std::mem::take(&mut *self.revoked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for Membership {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        client::log(level, facility, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.trouble.heard(&error, reason);
    }
}

impl ConsumerContext for Membership {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(places) = rebalance {
            let places = places.elements();
            let places = places.iter().map(|place| (place.topic().to_owned(), place.partition()));
            self.revoked.lock().unwrap_or_else(PoisonError::into_inner).extend(places);
        }
    }
}

struct KafkaMember {
    consumer: Aside<StreamConsumer<Membership>>,
    topics: Vec<String>,
    /// librdkafka has reported a topic, and does not say which.
    is_in_doubt: bool,
    /// Why some of the topics cannot be read, as found last.
    known: Option<String>,
    /// The same, until the intake asks for it.
    fault: Option<String>,
    /// Where to go on after what was handed over last.
    next: BTreeMap<Place, i64>,
    /// Came behind messages that were handed over first.
    failed: Option<LinkError>,
}

impl KafkaMember {
    fn open(origin: &KafkaOrigin) -> Result<Self, String> {
        let config = origin.cluster.with_password(&origin.config)?;
        let consumer: StreamConsumer<Membership> =
            config.create_with_context(Membership::default()).map_err(|error| error.to_string())?;
        Ok(Self {
            consumer: Aside::new(consumer),
            topics: origin.topics.clone(),
            is_in_doubt: false,
            known: None,
            fault: None,
            next: BTreeMap::new(),
            failed: None,
        })
    }

    /// Looks for the topics before the subscription.
    ///
    /// # Errors
    /// None of them can be read.
    async fn see(&mut self) -> Result<(), LinkError> {
        let looked = self.look();
        // Nothing is subscribed to yet: what comes is what went wrong.
        let trouble = async {
            loop {
                if let Err(error) = self.consumer.recv().await
                    && let Err(why) = self.judge(&error)
                {
                    return why;
                }
            }
        };
        let found = tokio::select! {
            biased;
            why = trouble => Err(why),
            found = looked => found,
        };
        self.found(found?);
        Ok(())
    }

    /// Why some of the topics cannot be read; `None`: all can.
    ///
    /// # Errors
    /// None of them can.
    fn look(&self) -> impl Future<Output = Result<Option<String>, LinkError>> + use<> {
        let (consumer, topics) = (self.consumer.share(), self.topics.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let see = |topic: &String| see(consumer.client(), Some(topic)).err();
            let faults: Vec<String> = topics.iter().filter_map(see).collect();
            match faults.len() {
                0 => Ok(None),
                count if count == topics.len() => Err(faults.join("; ")),
                _ => Ok(Some(faults.join("; "))),
            }
        });
        async { Ok(looked.await.map_err(|error| error.to_string())??) }
    }

    fn found(&mut self, fault: Option<String>) {
        self.is_in_doubt = false;
        if self.known != fault {
            self.known.clone_from(&fault);
            self.fault = fault;
        }
    }

    async fn take(&mut self, max: usize) -> Result<Vec<Incoming>, LinkError> {
        if let Some(why) = self.failed.take() {
            return Err(why);
        }
        loop {
            if self.is_in_doubt {
                let found = self.look().await?;
                self.found(found);
                return Ok(Vec::new());
            }
            let first = match self.consumer.recv().await {
                Ok(record) => Some(took(&record)),
                Err(error) if is_of_a_topic(&error) => None,
                Err(error) => {
                    self.judge(&error)?;
                    continue;
                }
            };
            let Some(first) = first else {
                self.is_in_doubt = true;
                continue;
            };
            // From here on nothing is waited for, so that nothing is lost when the wait is given up.
            let batch = self.gather(first, max);
            if !batch.is_empty() {
                return Ok(batch);
            }
        }
    }

    /// The first, and what else is there already, without what was taken away meanwhile.
    fn gather(&mut self, first: (Place, i64, Incoming), max: usize) -> Vec<Incoming> {
        let membership = self.consumer.context();
        membership.trouble.is_over();
        // Before the first came.
        membership.take_revoked();
        let mut all = vec![first];
        while all.len() < max {
            // A rebalance ends this: nothing of a later assignment is in one batch with an earlier one.
            match ready(&self.consumer) {
                Some(Ok(record)) => all.push(took(&record)),
                Some(Err(error)) if is_of_a_topic(&error) => self.is_in_doubt = true,
                Some(Err(error)) => self.failed = self.judge(&error).err(),
                None => break,
            }
        }
        let revoked = membership.take_revoked();
        all.retain(|(place, ..)| !revoked.contains(place));
        self.next = all.iter().map(|(place, offset, _)| (place.clone(), offset + 1)).collect();
        all.into_iter().map(|(.., message)| message).collect()
    }

    /// Whether librdkafka goes on by itself.
    ///
    /// # Errors
    /// It does not.
    fn judge(&self, error: &KafkaError) -> Result<(), LinkError> {
        match error.rdkafka_error_code() {
            // It is one broker of several, as long as nobody says that it is all.
            Some(
                Code::AllBrokersDown | Code::BrokerTransportFailure | Code::Resolve | Code::OperationTimedOut,
            ) => self.consumer.context().trouble.outage().map_or(Ok(()), |why| Err(LinkError::Lost(why))),
            _ => {
                let why = self.consumer.context().trouble.last();
                Err(LinkError::Lost(why.unwrap_or_else(|| error.to_string())))
            }
        }
    }

    /// Waits until Kafka knows where to go on.
    async fn commit(&mut self) -> Result<(), LinkError> {
        let mut places = TopicPartitionList::new();
        for ((topic, partition), offset) in std::mem::take(&mut self.next) {
            let added = places.add_partition_offset(&topic, partition, Offset::Offset(offset));
            added.map_err(|error| error.to_string())?;
        }
        if places.count() == 0 {
            return Ok(());
        }
        let consumer = self.consumer.share();
        let committed = tokio::task::spawn_blocking(move || consumer.commit(&places, CommitMode::Sync)).await;
        match committed.map_err(|error| error.to_string())? {
            Ok(()) => Ok(()),
            // Others have the partitions now, and read on from what was committed before.
            Err(error) if is_of_others(&error) => {
                tracing::debug!("not committed, and received once more: {error}");
                Ok(())
            }
            Err(error) => Err(LinkError::Lost(error.to_string())),
        }
    }
}

impl Inlet for KafkaMember {
    fn receive(&mut self, max: usize) -> Work<'_, Result<Vec<Incoming>, LinkError>> {
        Box::pin(self.take(max))
    }

    fn fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// Kafka has no place for what is refused: it is let go of.
    fn settle(&mut self, _fates: Vec<Fate>) -> Work<'_, Result<(), LinkError>> {
        Box::pin(self.commit())
    }
}

fn took(record: &BorrowedMessage<'_>) -> (Place, i64, Incoming) {
    ((record.topic().to_owned(), record.partition()), record.offset(), incoming(record))
}

/// What is there already.
fn ready(consumer: &StreamConsumer<Membership>) -> Option<Result<BorrowedMessage<'_>, KafkaError>> {
    let next = pin!(consumer.recv());
    match next.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(next) => Some(next),
        Poll::Pending => None,
    }
}

/// Whether one topic cannot be read, and the others can: librdkafka goes on with those, and looks for this one again.
fn is_of_a_topic(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::UnknownTopic
                | Code::UnknownTopicOrPartition
                | Code::UnknownPartition
                | Code::InvalidTopic
                | Code::TopicAuthorizationFailed
        )
    )
}

fn is_of_others(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::IllegalGeneration
                | Code::UnknownMemberId
                | Code::RebalanceInProgress
                | Code::AssignmentLost
        )
    )
}

//! Members of groups at librdkafka's mock cluster, which is a broker within this process.

use std::collections::BTreeSet;

use overtake_peer::Vault;
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{DefaultProducerContext, FutureProducer, FutureRecord};
use rdkafka::types::RDKafkaRespErr;
use rdkafka::util::Timeout;

use super::KafkaTopics;
use crate::inlet::{Fate, Incoming, Inlet};

const ALL: usize = 100;

struct Kafka {
    cluster: MockCluster<'static, DefaultProducerContext>,
    producer: FutureProducer,
}

impl Kafka {
    /// With a topic `t`.
    fn new(partitions: i32) -> Self {
        let cluster = MockCluster::new(1).expect("a cluster");
        cluster.create_topic("t", partitions, 1).expect("a topic");
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        let producer = config.create().expect("a producer");
        Self { cluster, producer }
    }

    async fn produce(&self, partition: i32, body: &str) {
        self.produce_to("t", partition, body).await;
    }

    async fn produce_to(&self, topic: &str, partition: i32, body: &str) {
        let record = FutureRecord::<str, str>::to(topic).partition(partition).payload(body);
        self.producer.send(record, Timeout::Never).await.expect("delivered");
    }

    async fn try_join(&self, topics: &[&str]) -> Result<Box<dyn Inlet>, String> {
        let topics = serde_json::json!({
            "brokers": [self.cluster.bootstrap_servers()],
            "topics": topics,
            // So long the mock cluster waits for members at a rebalance; and so soon they hear of one.
            "properties": {
                "session.timeout.ms": "4000",
                "heartbeat.interval.ms": "100",
                "topic.metadata.refresh.interval.ms": "100",
            },
        });
        let topics: KafkaTopics = serde_json::from_value(topics).expect("topics");
        let origin = topics.origin(Vault::ANY, "overtake-s").expect("an origin");
        origin.connect().await.map_err(|error| error.to_string())
    }

    async fn join(&self) -> Box<dyn Inlet> {
        self.try_join(&["t"]).await.expect("connected")
    }
}

async fn receive(inlet: &mut dyn Inlet, count: usize) -> Vec<Incoming> {
    let mut all = Vec::new();
    while all.len() < count {
        all.extend(inlet.receive(ALL).await.expect("received"));
    }
    all
}

async fn settle(inlet: &mut dyn Inlet, taken: &[Incoming]) {
    inlet.settle(taken.iter().map(|_| Fate::Taken).collect()).await.expect("settled");
}

fn told(all: &[Incoming]) -> Vec<String> {
    all.iter().map(|one| format!("{} {}", one.id, String::from_utf8_lossy(&one.body))).collect()
}

#[tokio::test]
async fn what_was_not_settled_comes_again_and_what_was_does_not() {
    let kafka = Kafka::new(1);
    for body in ["a", "b"] {
        kafka.produce(0, body).await;
    }
    let mut lost = kafka.join().await;
    assert_eq!(told(&receive(&mut *lost, 2).await), ["t-0-0 a", "t-0-1 b"]);
    drop(lost);

    let mut again = kafka.join().await;
    let taken = receive(&mut *again, 2).await;
    assert_eq!(told(&taken), ["t-0-0 a", "t-0-1 b"]);
    settle(&mut *again, &taken).await;
    drop(again);

    kafka.produce(0, "c").await;
    let mut next = kafka.join().await;
    assert_eq!(told(&receive(&mut *next, 1).await), ["t-0-2 c"]);
}

#[tokio::test]
async fn a_wait_that_is_given_up_again_and_again_loses_nothing() {
    let kafka = Kafka::new(1);
    let mut inlet = kafka.join().await;
    let mut all = Vec::new();
    for body in ["a", "b", "c"] {
        kafka.produce(0, body).await;
        let taken = loop {
            tokio::select! {
                biased;
                taken = inlet.receive(1) => break taken.expect("received"),
                () = tokio::task::yield_now() => {}
            }
        };
        settle(&mut *inlet, &taken).await;
        all.extend(told(&taken));
    }
    assert_eq!(all, ["t-0-0 a", "t-0-1 b", "t-0-2 c"]);
}

/// What one of two takes, and which.
async fn take([one, other]: &mut [Box<dyn Inlet>; 2]) -> (usize, Vec<Incoming>) {
    let (at, taken) = tokio::select! {
        taken = one.receive(ALL) => (0, taken.expect("received")),
        taken = other.receive(ALL) => (1, taken.expect("received")),
    };
    settle(&mut **[one, other][at], &taken).await;
    (at, taken)
}

#[tokio::test]
async fn two_members_of_a_group_share_its_partitions_and_lose_nothing() {
    let kafka = Kafka::new(2);
    let mut members = [kafka.join().await, kafka.join().await];
    let (mut sent, mut seen) = (0, BTreeSet::new());
    let mut feed = async || {
        kafka.produce(0, "x").await;
        kafka.produce(1, "x").await;
        sent += 1;
        sent
    };
    let mut fed = feed().await;
    // Each is fed whenever it took something, until both have something of the same round.
    let mut shares = [String::new(), String::new()];
    while shares[0].is_empty() || shares[1].is_empty() || shares[0] == shares[1] {
        let (at, taken) = take(&mut members).await;
        let places: BTreeSet<&str> = taken.iter().map(|one| &one.id[..3]).collect();
        shares[at] = places.into_iter().collect();
        seen.extend(taken.into_iter().map(|one| one.id));
        fed = feed().await;
    }
    assert_eq!(BTreeSet::from(shares), ["t-0", "t-1"].map(ToOwned::to_owned).into());
    while seen.len() < 2 * fed {
        let (_, taken) = take(&mut members).await;
        seen.extend(taken.into_iter().map(|one| one.id));
    }
    let all = (0..fed).flat_map(|offset| [0, 1].map(|partition| format!("t-{partition}-{offset}")));
    assert_eq!(seen, all.collect());
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_told_and_so_is_a_cluster() {
    let kafka = Kafka::new(1);
    let unknown = RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    kafka.cluster.topic_error("nowhere", unknown).expect("set");
    let why = kafka.try_join(&["nowhere"]).await.err().expect("no connection");
    assert!(why.contains("nowhere") && why.contains("create it in Kafka"), "{why}");
    kafka.cluster.broker_down(-1).expect("down");
    let why = kafka.try_join(&["t"]).await.err().expect("no connection");
    assert!(why.contains(&kafka.cluster.bootstrap_servers()), "{why}");
}

#[tokio::test]
async fn a_cluster_that_goes_away_ends_the_wait() {
    let kafka = Kafka::new(1);
    kafka.produce(0, "a").await;
    let mut inlet = kafka.join().await;
    let taken = receive(&mut *inlet, 1).await;
    settle(&mut *inlet, &taken).await;
    kafka.cluster.broker_down(-1).expect("down");
    assert!(inlet.receive(ALL).await.is_err());
}

#[tokio::test]
async fn a_topic_that_is_missing_is_told_and_holds_back_no_other_and_is_read_once_it_is_there() {
    let kafka = Kafka::new(1);
    let unknown = RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    kafka.cluster.topic_error("late", unknown).expect("set");
    kafka.produce(0, "a").await;
    let mut inlet = kafka.try_join(&["late", "t"]).await.expect("connected");
    let fault = inlet.fault().expect("told");
    assert!(fault.contains("late") && fault.contains("create it in Kafka"), "{fault}");
    let taken = receive(&mut *inlet, 1).await;
    assert_eq!(told(&taken), ["t-0-0 a"]);
    settle(&mut *inlet, &taken).await;
    assert_eq!(inlet.fault(), None, "it is told once");
    kafka.cluster.topic_error("late", RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR).expect("set");
    kafka.produce_to("late", 0, "b").await;
    assert_eq!(told(&receive(&mut *inlet, 1).await), ["late-0-0 b"]);
}

#[tokio::test]
async fn a_topic_that_goes_away_is_told_and_the_other_goes_on() {
    let kafka = Kafka::new(1);
    kafka.cluster.create_topic("other", 1, 1).expect("a topic");
    kafka.produce_to("other", 0, "a").await;
    let mut inlet = kafka.try_join(&["t", "other"]).await.expect("connected");
    let taken = receive(&mut *inlet, 1).await;
    settle(&mut *inlet, &taken).await;
    assert_eq!(inlet.fault(), None);
    let unknown = RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    kafka.cluster.topic_error("other", unknown).expect("set");
    let fault = loop {
        let taken = inlet.receive(ALL).await.expect("received");
        settle(&mut *inlet, &taken).await;
        if let Some(fault) = inlet.fault() {
            break fault;
        }
    };
    assert!(fault.contains("other"), "{fault}");
    kafka.produce(0, "b").await;
    assert_eq!(told(&receive(&mut *inlet, 1).await), ["t-0-0 b"]);
}

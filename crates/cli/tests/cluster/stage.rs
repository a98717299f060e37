//! What publishers and consumers share: where the brokers are, which messages there are to be, and the book.

use std::io::Result;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::history::Book;
use crate::network::Network;
use crate::support::http::{self, Reply};

/// How urgent messages may be: from 0 on, the last the most.
pub(crate) const LEVELS: u8 = 10;
/// Queues over which the messages are shared out.
pub(crate) const QUEUES: u16 = 1;
/// Places of a queue.
const PLACES: u16 = 64;
/// Messages of a queue that may be out at once.
pub(crate) const MAX_ACTIVE: usize = 256;
/// When nothing has happened for so long, nothing will.
const PATIENCE: Duration = Duration::from_secs(45);
/// Between two tries of something that failed.
const REST: Duration = Duration::from_millis(50);

/// The settings of each queue.
pub(crate) fn settings() -> Value {
    let partitions = json!({ "mode": "hash", "count": PLACES });
    json!({ "scheme": "ten-level", "max_active": MAX_ACTIVE, "partitions": partitions })
}

/// What a queue is called.
pub(crate) fn queue(number: u16) -> String {
    format!("proof-{number}")
}

/// In which queue a message goes.
pub(crate) fn queue_of(message: u32) -> u16 {
    u16::try_from(message % u32::from(QUEUES)).expect("smaller than the number of queues")
}

/// Where a broker is, in this life and the next.
#[derive(Clone)]
pub(crate) struct Address {
    /// Address and port.
    pub(crate) amqp: String,
    /// `http://…`
    pub(crate) url: String,
    /// The network of its own, if it is in one.
    pub(crate) network: Option<Arc<Network>>,
}

impl Address {
    /// A connection for AMQP.
    pub(crate) fn connect(&self) -> Result<TcpStream> {
        self.there(|| TcpStream::connect(&self.amqp))
    }

    /// What it answers over HTTP.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Reply> {
        self.there(|| http::try_ask(&self.url, method, path, body))
    }

    fn there<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        match &self.network {
            Some(network) => network.within(what),
            None => what(),
        }
    }
}

/// What all share.
pub(crate) struct Stage {
    pub(crate) book: Book,
    pub(crate) brokers: Vec<Address>,
    /// Messages there are to be.
    messages: u32,
    /// Those that may be published by now.
    released: AtomicU32,
    is_over: AtomicBool,
}

impl Stage {
    pub(crate) fn new(brokers: Vec<Address>, messages: u32) -> Self {
        let (released, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { book: Book::begin(), brokers, messages, released, is_over }
    }

    /// How many messages there are to be.
    pub(crate) fn messages(&self) -> u32 {
        self.messages
    }

    /// How many may be published by now.
    pub(crate) fn released(&self) -> u32 {
        self.released.load(Ordering::Relaxed)
    }

    /// So many hundredths of the messages may be published from now on.
    pub(crate) fn release(&self, hundredths: u32) {
        self.released.store(self.messages / 100 * hundredths, Ordering::Relaxed);
    }

    /// Waits until so many hundredths of the messages are confirmed.
    pub(crate) fn until_confirmed(&self, hundredths: u32) {
        let enough = (self.messages / 100 * hundredths) as usize;
        let patience = Duration::from_secs(300);
        let is_so = self.book.until(patience, |pages| pages.confirmed >= enough);
        assert!(is_so, "{enough} messages are confirmed within {patience:?}: {:?}", self.book.counts());
    }

    /// Consumers need not look for more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// A moment, until something is tried again.
    pub(crate) fn rest(&self) {
        self.book.until(REST, |_| false);
    }

    /// Makes the queues, and waits until every broker knows them.
    pub(crate) fn declare(&self) {
        for number in 0..QUEUES {
            let path = format!("/v1/queues/{}", queue(number));
            let made = self.brokers[0].ask("PUT", &path, &settings());
            made.expect("it answers").expect(201);
        }
        for broker in &self.brokers {
            while queues(broker).len() < usize::from(QUEUES) {
                self.rest();
            }
        }
    }

    /// Waits until a broker that was cut off has an answer from the servers.
    pub(crate) fn until_answers(&self, broker: usize) {
        let path = format!("/v1/queues/{}", queue(0));
        let answers =
            || self.brokers[broker].ask("GET", &path, &Value::Null).is_ok_and(|reply| reply.status == 200);
        while !answers() {
            self.rest();
        }
    }

    /// Waits until the queues are empty, or nothing has happened for longer than a lease of a broker that is gone lasts; what is left, a line for each queue.
    pub(crate) fn drain(&self) -> Vec<String> {
        loop {
            let broker = &self.brokers[0];
            let before = self.book.counts().1;
            if left(broker).is_empty() {
                return Vec::new();
            }
            if !self.book.until(PATIENCE, |pages| pages.settles_asked > before) {
                return left(broker);
            }
            self.rest();
        }
    }
}

fn queues(broker: &Address) -> Vec<Value> {
    let page = broker.ask("GET", "/v1/queues?limit=1000", &Value::Null).expect("it answers").expect(200);
    page["queues"].as_array().expect("a list").clone()
}

/// Which queues have messages, and the first of those.
fn left(broker: &Address) -> Vec<String> {
    let of = |queue: &Value, what: &str| queue["totals"][what].as_u64().expect("a number");
    let line = |queue: &Value| {
        let [ready, leased, delayed] = ["ready", "leased", "delayed"].map(|what| of(queue, what));
        let name = queue["name"].as_str().expect("a name");
        let first = || {
            let path = format!("/v1/queues/{name}/messages?limit=1");
            broker.ask("GET", &path, &Value::Null).expect("it answers").json
        };
        let is_empty = ready + leased + delayed == 0;
        (!is_empty)
            .then(|| format!("{name}: {ready} ready, {leased} leased, {delayed} delayed, first {}", first()))
    };
    queues(broker).iter().filter_map(line).collect()
}

/// Chance, the same in each run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below another (xorshift64, Marsaglia 2003).
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

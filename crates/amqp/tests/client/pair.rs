//! A client and our own server, with a broker behind it and a network between them that cuts as it likes.

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use overtake_amqp::client::{Client, ClientOptions, Event};
use overtake_amqp::connection::{Answer, Ask, Connection, Delivery, Operation, Options, Publish, Token};
use overtake_lane::{ConsumerId, LeaseId, Outcome, QueueId, Receipt, Refusal, Seq, Time};

use crate::server::options;

const NOW: Time = Time(1_000);

/// Both ends and the network.
pub(crate) struct Pair {
    pub(crate) client: Client,
    pub(crate) server: Connection,
    pub(crate) broker: Broker,
    /// How many bytes arrive at once; round and round.
    cuts: Vec<usize>,
    turn: usize,
    to_server: Way,
    to_client: Way,
    events: Vec<Event>,
}

/// One direction: what is on its way, and what has arrived and is not read.
#[derive(Default)]
struct Way {
    sent: VecDeque<u8>,
    arrived: BytesMut,
}

impl Way {
    /// So many bytes more arrive.
    fn arrive(&mut self, count: usize) {
        let count = count.min(self.sent.len());
        self.arrived.extend(self.sent.drain(..count));
    }
}

impl Pair {
    pub(crate) fn new(cuts: Vec<usize>) -> Self {
        Self::with(cuts, options(), Options::default())
    }

    pub(crate) fn with(cuts: Vec<usize>, client: ClientOptions, server: Options) -> Self {
        Self {
            client: Client::new(NOW, client),
            server: Connection::new(NOW, server),
            broker: Broker::default(),
            cuts,
            turn: 0,
            to_server: Way::default(),
            to_client: Way::default(),
            events: Vec::new(),
        }
    }

    /// A cut's worth of bytes travels each way. False: there was nothing to travel.
    pub(crate) fn step(&mut self) -> bool {
        let cut = self.cuts[self.turn % self.cuts.len()];
        self.turn += 1;
        self.to_server.sent.extend(std::mem::take(self.client.output()));
        self.client.written(NOW);
        self.to_server.arrive(cut);
        // What waited for an answer is looked at again.
        loop {
            self.server.receive(NOW, &mut self.to_server.arrived);
            let asks = self.server.take_asks();
            if asks.is_empty() {
                break;
            }
            asks.into_iter().for_each(|ask| self.broker.answer(&mut self.server, ask));
        }
        self.to_client.sent.extend(std::mem::take(self.server.output()));
        self.server.written(NOW);
        self.to_client.arrive(cut);
        self.client.receive(NOW, &mut self.to_client.arrived);
        self.events.extend(self.client.take_events());
        !(self.to_server.sent.is_empty() && self.to_client.sent.is_empty() && self.client.output().is_empty())
    }

    /// All that was said is heard.
    pub(crate) fn settle(&mut self) {
        while self.step() {}
    }

    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

/// Queues by name, each with one consumer at most. Those called `full` take nothing, and only `ann` may log in.
#[derive(Default)]
pub(crate) struct Broker {
    queues: BTreeMap<String, VecDeque<Publish>>,
    consumers: BTreeMap<String, ConsumerId>,
    delivered: u64,
    /// What came of deliveries, in order.
    pub(crate) settled: Vec<(u64, Outcome)>,
}

impl Broker {
    fn answer(&mut self, server: &mut Connection, ask: Ask) {
        match ask {
            Ask::Login(credentials) => server.logged_in(credentials == options().credentials),
            Ask::Open { .. } => server.opened(Ok(())),
            Ask::Publish { token, publish, .. } => {
                let queue = String::from_utf8(publish.routing_key.to_vec()).expect("text");
                let result = match self.queues.get_mut(&queue) {
                    None => Ok(0),
                    Some(_) if queue == "full" => Err(Refusal::QueueFull.into()),
                    Some(messages) => {
                        messages.push_back(publish);
                        Ok(1)
                    }
                };
                server.published(token, result);
                self.serve(server, &queue);
            }
            Ask::Settle { receipts, outcome } => {
                self.settled.extend(receipts.iter().map(|receipt| (receipt.seq.0, outcome)));
            }
            Ask::Do { token, operation, .. } => self.operate(server, token, operation),
            Ask::Leave { .. } | Ask::Took { .. } | Ask::Share { .. } => {}
        }
    }

    fn operate(&mut self, server: &mut Connection, token: Token, operation: Operation) {
        let answer = match operation {
            Operation::DeclareQueue(queue) if queue.passive && !self.queues.contains_key(&queue.name) => {
                Err(Refusal::NoSuchQueue.into())
            }
            Operation::DeclareQueue(queue) => {
                let messages = self.queues.entry(queue.name.clone()).or_default().len() as u64;
                Ok(Answer::Queue { name: queue.name, messages, consumers: 0 })
            }
            Operation::Consume(consume) => {
                let consumer = ConsumerId(self.consumers.len() as u64 + 1);
                self.consumers.insert(consume.queue.clone(), consumer);
                server.answer(token, Ok(Answer::Consuming(consumer)));
                return self.serve(server, &consume.queue);
            }
            _ => Ok(Answer::Done),
        };
        server.answer(token, answer);
    }

    /// Gives a consumer all there is.
    fn serve(&mut self, server: &mut Connection, queue: &str) {
        let Some(consumer) = self.consumers.get(queue) else { return };
        for publish in self.queues.get_mut(queue).into_iter().flat_map(|messages| messages.drain(..)) {
            self.delivered += 1;
            let (seq, lease) = (Seq(self.delivered), LeaseId(self.delivered));
            let delivery = Delivery {
                receipt: Receipt { queue: QueueId(0), seq, lease },
                redelivered: false,
                exchange: &publish.exchange,
                routing_key: &publish.routing_key,
                properties: publish.properties.view(),
                body: &publish.body,
            };
            server.deliver(*consumer, &delivery);
        }
    }
}

//! Our own.

use std::collections::VecDeque;

use bytes::Bytes;
use overtake_client::{Client, ConnectOptions, Message};
use tokio::runtime::Runtime;

use super::{BODY, Library, QUEUE, WINDOW, runtime};

pub(super) struct Ours {
    runtime: Runtime,
    client: Client,
}

impl Ours {
    pub(super) fn connect(url: &str, is_numbered: bool) -> Self {
        let runtime = runtime();
        let options = ConnectOptions::new(url).unconfirmed_max(WINDOW.into());
        let options = if is_numbered { options.exactly_once() } else { options };
        let client = runtime.block_on(Client::connect(options)).expect("it is there");
        Self { runtime, client }
    }
}

impl Library for Ours {
    fn publish(&self, count: usize) {
        let client = self.client.clone();
        let publish = async move {
            let mut confirms = VecDeque::new();
            for _ in 0..count {
                let message = Message::new(Bytes::from_static(&BODY));
                confirms.push_back(client.send(QUEUE, message).await.expect("it goes"));
                if confirms.len() == WINDOW as usize {
                    let oldest = confirms.pop_front().expect("there are some");
                    oldest.await.expect("it is confirmed");
                }
            }
            for confirm in confirms {
                confirm.await.expect("it is confirmed");
            }
        };
        self.runtime.block_on(async { tokio::spawn(publish).await.expect("no panic") });
    }

    fn publish_one_by_one(&self, count: usize, at_a_time: usize) {
        let mut tasks = Vec::new();
        for _ in 0..at_a_time {
            let client = self.client.clone();
            tasks.push(self.runtime.spawn(async move {
                for _ in 0..count / at_a_time {
                    let message = Message::new(Bytes::from_static(&BODY));
                    client.publish(QUEUE, message).await.expect("it is confirmed");
                }
            }));
        }
        self.runtime.block_on(async {
            for task in tasks {
                task.await.expect("no panic");
            }
        });
    }

    fn consume(&self, count: usize) {
        let client = self.client.clone();
        let consume = async move {
            let mut consumer = client.consume(QUEUE, WINDOW).await.expect("it is there");
            for _ in 0..count {
                let delivery = consumer.next().await.expect("it goes on").expect("a message");
                assert_eq!(delivery.body().len(), BODY.len());
                delivery.ack().expect("it is there");
            }
        };
        self.runtime.block_on(async { tokio::spawn(consume).await.expect("no panic") });
    }
}

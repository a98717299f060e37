//! lapin, as its examples use it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;

use futures_core::Stream;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use tokio::runtime::Runtime;

use super::{BODY, Library, QUEUE, WINDOW, runtime};

pub(super) struct Lapin {
    runtime: Runtime,
    connection: Connection,
}

impl Lapin {
    pub(super) fn connect(url: &str) -> Self {
        let runtime = runtime();
        let connection = runtime.block_on(Connection::connect(url, ConnectionProperties::default()));
        Self { runtime, connection: connection.expect("it is there") }
    }

    fn publishing(&self) -> Channel {
        self.runtime.block_on(async {
            let channel = self.connection.create_channel().await.expect("a channel");
            channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
            channel
        })
    }
}

async fn send(channel: &Channel) -> impl Future<Output = lapin::Result<Confirmation>> + use<> {
    let properties = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    channel.basic_publish("".into(), QUEUE.into(), options, &BODY, properties).await.expect("it goes")
}

impl Library for Lapin {
    fn publish(&self, count: usize) {
        let channel = self.publishing();
        let publish = async move {
            let mut confirms = VecDeque::new();
            for _ in 0..count {
                confirms.push_back(send(&channel).await);
                if confirms.len() == WINDOW as usize {
                    let oldest = confirms.pop_front().expect("there are some");
                    assert!(oldest.await.expect("it is confirmed").is_ack());
                }
            }
            for confirm in confirms {
                assert!(confirm.await.expect("it is confirmed").is_ack());
            }
        };
        self.runtime.block_on(async { tokio::spawn(publish).await.expect("no panic") });
    }

    fn publish_one_by_one(&self, count: usize, at_a_time: usize) {
        let channel = self.publishing();
        let mut tasks = Vec::new();
        for _ in 0..at_a_time {
            let channel = channel.clone();
            tasks.push(self.runtime.spawn(async move {
                for _ in 0..count / at_a_time {
                    assert!(send(&channel).await.await.expect("it is confirmed").is_ack());
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
        let consumer = self.runtime.block_on(async {
            let channel = self.connection.create_channel().await.expect("a channel");
            channel.basic_qos(WINDOW, BasicQosOptions::default()).await.expect("a window");
            let options = BasicConsumeOptions::default();
            channel
                .basic_consume(QUEUE.into(), "c".into(), options, FieldTable::default())
                .await
                .expect("a consumer")
        });
        let consume = async move {
            let mut consumer = consumer;
            for _ in 0..count {
                let next = poll_fn(|cx| Pin::new(&mut consumer).poll_next(cx)).await;
                let delivery = next.expect("it goes on").expect("a message");
                assert_eq!(delivery.data.len(), BODY.len());
                delivery.ack(BasicAckOptions::default()).await.expect("it is there");
            }
        };
        self.runtime.block_on(async { tokio::spawn(consume).await.expect("no panic") });
    }
}

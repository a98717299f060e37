//! The client library, against a broker that is a process: a test, at least, for each row of the table in `docs/clients.md`.

mod consuming;
mod examples;
mod handling;
mod leasing;
mod losing;
mod outbox;
mod priority;
mod publishing;
mod replies;
mod secure;
mod streams;
mod table;

use std::future::Future;

use overtake_client::{Client, ConnectOptions, Consumer, Delivery, Message};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::http::ask;
use crate::support::{Broker, PATIENCE};

/// A broker with a queue `q` of the scheme `signed`.
pub(crate) struct World {
    /// It goes last.
    pub(crate) broker: Broker,
    dir: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self::new_empty();
        world.queue("q", &json!({"scheme": "signed"}));
        world
    }

    pub(crate) fn new_empty() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let broker = Broker::start(&dir.path().join("data"));
        Self { broker, dir }
    }

    pub(crate) fn queue(&self, name: &str, settings: &Value) {
        ask(&self.broker.url, "PUT", &format!("/v1/queues/{name}"), settings).expect(201);
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        ConnectOptions::new(format!("amqp://{}", self.broker.amqp)).http(&self.broker.url)
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.options()).await.expect("it is there")
    }

    /// What waits in a queue as it will go, as `body:priority`.
    pub(crate) fn waiting(&self, queue: &str) -> String {
        self.messages(queue, "ready")
    }

    pub(crate) fn messages(&self, queue: &str, status: &str) -> String {
        let page = ask(
            &self.broker.url,
            "GET",
            &format!("/v1/queues/{queue}/messages?status={status}"),
            &Value::Null,
        );
        let page = page.expect(200);
        let shown = page["messages"].as_array().expect("messages").iter().map(|message| {
            let priority = &message["given_priority"];
            let priority = if priority.is_null() { "-".to_owned() } else { priority.to_string() };
            format!("{}:{priority}", message["body"].as_str().expect("text"))
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// Kills the broker; another one goes on with what it has left, on other ports.
    pub(crate) fn kill_and_start(self) -> Self {
        let Self { broker, dir } = self;
        broker.kill();
        Self { broker: Broker::start(&dir.path().join("data")), dir }
    }
}

/// Runs it to its end.
pub(crate) fn go<R>(future: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let guarded = async { tokio::time::timeout(2 * PATIENCE, future).await.expect("it ends") };
    runtime.expect("a runtime").block_on(guarded)
}

/// The next message.
pub(crate) async fn next(consumer: &mut Consumer) -> Delivery {
    consumer.next().await.expect("it goes on").expect("a message")
}

/// The next messages, acknowledged, as `body:priority`.
pub(crate) async fn take(consumer: &mut Consumer, count: usize) -> String {
    let mut all = Vec::new();
    for _ in 0..count {
        let delivery = next(consumer).await;
        all.push(shown(&delivery));
        delivery.ack().expect("it is there");
    }
    all.join(" ")
}

pub(crate) fn shown(message: &overtake_client::Received) -> String {
    let priority = message.priority().map_or_else(|| "-".to_owned(), |priority| priority.0.to_string());
    format!("{}:{priority}", message.text().expect("text"))
}

pub(crate) fn said(body: &str) -> Message {
    Message::new(body.to_owned())
}

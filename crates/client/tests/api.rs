//! What a program may say that was written against 0.1, each name and each type once.
//!
//! A change under which this does not compile breaks such programs: it wants another minor version, and as long as there is none, another change. What is
//! added here stays here.

#![cfg(all(feature = "http", feature = "serde"))]

use std::future::Future;
use std::time::Duration;

use overtake_client::{
    Client, Confirm, ConnectOptions, ConsumeOptions, Consumer, Delivery, Error, HandleOptions, Handling,
    InPriority, IntoOutcome, Lease, LeaseOptions, Message, Outcome, Priority, Properties, Received, Scoped,
    Table, Tls, To, Value, with_priority, with_priority_sync,
};

fn is_all<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn types_go_to_other_threads_and_tasks() {
    is_all::<Client>();
    is_all::<Consumer>();
    is_all::<Delivery>();
    is_all::<Received>();
    is_all::<Lease>();
    is_all::<Message>();
    is_all::<Error>();
    is_all::<Handling>();
    is_all::<Confirm>();
    is_all::<Priority>();
    is_all::<(Properties, Table)>();
    fn sent<F: Future + Send>(_: fn(&'static Client) -> F) {}
    sent(|client| client.publish("q", Message::new("")));
    sent(|client| client.publish_all("q", [Message::new("")]));
    sent(|client| client.send("q", Message::new("")));
    sent(|client| client.consume("q", 1));
    sent(|client| client.lease("q", LeaseOptions::default()));
    sent(|client| client.request("q", Message::new(""), Duration::ZERO));
    sent(|client| client.handle("q", 1, |_| async {}));
}

#[test]
fn priorities_are_numbers_with_five_names() {
    let named = [Priority::BULK, Priority::LOW, Priority::NORMAL, Priority::HIGH, Priority::CRITICAL];
    assert_eq!(named.map(i32::from), [-100, -50, 0, 50, 100]);
    assert_eq!(named.map(|priority| priority.to_string()), ["BULK", "LOW", "NORMAL", "HIGH", "CRITICAL"]);
    assert!(named.is_sorted());
    assert_eq!((Priority(7), Priority::default()), (Priority::from(7), Priority::NORMAL));
    assert_eq!(Priority(7).to_string(), "7");
    assert_eq!(
        [Priority::named("low"), Priority::named("background"), Priority::named("7")],
        [Some(Priority::LOW), Some(Priority::BULK), None]
    );
    let scoped: [Scoped<std::future::Ready<()>>; 3] = [
        with_priority(7, std::future::ready(())),
        std::future::ready(()).in_priority(Priority::LOW),
        std::future::ready(()).in_current_priority(),
    ];
    assert_eq!(scoped.len(), 3);
    let current: Priority = with_priority_sync(Priority::LOW, Priority::current);
    assert_eq!(current, Priority::LOW);
}

#[test]
fn options_are_built_from_words() {
    let _: ConnectOptions = ConnectOptions::new("amqp://a")
        .http("http://a")
        .tls(Tls::new().ca_file("ca.pem").identity("cert.pem", "key.pem"))
        .name("shop")
        .heartbeat(Duration::from_secs(1))
        .timeout(Duration::from_secs(1))
        .unconfirmed_max(10)
        .exactly_once();
    let _: [ConnectOptions; 3] = ["amqp://a".into(), String::new().into(), (&String::new()).into()];
    let _: ConsumeOptions =
        ConsumeOptions::window(1).urgent_credit(Priority::HIGH, 1).consumer_priority(1).exclusive();
    let _: [ConsumeOptions; 2] = [ConsumeOptions::default(), 1.into()];
    let _: [HandleOptions; 3] = [
        HandleOptions::default(),
        HandleOptions::concurrency(1).consume(ConsumeOptions::window(1)),
        1.into(),
    ];
    let _: LeaseOptions =
        LeaseOptions::max(1).wait(Duration::ZERO).lease(Duration::from_secs(1)).worker("ann");
    let _: [To<'_>; 3] = ["q".into(), To::queue("q"), To::exchange("e", "key").mandatory()];
}

#[test]
fn messages_say_what_they_say() {
    let message: Message = Message::new("text")
        .priority(Priority::LOW)
        .ttl(Duration::from_secs(1))
        .id("id")
        .key("key")
        .header("name", "text")
        .header("name", 7_i64)
        .header("name", true)
        .header("name", 1.5)
        .header("name", Value::Void)
        .content_type("text/plain")
        .kind("kind")
        .correlation_id("id")
        .reply_to("queue");
    assert_eq!(message.body().as_ref(), b"text");
    let _: Message = Message::json(&[1]).expect("it is JSON");
    let _: [Message; 3] = [Message::new(vec![1]), Message::new(&b"bytes"[..]), Message::new(String::new())];
}

#[test]
fn a_handler_may_return_any_of_these() {
    fn may_return<T: IntoOutcome>(_: T) {}
    may_return(());
    may_return(Message::new(""));
    may_return(Outcome::Ack);
    may_return(Ok::<(), Error>(()));
    may_return(Ok::<Outcome, String>(Outcome::Nack));
    may_return(Ok::<Message, std::io::Error>(Message::new("")));
    may_return(Outcome::Reject);
    may_return(Outcome::Reply(Box::new(Message::new(""))));
}

#[test]
fn errors_are_matched() {
    for error in [
        Error::Invalid("why".to_owned()),
        Error::LoginRefused(String::new()),
        Error::ConnectionLost(String::new()),
        Error::Refused { code: 404, text: String::new() },
        Error::NotConfirmed,
        Error::Unroutable(String::new()),
        Error::LeaseOver,
        Error::ConsumerCancelled,
        Error::TimedOut,
        Error::Closed,
    ] {
        let error: &dyn std::error::Error = &error;
        assert!(!error.to_string().is_empty());
    }
}

/// What needs a broker, and so is only compiled.
#[allow(dead_code, reason = "it is compiled")]
async fn with_a_broker() -> Result<(), Error> {
    let client: Client = Client::connect("amqp://a").await?.clone();
    client.declare_queue("q", "{}").await?;
    client.declare_exchange("e", "{}").await?;
    client.bind_queue("q", "e", "key").await?;
    client.publish("q", Message::new("")).await?;
    client.publish(To::exchange("e", "key"), Message::new("")).await?;
    client.publish_all("q", vec![Message::new("")]).await?;
    let confirm: Confirm = client.send("q", Message::new("")).await?;
    confirm.await?;
    client.send("q", Message::new("")).await?.wait().await?;
    let mut consumer: Consumer = client.consume("q", 1).await?;
    while let Some(next) = consumer.next().await {
        let delivery: Delivery = next?;
        read(&delivery);
        read(delivery.received());
        delivery.reply(Message::new("")).await?;
        match delivery.is_redelivered() {
            true => delivery.reject()?,
            false if delivery.count() > 1 => delivery.nack()?,
            false => delivery.ack()?,
        }
    }
    let handling: Handling = client.handle("q", 1, |message: Received| async move { drop(message) }).await?;
    handling.stop().await?;
    client.handle("q", 1, |_| async {}).await?.wait().await?;
    for lease in client.lease("q", LeaseOptions::default()).await? {
        let lease: Lease = lease;
        read(&lease);
        lease.extend(Duration::from_secs(1)).await?;
        lease.reply(Message::new("")).await?;
        match lease.is_over() {
            true => lease.reject().await?,
            false if lease.count() > 3 => lease.nack_for(Duration::ZERO).await?,
            false if lease.count() > 2 => lease.nack().await?,
            false if lease.count() > 1 => lease.release().await?,
            false if lease.is_redelivered() => lease.handle(|_: Received| async {}).await?,
            false => lease.ack().await?,
        }
    }
    let reply: Received = client.request("q", Message::new(""), Duration::ZERO).await?;
    read(&reply);
    client.delete_queue("q").await?;
    client.delete_exchange("e").await?;
    client.close().await;
    Ok(())
}

fn read(message: &Received) {
    let _: &[u8] = message.body();
    let _: [Option<&str>; 6] = [
        message.text(),
        message.id(),
        message.content_type(),
        message.kind(),
        message.correlation_id(),
        message.reply_to(),
    ];
    let _: Result<u8, Error> = message.json();
    let _: Option<Priority> = message.priority();
    let _: Option<Value<'_>> = message.header("name");
    for (name, value) in message.headers() {
        let _: (&str, Value<'_>) = (name, value);
    }
    let _: Option<Duration> = message.ttl();
    let _: (bool, u64) = (message.is_redelivered(), message.count());
    let _: (&str, &str) = (message.exchange(), message.routing_key());
    let _: &Properties = message.properties();
}

//! Connections that are lost, and brokers.

use overtake_client::{Client, ConnectOptions, Consumer, Error, To};
use serde_json::{Value, json};

use super::{World, go, next, said, take};
use crate::support::http::ask;
use crate::support::link::Link;

/// Quick enough to be no matter.
const RATE: u32 = 100_000_000;

fn through(link: &Link, world: &World) -> ConnectOptions {
    ConnectOptions::new(format!("amqp://{}", link.address)).http(&world.broker.url)
}

#[test]
fn what_was_not_confirmed_is_published_again_and_consumers_go_on() {
    let world = World::new();
    let link = Link::to(&world.broker.amqp, RATE);
    go(async {
        let client = Client::connect(through(&link, &world)).await.unwrap();
        let mut consumer = client.consume("q", 5).await.unwrap();
        client.publish("q", said("a")).await.unwrap();
        let held = next(&mut consumer).await;
        link.cut();
        let confirm = client.send("q", said("b")).await.unwrap();
        let other = client.clone();
        let published = tokio::spawn(async move { other.publish("q", said("c")).await });
        link.mend();
        confirm.await.unwrap();
        published.await.unwrap().unwrap();
        let again = next(&mut consumer).await;
        assert_eq!((again.text(), again.is_redelivered()), (Some("a"), true));
        assert_eq!(held.ack(), Err(Error::LeaseOver), "it was lost with its connection");
        again.ack().unwrap();
        assert_eq!(take(&mut consumer, 2).await, "b:- c:-");
    });
}

/// The answers are lost, so nobody knows what came.
#[test]
fn with_numbers_what_is_published_again_is_there_once() {
    let world = World::new();
    let link = Link::to(&world.broker.amqp, RATE);
    let count = |world: &World| {
        let state = ask(&world.broker.url, "GET", "/v1/queues/q", &Value::Null).expect(200);
        state["totals"]["ready"].as_u64().unwrap()
    };
    go(async {
        for (is_numbered, copies) in [(true, 1), (false, 2)] {
            ask(&world.broker.url, "POST", "/v1/queues/q/purge", &json!({})).expect(200);
            let options = through(&link, &world);
            let options = if is_numbered { options.exactly_once() } else { options };
            let client = Client::connect(options).await.unwrap();
            client.publish("q", said("first")).await.unwrap();
            link.deafen();
            let mut confirms = Vec::new();
            for number in 0..20 {
                confirms.push(client.send("q", said(&number.to_string())).await.unwrap());
            }
            while count(&world) < 21 {
                tokio::task::yield_now().await;
            }
            link.cut();
            link.mend();
            for confirm in confirms {
                confirm.await.unwrap();
            }
            assert_eq!(count(&world), 1 + 20 * copies);
            client.close().await;
        }
    });
}

#[test]
fn a_broker_that_was_killed_and_has_lost_its_queues_finds_them_declared() {
    let mut world = World::new();
    let (amqp, http) = (Link::to(&world.broker.amqp, RATE), Link::to(&address(&world), RATE));
    let (client, mut consumer) = go_on(&amqp, &http);
    world.broker.kill();
    let fresh = World::new_empty();
    amqp.leads_to(&fresh.broker.amqp);
    http.leads_to(&address(&fresh));
    world = fresh;
    go_through(async {
        client.publish(To::exchange("events", "order.paid"), said("again")).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, "again:-");
    });
    let state = ask(&world.broker.url, "GET", "/v1/queues/orders", &Value::Null).expect(200);
    assert_eq!(state["settings"]["scheme"], "signed");
}

#[test]
fn what_was_changed_by_somebody_else_stays_so() {
    let world = World::new();
    let link = Link::to(&world.broker.amqp, RATE);
    go(async {
        let client = Client::connect(through(&link, &world)).await.unwrap();
        client.declare_queue("orders", r#"{"scheme": "signed", "max_active": 5}"#).await.unwrap();
        let mut consumer = client.consume("orders", 1).await.unwrap();
        let settings = json!({"scheme": "signed", "max_active": 7});
        ask(&world.broker.url, "PATCH", "/v1/queues/orders", &settings).expect(200);
        link.cut();
        link.mend();
        client.publish("orders", said("a")).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, "a:-");
    });
    let state = ask(&world.broker.url, "GET", "/v1/queues/orders", &Value::Null).expect(200);
    assert_eq!(state["settings"]["max_active"], 7);
}

/// Whoever publishes goes on as if nothing had happened.
#[test]
fn a_broker_that_is_killed_in_the_middle_has_each_message_once_and_in_order() {
    const COUNT: usize = 5_000;
    /// Confirms that wait to be looked at.
    const AHEAD: usize = 500;
    let mut world = World::new();
    let link = Link::to(&world.broker.amqp, RATE);
    let (client, publishing, mut told, mut in_doubt) = go_through(async {
        let client = Client::connect(through(&link, &world).exactly_once()).await.unwrap();
        let publisher = client.clone();
        let (tell, mut told) = tokio::sync::mpsc::channel(AHEAD);
        let publishing = tokio::spawn(async move {
            for number in 0..COUNT {
                let confirm = publisher.send("q", said(&number.to_string())).await.unwrap();
                tell.send(confirm).await.unwrap();
            }
        });
        for _ in 0..COUNT / 5 {
            told.recv().await.unwrap().await.unwrap();
        }
        link.deafen();
        // The last hundred were published after that, so nobody knows what became of them.
        let mut in_doubt = Vec::new();
        for _ in 0..AHEAD + 100 {
            in_doubt.push(told.recv().await.unwrap());
        }
        (client, publishing, told, in_doubt)
    });
    world = world.kill_and_start();
    link.leads_to(&world.broker.amqp);
    link.mend();
    go_through(async {
        for confirm in in_doubt.drain(..) {
            confirm.await.unwrap();
        }
        while let Some(confirm) = told.recv().await {
            confirm.await.unwrap();
        }
        publishing.await.unwrap();
        let mut consumer = client.consume("q", 500).await.unwrap();
        for number in 0..COUNT {
            let delivery = next(&mut consumer).await;
            assert_eq!(delivery.text(), Some(&*number.to_string()));
            delivery.ack().unwrap();
        }
        client.publish("q", said("end")).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, "end:-", "nothing is there twice");
    });
}

/// On a runtime that goes on after it.
fn go_through<R>(future: impl Future<Output = R>) -> R {
    RUNTIME.with(|runtime| runtime.block_on(future))
}

thread_local! {
    /// For what lives as long as a broker, and its successor.
    static RUNTIME: tokio::runtime::Runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
}

fn address(world: &World) -> String {
    world.broker.url.strip_prefix("http://").expect("a url").to_owned()
}

fn go_on(amqp: &Link, http: &Link) -> (Client, Consumer) {
    go_through(async {
        let options = ConnectOptions::new(format!("amqp://{}", amqp.address));
        let client = Client::connect(options.http(format!("http://{}", http.address))).await.unwrap();
        client.declare_exchange("events", r#"{"kind": "topic"}"#).await.unwrap();
        client.declare_queue("orders", r#"{"scheme": "signed"}"#).await.unwrap();
        client.bind_queue("orders", "events", "order.#").await.unwrap();
        let mut consumer = client.consume("orders", 5).await.unwrap();
        client.publish(To::exchange("events", "order.paid"), said("a")).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, "a:-");
        (client, consumer)
    })
}

#[test]
fn a_first_connection_that_cannot_be_is_told() {
    let world = World::new();
    go(async {
        let wrong = ConnectOptions::new(format!("amqp://guest:wrong@{}", world.broker.amqp));
        assert!(matches!(Client::connect(wrong).await, Err(Error::LoginRefused(_))));
        let wrong = ConnectOptions::new(format!("amqp://{}/none", world.broker.amqp));
        assert!(matches!(Client::connect(wrong).await, Err(Error::LoginRefused(_))));
        let port = overtake_free_port::free_port();
        let told = Client::connect(format!("amqp://127.0.0.1:{port}")).await.unwrap_err();
        assert!(matches!(&told, Error::ConnectionLost(why) if why.contains("refused")), "{told}");
        let told = Client::connect(format!("amqp://{}", address(&world))).await.unwrap_err();
        assert!(told.to_string().contains("does not speak AMQP"), "{told}");
        assert!(matches!(Client::connect("http://a").await, Err(Error::Invalid(_))));
    });
}

/// Somebody has changed the password meanwhile.
#[test]
fn a_login_that_is_refused_later_is_tried_again_unless_it_is_not_to_be() {
    let world = World::new();
    let link = Link::to(&world.broker.amqp, RATE);
    let user = |password: &str| {
        let stdin = format!("{password}\n");
        world.broker.feed(&["user", "put", "ann", "--new-password"], stdin.as_bytes()).ok();
    };
    user("old-password-1");
    world.broker.run(&["user", "allow", "ann", "--read", ".*", "--write", ".*"]).ok();
    let url = format!("amqp://ann:old-password-1@{}", link.address);
    let options = ConnectOptions::new(url).http(&world.broker.url);
    go(async {
        let soon = options.clone().login_retry(Some(std::time::Duration::from_millis(10)));
        let client = Client::connect(soon).await.unwrap();
        let strict = Client::connect(options.login_retry(None)).await.unwrap();
        let (mut consumer, mut ends) =
            (client.consume("q", 1).await.unwrap(), strict.consume("q", 1).await.unwrap());
        user("new-password-1");
        link.cut();
        link.mend();
        let told = ends.next().await.unwrap().unwrap_err();
        assert!(matches!(told, Error::LoginRefused(_)), "{told}");
        assert!(matches!(strict.publish("q", said("b")).await, Err(Error::LoginRefused(_))));
        let publishing = client.send("q", said("a")).await.unwrap();
        user("old-password-1");
        publishing.await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, "a:-");
    });
}

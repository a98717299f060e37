//! A priority stays as urgent from hop to hop: of a queue of routes, where 0 is the most urgent, into systems where larger numbers are, and back.

use std::sync::Arc;

use overtake_connectors::{IntakeState, Source, Sources};
use overtake_engine::{Browse, Content, Engine, NewMessage, SystemClock, Target};
use overtake_lane::{
    Binding, BrowseOrder, Destination, ExchangeKind, ExchangeSettings, Given, Headers, Order, Scheme,
    Settings,
};
use serde_json::{Value, json};

use crate::rabbit::Rabbit;
use crate::receiver::{Receiver, Says};
use crate::servers::Server;
use crate::world::World;

/// What is in the queue of routes, the most urgent first.
const IN_ORDER: &str = "p0 p5 p9 nothing";

fn of_scheme(scheme: Scheme) -> Settings {
    Settings { scheme, ..Settings::default() }
}

/// A broker whose queue `routed` has messages in another order than their urgency, and a queue for each scheme.
async fn world() -> World {
    let world = World::new().await;
    for (queue, scheme) in [
        ("routed", Scheme::Route),
        ("back-ten", Scheme::TenLevel),
        ("back-named", Scheme::Named),
        ("back-signed", Scheme::Signed),
        ("back-route", Scheme::Route),
        ("back-max", Scheme::Max(255)),
    ] {
        world.engine.declare_queue(queue, of_scheme(scheme)).await.expect("declared");
    }
    let said = [
        ("p9", Given::Number(9)),
        ("nothing", Given::Missing),
        ("p5", Given::Number(5)),
        ("p0", Given::Number(0)),
    ];
    let one = |(body, priority): (&str, Given)| NewMessage {
        to: Target::Queue("routed".into()),
        priority,
        content: Content::new(None, &Headers::new(), body.to_owned().into()),
        ..NewMessage::default()
    };
    world.send(said.map(one).into()).await;
    world
}

async fn forward(world: &World, to: Value, priority: Option<Value>) {
    let mut json = json!({"queue": "routed", "to": to});
    if let Some(priority) = priority {
        json["priority"] = priority;
    }
    world.try_put("next-hop", json).await.expect("it is configured");
    world.until_sees("routed", "").await;
}

/// A source into a queue of each scheme, from one place for each.
async fn bring_back(world: &World, from: impl Fn(&str) -> Value) -> Arc<Sources> {
    let engine: Arc<dyn Engine> = world.engine.clone();
    let source = |scheme: &str| {
        let queue = format!("back-{scheme}");
        let source = json!({"from": from(scheme), "to": {"queue": queue}});
        (scheme.to_owned(), serde_json::from_value::<Source>(source).expect("a source"))
    };
    let all = ["ten", "named", "signed", "route", "max"].map(source).into();
    Sources::open(engine, Arc::clone(&world.gate), Arc::new(SystemClock), all).await.expect("they open")
}

/// Bodies and priorities of a queue in the order in which they go, once there are four.
async fn comes(world: &World, queue: &str) -> String {
    let page = async || {
        let browse = Browse { order: BrowseOrder::Dispatch, limit: 10, ..Browse::default() };
        world.engine.browse(queue, browse).await.expect("a page").messages
    };
    let four = async {
        loop {
            let messages = page().await;
            if messages.len() == 4 {
                return messages;
            }
            tokio::task::yield_now().await;
        }
    };
    let messages = crate::world::soon("the fourth message", four).await;
    let one = |message: &overtake_engine::BrowsedMessage| {
        format!("{}:{}", String::from_utf8_lossy(&message.content.body), message.message.priority)
    };
    messages.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// What came back into each queue is as urgent there as it was here.
async fn came_back(world: &World) {
    for (queue, expected) in [
        ("back-ten", "p0:9 p5:4 p9:0 nothing:0"),
        ("back-named", "p0:critical p5:normal p9:background nothing:background"),
        ("back-signed", "p0:CRITICAL p5:NORMAL p9:BULK nothing:BULK"),
        ("back-route", "p0:0 p5:5 p9:9 nothing:default"),
        ("back-max", "p0:255 p5:113 p9:0 nothing:0"),
    ] {
        assert_eq!(comes(world, queue).await, expected, "{queue}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_of_this_broker_get_each_as_urgent_as_it_was() {
    let world = world().await;
    let fanout = ExchangeSettings::new(ExchangeKind::Fanout);
    world.engine.declare_exchange("all", fanout).await.expect("declared");
    for queue in ["back-ten", "back-named", "back-signed", "back-route", "back-max"] {
        let binding = Binding::new("all", Destination::Queue(queue.into()), "");
        world.engine.bind(binding).await.expect("bound");
    }
    forward(&world, json!({"queue": {"exchange": "all"}}), None).await;
    came_back(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_without_priorities_hands_on_the_number_that_it_was_given() {
    let world = World::new().await;
    let plain = Settings { scheme: Scheme::Max(255), order: Order::Fifo, ..Settings::default() };
    world.engine.declare_queue("out", plain).await.expect("declared");
    world.publish("a:1 b:9 c:5").await;
    world.put("move", json!({"to": {"queue": {"name": "in"}}})).await;
    world.until_empty().await;
    assert_eq!(world.sees("in").await, "b ready · c ready · a ready");
}

/// What requests say: priority and its scheme.
async fn posted(priority: Option<Value>) -> Vec<String> {
    let (world, mut server) = (world().await, Receiver::new(|_| Says::Status(204, "")).await);
    forward(&world, json!({"webhook": {"url": server.url()}}), priority).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        let got = server.next().await;
        let said = ["overtake-priority", "overtake-priority-scheme"].map(|name| got.header(name).to_owned());
        all.push(format!("{} {} {}", got.text(), said[0], said[1]));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_told_in_numbers_of_which_larger_is_more_urgent_or_as_it_wants_to_hear_it() {
    let usual = ["p0 9 max-9", "p5 4 max-9", "p9 0 max-9", "nothing 0 max-9"];
    assert_eq!(posted(None).await, usual);
    assert_eq!(
        posted(Some(json!({"scheme": "max-5"}))).await,
        ["p0 5 max-5", "p5 2 max-5", "p9 0 max-5", "nothing 0 max-5"]
    );
    let as_here = ["p0 0 route", "p5 5 route", "p9 9 route", "nothing  "];
    assert_eq!(posted(Some(json!({"scheme": "route"}))).await, as_here);
    let table = json!({"table": {"0": "page", "6": "mail", "default": 0}});
    assert_eq!(posted(Some(table)).await, ["p0 page ", "p5 mail ", "p9 0 ", "nothing 0 "]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_cannot_be_is_said() {
    let world = world().await;
    for (to, priority, said) in [
        (json!({"webhook": {"url": "http://h"}}), json!({"table": {"high": 1}}), "priority.table: `high`: "),
        (json!({"webhook": {"url": "http://h"}}), json!({"table": {}}), "priority.table: it is empty"),
        (
            json!({"queue": {"name": "in"}}),
            json!({"scheme": "max-9"}),
            "priority: a queue of this broker has a scheme itself",
        ),
    ] {
        let json = json!({"queue": "routed", "to": to, "priority": priority});
        let why = match world.try_put("next-hop", json).await {
            Err(refused) => refused.to_string(),
            Ok(_) => world.view("next-hop").await.work.last_error.expect("it says why").1.to_string(),
        };
        assert!(why.starts_with(said), "{why}");
    }
}

/// `12` is 9 in a queue of ten levels, and `100` is critical in one of names.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_names_one_level_of_its_queue_twice_is_refused() {
    let world = world().await;
    let settings = |scheme| Settings { scheme, ..Settings::default() };
    world.engine.declare_queue("tens", settings(Scheme::TenLevel)).await.expect("declared");
    world.engine.declare_queue("names", settings(Scheme::Named)).await.expect("declared");
    for (queue, table, both) in [
        ("tens", json!({"12": "a", "9": "b"}), "`12` and `9`"),
        ("names", json!({"critical": 1, "100": 2}), "`100` and `critical`"),
        ("names", json!({"normal": 1, "default": 2}), "`default` and `normal`"),
    ] {
        let json =
            json!({"queue": queue, "to": {"webhook": {"url": "http://h"}}, "priority": {"table": table}});
        let why = match world.try_put("twice", json).await {
            Err(refused) => refused.to_string(),
            Ok(_) => world.view("twice").await.work.last_error.expect("it says why").1.to_string(),
        };
        assert!(why.contains(&format!("{both} are the same priority in a queue of ")), "{why}");
    }
    let alike = json!({"normal": 1, "default": 1, "high": 2});
    let json =
        json!({"queue": "names", "to": {"webhook": {"url": "http://h"}}, "priority": {"table": alike}});
    world.try_put("alike", json).await.expect("a message that says nothing may be called normal");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_held_against_a_queue_that_is_declared_later() {
    let (world, mut server) = (World::new().await, Receiver::new(|_| Says::Status(204, "")).await);
    let to = json!({"webhook": {"url": server.url()}});
    let late = json!({"queue": "later", "to": to, "priority": {"table": {"high": 1}}});
    world.try_put("late", late).await.expect("its queue is not there yet");
    world.engine.declare_queue("later", Settings::default()).await.expect("declared");
    let message = NewMessage { to: Target::Queue("later".into()), ..NewMessage::default() };
    world.send(vec![message]).await;
    server.next().await;
    let says_so = |why: &str| why.starts_with("priority.table: `high`: ");
    world.until("late", |view| view.work.last_error.as_ref().is_some_and(|(_, why)| says_so(why))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rabbitmq_serves_the_urgent_first_and_what_comes_back_is_as_urgent() {
    let Some(rabbit) = Rabbit::start().await else { return };
    let world = world().await;
    rabbit.declare_with("jobs", json!({"x-max-priority": 9})).await;
    forward(&world, json!({"amqp": {"url": rabbit.url(), "routing_key": "jobs"}}), None).await;
    let got = rabbit.take("jobs", 4).await;
    let bodies: Vec<&str> = got.iter().map(|one| one["payload"].as_str().expect("text")).collect();
    assert_eq!(bodies.join(" "), IN_ORDER);
    let priorities: Vec<&Value> = got.iter().map(|one| &one["properties"]["priority"]).collect();
    assert_eq!(priorities, [&json!(9), &json!(4), &json!(0), &json!(0)]);

    // The same four into a queue for each source, in no order of urgency.
    for scheme in ["ten", "named", "signed", "route", "max"] {
        rabbit.declare(scheme).await;
        for one in [1, 2, 3, 0].map(|nth| &got[nth]) {
            rabbit.publish(scheme, one["payload"].as_str().expect("text"), &one["properties"]).await;
        }
    }
    let from = |scheme: &str| json!({"amqp": {"url": rabbit.url(), "queue": scheme}});
    let _sources = bring_back(&world, from).await;
    came_back(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_over_mqtt_comes_back_as_urgent() {
    let Some(server) = Server::mosquitto("allow_anonymous true") else { return };
    let world = world().await;
    let url = format!("mqtt://127.0.0.1:{}", server.port);
    let from = |scheme: &str| json!({"mqtt": {"url": url, "topics": ["jobs/#"], "client_id": scheme}});
    let sources = bring_back(&world, from).await;
    until_all_run(&world, &sources).await;
    forward(&world, json!({"mqtt": {"url": url, "topic": "jobs/{priority}"}}), None).await;
    came_back(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_over_a_stream_comes_back_as_urgent() {
    let Some(server) = Server::redis(&[]) else { return };
    let world = world().await;
    let url = format!("redis://127.0.0.1:{}", server.port);
    forward(&world, json!({"redis": {"url": url, "stream": "jobs"}}), None).await;
    let from = |scheme: &str| json!({"redis": {"url": url, "streams": ["jobs"], "group": scheme, "start": "beginning"}});
    let _sources = bring_back(&world, from).await;
    came_back(&world).await;
}

pub(crate) async fn until_all_run(world: &World, sources: &Sources) {
    let desk = world.desk("guest").await;
    let all_run = async {
        while !sources
            .list(&desk)
            .await
            .expect("a list")
            .iter()
            .all(|view| view.work.state == IntakeState::Running)
        {
            tokio::task::yield_now().await;
        }
    };
    crate::world::soon("their connections", all_run).await;
}

/// A receiver of another scale says so, and what says nothing of a scale is taken in the words of the source.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_told_in_which_words_others_speak() {
    let Some(server) = Server::redis(&[]) else { return };
    let world = world().await;
    let url = format!("redis://127.0.0.1:{}", server.port);
    forward(
        &world,
        json!({"redis": {"url": url, "stream": "jobs"}}),
        Some(json!({"table": {"0": "now", "6": "later"}})),
    )
    .await;
    let from = json!({"redis": {"url": url, "streams": ["jobs"], "start": "beginning"}});
    let table = json!({"table": {"now": "critical", "later": "low"}});
    let source = json!({"from": from, "to": {"queue": "back-named"}, "priority": table});
    let source: Source = serde_json::from_value(source).expect("a source");
    let engine: Arc<dyn Engine> = world.engine.clone();
    let all = vec![("s".to_owned(), source)];
    let _sources =
        Sources::open(engine, Arc::clone(&world.gate), Arc::new(SystemClock), all).await.expect("open");
    assert_eq!(comes(&world, "back-named").await, "p0:critical p5:low p9:low nothing:low");
}

//! From a table to Redis's streams, by a configuration as people write it.

use overtake_outbox::Config;
use overtake_streams::{Entry, Lags, Lanes, SubscribeOptions, Subscriber};
use tokio::sync::oneshot;

use crate::servers::Server;
use crate::world::{World, events};

fn config(world: &World, port: u16) -> Config {
    config_with(world, port, "")
}

/// With more settings of Redis.
fn config_with(world: &World, port: u16, more: &str) -> Config {
    let text = format!(
        "[database]\nurl = \"{}\"\n[sink.redis]\nurl = \"redis://127.0.0.1:{port}\"\n{more}[lanes]\nenabled = true\n\
         [retry]\ninitial = \"10ms\"\nmax = \"50ms\"\n",
        world.url
    );
    Config::parse(&text, "relay.toml").expect("a configuration")
}

async fn subscribe(port: u16, category: &str) -> Subscriber {
    subscribe_to(port, SubscribeOptions::new(category, "g")).await
}

async fn subscribe_to(port: u16, options: SubscribeOptions) -> Subscriber {
    let server = overtake_streams::server(&format!("redis://127.0.0.1:{port}")).expect("a server");
    let options = SubscribeOptions { lanes: Lanes::enabled(), ..options };
    Subscriber::connect(&server, options).await.expect("it is there")
}

async fn next(subscriber: &Subscriber) -> Entry {
    let entry = subscriber.next().await.expect("an entry");
    assert!(subscriber.ack(&entry).await.expect("acknowledged"));
    entry
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_become_entries_of_the_lane_of_their_priority_through_a_crash_of_redis() {
    let Some((mut redis, port)) = Server::redis() else { return };
    let world = World::sqlite().await.expect("it is built in");
    world.outbox().await;
    let event =
        events("low:-50 urgent:50 normal:0").into_iter().map(|event| event.metadata(r#"{"trace": "t"}"#));
    world.write(&event.collect::<Vec<_>>()).await;
    let relay = config(&world, port).relay().await.expect("a relay");
    let watch = relay.watch();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async move { stopped.await.unwrap_or_default() }));

    let mut states = world.states().await;
    while states != "low:published urgent:published normal:published" {
        tokio::task::yield_now().await;
        states = world.states().await;
    }
    let subscriber = subscribe(port, "customer").await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let entry = next(&subscriber).await;
        assert_eq!(entry.metadata()["trace"], "t");
        seen.push(format!("{} {}", entry.stream(), entry.body()));
    }
    let told = |stream: &str, id: &str| format!("{stream} {{\"id\": \"{id}\"}}");
    assert_eq!(
        seen,
        [told("customer", "urgent"), told("customer", "normal"), told("customer:backfill", "low")]
    );

    // It is away for a while, and nothing is lost.
    redis.restart();
    world.rows("after").await;
    assert!(next(&subscriber).await.body().contains("after"));
    stop.send(()).expect("it runs");
    running.await.expect("it ends");
    let counted = watch.seen();
    assert_eq!((counted.published, counted.failed, counted.abandoned), (4, 0, 0), "{counted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_entry_can_hold_is_set_aside() {
    let Some((_redis, port)) = Server::redis() else { return };
    let world = World::sqlite().await.expect("it is built in");
    world.outbox().await;
    world.rows("bad:50 good").await;
    world.run("UPDATE outbox SET data = 'no JSON' WHERE message_id = 'bad'").await;
    let relay = config(&world, port).relay().await.expect("a relay");
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async move { stopped.await.unwrap_or_default() }));
    while world.states().await != "bad:abandoned good:published" {
        tokio::task::yield_now().await;
    }
    stop.send(()).expect("it runs");
    running.await.expect("it ends");
    let error = world.find("SELECT last_error FROM outbox WHERE message_id = 'bad'").await;
    assert!(error.starts_with("its data is no JSON: "), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_every_group_has_settled_is_deleted_and_nothing_else() {
    let Some((_redis, port)) = Server::redis() else { return };
    let world = World::sqlite().await.expect("it is built in");
    world.outbox().await;
    let subscriber = subscribe(port, "customer").await;
    let relay = config_with(&world, port, "trim_settled_every = \"1ms\"\n").relay().await.expect("a relay");
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async move { stopped.await.unwrap_or_default() }));
    world.rows("first").await;
    next(&subscriber).await;
    // This one is read and not settled: whatever is trimmed, it stays, and so does all behind it.
    world.rows("held").await;
    let held = subscriber.next().await.expect("an entry");
    let server = overtake_streams::server(&format!("redis://127.0.0.1:{port}")).expect("a server");
    let lags = Lags::new(&server);
    // A group that is not there has everything before it.
    let all = async || lags.of("customer", "nobody", &Lanes::enabled()).await.expect("told")[0].waiting;
    let mut published = 2;
    while all().await == published {
        world.rows(&format!("more-{published}")).await;
        next(&subscriber).await;
        published += 1;
    }
    assert_eq!(all().await, published - 1, "only the first is gone");
    assert!(subscriber.ack(&held).await.expect("heard"), "it was ours");
    // Nothing is written any more, and the last entries go as well.
    while all().await > 0 {
        tokio::task::yield_now().await;
    }
    stop.send(()).expect("it runs");
    running.await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_with_keys_are_read_from_the_streams_of_their_keys_each_in_order() {
    let Some((_redis, port)) = Server::redis() else { return };
    let world = World::sqlite().await.expect("it is built in");
    world.outbox().await;
    world.rows("a1:0:a late:-50:a b1:0:b a2:0:a none b2:0:b").await;
    let relay = config_with(&world, port, "partitions = true\n").relay().await.expect("a relay");
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async move { stopped.await.unwrap_or_default() }));
    while world.states().await.contains("pending") || world.states().await.contains("processing") {
        tokio::task::yield_now().await;
    }
    let parted = SubscribeOptions { partitions: true, ..SubscribeOptions::new("customer", "g") };
    let subscriber = subscribe_to(port, parted).await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        let entry = next(&subscriber).await;
        seen.push(format!("{} {}", entry.stream(), entry.data::<serde_json::Value>().expect("JSON")["id"]));
    }
    let of =
        |stream: &str| seen.iter().filter(|one| one.starts_with(&format!("{stream} "))).collect::<Vec<_>>();
    assert_eq!(of("customer:a"), ["customer:a \"a1\"", "customer:a \"a2\""]);
    assert_eq!(of("customer:b"), ["customer:b \"b1\"", "customer:b \"b2\""]);
    assert_eq!(of("customer"), ["customer \"none\""]);
    assert_eq!(seen[5], "customer:a:backfill \"late\"");
    stop.send(()).expect("it runs");
    running.await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_far_groups_are_is_counted_and_one_that_never_reads_a_lane_is_known() {
    let Some((_redis, port)) = Server::redis() else { return };
    let world = World::sqlite().await.expect("it is built in");
    world.outbox().await;
    let server = overtake_streams::server(&format!("redis://127.0.0.1:{port}")).expect("a server");
    // One group reads both lanes, and one the primary lane only. Nobody of the first is there any more.
    let both = subscribe_to(port, SubscribeOptions::new("customer", "both")).await;
    both.stop().await.expect("nothing is held");
    let one = SubscribeOptions::new("customer", "one");
    let one = Subscriber::connect(&server, one).await.expect("it is there");
    world.rows("now late:-50 later:-50").await;
    let mut config = config(&world, port);
    config.settings.lag_every = std::time::Duration::from_millis(1);
    let relay = config.relay().await.expect("a relay");
    let watch = relay.watch();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async move { stopped.await.unwrap_or_default() }));
    let pending = one.next().await.expect("an entry");
    let expect = [
        "both primary 1 0 false",
        "both backfill 2 0 false",
        "one primary 0 1 false",
        "one backfill 2 0 true",
    ];
    let told = || {
        let told = watch.seen().groups.into_iter().map(|lag| {
            assert_eq!(lag.category, "customer");
            let group = lag.group.expect("a name");
            format!("{group} {} {} {} {}", lag.lane, lag.waiting, lag.pending, lag.is_unread)
        });
        told.collect::<Vec<_>>()
    };
    let is_far = |told: &[String]| told.iter().map(String::as_str).eq(expect);
    while !is_far(&told()) {
        tokio::task::yield_now().await;
    }
    assert!(one.ack(&pending).await.expect("heard"), "it was ours");
    stop.send(()).expect("it runs");
    running.await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_counted_where_that_is_turned_off() {
    let Some((_redis, port)) = Server::redis() else { return };
    let world = World::sqlite().await.expect("it is built in");
    world.outbox().await;
    world.rows("first").await;
    let mut config = config(&world, port);
    config.settings.lag_every = std::time::Duration::ZERO;
    let relay = config.relay().await.expect("a relay");
    let watch = relay.watch();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async move { stopped.await.unwrap_or_default() }));
    next(&subscribe(port, "customer").await).await;
    stop.send(()).expect("it runs");
    running.await.expect("it ends");
    assert_eq!((watch.seen().lag, watch.seen().groups), (vec![], vec![]));
}

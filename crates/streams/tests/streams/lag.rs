use overtake_streams::{Lag, Lags, Lane, Lanes};

use crate::world::{World, next, options};

async fn of(world: &World, group: &str) -> Vec<Lag> {
    Lags::new(&world.server).of("customer", group, &Lanes::enabled()).await.expect("told")
}

#[tokio::test]
async fn how_far_a_group_is_is_told_for_each_lane() {
    let Some(world) = World::new() else { return };
    let empty = |lane| Lag { lane, waiting: 0, pending: 0, oldest_s: 0, dead: 0, has_group: false };
    assert_eq!(of(&world, "mails").await, [empty(Lane::Primary), empty(Lane::Backfill)]);
    world.add("customer", &["1", "2", "3"]).await;
    world.add("customer:backfill", &["b"]).await;
    // A group that is not there yet has everything before it.
    let waiting = of(&world, "mails").await.iter().map(|lag| lag.waiting).collect::<Vec<_>>();
    assert_eq!(waiting, [3, 1]);
    let subscriber = world.subscribe(overtake_streams::SubscribeOptions { batch: 1, ..options("c") }).await;
    let first = next(&subscriber).await;
    let told = of(&world, "mails").await[0];
    assert_eq!((told.waiting, told.pending, told.dead), (2, 1, 0));
    subscriber.reject(&first, "no").await.expect("heard");
    let told = of(&world, "mails").await[0];
    assert_eq!((told.waiting, told.pending, told.dead), (2, 0, 1));
}

#[tokio::test]
async fn the_oldest_is_as_old_as_its_id_says() {
    let Some(world) = World::new() else { return };
    world.ask("XADD customer 1000-0 data {\"data\":1}").await;
    world.add("customer", &["new"]).await;
    let subscriber = world.subscribe(options("c")).await;
    let old = next(&subscriber).await;
    assert!(of(&world, "mails").await[0].oldest_s > 1_000_000_000, "while it is pending, too");
    subscriber.ack(&old).await.expect("heard");
    assert!(of(&world, "mails").await[0].oldest_s < 1_000_000);
}

#[tokio::test]
async fn what_the_server_does_not_know_is_counted() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["1", "2", "3", "4"]).await;
    world.ask("XGROUP CREATE customer mails 0").await;
    world.ask("XREADGROUP GROUP mails c COUNT 1 STREAMS customer >").await;
    // A gap before a group's place makes its own number unknown.
    let all = world.ask("XRANGE customer - + COUNT 3").await;
    let redis::Value::Array(all) = all else { panic!() };
    let redis::Value::Array(third) = &all[2] else { panic!() };
    let redis::Value::BulkString(id) = &third[0] else { panic!() };
    world.ask(&format!("XDEL customer {}", String::from_utf8_lossy(id))).await;
    assert_eq!(of(&world, "mails").await[0].waiting, 2);
}

#[tokio::test]
async fn only_what_every_group_has_settled_is_deleted() {
    let Some(world) = World::new() else { return };
    let lags = Lags::new(&world.server);
    let trim = async || lags.trim("customer", &Lanes::enabled()).await.expect("told");
    world.add("customer", &["1", "2", "3", "4"]).await;
    assert_eq!(trim().await, 0, "nobody has read anything");
    let subscriber = world.subscribe(options("c")).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(next(&subscriber).await);
    }
    for at in [0, 1, 3] {
        subscriber.ack(&all[at]).await.expect("heard");
    }
    // The third is pending, and what is behind it stays with it.
    assert_eq!(trim().await, 2);
    assert_eq!(world.number("XLEN customer").await, 2);
    subscriber.ack(&all[2]).await.expect("heard");
    // A group that has read nothing keeps everything, also one that is in another stream only.
    world.ask("XGROUP CREATE customer:backfill bills 0 MKSTREAM").await;
    assert_eq!(trim().await, 0);
    world.ask("XGROUP CREATE customer bills 0").await;
    assert_eq!(trim().await, 0);
    world.ask("XGROUP SETID customer bills $").await;
    assert_eq!(trim().await, 2);
    world.add("customer", &["5"]).await;
    assert_eq!(trim().await, 0);
    assert_eq!(crate::world::drain(&subscriber, 1).await, ["5"]);
}

#[tokio::test]
async fn a_stream_that_cannot_be_read_is_named_and_the_others_are_told_and_trimmed() {
    let Some(world) = World::new() else { return };
    let lags = Lags::new(&world.server);
    let lanes = Lanes::enabled();
    world.ask("SADD customer:__partitions__ 7 8").await;
    world.ask("SET customer:7 text").await;
    world.add("customer:8", &["1", "2"]).await;
    let broken = "customer:7: WRONGTYPE Operation against a key holding the wrong kind of value";
    let told = lags.of_all("customer", &lanes).await.expect("told");
    assert_eq!(
        (told.groups, told.broken),
        (vec![], vec![broken.to_owned()]),
        "no group, and not all is read"
    );
    world.ask("XGROUP CREATE customer:8 mails $").await;
    let told = lags.of_all("customer", &lanes).await.expect("told");
    let (name, lag) = &told.groups[0];
    assert_eq!((name.as_str(), lag[0].waiting, lag[0].has_group), ("mails", 0, true));
    assert_eq!(told.broken, [broken]);
    for refused in
        [lags.of("customer", "mails", &lanes).await.err(), lags.groups("customer", &lanes).await.err()]
    {
        assert_eq!(refused.as_deref(), Some(broken));
    }
    assert_eq!(lags.trim("customer", &lanes).await, Err(broken.to_owned()));
    assert_eq!(world.number("XLEN customer:8").await, 0, "both entries are settled");
    // Where the dead letters cannot be read, the lag is told all the same.
    world.ask("DEL customer:7").await;
    world.ask("SET customer:8:dlq text").await;
    world.add("customer:8", &["3"]).await;
    let told = lags.of_all("customer", &lanes).await.expect("told");
    assert_eq!(
        (told.groups[0].1[0].waiting, told.broken),
        (1, vec![broken.replace("customer:7", "customer:8:dlq")])
    );
}

#[tokio::test]
async fn a_group_that_reads_one_lane_has_none_in_the_other() {
    let Some(world) = World::new() else { return };
    world.add("customer:backfill", &["b1", "b2"]).await;
    let one_lane = overtake_streams::SubscribeOptions { lanes: Lanes::default(), ..options("c") };
    let subscriber = world.subscribe(one_lane).await;
    let told = of(&world, "mails").await;
    assert_eq!(
        told.iter().map(|lag| (lag.has_group, lag.waiting)).collect::<Vec<_>>(),
        [(true, 0), (false, 2)]
    );
    subscriber.stop().await.expect("nothing is held");
}

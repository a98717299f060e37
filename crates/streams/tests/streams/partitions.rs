//! Categories that are parted by keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use overtake_streams::{Fate, Lanes, Start, SubscribeOptions};

use crate::reading::until_it_waits;
use crate::world::{World, drain, next, options};

fn parted(consumer: &str) -> SubscribeOptions {
    SubscribeOptions { partitions: true, ..options(consumer) }
}

impl World {
    /// Adds entries to the stream of a key, which is recorded, as writers do.
    async fn add_to(&self, key: &str, lane: &str, all: &[&str]) {
        self.ask(&format!("SADD customer:__partitions__ {key}")).await;
        self.add(&format!("customer:{key}{lane}"), all).await;
    }
}

#[tokio::test]
async fn primary_lanes_of_all_partitions_go_before_any_backfill_lane_and_each_is_in_order() {
    let Some(world) = World::new() else { return };
    world.add("customer:backfill", &["-b1", "-b2"]).await;
    world.add("customer", &["-p1", "-p2"]).await;
    for key in ["k", "l"] {
        world.add_to(key, ":backfill", &[&format!("{key}b1"), &format!("{key}b2")]).await;
        world.add_to(key, "", &[&format!("{key}p1"), &format!("{key}p2")]).await;
    }
    let subscriber = world.subscribe(parted("c")).await;
    let all = drain(&subscriber, 12).await;
    assert!(all[..6].iter().all(|what| what.contains('p')), "{all:?}");
    // Fair: the first of each comes before the second of any.
    for half in [&all[..6], &all[6..]] {
        assert!(half[..3].iter().all(|what| what.ends_with('1')), "{all:?}");
        assert!(half[3..].iter().all(|what| what.ends_with('2')), "{all:?}");
    }
}

#[tokio::test]
async fn the_group_has_one_entry_of_a_partition_at_a_time() {
    let Some(world) = World::new() else { return };
    world.add_to("k", "", &["1", "2", "3"]).await;
    let one = world.subscribe(parted("one")).await;
    let other = Arc::new(world.subscribe(parted("other")).await);
    let first = next(&one).await;
    let waits = tokio::spawn({
        let other = Arc::clone(&other);
        async move { next(&other).await }
    });
    // The other one has seen all there was before, and gets what is of another key.
    until_it_waits(&world).await;
    world.add_to("l", "", &["of another"]).await;
    let of_another = waits.await.expect("it ends");
    assert_eq!(of_another.body(), "\"of another\"");
    assert_eq!(one.ack(&first).await, Ok(true));
    let second = next(&other).await;
    assert_eq!((first.body(), second.body()), ("\"1\"", "\"2\""));
    assert_eq!(other.ack(&second).await, Ok(true));
    assert_eq!(drain(&one, 1).await, ["3"]);
}

#[tokio::test]
async fn a_partition_that_is_new_is_found_and_an_urgent_arrival_is_next() {
    let Some(world) = World::new() else { return };
    world.add_to("k", ":backfill", &["b1", "b2", "b3"]).await;
    let subscriber = world.subscribe(parted("c")).await;
    assert_eq!(drain(&subscriber, 1).await, ["b1"]);
    world.add_to("k", "", &["urgent"]).await;
    assert_eq!(drain(&subscriber, 2).await, ["urgent", "b2"]);
    let b3 = next(&subscriber).await;
    world.add_to("new", "", &["found"]).await;
    assert_eq!(drain(&subscriber, 1).await, ["found"]);
    assert_eq!(subscriber.ack(&b3).await, Ok(true));
}

#[tokio::test]
async fn an_arrival_in_any_partition_ends_a_wait_also_while_others_are_worked_on() {
    let Some(world) = World::new() else { return };
    world.add_to("k", "", &["1"]).await;
    world.add_to("l", "", &["1"]).await;
    let subscriber = Arc::new(world.subscribe(parted("c")).await);
    let held = [next(&subscriber).await, next(&subscriber).await];
    let waits = |count| {
        let subscriber = Arc::clone(&subscriber);
        tokio::spawn(async move { drain(&subscriber, count).await })
    };
    let waiting = waits(3);
    until_it_waits(&world).await;
    for entry in &held {
        assert_eq!(subscriber.ack(entry).await, Ok(true));
    }
    // These streams were not waited for when the wait began.
    world.add_to("k", "", &["2"]).await;
    world.add_to("l", ":backfill", &["3"]).await;
    world.add_to("k", "", &["4"]).await;
    let mut all = waiting.await.expect("it ends");
    all.sort();
    assert_eq!(all, ["2", "3", "4"]);
}

#[tokio::test]
async fn an_entry_that_fails_holds_up_its_own_partition_only_and_dies_there() {
    let Some(world) = World::new() else { return };
    world.add_to("k", ":backfill", &["bad", "after"]).await;
    world.add_to("l", ":backfill", &["1", "2"]).await;
    let subscriber = world.subscribe(parted("c")).await;
    let (mut order, mut fates) = (Vec::new(), Vec::new());
    while order.len() < 4 {
        let entry = next(&subscriber).await;
        if entry.body() == "\"bad\"" {
            fates.push(subscriber.fail(&entry, "no").await.expect("heard"));
            if fates.last() == Some(&Fate::Dead) {
                order.push("bad".to_owned());
            }
        } else {
            order.push(entry.data().expect("text"));
            assert_eq!(subscriber.ack(&entry).await, Ok(true));
        }
    }
    assert_eq!(fates.len(), 3, "{fates:?}");
    let at = |what: &str| order.iter().position(|each| each == what);
    assert!(at("bad") < at("after"), "{order:?}");
    assert_eq!(world.number("XLEN customer:k:backfill:dlq").await, 1);
}

#[tokio::test]
async fn what_a_dead_consumer_held_comes_first_and_its_successors_wait_for_it() {
    let Some(world) = World::new() else { return };
    world.add_to("k", "", &["1", "2"]).await;
    let dead = world.subscribe(parted("dead")).await;
    let held = next(&dead).await;
    drop(dead);
    let claim_idle = Duration::from_millis(50);
    let heir = world.subscribe(SubscribeOptions { claim_idle, ..parted("heir") }).await;
    let again = next(&heir).await;
    assert_eq!((again.id(), again.attempt()), (held.id(), 2));
    assert_eq!(heir.ack(&again).await, Ok(true));
    assert_eq!(drain(&heir, 1).await, ["2"]);
}

#[tokio::test]
async fn who_lost_an_entry_to_another_cannot_acknowledge_it() {
    let Some(world) = World::new() else { return };
    world.add_to("k", "", &["1", "2"]).await;
    let slow = world.subscribe(parted("slow")).await;
    let lost = next(&slow).await;
    world.ask(&format!("XCLAIM customer:k mails other 0 {}", lost.id())).await;
    assert_eq!(slow.ack(&lost).await, Ok(false));
    // It is pending still, for whoever took it.
    assert_eq!(world.number(&format!("XACK customer:k mails {}", lost.id())).await, 1);
}

#[tokio::test]
async fn a_partition_that_cannot_be_read_is_alone_with_that() {
    for breaks in
        ["SET customer:bad text", "ACL SETUSER default resetkeys ~customer:good* ~customer:__* ~customer"]
    {
        let Some(world) = World::new() else { return };
        world.add_to("good", "", &["1", "2"]).await;
        world.ask("SADD customer:__partitions__ bad").await;
        world.ask(breaks).await;
        let subscriber = world.subscribe(parted("c")).await;
        assert_eq!(drain(&subscriber, 2).await, ["1", "2"]);
        while subscriber.broken().is_none() {
            world.add("customer:good", &["3"]).await;
            assert_eq!(drain(&subscriber, 1).await, ["3"]);
        }
        let why = subscriber.broken().expect("it is broken");
        assert!(why.starts_with("customer:b"), "{why}");
    }
}

#[tokio::test]
async fn keys_that_would_name_another_stream_are_passed_over() {
    let Some(world) = World::new() else { return };
    for key in ["backfill", "dlq", "a:b", "__x__"] {
        world.ask(&format!("SADD customer:__partitions__ {key}")).await;
    }
    world.add("customer:dlq", &["dead"]).await;
    world.add("customer:backfill", &["late"]).await;
    world.add_to("k", "", &["1"]).await;
    let subscriber = world.subscribe(parted("c")).await;
    assert_eq!(drain(&subscriber, 1).await, ["1"]);
    let late = next(&subscriber).await;
    assert_eq!((late.stream(), late.lane()), ("customer:backfill", overtake_streams::Lane::Backfill));
}

#[tokio::test]
async fn a_consumer_is_in_the_group_of_a_partition_only_while_it_holds_something() {
    let Some(world) = World::new() else { return };
    world.add_to("k", "", &["1", "2"]).await;
    let subscriber = world.subscribe(parted("c")).await;
    assert_eq!(drain(&subscriber, 1).await, ["1"]);
    assert_eq!(world.ask("XINFO CONSUMERS customer:k mails").await, redis::Value::Array(vec![]));
    let given_back = next(&subscriber).await;
    subscriber.fail(&given_back, "no").await.expect("heard");
    subscriber.stop().await.expect("heard");
    let other = world.subscribe(parted("other")).await;
    assert_eq!(next(&other).await.id(), given_back.id());
}

#[tokio::test]
async fn a_group_that_begins_with_what_is_new_gets_all_of_partitions_that_come_later() {
    let Some(world) = World::new() else { return };
    world.add_to("old", "", &["old"]).await;
    let new = SubscribeOptions { start: Start::New, ..parted("c") };
    let subscriber = world.subscribe(new.clone()).await;
    world.add_to("old", "", &["1"]).await;
    assert_eq!(drain(&subscriber, 1).await, ["1"]);
    subscriber.stop().await.expect("heard");
    // Nobody reads now.
    world.add_to("late", "", &["2"]).await;
    let subscriber = world.subscribe(new).await;
    assert_eq!(drain(&subscriber, 1).await, ["2"]);
}

#[tokio::test]
async fn a_connection_that_is_lost_loses_nothing_of_any_partition() {
    let Some(world) = World::new() else { return };
    world.add_to("k", "", &["1", "2"]).await;
    world.add_to("l", "", &["3"]).await;
    let subscriber = world.subscribe(parted("c")).await;
    let mut all = drain(&subscriber, 1).await;
    world.ask("CLIENT KILL TYPE normal SKIPME yes").await;
    all.extend(drain(&subscriber, 2).await);
    all.sort();
    assert_eq!(all, ["1", "2", "3"]);
}

#[tokio::test]
async fn thousands_of_partitions_are_not_asked_one_by_one() {
    let Some(world) = World::new() else { return };
    let mut wire = world.wire().await;
    let mut make = redis::cmd("EVAL");
    make.arg(
        "for i = 1, 3000 do
          redis.call('SADD', 'customer:__partitions__', i)
          redis.call('XGROUP', 'CREATE', 'customer:' .. i, 'mails', '0', 'MKSTREAM')
        end",
    );
    wire.ask(make.arg(0)).await.expect("there").expect("made");
    let subscriber = Arc::new(world.subscribe(parted("c")).await);
    let waits = tokio::spawn({
        let subscriber = Arc::clone(&subscriber);
        async move { drain(&subscriber, 100).await }
    });
    until_it_waits(&world).await;
    let before = calls(&world).await;
    for at in 1..=100 {
        world.add(&format!("customer:{at}"), &["2"]).await;
    }
    waits.await.expect("it ends");
    let asked = calls(&world).await;
    let of = |what: &str| asked[what] - before[what];
    // A script that takes, one that acknowledges, and the search behind it for more.
    assert!(of("eval") < 600 && of("xread") <= 110, "{} scripts, {} reads", of("eval"), of("xread"));
}

async fn calls(world: &World) -> BTreeMap<String, u64> {
    let redis::Value::BulkString(all) = world.ask("INFO commandstats").await else { panic!() };
    let all = String::from_utf8_lossy(&all).into_owned();
    let one = |line: &str| {
        let (name, told) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), told.split(',').next()?.parse().ok()?))
    };
    all.lines().filter_map(one).collect()
}

#[tokio::test]
async fn lag_and_dead_letters_are_of_all_partitions() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["-"]).await;
    for key in ["k", "l"] {
        world.add_to(key, "", &["1", "2", "3"]).await;
        world.add_to(key, ":backfill", &["late"]).await;
        // Dead letters of two partitions may have one id.
        world.ask(&format!("XADD customer:{key}:dlq 7-7 data {{\"data\":\"{key}\"}}")).await;
    }
    let subscriber = world.subscribe(parted("c")).await;
    let mut taken = [next(&subscriber).await, next(&subscriber).await, next(&subscriber).await];
    taken.sort_by_key(|entry| entry.stream().to_owned());
    subscriber.reject(&taken[1], "no").await.expect("heard");
    let lags = overtake_streams::Lags::new(&world.server);
    let told = lags.of("customer", "mails", &Lanes::enabled()).await.expect("told");
    let all: Vec<_> = told.iter().map(|lag| (lag.waiting, lag.pending, lag.dead)).collect();
    world.ask("XGROUP CREATE customer:l:backfill bills 0").await;
    let groups = lags.groups("customer", &Lanes::enabled()).await;
    assert_eq!(groups.expect("told"), ["bills", "mails"]);
    assert_eq!(all, [(4, 2, 3), (2, 0, 0)]);

    let letters = world.dead_letters();
    assert_eq!(letters.list(10).await.expect("told").len(), 3);
    let why = letters.inspect("7-7", None).await.unwrap_err();
    assert!(why.contains("customer:k:dlq/7-7") && why.contains("customer:l:dlq/7-7"), "{why}");
    assert_eq!(letters.replay("customer:k:dlq/7-7", None).await, Ok(true));
    assert_eq!(world.number("XLEN customer:k").await, 4);
    assert_eq!(letters.replay_all(None).await, Ok(2));
    assert_eq!(letters.purge(None).await, Ok(0));
}

#[tokio::test]
async fn each_partition_is_in_order_with_many_consumers_of_which_some_end() {
    let Some(world) = World::new() else { return };
    for key in 0..10 {
        let all: Vec<String> = (0..20).map(|number| format!("{key}/{number:02}")).collect();
        world.add_to(&key.to_string(), "", &all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    let (handled, mut handling) = tokio::sync::mpsc::channel(300);
    let start = async |name: String| {
        let subscriber = Arc::new(world.subscribe(parted(&name)).await);
        let slots = (0..3).map(|_| {
            let (subscriber, handled) = (Arc::clone(&subscriber), handled.clone());
            tokio::spawn(async move {
                loop {
                    let entry = next(&subscriber).await;
                    handled.send(entry.data::<String>().expect("text")).await.expect("somebody listens");
                    assert_eq!(subscriber.ack(&entry).await, Ok(true));
                }
            })
        });
        let slots: Vec<_> = slots.collect();
        (subscriber, slots)
    };
    let (first, slots) = start("0".to_owned()).await;
    let others = [start("1".to_owned()).await, start("2".to_owned()).await];
    let mut all = Vec::new();
    while all.len() < 50 {
        all.push(handling.recv().await.expect("more"));
    }
    for slot in slots {
        slot.abort();
        let _ = slot.await;
    }
    // What it had handed over and not settled stays pending; it is as if its program had died.
    drop(first);
    let heir = start("0".to_owned()).await;
    while all.iter().collect::<std::collections::BTreeSet<_>>().len() < 200 {
        all.push(handling.recv().await.expect("more"));
    }
    for key in 0..10 {
        let mut of: Vec<_> = all.iter().filter(|what| what.starts_with(&format!("{key}/"))).collect();
        // An entry that was not settled is handed over once more, before its successor.
        of.dedup();
        assert!(of.is_sorted(), "{of:?}");
        assert_eq!(of.len(), 20, "{of:?}");
    }
    drop((heir, others));
}

#[tokio::test]
async fn a_subscriber_says_what_it_never_reads_and_which_setting_reads_it() {
    let Some(world) = World::new() else { return };
    let unread = async |lanes: Lanes, partitions: bool| {
        let subscriber = world.subscribe(SubscribeOptions { lanes, partitions, ..options("c") }).await;
        subscriber.unread().await.expect("told")
    };
    world.add("customer", &["1"]).await;
    assert_eq!(unread(Lanes::default(), false).await, None);
    world.add("customer:backfill", &["late", "later"]).await;
    let of_lanes = "this subscriber never reads customer:backfill (2 entries): set `lanes` as whoever writes them has it";
    assert_eq!(unread(Lanes::default(), false).await.as_deref(), Some(of_lanes));
    assert_eq!(unread(Lanes::enabled(), false).await, None);
    world.add_to("7", "", &["1"]).await;
    let of_parts =
        "this subscriber never reads customer:7 (1 entry): set `partitions` as whoever writes them has it";
    assert_eq!(unread(Lanes::enabled(), false).await.as_deref(), Some(of_parts));
    assert_eq!(unread(Lanes::enabled(), true).await, None);
    for key in 8..12 {
        world.add_to(&key.to_string(), ":backfill", &["1"]).await;
    }
    let all = unread(Lanes::default(), false).await.expect("something");
    assert!(all.contains("and 3 more: set `lanes` and `partitions`"), "{all}");
}

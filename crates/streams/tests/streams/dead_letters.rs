use overtake_streams::{Lane, Subscriber};

use crate::world::{World, drain, next, options};

/// Rejects so many.
async fn reject(subscriber: &Subscriber, count: usize) {
    for _ in 0..count {
        let entry = next(subscriber).await;
        subscriber.reject(&entry, "no").await.expect("heard");
    }
}

/// Three dead letters: two of the primary lane, and between them one of the other.
async fn three(world: &World) -> Subscriber {
    let subscriber = world.subscribe(options("c")).await;
    for (stream, what) in [("customer", "p1"), ("customer:backfill", "b1"), ("customer", "p2")] {
        world.add(stream, &[what]).await;
        reject(&subscriber, 1).await;
        // Else both lanes may have a letter of the same id.
        world.until_the_next_ms().await;
    }
    subscriber
}

#[tokio::test]
async fn they_are_listed_newest_first_over_both_lanes() {
    let Some(world) = World::new() else { return };
    let _subscriber = three(&world).await;
    let list = world.dead_letters().list(10).await.expect("a list");
    let about: Vec<_> = list.iter().map(|letter| letter.text().expect("text").to_owned()).collect();
    assert_eq!(about, ["p2", "b1", "p1"].map(crate::world::text));
    assert_eq!(world.dead_letters().list(2).await.expect("a list"), list[..2]);
    let one = world.dead_letters().inspect(&list[1].id, None).await.expect("asked");
    assert_eq!(one.as_ref(), Some(&list[1]));
    assert_eq!(world.dead_letters().inspect("1-1", None).await, Ok(None));
    assert!(world.dead_letters().inspect("-", None).await.is_err());
}

#[tokio::test]
async fn one_is_replayed_to_its_own_lane_as_what_it_was() {
    let Some(world) = World::new() else { return };
    let subscriber = three(&world).await;
    let letters = world.dead_letters();
    let backfill = letters.list(10).await.expect("a list").remove(1);
    assert_eq!(letters.replay(&backfill.id, None).await, Ok(true));
    assert_eq!(letters.replay(&backfill.id, None).await, Ok(false));
    let again = next(&subscriber).await;
    assert_eq!((again.lane(), again.attempt(), again.stream()), (Lane::Backfill, 1, "customer:backfill"));
    assert_eq!(again.fields()[0].1, crate::world::text("b1").into_bytes());
    assert_eq!(letters.list(10).await.expect("a list").len(), 2);
}

#[tokio::test]
async fn all_are_replayed_each_to_its_own_lane_oldest_first() {
    let Some(world) = World::new() else { return };
    let subscriber = three(&world).await;
    assert_eq!(world.dead_letters().replay_all(None).await, Ok(3));
    assert_eq!(drain(&subscriber, 3).await, ["p1", "p2", "b1"]);
    assert_eq!(world.dead_letters().list(10).await, Ok(vec![]));
}

#[tokio::test]
async fn many_are_replayed_in_pages_and_in_order() {
    let Some(world) = World::new() else { return };
    let numbers: Vec<String> = (0..250).map(|number| number.to_string()).collect();
    world.add("customer", &numbers.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let subscriber = world.subscribe(options("c")).await;
    reject(&subscriber, 250).await;
    assert_eq!(world.dead_letters().list(240).await.expect("a list").len(), 240);
    assert_eq!(world.dead_letters().replay_all(Some(Lane::Primary)).await, Ok(250));
    assert_eq!(drain(&subscriber, 250).await, numbers);
}

#[tokio::test]
async fn one_that_cannot_be_put_back_stays() {
    let Some(world) = World::new() else { return };
    let subscriber = three(&world).await;
    drop(subscriber);
    world.ask("SET customer x").await;
    let why = world.dead_letters().replay_all(None).await.expect_err("it is no stream");
    assert!(why.contains("WRONGTYPE"), "{why}");
    assert_eq!(world.number("XLEN customer:dlq").await, 2);
}

#[tokio::test]
async fn they_are_deleted_one_by_one_or_by_lane() {
    let Some(world) = World::new() else { return };
    let _subscriber = three(&world).await;
    let letters = world.dead_letters();
    let newest = letters.list(1).await.expect("a list").remove(0);
    assert_eq!(letters.remove(&newest.id, None).await, Ok(true));
    assert_eq!(letters.remove(&newest.id, None).await, Ok(false));
    assert_eq!(letters.purge(Some(Lane::Backfill)).await, Ok(1));
    assert_eq!(letters.purge(None).await, Ok(1));
    assert_eq!(letters.list(10).await, Ok(vec![]));
}

#[tokio::test]
async fn an_id_that_both_lanes_have_needs_the_lane() {
    let Some(world) = World::new() else { return };
    for dead in ["customer:dlq", "customer:backfill:dlq"] {
        world.ask(&format!("XADD {dead} 5-1 data {{\"data\":1}}")).await;
    }
    let letters = world.dead_letters();
    let why = letters.replay("5-1", None).await.expect_err("which one?");
    assert!(why.contains("say which lane"), "{why}");
    assert_eq!(letters.replay("5-1", Some(Lane::Backfill)).await, Ok(true));
    // Nothing says where it came from: its own lane it is.
    assert_eq!(world.number("XLEN customer:backfill").await, 1);
}

/// Whether all of these say that the key of the primary lane's dead letters is no stream.
fn name_the_key(faults: &[String]) -> bool {
    faults.len() == 1 && faults[0].starts_with("customer:dlq: ") && faults[0].contains("WRONGTYPE")
}

#[tokio::test]
async fn one_key_that_cannot_be_read_is_named_and_the_others_are_done() {
    let Some(world) = World::new() else { return };
    let subscriber = three(&world).await;
    let letters = world.dead_letters();
    world.ask("RENAME customer:dlq kept").await;
    world.ask("SET customer:dlq something").await;
    let swept = letters.sweep_list(10).await.expect("an answer");
    assert!(swept.done.len() == 1 && name_the_key(&swept.faults), "{swept:?}");
    assert!(name_the_key(&[letters.list(10).await.expect_err("not all")]));
    let id = &swept.done[0].id;
    assert_eq!(letters.inspect(id, None).await.map(|letter| letter.is_some()), Ok(true));
    assert!(name_the_key(&[letters.inspect("1-1", None).await.expect_err("it may be the one there")]));
    assert!(name_the_key(&[letters.replay_all(None).await.expect_err("not all")]));
    assert_eq!(drain(&subscriber, 1).await, ["b1"], "the other lane is put back");
    let replayed = letters.sweep_replay(None).await.expect("an answer");
    assert!(replayed.done == 0 && name_the_key(&replayed.faults), "{replayed:?}");
    let purged = letters.sweep_purge(None).await.expect("an answer");
    assert!(purged.done == 0 && name_the_key(&purged.faults), "{purged:?}");
    world.ask("RENAME kept customer:dlq").await;
    assert_eq!(letters.sweep_purge(None).await.map(|swept| (swept.done, swept.faults)), Ok((2, vec![])));
}

//! Which messages share a lane.

use overtake_lane::{Band, Given, LaneChoice, Order, Priority, Refusal, Scheme, Settings, Status, Time};

use super::{End, Fixture, Story, refused, settings};
use crate::api::LeaseRequest;

fn bands(scheme: Scheme, bands: &[(&str, Option<i64>)]) -> Settings {
    let bands =
        bands.iter().map(|(name, from)| Band { name: (*name).to_owned(), from: from.map(Given::Number) });
    settings(|s| (s.scheme, s.order) = (scheme, Order::Lanes(bands.collect())))
}

/// Under the threshold is backfill, strictly; on it is not.
pub async fn a_threshold_makes_two_lanes<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, bands(Scheme::Signed, &[("primary", Some(0)), ("backfill", None)])).await;
    story.publish("under:-1 on:0 over:100 far:-100").await;
    assert_eq!(story.drain().await, "on over under far");
}

/// Whatever the priority, the older one goes first in a lane.
pub async fn inside_a_lane_of_several_priorities_the_oldest_goes_first<F: Fixture>(fixture: F) {
    let story =
        Story::of(fixture, bands(Scheme::TenLevel, &[("hot", Some(7)), ("warm", Some(4)), ("cold", None)]))
            .await;
    story.publish("c:0 b:5 a:7 d:3 x:9 e:4").await;
    assert_eq!(story.drain().await, "a x b e c d");
}

/// A lane in the settings can be seen before its first message.
pub async fn named_lanes_are_seen_by_their_names<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, bands(Scheme::TenLevel, &[("hot", Some(7)), ("cold", None)])).await;
    story.publish("a:9 b:1 c:2").await;
    let lanes: Vec<_> =
        story.view().await.lanes.iter().map(|lane| (lane.lane.to_string(), lane.ready)).collect();
    assert_eq!(lanes, [("hot".to_owned(), 1), ("cold".to_owned(), 2)]);
}

/// One lane; the priority travels and does not order.
pub async fn a_fifo_queue_keeps_priorities_and_ignores_them<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.order = Order::Fifo)).await;
    story.publish("a:1,id=a b:9,id=b").await;
    assert_eq!(story.show("b").await.message.priority, 9.into());
    assert_eq!(story.drain().await, "a b");
}

/// What waits stands in the new lanes by its age.
pub async fn the_order_changes_while_messages_wait<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.order = Order::Fifo)).await;
    story.publish("a:1 b:9 c:1 d:9").await;
    story.declare("q", Settings::default()).await;
    story.until_moved().await;
    assert_eq!(story.left().await, "b d a c");
    story.declare("q", settings(|s| s.order = Order::Fifo)).await;
    story.until_moved().await;
    assert_eq!(story.drain().await, "a b c d");
}

/// A message says its number in the words of the scheme, so the scheme stays while one is there.
pub async fn the_scheme_is_fixed_while_messages_are_there<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    let signed = settings(|s| s.scheme = Scheme::Signed);
    let changed = story.engine().declare_queue("q", signed.clone()).await;
    assert_eq!(refused(changed), Refusal::SettingFixed("scheme"));
    story.purge(None).await;
    story.declare("q", signed).await;
    story.publish("b:-5").await;
    assert_eq!(story.drain().await, "b");
}

/// 256 different priorities at once, two of them those that have a name and are not there yet; and another one when one is empty.
pub async fn a_queue_has_so_many_lanes_and_no_more<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Signed)).await;
    for level in 0..254 {
        story.publish(&format!("m{level}:{level}")).await;
    }
    assert_eq!(story.refusal("more:254").await, Refusal::TooManyLanes);
    assert_eq!(story.lease(1).await, "m253");
    story.ack("m253").await;
    story.publish("more:254").await;
    assert_eq!(story.lease(2).await, "more m252");
}

/// Whoever fills a queue with numbers keeps out other numbers, and nothing that has a name: the most urgent goes first all the same.
pub async fn a_priority_with_a_name_always_finds_a_lane<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Signed)).await;
    for level in 1..=251 {
        story.publish(&format!("m{level}:-{}", 1_000 + level)).await;
    }
    assert_eq!(story.refusal("low:-2000").await, Refusal::TooManyLanes);
    assert_eq!(story.refusal("high:99").await, Refusal::TooManyLanes);
    story.publish("a:CRITICAL b:NORMAL c:BULK d:HIGH e:LOW f:100").await;
    assert_eq!(story.refusal("low:-2000").await, Refusal::TooManyLanes, "now all 256 are in use");
    assert_eq!(story.lease(6).await, "a f d b e c");
    story.ack("a f").await;
    assert_eq!(story.refusal("low:-2000").await, Refusal::TooManyLanes, "its lane is kept");
    story.publish("again:CRITICAL").await;
    assert_eq!(story.lease(1).await, "again");
}

/// Per lane, from state: what waits, what is out, what is dead.
pub async fn each_lane_tells_what_is_in_it<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5 d:5,delay=600000 x:9").await;
    assert_eq!(story.lease(3).await, "x a b");
    story.reject("a").await;
    story.ack("x").await;
    let five = story.lane("5").await;
    assert_eq!((five.ready, five.leased, five.delayed, five.dead), (1, 1, 1, 1));
    assert_eq!((five.published, five.delivered, five.dead_lettered, five.bytes), (4, 2, 1, 3));
    let nine = story.lane("9").await;
    assert_eq!((nine.ready, nine.leased, nine.settled, nine.wait.count), (0, 0, 1, 1));
}

/// Bytes are those of the messages that stand so, whatever way they came there.
pub async fn bytes_are_told_by_how_messages_stand<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("aaaa:5 bb:5 c:5 dddddddd:5,delay=600000 xxx:9").await;
    assert_eq!(story.lease(3).await, "xxx aaaa bb");
    let bytes = async |story: &Story<F>, lane: &str| {
        let lane = story.lane(lane).await;
        (lane.ready_bytes, lane.leased_bytes, lane.bytes)
    };
    assert_eq!((bytes(&story, "5").await, bytes(&story, "9").await), ((1, 6, 15), (0, 3, 3)));
    story.nack("aaaa").await;
    story.ack("xxx").await;
    assert_eq!((bytes(&story, "5").await, bytes(&story, "9").await), ((5, 2, 15), (0, 0, 0)));
    story.reject("bb").await;
    assert_eq!(bytes(&story, "5").await, (5, 0, 13));
    story.again(End::Planned).await;
    assert_eq!(bytes(&story, "5").await, (5, 0, 13));
    assert_eq!(story.purge(Some(Status::Ready)).await, 2);
    assert_eq!(bytes(&story, "5").await, (0, 0, 8));
}

/// Looking at a queue is not activity.
pub async fn a_queue_tells_when_it_was_last_active<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let made = story.view().await.active_at;
    assert!(made > Time(0) && made <= story.fixture().now());
    let mut last = made;
    for step in ["publish", "lease", "ack"] {
        story.advance(1_000).await;
        match step {
            "publish" => drop(story.publish("a").await),
            "lease" => assert_eq!(story.lease(1).await, "a"),
            _ => story.ack("a").await,
        }
        let active = story.view().await.active_at;
        assert!(active.0 >= last.0 + 1_000, "{step}: {active:?} after {last:?}");
        story.advance(1_000).await;
        assert_eq!(story.view().await.active_at, active, "{step}");
        last = active;
    }
}

fn of_lanes(max: u32, lanes: LaneChoice) -> LeaseRequest {
    LeaseRequest { lanes, ..LeaseRequest::new("q".into(), max) }
}

/// One, or all but some, or those at or above a priority.
pub async fn a_lease_is_of_the_lanes_it_chooses<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:9 c:5 d:1 e:7").await;
    let one = LaneChoice { one: true, ..LaneChoice::default() };
    let but = LaneChoice { except: ["9".into(), "7".into()].into(), ..one.clone() };
    let least = LaneChoice { at_least: Priority(6), ..LaneChoice::default() };
    let mut told = Vec::new();
    for lanes in [but, one, least, LaneChoice::default()] {
        told.push(story.take(&story.engine().lease(of_lanes(9, lanes)).await.expect("leased")));
    }
    assert_eq!(told, ["a c", "b", "e", "d"]);
}

/// What goes to nobody meanwhile waits for others.
pub async fn a_lease_waits_for_the_lanes_it_chooses<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let lanes = LaneChoice { at_least: Priority(6), ..LaneChoice::default() };
    let waits = LeaseRequest { wait_ms: 600_000, ..of_lanes(9, lanes) };
    let (leased, ()) = tokio::join!(story.engine().lease(waits), async {
        story.until_waiting(1).await;
        story.publish("a:5").await;
        assert_eq!(story.left().await, "a");
        story.publish("b:6").await;
    });
    assert_eq!(story.take(&leased.expect("leased")), "b");
    assert_eq!(story.lease(9).await, "a");
}

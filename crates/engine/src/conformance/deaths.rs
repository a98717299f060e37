//! What a message tells of how it was published and of its deaths, and by which way it goes on.

use overtake_lane::{DeadLetterTo, DeathReason, ExchangeKind, LeaseTerm, Overflow, Refusal, Settings};

use super::{ENDS, Fixture, Story, settings};
use crate::api::LeasedMessage;

fn by_exchange(name: &str, routing_key: Option<&str>) -> DeadLetterTo {
    DeadLetterTo::Exchange { name: name.into(), routing_key: routing_key.map(Into::into) }
}

async fn leased_in(story: &Story<impl Fixture>, queue: &str) -> LeasedMessage {
    let (queue, max, wait_ms, term) = (queue.into(), 1, 0, LeaseTerm::Ms(0));
    let lease = crate::api::LeaseRequest { wait_ms, term, ..crate::api::LeaseRequest::new(queue, max) };
    let mut leased = story.engine().lease(lease).await.expect("a lease is answered");
    leased.pop().expect("there is a message")
}

fn way(message: &LeasedMessage) -> String {
    format!("{}/{}", message.route().exchange, message.route().keys.join(","))
}

/// `wait expired 2x, q rejected`: the newest first.
fn history(message: &LeasedMessage) -> String {
    let deaths = message.message.deaths.iter().flat_map(|deaths| deaths.iter());
    let told = deaths.map(|death| {
        let times = if death.times > 1 { format!(" {}x", death.times) } else { String::new() };
        format!("{} {:?}{times}", death.queue, death.reason).to_lowercase()
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The exchange and the key, or the queue; and its time to live.
pub async fn a_message_tells_how_it_was_published<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.exchange("x", ExchangeKind::Topic, &["q #"]).await;
    story.publish("a,to=x/red.blue,ttl=60000 b").await;
    story.durable().await;
    for end in ENDS {
        story.again(end).await;
        let (a, b) = (leased_in(&story, "q").await, leased_in(&story, "q").await);
        assert_eq!((&*way(&a), a.ttl_ms(), &*way(&b), b.ttl_ms()), ("x/red.blue", Some(60_000), "/q", None));
        let receipts = vec![a.receipt, b.receipt];
        story.engine().settle(receipts, overtake_lane::Outcome::Release).await.expect("it is answered");
        story.durable().await;
    }
}

/// Where the queue names none.
pub async fn a_dead_letter_goes_by_the_key_it_came_with<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.dead_letter = by_exchange("dlx", None))).await;
    story.declare("red", Settings::default()).await;
    story.declare("blue", Settings::default()).await;
    story.exchange("x", ExchangeKind::Fanout, &["q"]).await;
    story.exchange("dlx", ExchangeKind::Direct, &["red red", "blue blue"]).await;
    story.publish("a,to=x/blue b,to=x/red").await;
    story.lease(2).await;
    story.reject("a b").await;
    assert_eq!((&*story.left_in("red").await, &*story.left_in("blue").await), ("b", "a"));
    assert_eq!(way(&leased_in(&story, "red").await), "dlx/red");
}

/// It is then the key of the message.
pub async fn a_dead_letter_goes_by_the_key_of_its_queue<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.dead_letter = by_exchange("dlx", Some("dead")))).await;
    story.declare("r", Settings::default()).await;
    story.exchange("dlx", ExchangeKind::Direct, &["r dead"]).await;
    story.publish("a").await;
    story.lease(1).await;
    story.reject("a").await;
    assert_eq!(way(&leased_in(&story, "r").await), "dlx/dead");
}

/// An exchange that looks at headers sees them.
pub async fn a_dead_letter_goes_by_its_headers<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.dead_letter = by_exchange("dlx", None))).await;
    story.declare("r", Settings::default()).await;
    story.declare("s", Settings::default()).await;
    story.exchange("dlx", ExchangeKind::Headers, &["r h.colour=red", "s h.colour=blue"]).await;
    story.publish("a,h.colour=blue").await;
    story.lease(1).await;
    story.reject("a").await;
    assert_eq!((&*story.left_in("r").await, &*story.left_in("s").await), ("", "a"));
}

/// One entry for each queue and reason, the newest first, whatever happens to the engine.
pub async fn a_message_remembers_every_death<F: Fixture>(fixture: F) {
    let into_wait = settings(|s| s.dead_letter = DeadLetterTo::Queue("wait".into()));
    let mut story = Story::of(fixture, into_wait).await;
    let wait = settings(|s| {
        (s.ttl_ms, s.dead_letter_expired, s.dead_letter) = (1_000, true, DeadLetterTo::Queue("q".into()));
    });
    story.declare("wait", wait).await;
    story.publish("a:7").await;
    for _ in 0..2 {
        story.lease(1).await;
        story.reject("a").await;
        story.advance(1_000).await;
    }
    story.durable().await;
    for end in ENDS {
        story.again(end).await;
        let leased = leased_in(&story, "q").await;
        assert_eq!(history(&leased), "wait expired 2x, q rejected 2x", "{end:?}");
        assert_eq!((&*leased.message.lane, &*way(&leased)), ("7", "/q"));
        let deaths = leased.message.deaths.as_ref().expect("it died");
        assert_eq!((&*deaths.first().queue, deaths.first().reason), ("q", DeathReason::Rejected));
        assert_eq!((&*deaths.from().exchange, deaths.from().key()), ("", "wait"));
        story
            .engine()
            .settle(vec![leased.receipt], overtake_lane::Outcome::Release)
            .await
            .expect("it is answered");
        story.durable().await;
    }
}

/// What it died of once is no reason to die of it again.
pub async fn a_dead_letter_loses_its_own_time_to_live<F: Fixture>(fixture: F) {
    let to = DeadLetterTo::Queue("r".into());
    let story = Story::of(fixture, settings(|s| (s.dead_letter_expired, s.dead_letter) = (true, to))).await;
    story.declare("r", Settings::default()).await;
    story.publish("a,ttl=1000").await;
    story.advance(1_000).await;
    let leased = leased_in(&story, "r").await;
    assert_eq!((leased.ttl_ms(), leased.message.expires), (None, None));
    assert_eq!(leased.message.death().expect("it died").ttl_ms, Some(1_000));
}

/// Two queues that send each other what expires would do so for ever.
pub async fn a_round_in_which_nobody_rejects_a_message_ends<F: Fixture>(fixture: F) {
    let to = |queue: &str| {
        let queue = queue.to_owned();
        settings(move |s| {
            (s.ttl_ms, s.dead_letter_expired, s.dead_letter) = (1_000, true, DeadLetterTo::Queue(queue));
        })
    };
    let story = Story::of(fixture, to("r")).await;
    story.declare("r", to("q")).await;
    story.publish("a").await;
    story.advance(1_000).await;
    assert_eq!(story.left_in("r").await, "a");
    story.advance(1_000).await;
    assert_eq!((&*story.left().await, &*story.left_in("r").await), ("", ""));
}

/// The least urgent of it.
pub async fn what_a_full_queue_evicts_is_a_dead_letter_if_asked<F: Fixture>(fixture: F) {
    let to = DeadLetterTo::Queue("r".into());
    let full = settings(|s| (s.max_length, s.dead_letter_evicted, s.dead_letter) = (2, true, to));
    let mut story = Story::of(fixture, full).await;
    story.declare("r", Settings::default()).await;
    story.publish("low:1 high:9 higher:9").await;
    for end in ENDS {
        assert_eq!((&*story.left().await, &*story.left_in("r").await), ("high higher", "low"));
        story.again(end).await;
    }
    assert_eq!(history(&leased_in(&story, "r").await), "q maxlen");
}

/// The publisher hears of it, and the message is not lost.
pub async fn what_a_full_queue_refuses_is_a_dead_letter_if_asked<F: Fixture>(fixture: F) {
    let to = DeadLetterTo::Queue("r".into());
    let full = settings(|s| {
        (s.max_length, s.overflow, s.dead_letter) = (1, Overflow::RejectDeadLetter, to);
    });
    let mut story = Story::of(fixture, full).await;
    story.declare("r", Settings::default()).await;
    story.publish("a:1").await;
    assert_eq!(story.refusal("b:9,id=b").await, Refusal::QueueFull);
    for end in ENDS {
        assert_eq!((&*story.left().await, &*story.left_in("r").await), ("a", "b"));
        story.durable().await;
        story.again(end).await;
    }
    assert_eq!(history(&leased_in(&story, "r").await), "q maxlen");
}

/// By the way it had come, and with its history.
pub async fn a_dead_letter_replayed_is_as_it_was_before_it_died<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.dead_letter = DeadLetterTo::Queue("r".into()))).await;
    story.declare("r", Settings::default()).await;
    story.exchange("x", ExchangeKind::Direct, &["q k"]).await;
    story.publish("a:7,to=x/k").await;
    story.lease(1).await;
    story.reject("a").await;
    let all = crate::api::Select::Matching(crate::api::Filter::default());
    assert_eq!(story.engine().replay("r", all, None).await, Ok(1));
    let leased = leased_in(&story, "q").await;
    assert_eq!((&*way(&leased), &*leased.message.lane, &*history(&leased)), ("x/k", "7", "q rejected"));
}

//! Who holds what is leased, and what the work on it has printed so far: for people, and only in this life of the broker.

use std::sync::Arc;

use overtake_lane::{Get, Outcome, REPORT_BYTES_MAX, Refusal, Settings, Time};

use super::{End, Fixture, Story, refused};
use crate::api::{ConsumeRequest, LeaseRequest};
use crate::core::Request;
use crate::holder::{Held, Holder};
use crate::session::{Ask, Event};

fn called(name: &str) -> Option<Arc<Holder>> {
    Some(Arc::new(Holder { worker: Some(name.into()), ..Holder::default() }))
}

/// `name since`, as far as that is known.
async fn held<F: Fixture>(story: &Story<F>, id: &str) -> String {
    let Some(Held { by, since, .. }) = story.show(id).await.held else { return "-".to_owned() };
    let worker = by.and_then(|by| by.worker.clone());
    format!(
        "{} {}",
        worker.as_deref().unwrap_or("?"),
        since.map_or("?".to_owned(), |Time(ms)| ms.to_string())
    )
}

/// That somebody of this name holds a message since some time from `from` until now.
async fn is_held<F: Fixture>(story: &Story<F>, id: &str, name: &str, from: Time) {
    let told = held(story, id).await;
    let (worker, since) = told.split_once(' ').expect("somebody holds it");
    let since = Time(since.parse().expect("it is known since when"));
    assert_eq!(worker, name, "{id}");
    assert!((from..=story.fixture().now()).contains(&since), "{id}: {told}, and not since {from:?}");
}

async fn lease_as<F: Fixture>(story: &Story<F>, name: &str, max: u32) {
    let lease = LeaseRequest { holder: called(name), ..LeaseRequest::new("q".into(), max) };
    story.take(&story.engine().lease(lease).await.expect("leased"));
}

async fn queue<F: Fixture>(fixture: F) -> Story<F> {
    Story::of(fixture, Settings::default()).await
}

/// A pull is seen in each of its leases, also after another has asked, and in a page as alone.
pub async fn who_leased_a_message_is_seen_while_it_is_leased<F: Fixture>(fixture: F) {
    let story = queue(fixture).await;
    story.publish("a:7,id=a b:6,id=b c:5,id=c d:4,id=d").await;
    let first = story.fixture().now();
    lease_as(&story, "ann", 2).await;
    let since = held(&story, "a").await;
    is_held(&story, "a", "ann", first).await;
    assert_eq!(held(&story, "b").await, since);
    story.advance(50).await;
    let second = story.fixture().now();
    lease_as(&story, "bob", 1).await;
    is_held(&story, "c", "bob", second).await;
    assert_eq!(held(&story, "a").await, since);
    assert_eq!(held(&story, "d").await, "-");
    // Who asks for more time began when he began.
    story.extend("a", 60_000).await.expect("lengthened");
    assert_eq!(held(&story, "a").await, since);
    story.release("a").await;
    assert_eq!(held(&story, "a").await, "-");
    story.lease(1).await;
    is_held(&story, "a", "?", second).await;
}

/// A consumer that stays holds what it was given until it settles it.
pub async fn a_consumer_is_seen_with_all_that_it_holds<F: Fixture>(fixture: F) {
    let story = queue(fixture).await;
    story.publish("a:7,id=a b:6,id=b").await;
    let consume = ConsumeRequest { holder: called("ann"), ..ConsumeRequest::new("q".into()) };
    let from = story.fixture().now();
    let mut consumer = story.engine().consume(consume).await.expect("consumes");
    let receipts = [consumer.next().await, consumer.next().await].map(|came| came.expect("it comes").receipt);
    is_held(&story, "a", "ann", from).await;
    is_held(&story, "b", "ann", from).await;
    story.engine().settle(receipts[..1].to_vec(), Outcome::Ack).await.expect("settled");
    consumer.leave().await;
    drop(consumer);
    story.until_leased(0).await;
    assert_eq!(held(&story, "b").await, "-");
}

/// Who gets a message holds it.
pub async fn a_get_is_seen_by_its_session<F: Fixture>(fixture: F) {
    let story = queue(fixture).await;
    story.publish("a:7,id=a").await;
    let mut session = story.engine().session();
    let get = Get { consumer: session.asks.next_consumer(), queue: "q".into(), no_ack: false };
    let request = Request::Get { get, holder: called("ann") };
    let from = story.fixture().now();
    session.asks.ask(vec![Ask { token: Some(1), request }]).await;
    let heard = session.events.next().await.expect("it is answered");
    assert!(matches!(heard[..], [Event::Answer { token: 1, result: Ok(_) }]), "{heard:?}");
    is_held(&story, "a", "ann", from).await;
}

/// A lease that survives the broker has a holder that nobody knows.
pub async fn who_held_a_message_is_not_known_after_the_broker_ended<F: Fixture>(fixture: F) {
    let mut story = queue(fixture).await;
    story.publish("a:7,id=a").await;
    lease_as(&story, "ann", 1).await;
    story.again(End::Planned).await;
    assert_eq!((story.left().await, held(&story, "a").await), ("leased a".to_owned(), "? ?".to_owned()));
    story.extend("a", 60_000).await.expect("it is the same lease");
    assert_eq!(held(&story, "a").await, "? ?");
}

async fn printed<F: Fixture>(story: &Story<F>, id: &str) -> Option<(String, Time)> {
    let progress = story.show(id).await.held?.progress?;
    Some((progress.output.to_string(), progress.at))
}

/// What is said last is seen, also of a lease that an earlier life of the broker gave.
pub async fn what_the_work_has_printed_is_seen_until_the_lease_ends<F: Fixture>(fixture: F) {
    let mut story = queue(fixture).await;
    story.publish("a:7,id=a b:6,id=b").await;
    story.lease(1).await;
    assert_eq!(printed(&story, "a").await, None);
    let receipt = story.receipt("a");
    for text in ["10 %", "20 %"] {
        story.advance(10).await;
        let from = story.fixture().now();
        let told = story.engine().progress(receipt, 60_000, text.into()).await;
        assert_eq!(told, Ok(Ok(())));
        let (output, at) = printed(&story, "a").await.expect("it is told");
        assert_eq!(output, text);
        assert!((from..=story.fixture().now()).contains(&at), "{at:?}, and not since {from:?}");
    }
    story.extend("a", 90_000).await.expect("lengthened");
    assert!(printed(&story, "a").await.is_some(), "who asks only for time takes nothing back");
    story.again(End::Crash).await;
    assert_eq!(printed(&story, "a").await, None);
    assert_eq!(story.engine().progress(receipt, 60_000, "30 %".into()).await, Ok(Ok(())));
    assert_eq!(printed(&story, "a").await.expect("it is told").0, "30 %");
    story.release("a").await;
    story.lease(1).await;
    assert_eq!(printed(&story, "a").await, None, "that was another lease");
}

/// A lease that is over is not lengthened, nor is anything kept of it; and nobody may say too much.
pub async fn nothing_is_kept_of_a_lease_that_is_over<F: Fixture>(fixture: F) {
    let story = queue(fixture).await;
    story.publish("a:7,id=a").await;
    story.lease(1).await;
    let stale = story.receipt("a");
    story.release("a").await;
    story.lease(1).await;
    let engine = story.engine();
    assert_eq!(engine.progress(stale, 60_000, "late".into()).await, Ok(Err(Refusal::StaleReceipt)));
    let most = "x".repeat(REPORT_BYTES_MAX);
    let receipt = story.receipt("a");
    assert_eq!(engine.progress(receipt, 60_000, most.as_str().into()).await, Ok(Ok(())));
    let more = engine.progress(receipt, 60_000, format!("{most}x").into()).await;
    assert_eq!(refused(more.map(drop)), Refusal::ReportTooLarge);
    assert_eq!(printed(&story, "a").await.expect("it is told").0, most);
}

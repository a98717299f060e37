//! Who is connected, and what ends with it: queues of one's own, gets, consumers of every kind.

use std::sync::Arc;

use overtake_lane::{
    Command, ExchangeKind, Existing, Identity, LeaseTerm, Outcome, Receipt, Refusal, Settings,
};

use super::talk::Talk;
use super::{ENDS, Fixture, Story, answered, binding, refused, settings};
use crate::Coming;
use crate::api::{ConsumeRequest, DeclareQueue, DeleteOnly, Engine, LeaseRequest};
use crate::core::Request;

fn queue(identity: Identity) -> DeclareQueue {
    DeclareQueue { identity, existing: Existing::Same, ..DeclareQueue::default() }
}

fn own() -> DeclareQueue {
    queue(Identity { exclusive: true, ..Identity::default() })
}

async fn is_there(engine: &dyn Engine, name: &str) -> bool {
    answered(engine.queue(name).await.map(drop)) != Err(Refusal::NoSuchQueue)
}

/// A session ends when its connection does, a moment later.
async fn until_gone(engine: &dyn Engine, name: &str) {
    while is_there(engine, name).await {
        tokio::task::yield_now().await;
    }
}

/// It is found, or it is another one; then its view says in what.
pub async fn a_queue_is_as_it_was_declared_or_the_declaration_is_refused<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let engine = story.engine();
    let first = queue(Identity { arguments: [1, 0, 255].into(), ..Identity::default() });
    let declare = |declare: &DeclareQueue| engine.declare("r", declare.clone());
    assert!(declare(&first).await.expect("declared").made);
    story.publish("a:5,in=r").await;
    let again = declare(&first).await.expect("declared");
    assert_eq!((again.made, again.ready, again.consumers), (false, 1, 0));
    let changed = DeclareQueue { settings: settings(|s| s.ttl_ms = 5), ..first.clone() };
    assert!(!declare(&changed).await.expect("the arguments are the same").made);
    let identity = Identity { arguments: [2].into(), ..first.identity.clone() };
    let other = DeclareQueue { identity, ..changed };
    assert_eq!(refused(declare(&other).await), Refusal::QueueDiffers);
    let passing = queue(Identity { durable: false, ..first.identity.clone() });
    assert_eq!(refused(declare(&passing).await), Refusal::QueueDiffers);
    assert!(!declare(&queue(Identity::default())).await.expect("its settings are the same").made);
    let view = engine.queue("r").await.expect("there");
    assert_eq!((view.identity, view.settings), (first.identity, Settings::default()));
    assert_eq!(engine.check_queue("r").await.expect("there").ready, 1);
}

/// Of two that change settings at once the second finds others than it knew, and looks again.
pub async fn settings_are_changed_only_from_those_that_are_known<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let (engine, there) = (story.engine(), story.view().await.settings);
    let change = |name: &'static str, from: u64, to: u64| {
        let of = |ttl_ms| Settings { ttl_ms, ..there.clone() };
        let (settings, existing) = (of(to), Existing::From(Box::new(of(from))));
        engine.declare(name, DeclareQueue { settings, existing, ..DeclareQueue::default() })
    };
    assert!(!change("q", 0, 5).await.expect("changed").made);
    assert_eq!(refused(change("q", 0, 6).await), Refusal::QueueDiffers);
    assert_eq!(story.view().await.settings.ttl_ms, 5);
    assert!(!change("q", 5, 6).await.expect("changed").made);
    assert_eq!(refused(change("none", 0, 5).await), Refusal::NoSuchQueue);
    assert_eq!(refused(engine.queue("none").await), Refusal::NoSuchQueue);
}

/// Others may only publish to it.
pub async fn an_exclusive_queue_is_one_sessions_own<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let engine = story.engine();
    let (mine, other) = (engine.connect(), engine.connect());
    assert!(mine.declare("r", own()).await.expect("declared").made);
    story.exchange("x", ExchangeKind::Fanout, &[]).await;
    mine.bind(binding("x", "r")).await.expect("bound");
    for asking in [&engine, &other] {
        let consume = ConsumeRequest::new("r".into());
        assert_eq!(refused(asking.declare("r", own()).await), Refusal::QueueLocked);
        assert_eq!(refused(asking.check_queue("r").await), Refusal::QueueLocked);
        assert_eq!(refused(asking.bind(binding("x", "r key")).await), Refusal::QueueLocked);
        assert_eq!(refused(asking.get("r", false).await.map(drop)), Refusal::QueueLocked);
        assert_eq!(refused(asking.consume(consume).await.map(drop)), Refusal::QueueLocked);
        assert_eq!(refused(asking.purge("r", None).await), Refusal::QueueLocked);
        assert_eq!(refused(asking.delete_queue("r", DeleteOnly::default()).await), Refusal::QueueLocked);
    }
    story.publish("a:5,to=x/key b:5,in=r").await;
    assert_eq!(mine.get("r", false).await.expect("answered").expect("a message").ready, 1);
    drop(mine);
    until_gone(&*engine, "r").await;
    assert!(engine.declare("r", own()).await.expect("declared").made, "the name is free");
}

/// In one moment: nobody of it gets any of it again.
pub async fn what_a_session_holds_is_put_back_when_it_ends<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5").await;
    let session = story.engine().connect();
    let got = session.get("q", false).await.expect("answered").expect("a message");
    assert_eq!((story.take(&[got.message]), got.ready), ("a".to_owned(), 2));
    let consume = ConsumeRequest { window: Some(1), ..ConsumeRequest::new("q".into()) };
    let mut consumer = session.consume(consume).await.expect("taken");
    assert_eq!(story.next(&mut consumer, 1).await, "b");
    assert_eq!(story.left().await, "c · leased a b");
    drop(session);
    story.until_leased(0).await;
    assert_eq!(story.left().await, "a b c");
    assert!(consumer.next().await.is_none(), "its consumers are gone with it");
    assert_eq!(story.settle("a", Outcome::Ack).await, Err(Refusal::StaleReceipt));
}

/// More than an engine may put back at once.
pub async fn much_that_a_session_holds_is_put_back_each_message_in_its_own_place<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let names: Vec<String> = (0..600).map(|number| format!("m{number}")).collect();
    // As many at once as the smallest journal file has room for.
    for some in names.chunks(20) {
        let messages = some.iter().map(|name| format!("{name}:5")).collect::<Vec<_>>().join(" ");
        story.engine().publish(story.messages(&messages)).await.expect("published");
    }
    let session = story.engine().connect();
    let consume = ConsumeRequest { window: Some(1_000), ..ConsumeRequest::new("q".into()) };
    let mut held = session.consume(consume).await.expect("taken");
    story.next(&mut held, names.len()).await;
    story.publish("late:5").await;
    assert_eq!(story.next(&mut held, 1).await, "late");
    drop(session);
    story.until_leased(0).await;
    let mut next = story.consume(1_000).await;
    let again = names.iter().map(|name| format!("{name}(2)")).collect::<Vec<_>>().join(" ");
    assert_eq!(story.next(&mut next, names.len()).await, again);
    assert_eq!(story.next(&mut next, 1).await, "late(2)");
}

/// Neither in time, nor over a crash.
pub async fn what_is_leased_for_a_session_never_outlives_it<F: Fixture>(fixture: F) {
    let mut story = Story::of(fixture, settings(|s| s.visibility_timeout_ms = 1_000)).await;
    story.publish("a:5 b:5 c:9").await;
    for end in ENDS {
        let session = story.engine().connect();
        let lease = LeaseRequest { term: LeaseTerm::Session, ..LeaseRequest::new("q".into(), 2) };
        let leased = session.lease(lease.clone()).await.expect("leased");
        assert!(story.take(&leased).starts_with("c"), "{end:?}");
        story.advance(10_000).await;
        assert_eq!(story.left().await, "b · leased c a");
        drop(session);
        story.until_leased(0).await;
        let session = story.engine().connect();
        let leased = session.lease(lease).await.expect("leased");
        assert_eq!(leased.len(), 2);
        story.again(end).await;
        assert_eq!(story.left().await, "c a b", "{end:?}");
        drop(session);
    }
}

/// At once, or not at all.
pub async fn a_get_takes_what_goes_next_and_never_waits<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let session = story.engine().connect();
    assert!(session.get("q", false).await.expect("answered").is_none());
    story.publish("a:1 b:9").await;
    let got = session.get("q", false).await.expect("answered").expect("a message");
    assert_eq!((story.take(&[got.message]), got.ready), ("b".to_owned(), 1));
    assert_eq!(story.settle("b", Outcome::Nack { delay_ms: Some(0) }).await, Ok(()));
    let again = session.get("q", true).await.expect("answered").expect("a message");
    assert_eq!((story.take(&[again.message]), again.ready), ("b(2)".to_owned(), 1));
    assert_eq!(story.left().await, "a", "without acknowledgement it is gone");
}

/// Settled as they are given, and as many as it reads.
pub async fn a_consumer_without_acknowledgements_holds_nothing<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("a:5 b:9 c:5 d:1").await;
    let consume = ConsumeRequest { window: Some(2), no_ack: true, ..ConsumeRequest::new("q".into()) };
    let mut consumer = story.engine().consume(consume).await.expect("taken");
    assert_eq!(story.next(&mut consumer, 4).await, "b a c d");
    assert_eq!(story.left().await, "");
    drop(consumer);
    story.durable().await;
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.left().await, "", "{end:?}");
    }
}

/// What it holds is still its session's to settle.
pub async fn a_consumer_that_leaves_keeps_what_it_holds<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let session = story.engine().connect();
    story.publish("a:5 b:5 c:5").await;
    let consume = ConsumeRequest { window: Some(2), ..ConsumeRequest::new("q".into()) };
    let mut consumer = session.consume(consume).await.expect("taken");
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    consumer.leave().await;
    assert_eq!(story.next(&mut consumer, 1).await, "b", "it was on its way");
    assert!(consumer.next().await.is_none());
    drop(consumer);
    story.until_no_consumer().await;
    assert_eq!(story.left().await, "c · leased a b");
    story.ack("a").await;
    drop(session);
    story.until_leased(0).await;
    assert_eq!(story.left().await, "b c");
}

/// Over any queues, together no more than it is large.
pub async fn consumers_share_a_window<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    let session = story.engine().connect();
    session.set_window(1, 2).await.expect("set");
    let consume = |queue: &str| {
        let queue: Arc<str> = queue.into();
        session.consume(ConsumeRequest { shared: Some(1), ..ConsumeRequest::new(queue) })
    };
    let (mut q, mut r) = (consume("q").await.expect("taken"), consume("r").await.expect("taken"));
    story.publish("a:5 x:5,in=r b:5 y:5,in=r").await;
    assert_eq!((story.next(&mut q, 1).await, story.next(&mut r, 1).await), ("a".into(), "x".into()));
    assert_eq!((&*story.left().await, &*story.left_in("r").await), ("b · leased a", "y · leased x"));
    session.set_window(1, 4).await.expect("set");
    assert_eq!((story.next(&mut q, 1).await, story.next(&mut r, 1).await), ("b".into(), "y".into()));
}

/// And a second one is not.
pub async fn an_exclusive_consumer_is_alone<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let consume = |exclusive| {
        let consume = ConsumeRequest { exclusive, ..ConsumeRequest::new("q".into()) };
        story.engine().consume(consume)
    };
    let alone = consume(true).await.expect("taken");
    assert_eq!(refused(consume(false).await.map(drop)), Refusal::ConsumerExclusive);
    drop(alone);
    story.until_no_consumer().await;
    let _first = consume(false).await.expect("taken");
    assert_eq!(refused(consume(true).await.map(drop)), Refusal::ConsumerExclusive);
}

/// Consumers, and leases that wait.
pub async fn a_queue_has_no_more_consumers_than_it_may<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.max_consumers = 1)).await;
    let consume = || story.engine().consume(ConsumeRequest::new("q".into()));
    let lease = LeaseRequest { wait_ms: 60_000, ..LeaseRequest::new("q".into(), 1) };
    let first = consume().await.expect("taken");
    assert_eq!(refused(consume().await.map(drop)), Refusal::TooManyConsumers);
    assert_eq!(refused(story.engine().lease(lease).await.map(drop)), Refusal::TooManyConsumers);
    drop(first);
    story.until_no_consumer().await;
    consume().await.expect("there is room for one again");
}

/// The next one takes over when it goes.
pub async fn of_single_active_consumers_the_oldest_is_served<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.single_active_consumer = true)).await;
    let mut first = story.consume(1).await;
    let mut second = story.consume(9).await;
    story.publish("a:5 b:5").await;
    assert_eq!(story.next(&mut first, 1).await, "a");
    assert_eq!(story.left().await, "b · leased a");
    drop(first);
    assert_eq!(story.next(&mut second, 2).await, "a(2) b");
}

/// And gets nothing more.
pub async fn a_consumer_that_holds_a_message_too_long_is_told<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.consumer_timeout_ms = 1_000)).await;
    let mut consumer = story.consume(1).await;
    story.publish("a:5").await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    story.advance(1_000).await;
    let told = consumer.coming().await.expect("it is told");
    assert!(matches!(told, Coming::TimedOut(receipt) if receipt == story.receipt("a")), "{told:?}");
    assert_eq!(story.left().await, "a");
    assert_eq!(story.lease(1).await, "a(2)");
}

/// What it got is nobody's that could be asked, but the session's.
pub async fn a_session_is_told_what_a_get_held_too_long<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.consumer_timeout_ms = 1_000)).await;
    story.publish("a:5 b:5").await;
    let mut talk = Talk::begin(&story);
    talk.get("q").await;
    talk.consume("q", 1).await;
    let heard = talk.hear(3).await;
    assert!(heard.contains('a') && heard.contains('b'), "{heard}");
    story.advance(1_000).await;
    assert_eq!(talk.hear(2).await, "timed out timed out");
    assert_eq!(story.left().await, "a b");
}

/// A lease may be over because its message is, as a dead letter is, or because another consumer gets it.
pub async fn a_session_is_told_which_messages_are_still_there<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    story.publish("a:5 b:5 c:5 d:5 e:5,in=r").await;
    story.lease(4).await;
    let of_r = story.engine().lease(LeaseRequest::new("r".into(), 1)).await.expect("leased");
    assert_eq!(story.take(&of_r), "e");
    story.ack("a").await;
    story.settle("b", Outcome::Release).await.expect("given back");
    story.settle("c", Outcome::Reject).await.expect("rejected");
    story.engine().delete_queue("r", DeleteOnly::default()).await.expect("deleted");
    let receipts: Vec<Receipt> = "a b c d e".split(' ').map(|text| story.receipt(text)).collect();
    let mut talk = Talk::begin(&story);
    talk.ask(vec![Request::StillThere(receipts)]).await;
    assert_eq!(
        talk.hear(1).await,
        "0=Each([Err(NoSuchMessage), Ok(()), Err(NoSuchMessage), Ok(()), Err(NoSuchMessage)])"
    );
}

/// With what was in it.
pub async fn a_queue_may_go_with_its_last_consumer<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let engine = story.engine();
    engine
        .declare("r", queue(Identity { auto_delete: true, ..Identity::default() }))
        .await
        .expect("declared");
    story.publish("a:5,in=r").await;
    assert!(is_there(&*engine, "r").await, "it waits for its first one");
    let consumer = engine.consume(ConsumeRequest::new("r".into())).await.expect("taken");
    drop(consumer);
    until_gone(&*engine, "r").await;
}

/// Nobody consumes, gets or declares; and a restart begins anew.
pub async fn a_queue_that_nobody_uses_expires<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.declare("r", settings(|s| s.expires_ms = 1_500)).await;
    for end in ENDS {
        story.advance(1_000).await;
        story.again(end).await;
    }
    story.advance(1_000).await;
    assert!(story.engine().get("r", false).await.expect("it is there").is_none());
    story.advance(1_000).await;
    story.engine().check_queue("r").await.expect("it is there");
    story.advance(1_500).await;
    assert!(!is_there(&*story.engine(), "r").await);
}

/// Nor what was bound to an exchange for them.
pub async fn what_does_not_last_is_gone_after_a_restart<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    for end in ENDS {
        let session = story.engine().connect();
        let passing = queue(Identity { durable: false, ..Identity::default() });
        session.declare("passing", passing).await.expect("declared");
        session.declare("own", own()).await.expect("declared");
        story.exchange("x", ExchangeKind::Fanout, &["q", "passing"]).await;
        session.bind(binding("x", "own")).await.expect("bound");
        story.publish("a:5,to=x/key b:5,in=passing").await;
        let got = session.get("q", false).await.expect("answered").expect("a message");
        assert!(story.take(&[got.message]).starts_with('a'), "{end:?}");
        story.again(end).await;
        for name in ["passing", "own"] {
            assert!(!is_there(&*story.engine(), name).await, "{name} {end:?}");
        }
        let bindings = story.engine().bindings("x").await.expect("it stays");
        assert_eq!(bindings.len(), 1, "{end:?}");
        assert_eq!(story.left().await, "a", "{end:?}");
        assert_eq!(story.purge(None).await, 1);
    }
}

/// What it declares is its own, and what it got is put back when nobody hears it any more.
pub async fn who_asks_without_waiting_is_a_session<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5").await;
    let mut talk = Talk::begin(&story);
    let DeclareQueue { settings, identity, existing } = own();
    let (name, settings) = ("r".into(), Box::new(settings));
    talk.ask(vec![Request::Do(Command::DeclareQueue { name, settings, identity, existing })]).await;
    assert_eq!(talk.hear(1).await, "0=declared");
    talk.get("q").await;
    assert_eq!(talk.hear(1).await, "1=a");
    assert_eq!(refused(story.engine().check_queue("r").await), Refusal::QueueLocked);
    assert_eq!(story.left().await, "b · leased a");
    drop(talk);
    until_gone(&*story.engine(), "r").await;
    assert_eq!(story.left().await, "a b");
}

/// It asks as who is connected, and takes away only its consumers.
pub async fn who_is_connected_may_ask_without_waiting<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let connection = story.engine().connect();
    connection.declare("r", own()).await.expect("declared");
    story.publish("a:5,in=r b:5,in=r c:5,in=r").await;
    let mut talk = Talk::over(&story, connection.session());
    talk.get("r").await;
    assert_eq!(talk.hear(1).await, "0=a");
    talk.consume("r", 1).await;
    assert_eq!(talk.hear(2).await, "1=done b");
    drop(talk);
    while connection.check_queue("r").await.expect("there").consumers > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(story.left_in("r").await, "b c · leased a");
    drop(connection);
    until_gone(&*story.engine(), "r").await;
}

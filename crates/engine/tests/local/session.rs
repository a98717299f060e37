//! Sessions under load, at the end of their room and at the end of their engine.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use overtake_engine::core::{Answer, Request};
use overtake_engine::session::{BATCH_MAX, UNHEARD_MAX};
use overtake_engine::{
    Ask, BytesInUse, ConsumeRequest, Engine, Event, Failure, LocalEngine, Options, Session,
};
use overtake_lane::{Command, Outcome, Receipt, Refusal, Settings};
use overtake_store::MemoryDisk;

use crate::support::{TINY, clock, message, open_disk, options};

async fn opened(disk: &MemoryDisk) -> LocalEngine {
    let engine = open_disk(disk, &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine
}

fn publish(token: u64) -> Ask {
    let request = Request::PublishOne(Box::new(message(&format!("{token:0>200}"), token % 10)));
    Ask { token: Some(token), request }
}

async fn consume(session: &Session, window: u32) {
    let consume = ConsumeRequest { window: Some(window), ..ConsumeRequest::new("q".into()) };
    let request = Request::Consume { consumer: session.asks.next_consumer(), consume };
    session.asks.ask(vec![Ask { token: None, request }]).await;
}

async fn ack(session: &Session, receipts: Vec<Receipt>) {
    let request = Request::Do(Command::Settle { receipts, outcome: Outcome::Ack });
    session.asks.ask(vec![Ask { token: None, request }]).await;
}

fn receipts(events: &[Event]) -> Vec<Receipt> {
    let receipt =
        |event: &Event| if let Event::Deliver { message, .. } = event { Some(message.receipt) } else { None };
    events.iter().filter_map(receipt).collect()
}

/// The results of the next answers, which must be to these.
async fn answers(session: &mut Session, tokens: std::ops::Range<u64>) -> Vec<Result<Answer, Failure>> {
    let mut results = Vec::new();
    while results.len() < tokens.clone().count() {
        for event in session.events.next().await.expect("there are answers to come") {
            if let Event::Answer { token, result } = event {
                assert_eq!(
                    token,
                    tokens.start + results.len() as u64,
                    "in the order in which they were asked"
                );
                results.push(result);
            }
        }
    }
    results
}

fn is_pending(future: impl Future) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn answers_come_in_order_while_files_are_waited_for() {
    let engine = opened(&MemoryDisk::new(1)).await;
    let mut session = engine.session();
    for batch in 0..20 {
        let tokens = batch * 1_000..(batch + 1) * 1_000;
        session.asks.ask(tokens.clone().map(publish).collect()).await;
        let answers = answers(&mut session, tokens).await;
        assert!(answers.iter().all(|answer| matches!(answer, Ok(Answer::Count(1)))));
    }
}

/// A client acknowledges and cancels at once: what the acknowledgement made room for is on its way, and is not forgotten.
#[tokio::test]
async fn what_a_consumer_was_given_before_it_left_is_heard() {
    let engine = opened(&MemoryDisk::new(1)).await;
    let mut session = engine.session();
    let consumer = session.asks.next_consumer();
    let consume = ConsumeRequest { window: Some(1), ..ConsumeRequest::new("q".into()) };
    let consume = Ask { token: None, request: Request::Consume { consumer, consume } };
    session.asks.ask([vec![consume], (0..2).map(publish).collect()].concat()).await;
    let mut first = Vec::new();
    while first.is_empty() {
        first = receipts(&session.events.next().await.expect("a message"));
    }
    let settle = Request::Do(Command::Settle { receipts: first, outcome: Outcome::Ack });
    let leave = Request::Do(Command::Leave { consumer });
    session
        .asks
        .ask(vec![Ask { token: None, request: settle }, Ask { token: Some(9), request: leave }])
        .await;
    let mut heard = Vec::new();
    let left = |event: &Event| matches!(event, Event::Answer { token: 9, .. });
    while !heard.iter().any(left) {
        heard.extend(session.events.next().await.expect("an answer"));
    }
    assert_eq!(receipts(&heard).len(), 1, "it holds the second message, and must know: {heard:?}");
}

#[tokio::test]
async fn sessions_that_are_dropped_under_load_lose_nothing_and_hold_nothing() {
    const MESSAGES: u64 = 1_000;
    let engine = opened(&MemoryDisk::new(1)).await;
    let mut acked = 0;
    for round in 0..20 {
        let mut publisher = engine.session();
        let tokens = round * MESSAGES..(round + 1) * MESSAGES;
        publisher.asks.ask(tokens.clone().map(publish).collect()).await;
        let mut others: Vec<Session> = (0..4).map(|_| engine.session()).collect();
        for (at, session) in others.iter_mut().enumerate() {
            consume(session, 10 * (at as u32 + 1)).await;
            let events = session.events.next().await.expect("it runs");
            let mut some = receipts(&events);
            some.truncate(at * 3);
            acked += some.len() as u64;
            ack(session, some).await;
        }
        // Some before the publisher has heard, some after.
        others.truncate(2);
        answers(&mut publisher, tokens).await;
    }
    let view = engine.queue("q").await.expect("seen");
    let count = |of: fn(&overtake_lane::LaneView) -> u64| view.lanes.iter().map(of).sum::<u64>();
    assert_eq!(view.consumers, 0);
    assert_eq!((count(|lane| lane.ready), count(|lane| lane.leased)), (20 * MESSAGES - acked, 0));
}

#[tokio::test]
async fn on_a_full_disk_publishes_are_refused_one_by_one_and_acknowledgements_taken() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    disk.set_capacity(Some(6 * TINY));
    let engine = open_disk(&disk, &clock).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut session = engine.session();
    session.asks.ask((0..4_000).map(publish).collect()).await;
    let results = answers(&mut session, 0..4_000).await;
    let taken = results.iter().filter(|result| result.is_ok()).count();
    let refused =
        results.iter().filter(|result| result.as_ref().err() == Some(&Refusal::StoreFull.into())).count();
    assert!(taken > 100 && refused > 100 && taken + refused == 4_000, "{taken} taken, {refused} refused");
    consume(&session, 100).await;
    let mut acked = 0;
    while acked < taken {
        let receipts = receipts(&session.events.next().await.expect("it runs"));
        acked += receipts.len();
        ack(&session, receipts).await;
    }
    for token in 4_000..5_000 {
        session.asks.ask(vec![publish(token)]).await;
        if answers(&mut session, token..token + 1).await[0].is_ok() {
            return;
        }
        clock.advance(1_000);
    }
    panic!("there is room again, and publishes are still refused");
}

/// Small ones and large ones in one batch, each as large as it may be when the next journal file is only being prepared.
#[tokio::test]
async fn while_the_disk_has_room_no_publish_of_a_session_is_refused() {
    let engine = LocalEngine::open_on(MemoryDisk::new(1), options(4 * TINY), clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut session = engine.session();
    let one = |token: u64| {
        let messages = vec![message(&"x".repeat(300), 5); if token.is_multiple_of(3) { 240 } else { 1 }];
        Ask { token: Some(token), request: Request::Publish { messages, settlements: Vec::new() } }
    };
    for batch in 0..10 {
        let tokens = batch * 10..(batch + 1) * 10;
        session.asks.ask(tokens.clone().map(one).collect()).await;
        for result in answers(&mut session, tokens).await {
            assert!(result.is_ok(), "{result:?}");
        }
    }
}

#[tokio::test]
async fn what_a_session_asked_before_the_end_is_done_or_answered_that_it_may_not_be() {
    let disk = MemoryDisk::new(1);
    let engine = opened(&disk).await;
    let mut session = engine.session();
    session.asks.ask((0..500).map(publish).collect()).await;
    engine.close();
    session.asks.ask(vec![publish(500)]).await;
    let (mut next, mut confirmed) = (0, 0);
    while let Some(events) = session.events.next().await {
        for event in events {
            let Event::Answer { token, result } = event else { panic!("nothing else was asked") };
            assert_eq!(token, next);
            next += 1;
            confirmed += u64::from(result.is_ok());
        }
    }
    // What waited for a file when it was closed is not done.
    assert!(next == 500 && confirmed > 0, "{next} answered, {confirmed} confirmed");
    assert!(matches!(session.events.unavailable(), Failure::Unavailable(why) if why.contains("stopping")));
    assert_eq!(open_disk(&disk, &clock()).expect("opens again").recovered().messages, confirmed);
}

#[tokio::test]
async fn after_a_failed_sync_every_answer_says_so_and_then_there_are_none() {
    let disk = MemoryDisk::new(1);
    let engine = opened(&disk).await;
    let mut session = engine.session();
    consume(&session, 1).await;
    disk.fail_next_sync();
    session.asks.ask((0..100).map(publish).collect()).await;
    let results = answers(&mut session, 0..100).await;
    assert!(results.iter().all(|result| matches!(result, Err(Failure::Unavailable(_)))), "{results:?}");
    engine.failed().await;
    assert!(session.events.next().await.is_none_or(|events| receipts(&events).len() == events.len()));
    let mut late = engine.session();
    late.asks.ask(vec![publish(0)]).await;
    assert!(late.events.next().await.is_none());
    assert_eq!(Some(late.events.unavailable()), engine.health().down.map(Failure::Unavailable));
}

#[tokio::test]
async fn whoever_does_not_listen_finds_no_room() {
    let engine = opened(&MemoryDisk::new(1)).await;
    let mut session = engine.session();
    session.asks.ask((0..UNHEARD_MAX as u64).map(publish).collect()).await;
    assert!(is_pending(session.asks.room(1)), "nothing was heard");
    assert!(!is_pending(session.asks.room(0)));
    // What is not answered needs room in line only.
    answers(&mut session, 0..1).await;
    drop(session.asks.room(1).await);
}

#[tokio::test]
async fn an_inbox_of_few_places_takes_large_batches_one_after_the_other() {
    let options = Options { inbox: 2, ..options(1 << 20) };
    let engine = LocalEngine::open_on(MemoryDisk::new(1), options, clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut session = engine.session();
    let held = session.asks.room(BATCH_MAX).await;
    assert!(is_pending(engine.session().asks.room(1)), "all places are held");
    assert!(is_pending(engine.queue("q")), "by whomever");
    drop(held);
    for batch in 0..4_u64 {
        let tokens = batch * 1_024..(batch + 1) * 1_024;
        session.asks.ask(tokens.clone().map(publish).collect()).await;
        answers(&mut session, tokens).await;
    }
}

/// A message of 16 KiB.
fn publish_large(token: u64) -> Ask {
    Ask {
        token: Some(token),
        request: Request::PublishOne(Box::new(message(&"x".repeat(16 << 10), token % 10))),
    }
}

/// Messages that are ready and leased.
async fn counts(engine: &LocalEngine) -> (u64, u64) {
    let lanes = engine.queue("q").await.expect("it is there").lanes;
    (lanes.iter().map(|lane| lane.ready).sum(), lanes.iter().map(|lane| lane.leased).sum())
}

/// What is pushed, once it is so: the engine says it a moment after it has answered.
async fn pushed_of(engine: &LocalEngine, is_so: impl Fn(BytesInUse) -> bool) -> BytesInUse {
    loop {
        let pushed = engine.health().memory.pushed;
        if is_so(pushed) {
            return pushed;
        }
        engine.queue("q").await.expect("it is there");
    }
}

#[tokio::test]
async fn a_session_that_hears_nothing_is_pushed_so_many_bytes_whatever_its_window() {
    const MESSAGES: u64 = 200;
    let options = Options { pushed_bytes: 2 << 20, ..options(1 << 20) };
    let engine = LocalEngine::open_on(MemoryDisk::new(1), options, clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut publisher = engine.session();
    publisher.asks.ask((0..MESSAGES).map(publish_large).collect()).await;
    answers(&mut publisher, 0..MESSAGES).await;
    let mut slow = engine.session();
    consume(&slow, 1_000).await;
    // A quarter of what all may be pushed.
    assert_eq!(counts(&engine).await.1, 32);
    let pushed = pushed_of(&engine, |pushed| pushed.bytes > 0).await;
    assert!((512 << 10..528 << 10).contains(&pushed.bytes) && pushed.waits > 0, "{pushed:?}");
    let mut heard = 0;
    while heard < MESSAGES {
        let came = receipts(&slow.events.next().await.expect("it goes on")).len() as u64;
        assert!(came <= 32, "{came} at once");
        heard += came;
    }
    drop(slow);
    assert_eq!(counts(&engine).await, (MESSAGES, 0));
    pushed_of(&engine, |pushed| pushed.bytes == 0).await;
}

#[tokio::test]
async fn publishes_in_line_have_a_bound_of_bytes() {
    let options = Options { inbox_bytes: 64 << 10, ..options(1 << 20) };
    let engine = LocalEngine::open_on(MemoryDisk::new(1), options, clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let (mut session, other) = (engine.session(), engine.session());
    let large: Vec<Ask> = (0..3).map(publish_large).collect();
    let held = session.asks.room_for(&large).await;
    assert!(is_pending(other.asks.room_for(&large[..1])), "64 KiB are taken, or about");
    assert!(!is_pending(other.asks.room(1)), "what brings no bytes has room");
    drop(held);
    let inbox = engine.health().memory.inbox;
    assert_eq!((inbox.bytes, inbox.limit, inbox.waits), (0, 64 << 10, 1));
    // More than there is room for at all takes all of it.
    session.asks.ask((0..20).map(publish_large).collect()).await;
    answers(&mut session, 0..20).await;
}

//! Clients that ask without waiting, and hear in order.

use overtake_lane::{Command, ExchangeKind, ExchangeSettings, Outcome, Settings};

use super::talk::Talk;
use super::{Fixture, Story};
use crate::core::Request;

/// So that all up to one may be confirmed at once.
pub async fn publishes_are_answered_in_the_order_in_which_they_were_asked<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mut talk = Talk::begin(&story);
    for round in 0..20 {
        talk.publish("a:1 b:9 c:5").await;
        let first = round * 3;
        let expect = format!("{first}=1 {}=1 {}=1", first + 1, first + 2);
        assert_eq!(talk.hear(3).await, expect);
    }
}

/// Each for itself.
pub async fn a_publish_that_is_refused_leaves_its_neighbours_alone<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mut talk = Talk::begin(&story);
    talk.publish("a:5 b:5,in=nowhere c:5,id=seq-1 d:5").await;
    assert_eq!(talk.hear(4).await, "0=1 1=no-such-queue 2=id-invalid 3=1");
    assert_eq!(story.left().await, "a d");
}

/// Mandatory or not.
pub async fn a_publish_tells_in_how_many_queues_it_is<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    story.exchange("nobody", ExchangeKind::Direct, &[]).await;
    story.exchange("one", ExchangeKind::Direct, &["q k"]).await;
    story.exchange("both", ExchangeKind::Fanout, &["q", "r"]).await;
    let mut talk = Talk::begin(&story);
    talk.publish("a:5,to=nobody/k b:5,to=nobody/k,must c:5,to=one/k d:5,to=both/k e:5").await;
    assert_eq!(talk.hear(5).await, "0=0 1=unroutable 2=1 3=2 4=1");
    assert_eq!((&*story.left().await, &*story.left_in("r").await), ("c d e", "d"));
}

/// Also where a message has but one queue to go to.
pub async fn a_delayed_exchange_lets_what_a_session_publishes_wait<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let delayed = ExchangeSettings { delayed: true, ..ExchangeSettings::new(ExchangeKind::Fanout) };
    story.exchange_as("d", delayed, &["q"]).await;
    let mut talk = Talk::begin(&story);
    talk.publish("late:5,h.x-delay=1000,to=d/ soon:5,to=d/").await;
    assert_eq!(talk.hear(2).await, "0=1 1=1");
    assert_eq!(story.left().await, "soon · delayed late");
}

/// What has an id is stored once.
pub async fn a_message_of_a_pending_id_is_taken_and_not_stored_again<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mut talk = Talk::begin(&story);
    talk.publish("a:5,id=x b:5,id=x").await;
    assert_eq!(talk.hear(2).await, "0=1 1=1");
    assert_eq!(story.left().await, "a");
}

/// Whatever comes of it.
pub async fn a_request_without_a_token_is_done_and_not_answered<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mut talk = Talk::begin(&story);
    talk.tell(talk.publishes("a:5 b:5,in=nowhere")).await;
    talk.publish("c:5").await;
    assert_eq!(talk.hear(1).await, "0=1");
    assert_eq!(story.left().await, "a c");
}

/// So that a wire can say that it is there before it says what it got.
pub async fn a_consumer_is_answered_before_its_first_message<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:9").await;
    let mut talk = Talk::begin(&story);
    talk.consume("q", 2).await;
    assert_eq!(talk.hear(3).await, "0=done b a");
    talk.consume("nowhere", 2).await;
    assert_eq!(talk.hear(1).await, "1=no-such-queue");
}

/// And what it settles makes room for the next.
pub async fn a_session_gets_no_more_than_its_window<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5").await;
    let mut talk = Talk::begin(&story);
    talk.consume("q", 1).await;
    assert_eq!(talk.hear(2).await, "0=done a");
    talk.settle("a", Outcome::Ack).await;
    assert_eq!(talk.hear(1).await, "b");
    talk.settle("b", Outcome::Release).await;
    assert_eq!(talk.hear(1).await, "b");
    talk.settle("b", Outcome::Ack).await;
    assert_eq!(talk.hear(1).await, "c");
    talk.publish("d:9").await;
    assert_eq!(talk.hear(1).await, "1=1");
    assert_eq!(story.left().await, "d · leased c");
}

/// After its answer nothing comes, and what it held is put back.
pub async fn a_consumer_that_is_cancelled_hears_no_more<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    let mut talk = Talk::begin(&story);
    let consumer = talk.consume("q", 5).await;
    assert_eq!(talk.hear(2).await, "0=done a");
    talk.ask(vec![Request::Do(Command::Cancel { consumer })]).await;
    assert_eq!(talk.hear(1).await, "1=done");
    story.publish("b:5").await;
    talk.publish("c:5").await;
    assert_eq!(talk.hear(1).await, "2=1");
    assert_eq!(story.left().await, "a b c");
}

/// Nobody is left to cancel it.
pub async fn a_consumer_hears_that_its_queue_is_gone<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mut talk = Talk::begin(&story);
    talk.consume("q", 5).await;
    assert_eq!(talk.hear(1).await, "0=done");
    let delete = Command::DeleteQueue { name: "q".into(), if_empty: false, if_unused: false };
    talk.tell(vec![Request::Do(delete)]).await;
    assert_eq!(talk.hear(1).await, "ended");
}

/// It is answered when it is.
pub async fn a_lease_that_waits_holds_up_no_answer<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    let mut talk = Talk::begin(&story);
    talk.lease("q", 600_000).await;
    talk.publish("a:5,in=r").await;
    assert_eq!(talk.hear(1).await, "1=1");
    story.publish("b:5").await;
    assert_eq!(talk.hear(1).await, "0=[b]");
    talk.lease("q", 0).await;
    assert_eq!(talk.hear(1).await, "2=[]");
}

/// Every token is answered.
pub async fn a_lease_that_is_given_up_is_answered_with_nothing<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mut talk = Talk::begin(&story);
    let consumer = talk.lease("q", 600_000).await;
    talk.tell(vec![Request::GiveUp { consumer }]).await;
    assert_eq!(talk.hear(1).await, "0=[]");
    assert_eq!(story.view().await.waiting, 0);
}

/// The connection is lost.
pub async fn a_session_that_ends_puts_back_what_its_consumers_hold<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5").await;
    let mut talk = Talk::begin(&story);
    talk.consume("q", 1).await;
    talk.consume("q", 1).await;
    assert_eq!(talk.hear(1).await, "0=done");
    story.until_leased(2).await;
    drop(talk);
    story.until_no_consumer().await;
    assert_eq!(story.left().await, "a b c");
}

/// And takes nothing any more.
pub async fn a_session_that_ends_gives_up_its_leases_that_wait<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mut talk = Talk::begin(&story);
    talk.lease("q", 600_000).await;
    story.until_waiting(1).await;
    drop(talk);
    story.until_waiting(0).await;
    story.publish("a:5").await;
    assert_eq!(story.lease(1).await, "a");
}

/// A lease that nobody has heard of.
pub async fn a_session_that_ends_puts_back_what_it_leased_and_did_not_hear<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    let mut talk = Talk::begin(&story);
    talk.lease("q", 0).await;
    story.until_leased(1).await;
    drop(talk);
    story.until_leased(0).await;
    assert_eq!(story.left().await, "a");
}

/// As with everything that was asked.
pub async fn what_was_asked_before_a_session_ended_is_done<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mut talk = Talk::begin(&story);
    talk.publish("a:5 b:5 c:5").await;
    drop(talk);
    while story.left().await != "a b c" {
        tokio::task::yield_now().await;
    }
}

/// Neither hears of the other.
pub async fn each_session_hears_its_own<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let (mut one, mut other) = (Talk::begin(&story), Talk::begin(&story));
    one.consume("q", 9).await;
    assert_eq!(one.hear(1).await, "0=done");
    other.publish("a:5 b:5").await;
    assert_eq!(other.hear(2).await, "0=1 1=1");
    assert_eq!(one.hear(2).await, "a b");
    drop(one);
    story.until_no_consumer().await;
    other.consume("q", 9).await;
    assert_eq!(other.hear(3).await, "2=done a(2) b(2)");
}

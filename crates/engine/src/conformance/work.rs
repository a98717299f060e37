//! How the work on messages ends, and what is kept of it.

use overtake_lane::{Ending, Outcome, Record, Refusal, Report, Settings};

use super::{ENDS, End, Fixture, Story, settings};

const TIMEOUT_MS: u64 = 500;

async fn with_history<F: Fixture>(fixture: F, change: impl FnOnce(&mut Settings)) -> Story<F> {
    let story = Story::of(fixture, settings(|s| (s.history = Some("past".to_owned()), change(s)).1)).await;
    story.declare("past", Settings::default()).await;
    story
}

/// The record of a message in the history.
async fn record<F: Fixture>(story: &Story<F>, id: &str) -> Record {
    let found = story.engine().message("past", id).await.expect("it is in the history");
    Record::clone(&found.message.record.expect("it has a record"))
}

/// What was done is kept with what was said of it, whole, and survives every end of the broker.
pub async fn what_is_done_is_in_the_history<F: Fixture>(fixture: F) {
    let mut story = with_history(fixture, |_| ()).await;
    story.publish("a:7,id=a b:7,id=b").await;
    story.lease(2).await;
    let report = Report { exit_code: Some(0), error: None, output: Some("fine".into()) };
    story.finish("a", Outcome::Ack, report.clone()).await.expect("it ends");
    story.ack("b").await;
    for end in ENDS {
        assert_eq!((story.left().await, story.left_in("past").await), (String::new(), "a b".to_owned()));
        let kept = record(&story, "a").await;
        let said = (kept.ending, &*kept.queue, &*kept.lane, kept.attempts, &kept.report);
        assert_eq!(said, (Ending::Completed, "q", "7", 1, &report));
        assert_eq!(record(&story, "b").await.report, Report::default());
        story.again(end).await;
    }
}

/// What fails for good is dead-lettered as the queue says, and recorded.
pub async fn what_fails_is_in_the_history_with_the_last_report<F: Fixture>(fixture: F) {
    let story = with_history(fixture, |s| s.delivery_limit = 2).await;
    story.publish("a:5,id=a b:4,id=b").await;
    for code in [1, 2] {
        story.lease(1).await;
        let report = Report { exit_code: Some(code), ..Report::of_error("crash") };
        story.finish("a", Outcome::Nack { delay_ms: None }, report).await.expect("it ends");
    }
    story.lease(1).await;
    story.reject("b").await;
    let kept = record(&story, "a").await;
    assert_eq!((kept.ending, kept.attempts, kept.report.exit_code), (Ending::Failed, 2, Some(2)));
    assert_eq!(record(&story, "b").await.ending, Ending::Failed);
}

/// Whoever works for too long has lost the message, however often it asked for more time.
pub async fn what_takes_too_long_is_over<F: Fixture>(fixture: F) {
    let story = with_history(fixture, |s| s.run_timeout_ms = TIMEOUT_MS).await;
    story.publish("a:5,id=a").await;
    story.lease(1).await;
    story.extend("a", 100 * TIMEOUT_MS).await.expect("it is lengthened");
    story.advance(TIMEOUT_MS).await;
    assert_eq!(story.settle("a", Outcome::Ack).await, Err(Refusal::StaleReceipt));
    assert_eq!(record(&story, "a").await.ending, Ending::Timeout);
}

/// What waits is taken back at once; who works on one is asked for it, also by the next life of the broker.
pub async fn a_message_that_is_wanted_back_comes_back<F: Fixture>(fixture: F) {
    let mut story = with_history(fixture, |_| ()).await;
    story.publish("a:9,id=a b:5,id=b").await;
    assert_eq!(story.lease(1).await, "a");
    assert_eq!(story.cancel("a").await, Ok(1));
    assert_eq!(story.cancel("b").await, Ok(1));
    assert_eq!((story.left().await, story.left_in("past").await), ("leased a".to_owned(), "b".to_owned()));
    story.again(End::Crash).await;
    assert_eq!(story.extend("a", 60_000).await, Err(Refusal::CancelAsked));
    story.reject("a").await;
    assert_eq!(record(&story, "a").await.ending, Ending::Cancelled);
    assert_eq!(story.left().await, "");
}

/// What is kept may be done once more.
pub async fn what_is_kept_may_go_back<F: Fixture>(fixture: F) {
    let story = with_history(fixture, |_| ()).await;
    story.publish("a:9,id=a").await;
    story.lease(1).await;
    story.ack("a").await;
    let select = crate::api::Select::Id("a".to_owned());
    assert_eq!(story.engine().replay("past", select, None).await, Ok(1));
    assert_eq!((story.lease(1).await, story.left_in("past").await), ("a".to_owned(), String::new()));
}

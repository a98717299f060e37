//! How the work on messages ends, and what is kept of it.

use overtake_lane::{ATTEMPTS_MAX, Ending, Outcome, REPORT_BYTES_MAX, Record, Refusal, Report, Settings};

use super::{ENDS, End, Fixture, Story, answered, settings};

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
    tell(&story, "a", "10 %").await;
    story.extend("a", 100 * TIMEOUT_MS).await.expect("it is lengthened");
    story.advance(TIMEOUT_MS).await;
    assert_eq!(story.settle("a", Outcome::Ack).await, Err(Refusal::StaleReceipt));
    let kept = record(&story, "a").await;
    assert_eq!((kept.ending, kept.report.output.as_deref()), (Ending::Timeout, Some("10 %")));
}

/// A worker may say that a message took too long: it ends as when the run timeout of its queue is over.
pub async fn what_is_said_to_take_too_long_is_over<F: Fixture>(fixture: F) {
    let mut story = with_history(fixture, |s| s.delivery_limit = 3).await;
    story.publish("a:5,id=a b:4,id=b").await;
    story.lease(2).await;
    story.settle("a", Outcome::Timeout).await.expect("it ends");
    let report = Report { exit_code: Some(137), ..Report::default() };
    story.finish("b", Outcome::Timeout, report).await.expect("it ends");
    for end in ENDS {
        for (id, code) in [("a", None), ("b", Some(137))] {
            let Record { ending, attempts, report, .. } = record(&story, id).await;
            let said = (ending, attempts, report.exit_code, report.error.as_deref());
            assert_eq!(said, (Ending::Timeout, 1, code, Some("ran too long")));
        }
        assert_eq!(story.settle("a", Outcome::Timeout).await, Err(Refusal::StaleReceipt));
        story.again(end).await;
    }
}

/// An attempt whose lease ran out may say late how it ended, as long as its message waits for the next one.
pub async fn an_attempt_may_say_late_how_it_ended<F: Fixture>(fixture: F) {
    let mut story = with_history(fixture, |s| {
        s.visibility_timeout_ms = TIMEOUT_MS;
        s.delivery_limit = 9;
        s.backoff.initial_ms = 0;
    })
    .await;
    let late = async |story: &Story<F>, id: &str, attempt, outcome| {
        let report = Report::of_error("late");
        answered(story.engine().finish_late("q", id, attempt, outcome, report).await)
    };
    story.publish("a:5,id=a b:4,id=b c:3,id=c").await;
    assert_eq!(late(&story, "a", 1, Outcome::Ack).await, Err(Refusal::StaleReceipt), "it was never begun");
    story.lease(3).await;
    assert_eq!(late(&story, "a", 1, Outcome::Ack).await, Err(Refusal::Leased));
    story.advance(TIMEOUT_MS).await;
    story.again(End::Crash).await;
    assert_eq!(late(&story, "a", 2, Outcome::Ack).await, Err(Refusal::StaleReceipt));
    assert_eq!(late(&story, "a", 1, Outcome::Release).await, Ok(()));
    assert_eq!(story.left().await, "a b c");
    let all = [("a", Outcome::Ack), ("b", Outcome::Reject), ("c", Outcome::Timeout)];
    for (id, outcome) in all {
        assert_eq!(late(&story, id, 1, outcome).await, Ok(()));
        assert_eq!(late(&story, id, 1, outcome).await, Err(Refusal::NoSuchMessage));
    }
    assert_eq!(story.left().await, "");
    for (id, ending) in [("a", Ending::Completed), ("b", Ending::Failed), ("c", Ending::Timeout)] {
        let kept = record(&story, id).await;
        assert_eq!((kept.ending, kept.attempts, kept.report.error.as_deref()), (ending, 1, Some("late")));
        assert!(kept.started.is_some(), "its attempt was begun");
    }
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

/// The receipt that a look at a leased message tells settles its lease, once, also after the broker has ended.
pub async fn a_look_at_a_message_tells_the_receipt_of_its_lease<F: Fixture>(fixture: F) {
    let mut story = with_history(fixture, |_| ()).await;
    story.publish("a:9,id=a b:5,id=b").await;
    assert_eq!(story.lease(1).await, "a");
    for end in ENDS {
        story.again(end).await;
        let told = async |id| {
            let found = story.engine().message("q", id).await.expect("it is there");
            found.held.and_then(|held| held.receipt)
        };
        assert_eq!(told("b").await, None, "nobody has leased it");
        assert!(told("a").await.is_some());
    }
    let found = story.engine().message("q", "a").await.expect("it is there");
    let receipt = found.held.and_then(|held| held.receipt).expect("it is leased");
    for result in [Ok(()), Err(Refusal::StaleReceipt)] {
        assert_eq!(story.engine().finish(receipt, Outcome::Ack, Report::default()).await, Ok(result));
    }
    assert_eq!(record(&story, "a").await.ending, Ending::Completed);
}

/// A consumer still works on what was taken from it, and is given nothing more in its place until it settles that or leaves.
pub async fn a_message_that_is_taken_from_a_consumer_keeps_its_place_in_the_window<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|_| ())).await;
    let mut consumer = story.consume(1).await;
    story.publish("a:5,id=a b:4,id=b c:3,id=c").await;
    for (taken, next) in [("a", "b"), ("b", "c")] {
        assert_eq!(story.next(&mut consumer, 1).await, taken);
        let took = if taken == "a" { story.cancel(taken).await } else { story.remove(taken).await };
        assert_eq!((took, story.leased().await), (Ok(1), 0));
        // Whoever has room is served before this is answered.
        story.publish("d:1").await;
        assert_eq!(story.leased().await, 0, "{next} waits");
        assert_eq!(story.settle(taken, Outcome::Ack).await, Err(Refusal::StaleReceipt));
        story.until_leased(1).await;
    }
    assert_eq!(story.next(&mut consumer, 1).await, "c");
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

/// What is remembered of the attempts at a message that did not end it: how each ended, its exit code, error and output.
async fn attempts<F: Fixture>(story: &Story<F>, queue: &str, id: &str) -> Vec<String> {
    let found = story.engine().message(queue, id).await.expect("it is there");
    let all = found.message.attempts.iter().flat_map(|attempts| attempts.iter());
    let shown = all.map(|attempt| {
        let Report { exit_code, error, output } = &attempt.report;
        let begun = if attempt.started.is_some() { "begun, " } else { "" };
        let code = exit_code.map_or_else(String::new, |code| format!(" {code}"));
        let text = |text: &Option<Box<str>>| text.clone().unwrap_or_default();
        format!("{begun}{}{code}: {}: {}", attempt.ending.word(), text(error), text(output))
    });
    shown.collect()
}

/// Every attempt at a message with a history is remembered with what was said of it, also once it is over and when it is done again.
pub async fn each_attempt_is_remembered<F: Fixture>(fixture: F) {
    let mut story = with_history(fixture, |s| s.delivery_limit = 4).await;
    let said = |code| Report { exit_code: Some(code), error: None, output: Some("half of it".into()) };
    story.publish("a:5,id=a").await;
    story.lease(1).await;
    story.finish("a", Outcome::Nack { delay_ms: None }, said(1)).await.expect("it ends");
    story.lease(1).await;
    story.finish("a", Outcome::Release, said(2)).await.expect("it ends");
    story.lease_for(1, Some(1_000)).await;
    story.advance(1_000).await;
    let mut expected = vec![
        "begun, failed 1: negatively acknowledged: half of it".to_owned(),
        "begun, lease_expired: the lease ran out: ".to_owned(),
    ];
    for end in ENDS {
        assert_eq!(attempts(&story, "q", "a").await, expected);
        story.again(end).await;
    }
    story.lease(1).await;
    story.finish("a", Outcome::Reject, said(3)).await.expect("it ends");
    for end in ENDS {
        assert_eq!(record(&story, "a").await.report.exit_code, Some(3));
        assert_eq!(attempts(&story, "past", "a").await, expected);
        story.again(end).await;
    }
    let select = crate::api::Select::Id("a".to_owned());
    assert_eq!(story.engine().replay("past", select, None).await, Ok(1));
    expected.push("begun, failed 3: rejected: half of it".to_owned());
    for end in ENDS {
        assert_eq!(attempts(&story, "q", "a").await, expected);
        story.again(end).await;
    }
}

/// The holder of a lease reports what its work has printed so far.
async fn tell<F: Fixture>(story: &Story<F>, id: &str, output: &str) {
    let told = story.engine().progress(story.receipt(id), 60_000, output.into()).await;
    assert_eq!(told, Ok(Ok(())), "{id}");
}

/// The output that a holder has reported so far is the output of an attempt that ends without one, however it ends, and of the record.
pub async fn output_reported_so_far_is_kept_when_work_ends_without_a_report<F: Fixture>(fixture: F) {
    const CHARACTER: &str = "…";
    let mut story = with_history(fixture, |s| s.delivery_limit = 2).await;
    story.publish("a:9,id=a b:8,id=b d:6,id=d e:5,id=e f:4,id=f").await;
    story.lease(5).await;
    for (id, output) in [("a", "first"), ("a", "a 10 %"), ("b", "b 10 %"), ("d", "d 10 %"), ("e", "e 10 %")] {
        tell(&story, id, output).await;
    }
    tell(&story, "f", &CHARACTER.repeat(REPORT_BYTES_MAX / CHARACTER.len())).await;
    let crash = Outcome::Nack { delay_ms: Some(600_000) };
    story.finish("e", crash, Report::of_error("crash")).await.expect("it ends");
    story.finish("f", Outcome::Reject, Report::of_error("odd")).await.expect("it ends");
    for id in ["a", "b"] {
        story.extend(id, 50).await.expect("it is shortened");
    }
    story.advance(50).await;
    assert_eq!(story.lease(2).await, "a(2) b(2)");
    tell(&story, "b", "b again").await;
    story.release("a").await;
    story.extend("b", 50).await.expect("it is shortened");
    story.extend("d", 1_000).await.expect("it is shortened");
    story.cancel("d").await.expect("it is asked back");
    story.advance(1_000).await;
    let ran_out = |output: &str| format!("begun, lease_expired: the lease ran out: {output}");
    for end in ENDS {
        assert_eq!(attempts(&story, "q", "a").await, [ran_out("a 10 %")]);
        assert_eq!(attempts(&story, "q", "e").await, ["begun, failed: crash: e 10 %"]);
        assert_eq!(attempts(&story, "past", "b").await, [ran_out("b 10 %")]);
        for (id, ending, output) in [("b", Ending::Failed, "b again"), ("d", Ending::Cancelled, "d 10 %")] {
            let kept = record(&story, id).await;
            assert_eq!((kept.ending, kept.report.output.as_deref()), (ending, Some(output)), "{id}");
        }
        let Report { error, output, .. } = record(&story, "f").await.report;
        assert_eq!(error.as_deref(), Some("odd"));
        let most = (REPORT_BYTES_MAX - "odd".len()) / CHARACTER.len();
        assert_eq!(output.as_deref(), Some(&*CHARACTER.repeat(most)), "its end, in whole characters");
        story.again(end).await;
    }
}

/// Without a history an attempt is remembered if something was reported of it: also the one of which the message dies.
pub async fn without_a_history_attempts_are_remembered_of_which_something_was_reported<F: Fixture>(
    fixture: F,
) {
    let mut story = Story::of(fixture, settings(|_| ())).await;
    story.publish("a:5,id=a b:4,id=b c:3,id=c").await;
    for report in [Report::default(), Report::of_error("crash")] {
        story.lease(1).await;
        story.finish("a", Outcome::Nack { delay_ms: None }, report).await.expect("it ends");
    }
    assert_eq!(attempts(&story, "q", "a").await, ["failed: crash: "]);
    story.lease(3).await;
    let report = Report { exit_code: Some(3), ..Report::default() };
    story.finish("a", Outcome::Reject, report).await.expect("it ends");
    story.reject("b").await;
    tell(&story, "c", "half of it").await;
    story.reject("c").await;
    for end in ENDS {
        assert_eq!(attempts(&story, "q", "a").await, ["failed: crash: ", "failed 3: rejected: "]);
        assert_eq!(attempts(&story, "q", "b").await, [""; 0]);
        assert_eq!(attempts(&story, "q", "c").await, ["failed: rejected: half of it"]);
        story.again(end).await;
    }
    assert_eq!(story.replay("a", None).await, Ok(1));
    assert_eq!(attempts(&story, "q", "a").await.len(), 2);
}

/// A message that fails again and again remembers the last attempts.
pub async fn the_last_attempts_are_remembered<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|_| ())).await;
    story.publish("a:5,id=a").await;
    let fail = async |code: i32, bytes: usize| {
        story.lease(1).await;
        let output = Some("x".repeat(bytes).into());
        let report = Report { exit_code: Some(code), error: None, output };
        story.finish("a", Outcome::Nack { delay_ms: None }, report).await.expect("it ends");
        let found = story.engine().message("q", "a").await.expect("it is there").message.attempts;
        let codes = found.iter().flat_map(|attempts| attempts.iter());
        codes.map(|attempt| attempt.report.exit_code.expect("it was said")).collect::<Vec<i32>>()
    };
    for code in 0..10 {
        let first = (code + 1 - ATTEMPTS_MAX as i32).max(0);
        assert_eq!(fail(code, 10).await, (first..=code).collect::<Vec<i32>>());
    }
    assert_eq!(fail(10, 30_000).await, [3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(fail(11, 30_000).await, [4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(fail(12, 30_000).await, [11, 12]);
}

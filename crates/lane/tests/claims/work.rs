//! What is worked on, how that ended, and what is kept of it.

use expect_test::expect;
use overtake_lane::{
    Broker, Command, Existing, Fact, Identity, Options, QueueId, Refusal, Seq, Settings, Step, Time, VhostId,
};

use crate::story::{check, tell_story};

const KEPT: &str = r#""scheme":"named","history":"h","visibility_timeout_ms":1000"#;

#[test]
fn what_is_done_is_in_the_history_with_its_record() {
    check(
        KEPT,
        "declare h · publish a:high,id=x · +5ms · lease · work a · +3ms · finish a exit=0 output=fine · left · lanes · in h · left · record a · show a",
        expect![
            "made · a · for 0ms · empty · high: 1 published 1 delivered 1 settled 5 waited · ready a · completed in q/high, waited 5ms, ran 3ms, 1x, exit 0, output fine · a 3 is ready in 3, leased 0x"
        ],
    );
    check(
        KEPT,
        "declare h · publish a b · lease 2 · ack a b · restart · in h · left · record a · record b",
        expect![
            "made · a b · ready a b · completed in q/normal, waited 0ms, ran 0ms, 1x · completed in q/normal, waited 0ms, ran 0ms, 1x"
        ],
    );
}

#[test]
fn what_failed_is_in_the_history_and_where_dead_letters_go() {
    check(
        r#""history":"h","delivery_limit":2"#,
        "declare h · publish a · lease · +1ms · finish a nack exit=1 error=crash · lease · +2ms · finish a nack exit=2 error=crash · left · in h · record a · deaths a",
        expect![
            "made · a · a(2) · empty · failed in q/4, waited 1ms, ran 2ms, 2x, exit 2, error crash · q deliverylimit by /q first, last by /q, now by /q"
        ],
    );
    check(
        r#""history":"h","dead_letter":"drop""#,
        "declare h · publish a · lease · reject a · lanes · in h · record a · deaths a",
        expect![
            "made · a · 4: 1 published 1 delivered 1 removed · failed in q/4, waited 0ms, ran 0ms, 1x, error rejected · q rejected by /q first, last by /q, now by /q"
        ],
    );
    check(
        r#""history":"h","dead_letter":{"queue":"r"}"#,
        "declare h · declare r · publish a · lease · finish a reject error=bad · in h · record a · in r · record a · show a · replay a · in q · left · record a",
        expect![
            "made · made · a · failed in q/4, waited 0ms, ran 0ms, 1x, error bad · failed in q/4, waited 0ms, ran 0ms, 1x, error bad · a 4 is ready in 4, leased 0x, died Rejected in q/4 after 1, 0ms ago · ready a · a has no record"
        ],
    );
    check(
        r#""history":"h","dead_letter":{"queue":"h"}"#,
        "declare h · publish a · lease · reject a · in h · left",
        expect!["made · a · ready a"],
    );
}

#[test]
fn what_takes_too_long_is_over() {
    check(
        r#""history":"h","run_timeout_ms":100"#,
        "declare h · publish a b · lease for=60 · +50ms · extend a for=60 · work a · +50ms · left · extend a for=60 · finish a · in h · record a",
        expect![
            "made · a · for 50ms, ends in 50ms · ready b · no: stale-receipt · no: stale-receipt · timeout in q/4, waited 0ms, ran 100ms, 1x, error ran too long"
        ],
    );
    check(
        r#""run_timeout_ms":100"#,
        "publish a · consume w window=1 · +100ms · left · show a · ack a",
        expect![
            "w:a · dead a · a 4 is dead in 4, leased 1x, died Timeout in q/4 after 1, 0ms ago · no: stale-receipt"
        ],
    );
    check(
        r#""run_timeout_ms":100"#,
        "publish a b · consume w window=1 · +100ms · left · ack a · left",
        expect!["w:a · ready b, dead a · no: stale-receipt · w:b · leased b, dead a"],
    );
    check(
        r#""history":"h","ttl_ms":10"#,
        "declare h · publish a · +10ms · lanes · in h · record a",
        expect![
            "made · 4: 1 published 1 expired · timeout in q/4, waited 10ms, 0x, error expired before it was done"
        ],
    );
}

#[test]
fn whoever_works_on_one_may_say_that_it_took_too_long() {
    check(
        r#""history":"h","delivery_limit":3,"dead_letter":{"queue":"r"}"#,
        "declare h · declare r · publish a · lease · +5ms · finish a timeout exit=137 · left · lanes · in h · record a · deaths a · in r · left",
        expect![
            "made · made · a · empty · 4: 1 published 1 delivered 1 moved 1 dead-lettered · timeout in q/4, waited 0ms, ran 5ms, 1x, exit 137, error ran too long · q timeout by /q first, last by /q, now by /r · ready a"
        ],
    );
    check(
        "",
        "publish a · lease · timeout a · show a · timeout a",
        expect!["a · a 4 is dead in 4, leased 1x, died Timeout in q/4 after 1, 0ms ago · no: stale-receipt"],
    );
    check(
        KEPT,
        "declare h · publish a · lease · want-back a · finish a timeout · in h · record a",
        expect!["made · a · cancelled in q/normal, waited 0ms, ran 0ms, 1x"],
    );
}

#[test]
fn what_ends_at_its_last_attempt_says_how_that_came_back() {
    let settings = r#""history":"h","delivery_limit":1,"visibility_timeout_ms":50"#;
    for (back, error) in [
        ("lease · +50ms", "the lease ran out"),
        ("lease · nack a", "negatively acknowledged"),
        ("lease · finish a nack error=bad", "bad"),
        ("consume w window=1 · cancel w", "the consumer went away"),
    ] {
        let told = tell_story(settings, &format!("declare h · publish a · {back} · in h · record a"));
        assert!(told.ends_with(&format!("1x, error {error}")), "{back}: {told}");
    }
}

#[test]
fn an_attempt_whose_lease_ran_out_ends_its_message_as_long_as_that_waits() {
    let settings = r#""history":"h","visibility_timeout_ms":50,"backoff":{"initial_ms":10},"max_active":1"#;
    check(
        settings,
        "declare h · publish a,id=x b,id=b · lease · +50ms · finish-late x attempt=2 · finish-late x attempt=0 · finish-late x attempt=1 nack · left · finish-late x attempt=1 exit=0 · finish-late x attempt=1 · left · lease · in h · left · record a",
        expect![
            "made · a · no: stale-receipt · no: stale-receipt · ready b, delayed a · no: no-such-message · ready b · b · ready a · completed in q/4, waited 0ms, ran 50ms, 1x, exit 0"
        ],
    );
    for (how, ended) in [("reject", "failed"), ("timeout", "timeout")] {
        let told = tell_story(
            settings,
            &format!(
                "declare h · publish a,id=x · lease · +50ms · +10ms · finish-late x {how} attempt=1 error=e · in h · record a"
            ),
        );
        assert_eq!(told, format!("made · a · {ended} in q/4, waited 0ms, ran 60ms, 1x, error e"));
    }
    check(
        settings,
        "declare h · publish a,id=x · finish-late x attempt=1 · lease · +50ms · +10ms · lease · finish-late x attempt=1 · reject a · in h · replay a · in q · finish-late x attempt=1",
        expect!["made · no: stale-receipt · a · a(2) · no: leased · no: stale-receipt"],
    );
}

#[test]
fn what_nobody_works_on_is_cancelled_at_once() {
    check(
        KEPT,
        "declare h · publish a b,delay=50 c · want-back a · want-back b · left · in h · record a · record b",
        expect![
            "made · ready c · cancelled in q/normal, waited 0ms, 0x · cancelled in q/normal, waited 0ms, 0x"
        ],
    );
    check(
        KEPT,
        "declare h · consume w window=1 · publish a · want-back a · left · in h · record a",
        expect!["made · w:a · empty · cancelled in q/normal, waited 0ms, ran 0ms, 1x"],
    );
    check(
        "",
        "publish a · lease · reject a · want-back a · want-back x · publish b · want-back all · left",
        expect!["a · no: dead · no: no-such-message · dead a"],
    );
}

#[test]
fn who_works_on_what_is_wanted_back_is_told_when_it_asks_for_more_time() {
    check(
        KEPT,
        "declare h · publish a · lease · want-back a · want-back a · work a · left · extend a for=900 · restart · work a · +5ms · finish a reject exit=143 · left · in h · record a",
        expect![
            "made · a · for 0ms, wanted back · leased a · no: cancel-asked · for 0ms, wanted back · empty · cancelled in q/normal, waited 0ms, ran 5ms, 1x, exit 143"
        ],
    );
    for (back, ran) in [("release a", 0), ("nack a", 0), ("+1000ms", 1000), ("reject a", 0)] {
        let story =
            format!("declare h · publish a · lease · want-back a · {back} · left · lease · in h · record a");
        let told = format!("made · a · empty · nothing · cancelled in q/normal, waited 0ms, ran {ran}ms, 1x");
        assert_eq!(tell_story(KEPT, &story), told);
    }
    check(
        KEPT,
        "declare h · publish a · lease · want-back a · ack a · in h · record a",
        expect!["made · a · completed in q/normal, waited 0ms, ran 0ms, 1x"],
    );
    check(
        "",
        "publish a · lease · want-back a · work a · release a · left",
        expect!["a · for 0ms, wanted back · empty"],
    );
}

#[test]
fn a_history_has_the_last_of_each_id() {
    check(
        KEPT,
        "declare h · publish a,id=x · lease · ack a · publish b,id=x · lease · finish b exit=7 · in h · left · record b · lease · in q · publish c,id=x · lease · ack c · in h · left · ack b · left",
        expect![
            "made · a · b · ready b · completed in q/normal, waited 0ms, ran 0ms, 1x, exit 7 · b · c · ready c, leased b · ready c"
        ],
    );
}

#[test]
fn what_is_kept_may_be_done_again() {
    check(
        KEPT,
        "declare h · publish a:high,id=x · lease · ack a · in h · replay x · left · in q · left · record a · lease · show a",
        expect![
            "made · a · empty · ready a · a has no record · a · a high is leased in high, leased 1x, deadline in 1000ms"
        ],
    );
    check(
        KEPT,
        "declare h · publish a · lease · ack a · publish b · replay b · in h · publish c · replay c",
        expect!["made · a · no: not-dead · no: not-dead"],
    );
}

#[test]
fn without_its_history_a_message_is_gone() {
    check(KEPT, "publish a b · lease 2 · ack a · reject b · left", expect!["a b · dead b"]);
    check(
        KEPT,
        r#"declare h "max_length":1,"overflow":"reject" · publish a b · lease 2 · ack a · ack b · in h · left"#,
        expect!["made · a b · ready a"],
    );
    check(
        KEPT,
        r#"declare h "max_length":1,"order":"fifo" · publish a b · lease 2 · ack a · ack b · in h · left"#,
        expect!["made · a b · ready b"],
    );
}

#[test]
fn a_history_is_another_queue_and_does_not_lead_back() {
    check(
        "",
        r#"declare q "history":"q" · declare a "history":"a" · declare a "history":"b" · declare b "history":"c" ·
           declare c "history":"a" · declare c "history":"c" · declare c "history":"d" · declare d "history":"b" ·
           declare d "ttl_ms":5 · declare d "history":"e" · declare f "history":"a""#,
        expect![
            "no: history-circular · no: history-circular · made · made · no: history-circular · \
             no: history-circular · made · no: history-circular · made · made"
        ],
    );
}

#[test]
fn a_queue_that_was_stored_with_a_circle_of_histories_is_as_it_was() {
    let settings = |history: &str, ttl_ms| {
        Box::new(Settings { history: Some(history.into()), ttl_ms, ..Settings::default() })
    };
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    for ((name, history), number) in [("a", "b"), ("b", "a"), ("c", "c")].into_iter().zip(1..) {
        let stored = Fact::QueueStored {
            queue: QueueId(number),
            vhost: VhostId::DEFAULT,
            name: name.into(),
            settings: settings(history, 0),
            identity: Identity::default(),
            next_seq: Seq(1),
        };
        broker.fold(stored, &mut step).expect("it opens");
    }
    broker.wake(Time(1), &mut step);
    let mut declare = |name: &str, settings| {
        let existing = Existing::Update;
        let command =
            Command::DeclareQueue { name: name.into(), settings, identity: Identity::default(), existing };
        broker.apply(Time(1), command, &mut step).map(drop)
    };
    assert_eq!(declare("a", settings("b", 5)), Ok(()), "another setting changes");
    assert_eq!(declare("c", settings("c", 5)), Ok(()));
    assert_eq!(declare("d", settings("a", 0)), Ok(()), "the circle of others is not its own");
    assert_eq!(declare("c", settings("b", 5)), Ok(()));
    assert_eq!(declare("a", settings("a", 5)), Err(Refusal::HistoryCircular));
}

#[test]
fn who_is_evicted_is_recorded() {
    check(
        r#""history":"h","max_length":1"#,
        "declare h · publish a b:9 · left · in h · record a",
        expect!["made · ready b · cancelled in q/4, waited 0ms, 0x, error the queue was full"],
    );
}

#[test]
fn a_report_is_bounded() {
    check(
        KEPT,
        "declare h · publish a · lease · finish a output=*32769 · finish a output=*32768 · left",
        expect!["made · a · no: report-too-large · empty"],
    );
}

#[test]
fn others_are_not_told() {
    check(
        "",
        "publish a · lease · finish a exit=0 · left · finish a",
        expect!["a · empty · no: stale-receipt"],
    );
}

#[test]
fn a_round_of_histories_in_which_nobody_rejects_ends() {
    check(
        r#""history":"h","expire_at_once":true"#,
        r#"declare h "expire_at_once":true,"dead_letter_expired":true,"dead_letter":{"queue":"q"} · publish a · left · in h · left"#,
        expect!["made · empty · empty"],
    );
}

#[test]
fn what_was_done_does_not_come_back_because_its_record_expires() {
    check(
        r#""history":"h""#,
        r#"declare h "ttl_ms":10,"dead_letter_expired":true,"dead_letter":{"queue":"q"} · publish a · lease · ack a · +10ms · left · in h · left"#,
        expect!["made · a · empty · empty"],
    );
}

#[test]
fn what_failed_may_come_back_after_a_while() {
    check(
        r#""history":"h","dead_letter":{"queue":"r"}"#,
        r#"declare h · declare r "ttl_ms":10,"dead_letter_expired":true,"dead_letter":{"queue":"q"} · publish a · lease · reject a · +10ms · left · lease · reject a · +10ms · left · in h · left"#,
        expect!["made · made · a · ready a · a · ready a · ready a a"],
    );
}

#[test]
fn a_dead_letter_takes_no_work_along() {
    check(
        r#""run_timeout_ms":100,"dead_letter":{"queue":"r"}"#,
        "declare r · publish a · lease · +100ms · in r · restart · work a",
        expect!["made · a · nobody works on a"],
    );
}

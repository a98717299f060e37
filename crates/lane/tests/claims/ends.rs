//! The end of a session that held more than is put back in one step.

use expect_test::{Expect, expect};
use overtake_lane::{
    Address, Asker, Broker, Command, Consume, ConsumerId, Fact, Given, Options, Place, Publish, SessionId,
    Step, VhostId,
};

use crate::story::{START, check_with};

#[track_caller]
fn check(settings: &str, story: &str, expect: Expect) {
    check_with(Options { step_max: 2, ..Options::default() }, settings, story, expect);
}

#[test]
fn what_a_session_held_is_put_back_in_steps_each_message_into_its_own_place() {
    check(
        "",
        "by s consume v window=5 · publish a:1 b:1 c:9 d:1 e:1 f:1 · end s · left · put-back · left · put-back · left · put-back",
        expect![
            "v:a · v:b · v:c · v:d · v:e · cancelled · ready a b f, leased c d e · ready c a b d f, leased e · ready c a b d e f"
        ],
    );
}

#[test]
fn nothing_is_leased_to_a_session_that_ended() {
    check(
        "",
        "by s consume v window=3 urgent=7+9 · by s consume u · publish a b c · end s · publish d:9 · put-back · put-back · left",
        expect!["v:a · u:b · v:c · cancelled cancelled · ready d a b c"],
    );
}

#[test]
fn others_take_what_was_put_back_at_once() {
    check(
        "",
        "by s consume v · publish a b c · consume w · end s · put-back",
        expect!["v:a · v:b · v:c · cancelled w:a(2) w:b(2) · w:c(2)"],
    );
}

#[test]
fn the_next_single_active_consumer_is_served_once_all_is_put_back() {
    check(
        r#""single_active_consumer":true"#,
        "by s consume v window=3 · consume w · publish a b c d · end s · publish e · put-back",
        expect!["v:a · v:b · v:c · cancelled · w:a(2) w:b(2) w:c(2) w:d w:e"],
    );
}

#[test]
fn the_consumers_and_the_queues_of_a_session_are_gone_with_the_first_step() {
    check(
        "",
        "by s consume v exclusive · by s declare r exclusive · in r · by s consume u · publish x y z · in q · publish a b c d e · \
         end s · check r · consume w exclusive · put-back · put-back · left",
        expect![
            "made · u:x · u:y · u:z · v:a · v:b · v:c · v:d · v:e · cancelled cancelled · no: no-such-queue · w:a(2) w:b(2) · w:c(2) w:d(2) · w:e(2) · leased a b c d e"
        ],
    );
}

#[test]
fn a_lease_that_is_still_to_be_put_back_may_be_settled() {
    check(
        "",
        "by s consume v · publish a b c d · end s · ack d · put-back · put-back · left",
        expect!["v:a · v:b · v:c · v:d · cancelled · ready a b c"],
    );
}

#[test]
fn what_failed_too_often_dies_in_its_step() {
    check(
        r#""delivery_limit":1"#,
        "by s consume v · publish a b c · end s · left · put-back · left",
        expect!["v:a · v:b · v:c · cancelled · leased c, dead a b · dead a b c"],
    );
}

#[test]
fn a_queue_that_is_deleted_meanwhile_is_no_hindrance() {
    check(
        "",
        "declare r · by s consume v · publish a b c · in r · by s consume u · publish x y z · end s · delete q · put-back · put-back · left",
        expect!["made · v:a · v:b · v:c · u:x · u:y · u:z · cancelled cancelled · ready x y z"],
    );
}

#[test]
fn no_step_of_an_end_puts_back_more_than_it_may() {
    let (consumers, each, most) = (100, 10, 64);
    let mut broker = Broker::new(Options { step_max: most, ..Options::default() });
    let mut step = Step::default();
    let queue = "q".into();
    broker.apply(START, Command::declare(queue, Box::default()), &mut step).expect("declared");
    for _ in 0..consumers * each {
        broker.apply(START, publish("q"), &mut step).expect("published");
    }
    let asker = Asker { session: Some(SessionId(1)), ..Asker::default() };
    for number in 1..=consumers {
        let consume = Consume::new(ConsumerId(number), "q".into());
        let consume = Command::Consume(Consume { window: Some(each as u32), ..consume });
        broker.apply_by(START, asker, consume, &mut step).expect("taken");
    }
    let mut steps = Vec::new();
    let mut count = |broker: &Broker, step: &mut Step| {
        let put_back = step.facts.iter().filter(|fact| matches!(fact, Fact::PutBack { .. })).count();
        steps.push(put_back);
        step.clear();
        broker.has_retired()
    };
    step.clear();
    broker.apply(START, Command::EndSession { session: SessionId(1) }, &mut step).expect("ended");
    while count(&broker, &mut step) {
        broker.put_back(START, &mut step);
    }
    assert!(steps.iter().all(|put_back| *put_back <= most), "{steps:?}");
    assert_eq!(steps.iter().sum::<usize>() as u64, consumers * each);
    let view = broker.view(START, VhostId::DEFAULT, "q").expect("it is there");
    assert_eq!((view.consumers, broker.outstanding()), (0, 0));
}

fn publish(queue: &str) -> Command {
    Command::Publish(Publish {
        to: Address::Queue(queue.into()),
        priority: Given::Missing,
        id: None,
        origin: None,
        key: None,
        key_weight: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes: 1,
        place: Place(0),
    })
}

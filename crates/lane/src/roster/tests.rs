//! The work that the end of a session takes, in steps.

use super::*;
use crate::broker::{Broker, Options};
use crate::command::{Address, Command, Publish, Reply, Step};
use crate::ids::{Asker, SessionId};
use crate::priority::Given;
use crate::settings::Settings;

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
        place: crate::ids::Place(0),
    })
}

/// Two sessions with so many consumers each of one queue, in turns, which holds a message; the first ends. What is done for several consumers at a time.
fn work_of_an_end(
    consumers: u64,
    settings: &Settings,
    shared: u32,
    make: impl Fn(Consume, SessionId) -> Consume,
) -> u64 {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let declare = Command::declare("q".into(), Box::new(settings.clone()));
    broker.apply(Time(1), declare, &mut step).expect("it is declared");
    for session in [SessionId(1), SessionId(2)] {
        let window =
            Command::SetWindow { window: WindowId { session, number: 1 }, size: shared, joining: Vec::new() };
        broker.apply(Time(1), window, &mut step).expect("it is set");
    }
    broker.apply(Time(1), publish("q"), &mut step).expect("it is published");
    for number in 1..=consumers {
        for session in [SessionId(1), SessionId(2)] {
            let id = ConsumerId(2 * number + session.0);
            let consume = make(Consume { window: Some(1), ..Consume::new(id, "q".into()) }, session);
            let asker = Asker { session: Some(session), ..Asker::default() };
            let reply = broker.apply_by(Time(1), asker, Command::Consume(consume), &mut step);
            assert!(matches!(reply, Ok(Reply::Done | Reply::Declared { .. })), "{reply:?}");
        }
    }
    work::DONE.set(0);
    let end = Command::EndSession { session: SessionId(1) };
    broker.apply(Time(2), end, &mut step).expect("it ends");
    let left = broker.view(Time(2), crate::VhostId::DEFAULT, "q").expect("it is there").consumers;
    assert_eq!(left, consumers, "the other session is there still");
    work::DONE.get()
}

fn check_end_is_linear(
    settings: &Settings,
    shared: u32,
    make: impl Fn(Consume, SessionId) -> Consume + Copy,
) {
    let of_one = work_of_an_end(500, settings, shared, make);
    let of_four = work_of_an_end(2_000, settings, shared, make);
    assert!(of_four <= 5 * of_one.max(500), "{of_one} steps for 500 consumers, {of_four} for 2,000");
}

#[test]
fn the_end_of_four_times_the_consumers_takes_four_times_the_work() {
    check_end_is_linear(&Settings::default(), 0, |consume, _| consume);
}

#[test]
fn so_does_the_end_of_consumers_of_which_one_is_active() {
    let single = Settings { single_active_consumer: true, ..Settings::default() };
    check_end_is_linear(&single, 0, |consume, _| consume);
}

#[test]
fn so_does_the_end_of_consumers_that_share_a_window() {
    let shares = |consume, session| Consume { shared: Some(WindowId { session, number: 1 }), ..consume };
    for size in [0, 1] {
        check_end_is_linear(&Settings::default(), size, shares);
    }
}

//! Histories made up, each with the fault that is to be found, or with none.

use super::{Rules, Verdict, judge};
use crate::history::{Entry, Event, Holder, Message};

/// Two out at once; a second is on its way for a millisecond, noticed in ten, and a broker lapses after a hundred.
const RULES: Rules = Rules {
    max_active: 2,
    lapse_us: 100_000,
    notice_us: 10_000,
    flight_us: 1_000,
    away_us: (50_000, 60_000),
};

/// A history in words, each with its millisecond: `12 deliver a h 0` is a message, a holder and a broker.
fn verdict(story: &str) -> Verdict {
    let entries: Vec<_> = story.split(" · ").map(entry).collect();
    judge(&entries, &RULES)
}

fn entry(line: &str) -> Entry {
    let words: Vec<_> = line.split(' ').collect();
    let number = |at: usize| u32::from(words[at].as_bytes()[0]);
    let digit = |at: usize| words[at].parse::<u8>().expect("a digit");
    let (message, holder) = (|| Message(number(2)), || Holder(number(2)));
    let event = match words[1] {
        "publish" => Event::Published { message: message(), queue: 0, level: digit(3) },
        "confirm" => Event::Confirmed { message: message() },
        "deliver" | "lease" => {
            let over_us = words.get(5).map(|ms| ms.parse::<u64>().expect("a number") * 1_000);
            Event::Delivered { message: message(), holder: Holder(number(3)), broker: digit(4), over_us }
        }
        "settle" => Event::SettleAsked { holder: holder() },
        "settled" => Event::Settled { holder: holder() },
        "put_back" => Event::PutBack { holder: holder() },
        "lose" => Event::Lost { holder: holder() },
        "cut" => Event::Cut { broker: digit(2) },
        "mend" => Event::Mended { broker: digit(2) },
        other => panic!("no such event: {other}"),
    };
    Entry { at_us: words[0].parse::<u64>().expect("a time") * 1_000, event }
}

/// What is at fault, by its last words.
#[track_caller]
fn check(story: &str, expected: &[&str]) {
    let faults = verdict(story).faults();
    let fits = faults.len() == expected.len()
        && faults.iter().zip(expected).all(|(fault, expected)| fault.contains(expected));
    assert!(fits, "{faults:?}");
}

#[test]
fn a_message_that_is_published_delivered_and_settled_is_fine() {
    check("1 publish a 5 · 2 confirm a · 3 deliver a h 0 · 4 settle h · 5 settled h", &[]);
}

#[test]
fn one_that_was_confirmed_and_never_delivered_is_lost() {
    check("1 publish a 5 · 2 confirm a", &["1 confirmed and never delivered"]);
}

#[test]
fn one_that_was_never_confirmed_may_be_lost() {
    check("1 publish a 5 · 2 publish a 5", &[]);
}

#[test]
fn one_that_nobody_has_done_is_found() {
    let put_back = "1 publish a 5 · 2 confirm a · 3 deliver a h 0 · 4 put_back h";
    check(put_back, &["1 delivered and never done"]);
    let again = "1 publish a 5 · 2 confirm a · 3 deliver a h 0 · 4 settle h · 5 lose h · 6 deliver a i 1 · 7 put_back i";
    check(again, &["1 delivered and never done"]);
}

#[test]
fn one_that_comes_back_after_it_was_settled_is_found() {
    let settled = "1 publish a 5 · 2 confirm a · 3 deliver a h 0 · 4 settle h · 5 settled h";
    check(&format!("{settled} · 900 deliver a i 1"), &["1 delivered after they were settled"]);
}

#[test]
fn one_whose_settlement_is_in_doubt_may_come_back() {
    let asked = "1 publish a 5 · 2 confirm a · 3 deliver a h 0 · 4 settle h · 5 lose h";
    check(&format!("{asked} · 6 deliver a i 1 · 7 settle i"), &[]);
}

#[test]
fn two_that_hold_one_message_are_found() {
    let both = "1 publish a 5 · 2 confirm a · 3 deliver a h 0 · 4 deliver a i 1";
    check(&format!("{both} · 50 settle h · 51 settle i"), &["1 held by two at once"]);
}

#[test]
fn who_has_put_it_back_or_settled_it_holds_it_no_more() {
    check("1 publish a 5 · 2 confirm a · 3 deliver a h 0 · 4 put_back h · 5 deliver a i 1 · 6 settle i", &[]);
}

#[test]
fn who_loses_his_connection_is_not_sure_of_it_a_little_before() {
    let lost = "1 publish a 5 · 2 confirm a · 3 deliver a h 0 · 50 deliver a i 1 · 51 settle i";
    check(&format!("{lost} · 55 lose h"), &[]);
    check(&format!("{lost} · 95 lose h"), &["1 held by two at once"]);
}

#[test]
fn a_lease_is_over_when_its_time_is() {
    let leased = "1 publish a 5 · 2 confirm a · 3 lease a h 0 40";
    check(&format!("{leased} · 41 lease a i 1 80 · 50 settle i"), &[]);
    check(&format!("{leased} · 39 lease a i 1 80 · 50 settle i"), &["1 held by two at once"]);
}

#[test]
fn what_a_broker_holds_that_is_cut_off_is_its_own_until_its_sign_of_life_is_over() {
    let cut = "1 publish a 5 · 2 confirm a · 3 deliver a h 0 · 10 cut 0";
    let late = "111 deliver a i 1 · 112 settle i · 200 mend 0 · 201 settle h";
    check(&format!("{cut} · {late}"), &[]);
    check(
        &format!("{cut} · 109 deliver a i 1 · 112 settle i · 200 mend 0 · 201 settle h"),
        &["1 held by two at once"],
    );
    check(&format!("{cut} · 90 mend 0 · {}", late.replace("200 mend 0 · ", "")), &["1 held by two at once"]);
    // It was another broker that was cut off.
    check(&format!("{cut} · {late}").replace("deliver a h 0", "deliver a h 2"), &["1 held by two at once"]);
}

#[test]
fn more_than_may_be_out_are_found() {
    let published = "1 publish a 5 · 1 publish b 5 · 1 publish c 5 · 2 confirm a · 2 confirm b · 2 confirm c · 3 deliver a h 0 · 3 deliver b i 0";
    let settled = "9 settle i · 9 settle j";
    check(&format!("{published} · 4 settle h · 5 deliver c j 0 · {settled}"), &[]);
    check(&format!("{published} · 4 deliver c j 0 · 5 settle h · {settled}"), &["1 queues with more out"]);
}

#[test]
fn an_inversion_is_counted_with_its_length() {
    let both = "1 publish a 9 · 1 publish b 5 · 2 confirm a · 2 confirm b";
    let done = "90 settle h · 91 settle i";
    let inverted = verdict(&format!("{both} · 20 deliver b h 0 · 30 deliver a i 0 · {done}"));
    assert_eq!((&inverted.inversions_us[..], inverted.faults()), (&[18_000][..], vec![]));
    let in_order = verdict(&format!("{both} · 20 deliver a h 0 · 30 deliver b i 0 · {done}"));
    assert!(in_order.inversions_us.is_empty(), "{in_order}");
}

/// A primary is away from 50 to 60.
#[test]
fn what_is_passed_over_while_a_primary_is_away_is_counted_apart() {
    let three = "1 publish a 9 · 1 publish b 5 · 1 publish c 5 · 2 confirm a · 2 confirm b · 2 confirm c";
    let done = "90 settle h · 91 settle i · 92 settle j";
    let seen = |story: &str| {
        let verdict = verdict(&format!("{three} · {story} · {done}"));
        (verdict.inversions_us, verdict.passed_while_away)
    };
    assert_eq!(seen("52 deliver b h 0 · 55 deliver c i 0 · 70 deliver a j 0"), (vec![], 1));
    assert_eq!(seen("20 deliver b h 0 · 55 deliver c i 0 · 70 deliver a j 0"), (vec![18_000], 0));
    assert_eq!(seen("52 deliver b h 0 · 65 deliver c i 0 · 70 deliver a j 0"), (vec![63_000], 0));
}

#[test]
fn two_that_cross_on_their_way_are_not_inverted() {
    let done = "90 settle h · 91 settle i";
    let at_once = verdict(&format!(
        "1 publish a 9 · 1 publish b 5 · 2 confirm a · 20 deliver b h 0 · 21 deliver a i 0 · {done}"
    ));
    assert!(at_once.inversions_us.is_empty(), "{at_once}");
    let just_now = verdict(&format!(
        "1 publish a 9 · 1 publish b 5 · 19 confirm a · 20 deliver b h 0 · 30 deliver a i 0 · {done}"
    ));
    assert!(just_now.inversions_us.is_empty(), "{just_now}");
}

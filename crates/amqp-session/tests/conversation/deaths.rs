//! What a dead letter says about its deaths: x-death, x-first-death-*, x-last-death-*.

use expect_test::expect;
use overtake_properties::{ArrayBuilder, Fields, Value};

use crate::broker::Broker;
use crate::client::Client;
use crate::words::{n, short, t, table};

/// A queue `work` whose dead letters go to `late`, where they expire after a second and go to `end`.
fn two_deaths() -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.exchange("dlx", "fanout", &[]);
    ann.declare("work", &[("x-dead-letter-exchange", t("dlx"))]);
    ann.declare(
        "late",
        &[
            ("x-message-ttl", n(1_000)),
            ("x-dead-letter-exchange", t("")),
            ("x-dead-letter-routing-key", t("end")),
        ],
    );
    ann.declare("end", &[]);
    ann.bind("late", "dlx", "", &[]);
    (broker, ann)
}

#[test]
fn a_message_remembers_two_deaths() {
    let (broker, mut ann) = two_deaths();
    let fields = Fields { priority: Some(7), expiration: Some(short("60000")), ..Fields::default() };
    ann.send("", "work", fields, "a");
    assert_eq!(ann.get("work"), "a");
    ann.reject("a");
    ann.hears();
    broker.advance(999);
    assert_eq!(ann.get("late"), "a");
    let letter = ann.letter("a");
    assert_eq!(letter.route(), "dlx/work");
    assert_eq!(letter.properties.view().expiration(), None, "a death takes it away");
    assert_eq!(letter.properties.view().priority(), Some(7));
    expect![[r#"[{count: 1, exchange: "", queue: "work", reason: "rejected", routing-keys: ["work"], time: @1793500000, original-expiration: "60000"}]"#]]
        .assert_eq(&letter.header("x-death").expect("it died"));
    ann.put_back("a");
    ann.hears();
    broker.advance(1);
    assert_eq!(ann.get("end"), "a");
    let letter = ann.letter("a");
    assert_eq!(letter.route(), "/end");
    expect![[r#"[{count: 1, exchange: "dlx", queue: "late", reason: "expired", routing-keys: ["work"], time: @1793500001}, {count: 1, exchange: "", queue: "work", reason: "rejected", routing-keys: ["work"], time: @1793500000, original-expiration: "60000"}]"#]]
        .assert_eq(&letter.header("x-death").expect("it died twice"));
    for (name, value) in [
        ("x-first-death-reason", "rejected"),
        ("x-first-death-queue", "work"),
        ("x-first-death-exchange", ""),
        ("x-last-death-reason", "expired"),
        ("x-last-death-queue", "late"),
        ("x-last-death-exchange", "dlx"),
    ] {
        assert_eq!(letter.header(name), Some(format!("{value:?}")), "{name}");
    }
}

/// A consumer of dead letters publishes them again with their headers; RabbitMQ before 3.6 wrote entries without a count, one for each death.
#[test]
fn a_dead_letter_that_is_published_again_keeps_its_history() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("dead", &[]);
    ann.declare("work", &[("x-dead-letter-exchange", t("")), ("x-dead-letter-routing-key", t("dead"))]);
    let entry = |queue| table(&[("queue", t(queue)), ("reason", t("rejected"))]);
    let (old, work) = (entry("old"), entry("work"));
    let earlier = [&old, &old, &work].into_iter();
    let earlier = earlier.fold(ArrayBuilder::new(), |all, one| all.item(Value::Table(one.view())));
    let headers = [("x-death", Value::Array(earlier.view())), ("x-first-death-reason", t("expired"))];
    ann.send_with("", "work", &headers, "a");
    assert_eq!(ann.get("work"), "a");
    ann.reject("a");
    ann.hears();
    assert_eq!(ann.get("dead"), "a");
    let deaths = ann.letter("a").header("x-death").expect("it died");
    assert!(deaths.starts_with(r#"[{count: 2, exchange: "", queue: "work", reason: "rejected""#), "{deaths}");
    assert!(deaths.ends_with(r#"{queue: "old", reason: "rejected", count: 2}]"#), "{deaths}");
    assert_eq!(ann.letter("a").header("x-first-death-reason").as_deref(), Some(r#""expired""#));
    assert_eq!(ann.letter("a").header("x-last-death-reason").as_deref(), Some(r#""rejected""#));
    // A header that is no list of tables is replaced.
    ann.send_with("", "work", &[("x-death", t("no list"))], "b");
    assert_eq!(ann.get("work"), "b");
    ann.reject("b");
    ann.hears();
    assert_eq!(ann.get("dead"), "b");
    let deaths = ann.letter("b").header("x-death").expect("it died");
    assert!(deaths.starts_with(r#"[{count: 1, exchange: "", queue: "work""#), "{deaths}");
}

/// A retry queue: what a consumer rejects comes back after a while, and counts.
#[test]
fn a_round_through_a_retry_queue_counts() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("work", &[("x-dead-letter-exchange", t("")), ("x-dead-letter-routing-key", t("retry"))]);
    ann.declare(
        "retry",
        &[
            ("x-message-ttl", n(1_000)),
            ("x-dead-letter-exchange", t("")),
            ("x-dead-letter-routing-key", t("work")),
        ],
    );
    ann.publish("work", "a");
    for _ in 0..3 {
        assert_eq!(ann.get("work"), "a");
        ann.reject("a");
        ann.hears();
        broker.advance(1_000);
    }
    assert_eq!(ann.get("work"), "a", "it is not out again: it was published anew");
    let deaths = ann.letter("a").header("x-death").expect("it died");
    assert_eq!(deaths.matches("count: 3").count(), 2, "{deaths}");
    assert!(deaths.starts_with(r#"[{count: 3, exchange: "", queue: "retry", reason: "expired""#), "{deaths}");
}

/// Nobody rejected it: it would go round for ever.
#[test]
fn a_dead_letter_that_would_go_round_by_itself_is_dropped() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    let round =
        [("x-message-ttl", n(10)), ("x-dead-letter-exchange", t("")), ("x-dead-letter-routing-key", t("q"))];
    ann.declare("q", &round);
    ann.publish("q", "a");
    ann.hears();
    broker.advance(10);
    assert_eq!(broker.waiting("q"), "");
}

#[test]
fn a_dead_letter_survives_a_restart_with_its_deaths() {
    let (mut broker, mut ann) = two_deaths();
    ann.publish("work", "a:3");
    ann.get("work");
    ann.reject("a");
    ann.hears();
    broker.advance(1_000);
    broker.restart();
    let mut ann = broker.connect();
    assert_eq!(ann.get("end"), "a");
    let letter = ann.letter("a");
    assert_eq!(letter.header("x-first-death-queue"), Some("\"work\"".to_owned()));
    assert_eq!(letter.header("x-last-death-queue"), Some("\"late\"".to_owned()));
    assert_eq!(letter.properties.view().priority(), Some(3));
}

/// A new death takes a stale header's place.
#[test]
fn what_a_client_says_of_deaths_is_its_own_business_until_it_dies() {
    let (broker, mut ann) = two_deaths();
    ann.send_with("", "work", &[("x-first-death-queue", t("mine")), ("note", n(1))], "a");
    ann.get("work");
    assert_eq!(ann.letter("a").header("x-first-death-queue"), Some("\"mine\"".to_owned()));
    ann.reject("a");
    ann.hears();
    broker.advance(1_000);
    ann.get("end");
    let letter = ann.letter("a");
    assert_eq!(letter.header("x-first-death-queue"), Some("\"work\"".to_owned()));
    assert_eq!(letter.header("note"), Some("1".to_owned()));
}

#[test]
fn what_has_nowhere_to_go_is_dropped() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[("x-dead-letter-exchange", t("none"))]);
    ann.declare("plain", &[]);
    for queue in ["q", "plain"] {
        ann.publish(queue, "a");
        ann.get(queue);
        ann.reject("a");
        ann.hears();
        assert_eq!(ann.get(queue), "empty");
    }
}

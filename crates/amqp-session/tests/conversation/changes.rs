//! What changes while connections are open: queues, their settings, policies, exchanges.

use overtake_amqp::method::basic;
use overtake_engine::{DeleteOnly, Engine, Filter, Select};
use overtake_lane::{
    ApplyTo, DeadLetterTo, Definition, Order, Overflow, Pattern, Policy, PolicyKind, Settings, Status,
};
use overtake_properties::Fields;

use crate::broker::{Broker, wait};
use crate::client::Client;
use crate::words::t;

/// A consumer of `q` with a window of so many, and what it has got of these messages.
fn consuming(window: u16, messages: &str, got: &str) -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    ann.publish("q", messages);
    ann.prefetch(window);
    ann.consume("q");
    assert_eq!(ann.hears(), got);
    (broker, ann)
}

/// Other settings of `q`, as HTTP changes them.
fn change(broker: &Broker, change: impl FnOnce(&mut Settings)) {
    let mut settings = broker.view("q").settings.clone();
    change(&mut settings);
    wait(broker.engine().declare_queue("q", settings)).expect("it is changed");
}

fn set_policy(broker: &Broker, say: impl FnOnce(&mut Definition)) {
    let mut definition = Definition::default();
    say(&mut definition);
    let pattern = Pattern::new("^q$").expect("a pattern");
    let policy = Policy { pattern, definition, priority: 0, apply_to: ApplyTo::All };
    wait(broker.engine().set_policy(PolicyKind::User, "p", policy)).expect("it is set");
}

fn delete_queue(broker: &Broker) {
    wait(broker.engine().delete_queue("q", DeleteOnly::default())).expect("it is deleted");
}

#[test]
fn a_consumer_of_a_deleted_queue_is_cancelled_and_what_it_settles_is_ignored() {
    let (broker, mut ann) = consuming(2, "a b", "a · b");
    delete_queue(&broker);
    assert_eq!(ann.hears(), "cancelled c");
    ann.ack("a");
    ann.put_back("b");
    assert_eq!(ann.hears(), "");
    ann.declare("q", &[]);
    assert_eq!(broker.waiting("q"), "", "nothing comes into a new queue of the name");
}

#[test]
fn a_publisher_to_a_deleted_queue_goes_on_and_who_asks_for_a_message_is_refused() {
    let (broker, mut ann) = consuming(1, "", "");
    delete_queue(&broker);
    ann.hears();
    ann.confirm();
    ann.publish("q", "a");
    ann.send_as("", "q", "mandatory", Fields::default(), "b");
    assert_eq!(ann.hears(), "returned b: 312 NO_ROUTE · safe 1 2");
    assert_eq!(ann.refused(|ann| ann.get("q")), "404 NOT_FOUND - no queue 'q' in vhost '/'");
}

#[test]
fn a_transaction_publishes_to_a_deleted_queue_and_settles_of_it_in_vain() {
    let (broker, mut ann) = consuming(1, "a", "a");
    ann.declare("other", &[]);
    ann.on(2).begin();
    ann.publish("q", "b");
    ann.publish("other", "c");
    delete_queue(&broker);
    ann.commit();
    assert_eq!(broker.waiting("other"), "c:0");

    let (broker, mut ann) = consuming(1, "a", "a");
    ann.declare("other", &[]);
    ann.begin();
    ann.publish("other", "c");
    ann.ack("a");
    delete_queue(&broker);
    ann.commit();
    assert_eq!(broker.waiting("other"), "c:0");
}

/// Whatever it does with it: a settlement of what has ended changes nothing, and what is published beside it is.
#[test]
fn a_transaction_settles_what_was_taken_from_its_consumer_and_the_window_has_room_again() {
    type Settle = fn(&mut Client, &str);
    let settles: [Settle; 3] = [Client::ack, Client::put_back, Client::reject];
    for settle in settles {
        let (broker, mut ann) = consuming(2, "a b c", "a · b");
        ann.declare("other", &[]);
        assert_eq!(ann.get("q"), "c");
        ann.publish("q", "d e");
        ann.begin();
        let held = Select::Matching(Filter { status: Some(Status::Leased), ..Filter::default() });
        assert_eq!(wait(broker.engine().cancel_messages("q", held)).expect("cancelled"), 3);
        ann.publish("other", "x");
        for body in ["a", "c"] {
            settle(&mut ann, body);
        }
        assert_eq!(ann.hears(), "", "nothing is settled yet");
        ann.commit();
        assert_eq!(broker.waiting("other"), "x:0");
        assert_eq!(ann.hears(), "d", "there is room for one");
        ann.ack("d");
        ann.ack("b");
        ann.commit();
        assert_eq!(ann.hears(), "e");
    }
}

#[test]
fn a_transaction_settles_what_took_too_long() {
    let (broker, mut ann) = consuming(1, "a b", "a");
    ann.declare("other", &[]);
    change(&broker, |settings| {
        (settings.run_timeout_ms, settings.dead_letter) = (1_000, DeadLetterTo::Keep);
    });
    ann.ack("a");
    assert_eq!(ann.hears(), "b");
    ann.begin();
    broker.advance(1_000);
    assert_eq!(broker.waiting("q"), "b:0(dead)");
    ann.publish("other", "x");
    ann.ack("b");
    ann.commit();
    assert_eq!(broker.waiting("other"), "x:0");
}

#[test]
fn a_purge_leaves_what_consumers_hold() {
    let (broker, mut ann) = consuming(1, "a b c", "a");
    assert_eq!(wait(broker.engine().purge("q", None)).expect("purged"), 2);
    assert_eq!(broker.waiting("q"), "a:0(leased)");
    ann.put_back("a");
    assert_eq!(ann.hears(), "a!");
}

#[test]
fn a_paused_queue_gives_nothing_to_consumers_and_goes_on_when_it_is_resumed() {
    let (broker, mut ann) = consuming(2, "a", "a");
    change(&broker, |settings| settings.paused = true);
    ann.publish("q", "b");
    ann.ack("a");
    assert_eq!(ann.hears(), "");
    assert_eq!(ann.get("q"), "empty");
    assert_eq!(broker.waiting("q"), "b:0");
    change(&broker, |settings| settings.paused = false);
    assert_eq!(ann.hears(), "b");
}

#[test]
fn another_order_counts_for_what_waits_already() {
    let (broker, mut ann) = consuming(1, "a:0 l:1 h:9", "a");
    change(&broker, |settings| settings.order = Order::Priority);
    ann.ack("a");
    assert_eq!(ann.hears(), "h");
    change(&broker, |settings| settings.order = Order::Fifo);
    ann.publish("q", "u:9");
    ann.ack("h");
    assert_eq!(ann.hears(), "l");
}

#[test]
fn a_smaller_window_or_cap_of_the_queue_holds_for_consumers_that_are_there() {
    let lower: [fn(&mut Settings); 2] =
        [|settings| settings.max_unacked = 1, |settings| settings.max_active = 1];
    for lower in lower {
        let (broker, mut ann) = consuming(3, "a b c d", "a · b · c");
        change(&broker, lower);
        ann.ack("a");
        ann.ack("b");
        assert_eq!(ann.hears(), "", "what is held stays held, and counts");
        ann.ack("c");
        assert_eq!(ann.hears(), "d");
    }
}

#[test]
fn a_lower_delivery_limit_counts_what_came_back_before() {
    let (broker, mut ann) = consuming(1, "a", "a");
    ann.put_back("a");
    ann.hears();
    ann.put_back("a");
    assert_eq!(ann.hears(), "a!");
    change(&broker, |settings| settings.delivery_limit = 2);
    assert_eq!(broker.waiting("q"), "a:0(leased)", "it may still be acknowledged");
    ann.put_back("a");
    assert_eq!(ann.hears(), "");
    assert_eq!(broker.waiting("q"), "");
}

#[test]
fn another_time_to_live_is_for_what_comes_after() {
    let (broker, mut ann) = consuming(1, "a b", "a");
    change(&broker, |settings| settings.ttl_ms = 1_000);
    ann.publish("q", "c");
    ann.hears();
    broker.advance(1_000);
    ann.hears();
    assert_eq!(broker.waiting("q"), "a:0(leased) b:0");
}

#[test]
fn a_lower_length_of_its_own_holds_from_the_next_publish_on_and_of_a_policy_at_once() {
    let (broker, mut ann) = consuming(1, "a b c d", "a");
    change(&broker, |settings| settings.max_length = 2);
    assert_eq!(broker.waiting("q"), "a:0(leased) b:0 c:0 d:0");
    ann.publish("q", "e");
    ann.hears();
    assert_eq!(broker.waiting("q"), "a:0(leased) d:0 e:0");

    let (broker, mut ann) = consuming(1, "a b c d", "a");
    set_policy(&broker, |policy| policy.max_length = Some(2));
    assert_eq!(broker.waiting("q"), "a:0(leased) c:0 d:0");
    wait(broker.engine().remove_policy(PolicyKind::User, "p")).expect("it is removed");
    ann.publish("q", "e f");
    ann.hears();
    assert_eq!(broker.waiting("q"), "a:0(leased) c:0 d:0 e:0 f:0");
}

#[test]
fn a_publisher_to_a_queue_that_rejects_from_now_on_is_nacked() {
    let (broker, mut ann) = consuming(1, "a b", "a");
    ann.confirm();
    change(&broker, |settings| (settings.max_length, settings.overflow) = (1, Overflow::Reject));
    ann.publish("q", "c");
    assert_eq!(ann.hears(), "not taken 1");
    assert_eq!(broker.waiting("q"), "a:0(leased) b:0");
}

#[test]
fn what_is_dead_goes_where_the_queue_says_when_it_dies() {
    let (broker, mut ann) = consuming(2, "a b", "a · b");
    ann.declare("late", &[]);
    ann.reject("a");
    ann.hears();
    change(&broker, |settings| settings.dead_letter = DeadLetterTo::Queue("late".into()));
    ann.reject("b");
    ann.hears();
    assert_eq!(broker.waiting("late"), "b:0");
}

#[test]
fn a_policy_gives_priorities_to_a_queue_under_its_consumer() {
    let (broker, mut ann) = consuming(1, "a", "a");
    set_policy(&broker, |policy| policy.max_priority = Some(9));
    ann.publish("q", "l:1 h:9");
    ann.ack("a");
    assert_eq!(ann.hears(), "h");
    wait(broker.engine().remove_policy(PolicyKind::User, "p")).expect("it is removed");
    ann.ack("h");
    assert_eq!(ann.hears(), "l");
}

#[test]
fn an_unused_queue_does_not_expire_by_a_policy_while_it_has_a_consumer() {
    let (broker, mut ann) = consuming(1, "a", "a");
    set_policy(&broker, |policy| policy.expires = Some(1_000));
    broker.advance(5_000);
    ann.ack("a");
    ann.hears();
    assert!(broker.has("q"));
    ann.cancel("c");
    broker.advance(1_000);
    ann.hears();
    assert!(!broker.has("q"));
}

#[test]
fn a_publish_to_a_deleted_exchange_closes_the_channel_however_it_is_published() {
    for how in ["", "confirm", "transaction"] {
        let (broker, mut ann) = consuming(1, "", "");
        ann.exchange("x", "fanout", &[]);
        ann.bind("q", "x", "", &[]);
        match how {
            "confirm" => ann.confirm(),
            "transaction" => ann.begin(),
            _ => {}
        }
        wait(broker.engine().delete_exchange("x", false)).expect("it is deleted");
        let told = ann.refused(|ann| {
            ann.route("x", "", "a");
            if how == "transaction" {
                ann.commit();
            }
        });
        assert_eq!(told, "404 NOT_FOUND - no exchange 'x' in vhost '/'", "{how}");
    }
}

#[test]
fn without_its_binding_or_its_alternate_a_message_is_dropped_or_returned() {
    let (broker, mut ann) = consuming(2, "", "");
    ann.exchange("spare", "fanout", &[]);
    ann.bind("q", "spare", "", &[]);
    ann.exchange("x", "fanout", &[("alternate-exchange", t("spare"))]);
    ann.confirm();
    ann.route("x", "", "a");
    assert_eq!(ann.hears(), "a · safe 1");
    wait(broker.engine().delete_exchange("spare", false)).expect("it is deleted");
    ann.route("x", "", "b");
    ann.send_as("x", "", "mandatory", Fields::default(), "c");
    assert_eq!(ann.hears(), "returned c: 312 NO_ROUTE · safe 2 3");
    ann.bind("q", "x", "", &[]);
    ann.unbind("q", "x", "", &[]);
    ann.route("x", "", "d");
    assert_eq!(ann.hears(), "safe 4");
    ann.tell(basic::Ack { delivery_tag: 0, multiple: true });
    assert_eq!(ann.hears(), "", "and the consumer goes on");
}

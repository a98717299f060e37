//! Messages out: windows, gets, cancels, recovers, and consumers without acknowledgements.

use overtake_amqp::method::basic;

use crate::broker::Broker;
use crate::client::Client;

fn with_queue() -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    (broker, ann)
}

#[test]
fn a_window_holds_so_many() {
    let (_broker, mut ann) = with_queue();
    ann.publish("q", "a b c d");
    ann.prefetch(2);
    ann.consume("q");
    assert_eq!(ann.hears(), "a · b");
    ann.ack("b");
    assert_eq!(ann.hears(), "c");
    let tag = ann.letter("c").delivery_tag;
    ann.tell(basic::Ack { delivery_tag: tag, multiple: true });
    assert_eq!(ann.hears(), "d");
}

/// RabbitMQ's reading of `global`: for each consumer, or for all of a channel.
#[test]
fn a_window_is_each_consumers_or_the_channels() {
    let (_broker, mut ann) = with_queue();
    ann.publish("q", "a b c d e f");
    ann.prefetch(2);
    ann.ask(basic::Qos { prefetch_size: 0, prefetch_count: 3, global: true });
    ann.consume("q");
    ann.consume_as("d", "q", "", &[]);
    assert_eq!(ann.hears(), "a · b · d=c");
    ann.ack("a");
    let heard = ann.hears();
    assert!(heard == "d" || heard == "d=d", "{heard}");
}

/// As RabbitMQ: whatever the channel's consumers hold counts from the moment the channel has a window.
#[test]
fn a_window_of_the_channel_holds_for_consumers_that_are_there() {
    let (_broker, mut ann) = with_queue();
    ann.consume("q");
    ann.publish("q", "a");
    assert_eq!(ann.hears(), "a");
    ann.ask(basic::Qos { prefetch_size: 0, prefetch_count: 2, global: true });
    ann.publish("q", "b c");
    assert_eq!(ann.hears(), "b");
    ann.consume_as("d", "q", "no-ack", &[]);
    assert_eq!(ann.hears(), "", "the window is full");
    ann.ack("a");
    assert!(["c", "d=c"].contains(&&*ann.hears()));
}

#[test]
fn a_window_that_is_changed_holds_for_consumers_to_come() {
    let (_broker, mut ann) = with_queue();
    ann.publish("q", "a b c d");
    ann.prefetch(1);
    ann.consume("q");
    ann.prefetch(2);
    assert_eq!(ann.hears(), "a");
    ann.consume_as("d", "q", "", &[]);
    assert_eq!(ann.hears(), "d=b · d=c");
}

#[test]
fn consumers_take_turns() {
    let (mut broker, mut ann) = with_queue();
    let mut bob = broker.connect();
    ann.consume("q");
    bob.consume("q");
    ann.publish("q", "a b c d");
    assert_eq!((ann.hears(), bob.hears()), ("a · c".to_owned(), "b · d".to_owned()));
}

/// Far more than may be on its way at once.
#[test]
fn a_consumer_without_acknowledgements_gets_everything() {
    let (broker, mut ann) = with_queue();
    let bodies: Vec<String> = (0..2_500).map(|at| format!("m{at}")).collect();
    ann.together(|ann| ann.publish("q", &bodies.join(" ")));
    ann.consume_as("c", "q", "no-ack", &[]);
    let mut heard = Vec::new();
    while heard.len() < bodies.len() {
        let words = ann.hears();
        assert!(!words.is_empty(), "after {} nothing comes", heard.len());
        heard.extend(words.split(" · ").map(str::to_owned));
    }
    assert_eq!(heard, bodies);
    assert_eq!(broker.waiting("q"), "");
}

#[test]
fn a_get_takes_what_goes_next_and_tells_how_many_are_behind() {
    let (broker, mut ann) = with_queue();
    assert_eq!(ann.get("q"), "empty");
    ann.publish("q", "a b c");
    assert_eq!(ann.get("q"), "a");
    assert_eq!(ann.letter("a").behind, 2);
    ann.hears();
    assert_eq!(broker.waiting("q"), "a:0(leased) b:0 c:0");
    assert_eq!(ann.take_all("q"), "b c");
    ann.put_back("a");
    assert_eq!(ann.get("q"), "a!");
    ann.ack("a");
    ann.hears();
    assert_eq!(broker.waiting("q"), "");
}

#[test]
fn what_was_got_is_outside_the_window() {
    let (_broker, mut ann) = with_queue();
    ann.prefetch(1);
    ann.publish("q", "a b c");
    assert_eq!(ann.get("q"), "a");
    ann.consume("q");
    assert_eq!(ann.hears(), "b");
}

#[test]
fn a_consumer_that_is_cancelled_keeps_what_it_holds() {
    let (broker, mut ann) = with_queue();
    ann.publish("q", "a b");
    ann.consume("q");
    assert_eq!(ann.hears(), "a · b");
    ann.cancel("c");
    ann.publish("q", "c");
    assert_eq!(ann.hears(), "");
    ann.ack("a");
    ann.put_back("b");
    ann.hears();
    assert_eq!(broker.waiting("q"), "b:0 c:0");
}

#[test]
fn recover_puts_back_all_that_is_out_to_the_channel() {
    let (_broker, mut ann) = with_queue();
    ann.publish("q", "a b c");
    ann.prefetch(2);
    ann.consume("q");
    assert_eq!(ann.hears(), "a · b");
    assert_eq!(ann.ask(basic::Recover { requeue: true }), "basic.recover-ok");
    assert_eq!(ann.hears(), "a! · b!");
    ann.tell(basic::RecoverAsync { requeue: true });
    assert_eq!(ann.hears(), "a! · b!");
    assert_eq!(ann.letter("a").delivery_tag, 5, "tags go on");
}

#[test]
fn a_tag_is_made_up_where_none_is_given() {
    let (_broker, mut ann) = with_queue();
    let one = ann.consume_as("", "q", "", &[]);
    let other = ann.consume_as("", "q", "", &[]);
    assert!(one.starts_with("amq.ctag-") && one != other, "{one} {other}");
    ann.publish("q", "a");
    assert_eq!(ann.hears(), format!("{one}=a"));
}

/// Settled with the channel that it came on, and no other.
#[test]
fn channels_have_their_own_tags() {
    let (broker, mut ann) = with_queue();
    ann.publish("q", "a b");
    assert_eq!(ann.get("q"), "a");
    assert_eq!(ann.on(2).get("q"), "b");
    assert_eq!((ann.letter("a").delivery_tag, ann.letter("b").delivery_tag), (1, 1));
    ann.close_channel();
    ann.on(1).ack("a");
    ann.hears();
    assert_eq!(broker.waiting("q"), "b:0");
}

#[test]
fn an_exclusive_consumer_makes_room_when_it_goes() {
    let (mut broker, mut ann) = with_queue();
    let mut bob = broker.connect();
    ann.consume_as("c", "q", "exclusive", &[]);
    let told = bob.refused(|bob| bob.consume("q"));
    assert_eq!(told, "403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use");
    drop(ann);
    bob.consume("q");
    bob.publish("q", "a");
    assert_eq!(bob.hears(), "a");
}

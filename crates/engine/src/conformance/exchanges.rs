//! Which queues get a copy.

use overtake_lane::{ExchangeKind, Overflow, Refusal, Scheme, Settings};

use super::{Fixture, Story, binding, refused, settings};

async fn three(fixture: impl Fixture, kind: ExchangeKind, bindings: &[&str]) -> Story<impl Fixture> {
    let story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    story.declare("s", Settings::default()).await;
    story.exchange("x", kind, bindings).await;
    story
}

async fn seen(story: &Story<impl Fixture>) -> [String; 3] {
    [story.left_in("q").await, story.left_in("r").await, story.left_in("s").await]
}

/// The key is the key.
pub async fn a_direct_exchange_goes_by_the_routing_key<F: Fixture>(fixture: F) {
    let story = three(fixture, ExchangeKind::Direct, &["q one", "r one", "s two"]).await;
    story.publish("a,to=x/one b,to=x/two c,to=x/three").await;
    assert_eq!(seen(&story).await, ["a", "a", "b"]);
}

/// All of them.
pub async fn a_fanout_exchange_goes_to_every_queue<F: Fixture>(fixture: F) {
    let story = three(fixture, ExchangeKind::Fanout, &["q", "r one", "s"]).await;
    let copies = story.publish("a:7,to=x/any").await;
    assert_eq!(copies.iter().map(|copy| &*copy.queue).collect::<Vec<_>>(), ["q", "r", "s"]);
    assert_eq!(seen(&story).await, ["a", "a", "a"]);
}

/// Words between dots: `*` is one, `#` any number.
pub async fn a_topic_exchange_goes_by_patterns<F: Fixture>(fixture: F) {
    let story = three(fixture, ExchangeKind::Topic, &["q eu.*.order", "r eu.#", "s #.order"]).await;
    story.publish("a,to=x/eu.de.order b,to=x/eu c,to=x/us.order d,to=x/eu.de.by.order e,to=x/us").await;
    assert_eq!(seen(&story).await, ["a", "a b d", "a c d"]);
}

/// All of them, or any.
pub async fn a_headers_exchange_goes_by_headers<F: Fixture>(fixture: F) {
    let story =
        three(fixture, ExchangeKind::Headers, &["q h.colour=red h.n=7", "r h.colour=red h.n=7 any", "s"])
            .await;
    story.publish("both,h.colour=red,h.n=7,to=x/ one,h.colour=red,to=x/ none,h.n=8,to=x/").await;
    assert_eq!(seen(&story).await, ["both", "both one", "both one none"]);
}

/// However many say it should.
pub async fn a_queue_bound_twice_gets_one_copy<F: Fixture>(fixture: F) {
    let story = three(fixture, ExchangeKind::Topic, &["q a.#", "q #.b", "q a.b", "r a.b"]).await;
    story.publish("m,to=x/a.b").await;
    assert_eq!(seen(&story).await, ["m", "m", ""]);
}

/// The priority is each queue's to understand, and each copy's to lose.
pub async fn each_copy_lives_by_the_settings_of_its_queue<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", settings(|s| (s.scheme, s.ttl_ms) = (Scheme::Signed, 1_000))).await;
    story.exchange("x", ExchangeKind::Fanout, &["q", "r"]).await;
    let copies = story.publish("a:12,to=x/").await;
    assert_eq!(copies.len(), 2);
    story.lease(1).await;
    story.ack("a").await;
    assert_eq!((&*story.left_in("q").await, &*story.left_in("r").await), ("", "a"));
    story.advance(1_000).await;
    assert_eq!(story.left_in("r").await, "");
}

/// All its copies or none: one queue's no is a no.
pub async fn a_message_that_one_queue_refuses_goes_to_none<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", settings(|s| s.scheme = Scheme::Named)).await;
    story.exchange("x", ExchangeKind::Fanout, &["q", "r"]).await;
    assert_eq!(story.refusal("a:5,to=x/").await, Refusal::PriorityUnknown);
    assert_eq!((&*story.left_in("q").await, &*story.left_in("r").await), ("", ""));
}

/// Dropped, unless somebody minds.
pub async fn a_message_for_nobody_is_refused_if_mandatory<F: Fixture>(fixture: F) {
    let story = three(fixture, ExchangeKind::Direct, &["q one"]).await;
    assert!(story.publish("a,to=x/two").await.is_empty());
    assert_eq!(story.refusal("a,to=x/two,must").await, Refusal::Unroutable);
    story.publish("b,to=x/one,must").await;
    assert_eq!(story.left().await, "b");
}

/// As in AMQP.
pub async fn the_nameless_exchange_is_every_queue_by_its_name<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a,to=/q").await;
    assert_eq!(story.left().await, "a");
    assert_eq!(story.refusal("b,to=/nobody,must").await, Refusal::Unroutable);
}

/// Those that are published there, and the queues each goes to.
pub async fn an_exchange_counts_what_is_published_to_it<F: Fixture>(fixture: F) {
    let story = three(fixture, ExchangeKind::Topic, &["q a.*", "r a.#"]).await;
    let counts = async |exchange: &str| {
        let view = story.engine().exchange(exchange).await.expect("it is there");
        (view.published, view.routed)
    };
    assert_eq!((counts("x").await, counts("").await), ((0, 0), (0, 0)));
    story.publish("a,to=x/a.1 b,to=x/a c,to=x/nowhere d,to=/q").await;
    assert_eq!(story.refusal("e,to=x/nowhere,must").await, Refusal::Unroutable);
    assert_eq!((counts("x").await, counts("").await), ((4, 3), (1, 1)));
    let all = story.engine().exchanges().await.expect("they are seen");
    let listed = all.iter().find(|one| &*one.name == "x").expect("it is listed");
    assert_eq!((listed.published, listed.routed), (4, 3));
}

/// And is there to be bound at once.
pub async fn the_predeclared_exchanges_are_there<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.engine().bind(binding("amq.topic", "q a.*")).await.expect("bound");
    story.publish("a,to=amq.topic/a.b").await;
    assert_eq!(story.left().await, "a");
    let exchanges = story.engine().exchanges().await.expect("listed");
    let names: Vec<_> = exchanges.iter().map(|exchange| &*exchange.name).collect();
    let expect = ["amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.rabbitmq.trace", "amq.topic"];
    assert_eq!(names, expect);
    assert_eq!(story.refusal("a,to=amq.rabbitmq.trace/a.b").await, Refusal::ExchangeInternal);
}

/// From then on.
pub async fn a_binding_taken_away_routes_no_more<F: Fixture>(fixture: F) {
    let story = three(fixture, ExchangeKind::Fanout, &["q", "r"]).await;
    story.engine().unbind(binding("x", "r")).await.expect("unbound");
    story.publish("a,to=x/").await;
    assert_eq!(seen(&story).await, ["a", "", ""]);
    assert_eq!(refused(story.engine().unbind(binding("x", "r")).await), Refusal::NoSuchBinding);
}

/// No binding is left to a queue that is gone, also not when one of its name comes.
pub async fn the_bindings_of_a_deleted_queue_are_gone<F: Fixture>(fixture: F) {
    let story = three(fixture, ExchangeKind::Fanout, &["q", "r"]).await;
    story.engine().delete_queue("r", crate::api::DeleteOnly::default()).await.expect("deleted");
    story.declare("r", Settings::default()).await;
    story.publish("a,to=x/").await;
    assert_eq!(seen(&story).await, ["a", "", ""]);
}

/// A full queue that evicts is no reason to keep a message from the others, or to tell its publisher that it is in none.
pub async fn a_full_queue_keeps_a_message_from_no_other<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", settings(|s| s.max_length = 1)).await;
    story.declare("s", Settings::default()).await;
    story.exchange("x", ExchangeKind::Fanout, &["q", "r", "s"]).await;
    story.publish("urgent:9,to=x/").await;
    let copies = story.publish("low:1,to=x/").await;
    assert_eq!(copies.iter().map(|copy| &*copy.queue).collect::<Vec<_>>(), ["q", "s"]);
    assert_eq!(seen(&story).await, ["urgent low", "urgent", "urgent low"]);
}

/// Where a full queue rejects, its message is in no queue, and nobody thinks otherwise.
pub async fn a_queue_that_rejects_keeps_a_message_from_all<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", settings(|s| s.max_length = 1)).await;
    story.declare("s", settings(|s| (s.max_length, s.overflow) = (1, Overflow::Reject))).await;
    story.exchange("x", ExchangeKind::Fanout, &["q", "r", "s"]).await;
    story.publish("urgent:9,to=x/").await;
    assert_eq!(story.refusal("low:1,to=x/").await, Refusal::QueueFull);
    assert_eq!(seen(&story).await, ["urgent", "urgent", "urgent"]);
}

/// What no queue keeps is refused.
pub async fn a_message_that_every_queue_is_too_full_for_is_refused<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", settings(|s| s.max_length = 1)).await;
    story.declare("s", settings(|s| s.max_length = 1)).await;
    story.exchange("x", ExchangeKind::Fanout, &["r", "s"]).await;
    story.publish("urgent:9,to=x/").await;
    assert_eq!(story.refusal("low:1,to=x/").await, Refusal::QueueFull);
}

//! Policies: settings by name, for what is there and what comes, at once.

use overtake_lane::{
    ApplyTo, DeadLetterTo, Definition, ExchangeKind, ExchangeSettings, Existing, Identity, Order, Overflow,
    Pattern, Policy, PolicyKind, PolicyValue, Refusal, Scheme, Settings, VhostId, VhostSettings,
};

use super::{ENDS, Fixture, Story, refused, settings};
use crate::api::{DeclareQueue, DeleteOnly};

fn policy(pattern: &str, say: impl FnOnce(&mut Definition)) -> Policy {
    let mut definition = Definition::default();
    say(&mut definition);
    let pattern = Pattern::new(pattern).expect("the pattern of a story is one");
    Policy { pattern, definition, priority: 0, apply_to: ApplyTo::All }
}

async fn set<F: Fixture>(story: &Story<F>, name: &str, policy: Policy) {
    story.engine().set_policy(PolicyKind::User, name, policy).await.expect("the policy is set");
}

async fn limit<F: Fixture>(story: &Story<F>, name: &str, policy: Policy) {
    story.engine().set_policy(PolicyKind::Operator, name, policy).await.expect("the policy is set");
}

async fn remove<F: Fixture>(story: &Story<F>, name: &str) {
    story.engine().remove_policy(PolicyKind::User, name).await.expect("the policy is removed");
}

/// As AMQP declares a queue without arguments.
fn fifo() -> Settings {
    settings(|s| (s.scheme, s.order) = (Scheme::Max(255), Order::Fifo))
}

/// By which policies, and the settings that hold.
async fn rules<F: Fixture>(story: &Story<F>) -> (String, String, Settings) {
    let view = story.view().await;
    let name = |name: &Option<std::sync::Arc<str>>| name.as_deref().unwrap_or("-").to_owned();
    (name(&view.policy), name(&view.operator_policy), view.effective_settings().clone())
}

/// The least urgent go, of them the oldest; and from then on as with a limit of its own.
pub async fn a_shorter_length_holds_at_once<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:1 c:5 d:1 e:9").await;
    set(&story, "short", policy("^q$", |d| d.max_length = Some(3))).await;
    assert_eq!(story.left().await, "e a c");
    story.publish("f:7").await;
    assert_eq!(story.left().await, "e f c");
    remove(&story, "short").await;
    story.publish("g h").await;
    assert_eq!(story.left().await, "e f c g h");
}

/// Bytes of bodies and headers.
pub async fn fewer_bytes_hold_at_once<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,bytes=200 b:5,bytes=200 c:5,bytes=200").await;
    set(&story, "small", policy("^q$", |d| d.max_length_bytes = Some(500))).await;
    assert_eq!(story.left().await, "b c");
}

/// Refused, and nothing that waits is dropped.
pub async fn a_policy_may_have_publishes_refused<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a b c").await;
    let reject = |d: &mut Definition| (d.max_length, d.overflow) = (Some(2), Some(Overflow::Reject));
    set(&story, "full", policy("^q$", reject)).await;
    assert_eq!(story.refusal("d").await, Refusal::QueueFull);
    assert_eq!(story.left().await, "a b c");
}

/// The expiry is stamped at publish.
pub async fn a_time_to_live_is_for_what_comes_after<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a").await;
    set(&story, "brief", policy("^q$", |d| d.message_ttl = Some(1_000))).await;
    story.publish("b c,ttl=5000").await;
    story.advance(1_000).await;
    assert_eq!(story.left().await, "a");
}

/// Counted from the last use, which may be long ago.
pub async fn an_unused_queue_expires_by_a_policy<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("idle", Settings::default()).await;
    story.advance(5_000).await;
    set(&story, "idle", policy("^idle$", |d| d.expires = Some(9_000))).await;
    story.engine().queue("idle").await.expect("it is there");
    story.advance(4_000).await;
    assert_eq!(refused(story.engine().queue("idle").await), Refusal::NoSuchQueue);
}

/// A queue that says nothing of dead letters; its own exchange would come first.
pub async fn dead_letters_go_where_a_policy_says<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.dead_letter = DeadLetterTo::Drop)).await;
    story.declare("late", Settings::default()).await;
    story.declare("own", Settings::default()).await;
    story.exchange("dlx", ExchangeKind::Direct, &["late dead", "own own"]).await;
    let dead = |d: &mut Definition| {
        d.dead_letter_exchange = Some("dlx".into());
        d.dead_letter_routing_key = Some("dead".into());
    };
    set(&story, "dead", policy("^q$", dead)).await;
    story.publish("a b,ttl=1000").await;
    story.lease(1).await;
    story.reject("a").await;
    story.advance(1_000).await;
    assert_eq!(story.left_in("late").await, "a b");
    let own = DeadLetterTo::Exchange { name: "dlx".into(), routing_key: Some("own".into()) };
    story.declare("q", settings(|s| s.dead_letter = own)).await;
    story.publish("c").await;
    story.lease(1).await;
    story.reject("c").await;
    assert_eq!((&*story.left().await, &*story.left_in("own").await), ("", "c"));
}

/// How often a message may come back, so one less than deliveries.
pub async fn a_policy_limits_how_often_a_message_comes_back<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    set(&story, "tries", policy("^q$", |d| d.delivery_limit = Some(1))).await;
    story.publish("a").await;
    assert_eq!(story.lease(1).await, "a");
    story.nack("a").await;
    assert_eq!(story.lease(1).await, "a(2)");
    story.nack("a").await;
    assert_eq!(story.left().await, "dead a");
}

/// Of what it takes from then on.
pub async fn a_policy_limits_how_long_a_consumer_holds<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    set(&story, "slow", policy("^q$", |d| d.consumer_timeout = Some(1_000))).await;
    let mut consumer = story.consume(1).await;
    story.publish("a").await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    story.advance(1_000).await;
    assert_eq!(story.left().await, "a");
}

/// One without an alternate of its own.
pub async fn an_exchange_gets_its_alternate_from_a_policy<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("own", Settings::default()).await;
    story.exchange("rest", ExchangeKind::Fanout, &["q"]).await;
    story.exchange("mine", ExchangeKind::Fanout, &["own"]).await;
    story.exchange("x", ExchangeKind::Direct, &[]).await;
    let own =
        ExchangeSettings { alternate: Some("mine".into()), ..ExchangeSettings::new(ExchangeKind::Direct) };
    story.exchange_as("y", own, &[]).await;
    set(&story, "rest", policy("^(x|y|q)$", |d| d.alternate_exchange = Some("rest".into()))).await;
    story.publish("a,to=x/nowhere b,to=y/nowhere").await;
    assert_eq!((&*story.left().await, &*story.left_in("own").await), ("a", "b"));
    let view = story.engine().exchange("x").await.expect("it is there");
    assert_eq!((view.policy.as_deref(), view.alternate.as_deref()), (Some("rest"), Some("rest")));
    assert_eq!(view.settings.alternate, None);
    remove(&story, "rest").await;
    assert!(story.publish("c,to=x/nowhere").await.is_empty());
}

/// One policy of each kind; of equal priority the first by name.
pub async fn the_highest_policy_applies_and_no_other<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let length = |most| policy("", move |d| d.max_length = Some(most));
    let seen = |(policy, _, settings): (String, String, Settings)| (policy, settings.max_length);
    set(&story, "b", length(20)).await;
    set(&story, "c", length(30)).await;
    assert_eq!(seen(rules(&story).await), ("b".into(), 20));
    set(&story, "a", length(10)).await;
    assert_eq!(seen(rules(&story).await), ("a".into(), 10));
    set(&story, "c", Policy { priority: 1, ..length(30) }).await;
    assert_eq!(seen(rules(&story).await), ("c".into(), 30));
    set(&story, "d", Policy { priority: 9, apply_to: ApplyTo::Exchanges, ..length(40) }).await;
    set(&story, "e", Policy { priority: 9, ..policy("^other", |d| d.max_length = Some(50)) }).await;
    assert_eq!(seen(rules(&story).await), ("c".into(), 30));
    remove(&story, "c").await;
    assert_eq!(seen(rules(&story).await), ("a".into(), 10));
}

/// The least holds, wherever it is said; and the last word on overflow is an operator's.
pub async fn operators_bound_what_is_asked_for<F: Fixture>(fixture: F) {
    let own = settings(|s| (s.max_length, s.ttl_ms) = (50, 9_000));
    let story = Story::of(fixture, own.clone()).await;
    set(&story, "user", policy("q", |d| (d.max_length, d.expires) = (Some(40), Some(90_000)))).await;
    let bounds = |d: &mut Definition| {
        (d.max_length, d.message_ttl, d.overflow) = (Some(45), Some(8_000), Some(Overflow::Reject));
    };
    limit(&story, "operator", policy("q", bounds)).await;
    let (user, operator, holds) = rules(&story).await;
    assert_eq!((&*user, &*operator), ("user", "operator"));
    assert_eq!((holds.max_length, holds.ttl_ms, holds.expires_ms), (40, 8_000, 90_000));
    assert_eq!(holds.overflow, Overflow::Reject);
    limit(&story, "operator", policy("q", |d| d.max_length = Some(30))).await;
    assert_eq!(rules(&story).await.2.max_length, 30);
    assert_eq!(story.view().await.settings, own);
    let more = policy("q", |d| d.max_priority = Some(9));
    let refusal = story.engine().set_policy(PolicyKind::Operator, "more", more).await;
    assert_eq!(refused(refusal), Refusal::PolicyInvalid);
}

/// Ready, delayed, leased and dead: each keeps the priority that it was published with, and stands in its lane.
pub async fn priorities_come_into_a_queue_and_go_while_messages_wait<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, fifo()).await;
    story.publish("dead:2 out:8 a:1 b:9 c late:5,delay=1000 d:7").await;
    assert_eq!(story.lease(2).await, "dead out");
    story.reject("dead").await;
    set(&story, "urgent", policy("^q$", |d| d.max_priority = Some(9))).await;
    assert_eq!(moved(&story).await, "b d a c · leased out · delayed late · dead dead");
    story.release("out").await;
    story.advance(1_000).await;
    story.replay("*dead", None).await.expect("replayed");
    assert_eq!(story.left().await, "b out d late dead a c");
    story.publish("e:8").await;
    assert_eq!(story.left().await, "b out e d late dead a c");
    remove(&story, "urgent").await;
    story.until_moved().await;
    assert_eq!(story.drain().await, "dead out a b c late d e");
}

/// What is above it keeps its priority; what comes counts as the most.
pub async fn the_greatest_priority_goes_up_and_down<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Max(9))).await;
    story.publish("a:9 b:3 c:1").await;
    set(&story, "few", policy("^q$", |d| d.max_priority = Some(2))).await;
    story.publish("d:9").await;
    assert_eq!(moved(&story).await, "a b d c");
    set(&story, "few", policy("^q$", |d| d.max_priority = Some(200))).await;
    story.publish("e:100").await;
    assert_eq!(moved(&story).await, "e a b d c");
    remove(&story, "few").await;
    story.publish("f:100").await;
    story.until_moved().await;
    assert_eq!(story.drain().await, "e a f b d c");
}

/// What is left when no message waits any more to move to another lane.
async fn moved(story: &Story<impl Fixture>) -> String {
    story.until_moved().await;
    story.left().await
}

/// Also what is in no memory, and after each end.
pub async fn priorities_come_into_a_deep_queue<F: Fixture>(fixture: F) {
    let mut story = Story::of(fixture, fifo()).await;
    let names = |keep: &dyn Fn(usize) -> bool| {
        (0..600).filter(|n| keep(*n)).map(|n| format!("m{n}")).collect::<Vec<_>>().join(" ")
    };
    for n in 0..600 {
        story.publish(&format!("m{n}:{},bytes=300", n % 3)).await;
    }
    let spread = format!("{} {} {}", names(&|n| n % 3 == 2), names(&|n| n % 3 == 1), names(&|n| n % 3 == 0));
    set(&story, "urgent", policy("^q$", |d| d.max_priority = Some(9))).await;
    assert_eq!(moved(&story).await, spread);
    for end in ENDS {
        story.again(end).await;
        assert_eq!(moved(&story).await, spread, "{end:?}");
    }
    remove(&story, "urgent").await;
    assert_eq!(moved(&story).await, names(&|_| true));
    for end in ENDS {
        story.again(end).await;
        assert_eq!(moved(&story).await, names(&|_| true), "{end:?}");
    }
    set(&story, "short", policy("^q$", |d| (d.max_length, d.max_priority) = (Some(3), Some(5)))).await;
    moved(&story).await;
    assert_eq!(story.drain().await, "m593 m596 m599");
}

/// A scheme of words, and lanes that the queue names itself.
pub async fn what_cannot_hold_for_a_queue_is_said_in_its_view<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Named)).await;
    let says = |d: &mut Definition| (d.max_length, d.max_priority) = (Some(9), Some(3));
    set(&story, "p", policy("^q$", says)).await;
    let view = story.view().await;
    assert_eq!((&view.without_effect[..], view.effective_settings().max_length), (&["max-priority"][..], 9));
    assert_eq!(view.effective_settings().scheme, Scheme::Named);
}

/// The policy is no part of what it was declared with.
pub async fn a_queue_under_a_policy_is_declared_again_as_it_was<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, fifo()).await;
    set(&story, "p", policy("^q$", |d| (d.max_length, d.max_priority) = (Some(9), Some(3)))).await;
    let same = |settings| DeclareQueue { settings, existing: Existing::Same, ..DeclareQueue::default() };
    story.engine().declare("q", same(fifo())).await.expect("it is the same");
    let identity = Identity { arguments: [1].into(), ..Identity::default() };
    let other = DeclareQueue { identity, ..same(rules(&story).await.2) };
    assert_eq!(refused(story.engine().declare("q", other).await), Refusal::QueueDiffers);
    let view = story.view().await;
    assert_eq!((view.settings, view.ruled.is_some()), (fifo(), true));
}

/// With what comes of them, for queues that were there and that come.
pub async fn policies_survive<F: Fixture>(fixture: F) {
    let mut story = Story::of(fixture, fifo()).await;
    set(&story, "gone", policy("", |d| d.max_length = Some(1))).await;
    set(&story, "urgent", policy("", |d| d.max_priority = Some(9))).await;
    limit(&story, "few", policy("", |d| d.max_length = Some(3))).await;
    remove(&story, "gone").await;
    for end in ENDS {
        story.again(end).await;
        let (user, operator, holds) = rules(&story).await;
        assert_eq!((&*user, &*operator, holds.max_length), ("urgent", "few", 3), "{end:?}");
        story.publish("a:1 b:5 c:1 d:9").await;
        assert_eq!(story.drain().await, "d b c", "{end:?}");
        story.declare("r", fifo()).await;
        let view = story.engine().queue("r").await.expect("it is there");
        assert_eq!(view.effective_settings().scheme, Scheme::Max(9));
        story.engine().delete_queue("r", DeleteOnly::default()).await.expect("it is gone");
    }
}

/// Each as it was set; and what only tunes RabbitMQ's storage with the rest.
pub async fn policies_are_seen_by_kind_and_name<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mirrored = policy("^ha", |d| {
        drop(d.kept.insert("ha-mode".into(), PolicyValue::Text("all".into())));
    });
    let short = policy("", |d| d.max_length = Some(9));
    set(&story, "b", short.clone()).await;
    set(&story, "a", mirrored.clone()).await;
    limit(&story, "a", short.clone()).await;
    let users = story.engine().policies(PolicyKind::User).await.expect("shown");
    assert_eq!(users, [("a".into(), mirrored), ("b".into(), short.clone())]);
    let operators = story.engine().policies(PolicyKind::Operator).await.expect("shown");
    assert_eq!(operators, [("a".into(), short)]);
}

/// The same names in each, and nothing of the one for the other.
pub async fn policies_rule_their_own_virtual_host<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    let vhost = story.engine().declare_vhost("v", VhostSettings::default()).await.expect("declared");
    let short = policy("", |d| d.max_length = Some(1));
    set(&story, "p", short.clone()).await;
    story.at(vhost);
    assert_eq!(story.engine().policies(PolicyKind::User).await.expect("shown"), []);
    assert_eq!(refused(story.engine().remove_policy(PolicyKind::User, "p").await), Refusal::NoSuchPolicy);
    story.declare("q", Settings::default()).await;
    story.publish("a b").await;
    assert_eq!((&*rules(&story).await.0, &*story.left().await), ("-", "a b"));
    set(&story, "p", policy("", |d| d.alternate_exchange = Some("amq.fanout".into()))).await;
    limit(&story, "p", policy("", |d| d.expires = Some(60_000))).await;
    let (user, operator, holds) = rules(&story).await;
    assert_eq!((&*user, &*operator, holds.expires_ms, holds.max_length), ("p", "p", 60_000, 0));
    story.at(VhostId::DEFAULT);
    let (user, operator, holds) = rules(&story).await;
    assert_eq!((&*user, &*operator, holds.expires_ms, holds.max_length), ("p", "-", 0, 1));
    let exchange = story.engine().exchange("amq.direct").await.expect("there");
    assert_eq!(exchange.alternate, None);
    assert_eq!(story.engine().policies(PolicyKind::User).await.expect("shown"), [("p".into(), short)]);
}

/// Durably, and what is made later under its name has none; those of others stay.
pub async fn policies_go_with_their_virtual_host<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    limit(&story, "stays", policy("", |d| d.max_length = Some(2))).await;
    for end in ENDS {
        let vhost = story.engine().declare_vhost("v", VhostSettings::default()).await.expect("declared");
        story.at(vhost);
        set(&story, "goes", policy("", |d| d.max_length = Some(1))).await;
        story.again(end).await;
        story.declare("q", Settings::default()).await;
        assert_eq!(rules(&story).await.0, "goes", "{end:?}");
        story.engine().delete_vhost("v").await.expect("deleted");
        assert_eq!(refused(story.engine().policies(PolicyKind::User).await), Refusal::NoSuchVhost);
        let set =
            story.engine().set_policy(PolicyKind::User, "p", policy("", |d| d.max_length = Some(1))).await;
        assert_eq!(refused(set), Refusal::NoSuchVhost);
        story.at(VhostId::DEFAULT);
        story.again(end).await;
        let (user, operator, _) = rules(&story).await;
        assert_eq!((&*user, &*operator), ("-", "stays"), "{end:?}");
        let vhost = story.engine().declare_vhost("v", VhostSettings::default()).await.expect("declared");
        story.at(vhost);
        assert_eq!(story.engine().policies(PolicyKind::User).await.expect("shown"), [], "{end:?}");
        story.declare("q", Settings::default()).await;
        assert_eq!(rules(&story).await.2.max_length, 0, "{end:?}");
        story.engine().delete_vhost("v").await.expect("deleted");
        story.at(VhostId::DEFAULT);
    }
}

/// Nothing is changed by what is refused.
pub async fn a_policy_that_cannot_be_is_refused<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let engine = story.engine();
    let gone = engine.remove_policy(PolicyKind::User, "p").await;
    assert_eq!(refused(gone), Refusal::NoSuchPolicy);
    for wrong in [policy("", |_| ()), policy("", |d| d.max_length = Some(0))] {
        assert_eq!(refused(engine.set_policy(PolicyKind::User, "p", wrong).await), Refusal::PolicyInvalid);
    }
    let nameless = engine.set_policy(PolicyKind::User, "", policy("", |d| d.max_length = Some(1))).await;
    assert_eq!(refused(nameless), Refusal::NameInvalid);
    set(&story, "p", policy("", |d| d.max_length = Some(1))).await;
    let other_kind = engine.remove_policy(PolicyKind::Operator, "p").await;
    assert_eq!(refused(other_kind), Refusal::NoSuchPolicy);
    assert_eq!(engine.policies(PolicyKind::User).await.expect("shown").len(), 1);
}

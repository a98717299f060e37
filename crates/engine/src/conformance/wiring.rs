//! How exchanges hang together: bound to each other, with alternates, delayed, and coming and going by themselves.

use overtake_lane::{ExchangeKind, ExchangeSettings, Refusal, Settings};

use super::{ENDS, Fixture, Story, binding, refused};
use crate::api::DeleteOnly;

async fn two(fixture: impl Fixture) -> Story<impl Fixture> {
    let story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    story
}

/// An exchange that differs from a plain one as `change` says.
fn exchange(kind: ExchangeKind, change: impl FnOnce(&mut ExchangeSettings)) -> ExchangeSettings {
    let mut settings = ExchangeSettings::new(kind);
    change(&mut settings);
    settings
}

async fn seen<F: Fixture>(story: &Story<F>) -> [String; 2] {
    [story.left().await, story.left_in("r").await]
}

/// Once, in a circle too.
pub async fn a_message_goes_through_exchanges_bound_to_each_other<F: Fixture>(fixture: F) {
    let story = two(fixture).await;
    story.exchange("y", ExchangeKind::Topic, &["q a.*", "r #"]).await;
    story.exchange("x", ExchangeKind::Fanout, &["q", ">y", ">x"]).await;
    story.engine().bind(binding("y", ">x #")).await.expect("bound");
    story.publish("one,to=x/a.b two,to=y/b").await;
    assert_eq!(seen(&story).await, ["one two", "one two"]);
    story.engine().delete_exchange("y", false).await.expect("deleted");
    assert_eq!(story.engine().bindings("x").await.expect("listed").len(), 2);
}

/// And on to the alternate of the alternate.
pub async fn an_alternate_gets_what_nothing_is_bound_for<F: Fixture>(fixture: F) {
    let story = two(fixture).await;
    let to = |name: &'static str| move |x: &mut ExchangeSettings| x.alternate = Some(name.into());
    story.exchange_as("x", exchange(ExchangeKind::Direct, to("y")), &["q k"]).await;
    assert_eq!(story.refusal("lost,to=x/l,must").await, Refusal::Unroutable);
    story.exchange_as("y", exchange(ExchangeKind::Direct, to("z")), &["r l"]).await;
    story.exchange_as("z", exchange(ExchangeKind::Fanout, to("x")), &[]).await;
    assert_eq!(story.refusal("lost,to=x/m,must").await, Refusal::Unroutable);
    story.publish("a,to=x/k,must b,to=x/l,must").await;
    assert_eq!(seen(&story).await, ["a", "b"]);
}

/// Only through what is bound to it.
pub async fn nobody_publishes_to_an_internal_exchange<F: Fixture>(fixture: F) {
    let story = two(fixture).await;
    story.exchange_as("y", exchange(ExchangeKind::Fanout, |x| x.internal = true), &["q"]).await;
    story.exchange("x", ExchangeKind::Fanout, &[">y"]).await;
    assert_eq!(story.refusal("a,to=y/").await, Refusal::ExchangeInternal);
    story.publish("b,to=x/").await;
    assert_eq!(story.left().await, "b");
}

/// By any of its keys, but one copy to each queue.
pub async fn a_message_with_several_keys_goes_where_each_of_them_leads<F: Fixture>(fixture: F) {
    let story = two(fixture).await;
    story.exchange("x", ExchangeKind::Direct, &["q one", "q two", "r two"]).await;
    story.publish("a,to=x/one+two b,to=/r+q+r+nobody c,to=x/three+one").await;
    assert_eq!(seen(&story).await, ["a b c", "a b"]);
}

/// If they say so themselves, and no others.
pub async fn a_delayed_exchange_lets_messages_wait<F: Fixture>(fixture: F) {
    let story = two(fixture).await;
    story.exchange_as("d", exchange(ExchangeKind::Fanout, |x| x.delayed = true), &["q", "r"]).await;
    story.exchange("x", ExchangeKind::Fanout, &["r", ">d"]).await;
    story
        .publish("late,h.x-delay=1000,to=d/ soon,to=d/ past,h.x-delay=-5,to=d/ both,h.x-delay=1000,to=x/")
        .await;
    assert_eq!(seen(&story).await, ["soon past · delayed late both", "soon past both · delayed late"]);
    story.advance(1_000).await;
    assert_eq!(seen(&story).await, ["late soon past both", "late soon past both"]);
}

/// By key, by header: the same one for the same.
pub async fn a_consistent_hash_exchange_gives_each_message_to_one_queue<F: Fixture>(fixture: F) {
    let story = two(fixture).await;
    let by_header = |x: &mut ExchangeSettings| x.hash_on = overtake_lane::HashOn::Header("user".into());
    story.exchange("x", ExchangeKind::ConsistentHash, &["q 1", "r 1"]).await;
    story.exchange_as("y", exchange(ExchangeKind::ConsistentHash, by_header), &["q 1", "r 1"]).await;
    let of = |copies: &[crate::api::PublishedCopy]| -> Vec<String> {
        copies.iter().map(|copy| copy.queue.to_string()).collect()
    };
    let by_key = of(&story.publish("a,to=x/1 b,to=x/2 c,to=x/3 d,to=x/4 e,to=x/1 f,to=x/1+2+3+4").await);
    assert_eq!(by_key.len(), 6);
    assert!(by_key[0] == by_key[4] && by_key[0] == by_key[5]);
    assert!(by_key.iter().any(|queue| queue == "q") && by_key.iter().any(|queue| queue == "r"));
    let by_header =
        of(&story.publish("a,h.user=1,to=y/9 b,h.user=2,to=y/9 c,h.user=3,to=y/9 d,h.user=4,to=y/9").await);
    assert_eq!(by_header, by_key[..4]);
    assert_eq!(refused(story.engine().bind(binding("x", "q many")).await), Refusal::WeightInvalid);
}

/// However it was lost, and only then.
pub async fn an_exchange_may_go_with_its_last_binding<F: Fixture>(fixture: F) {
    let story = two(fixture).await;
    let going = || exchange(ExchangeKind::Fanout, |x| x.auto_delete = true);
    story.exchange_as("x", going(), &["q"]).await;
    story.exchange_as("y", going(), &["r"]).await;
    story.exchange_as("z", going(), &[">y"]).await;
    story.exchange_as("never", going(), &[]).await;
    story.engine().unbind(binding("x", "q")).await.expect("unbound");
    assert_eq!(story.refusal("a,to=x/").await, Refusal::NoSuchExchange);
    story.engine().delete_queue("r", DeleteOnly::default()).await.expect("deleted");
    for gone in ["y", "z"] {
        assert_eq!(refused(story.engine().exchange(gone).await), Refusal::NoSuchExchange, "{gone}");
    }
    assert_eq!(story.engine().exchange("never").await.expect("there").bindings, 0);
}

/// With its bindings, and what goes with those.
pub async fn an_exchange_that_is_not_durable_ends_with_the_engine<F: Fixture>(fixture: F) {
    let mut story = two(fixture).await;
    for end in ENDS {
        story.exchange_as("y", exchange(ExchangeKind::Fanout, |x| x.durable = false), &["q"]).await;
        story.exchange("x", ExchangeKind::Fanout, &[">y", "r"]).await;
        story.exchange_as("z", exchange(ExchangeKind::Fanout, |x| x.auto_delete = true), &[">y"]).await;
        story.again(end).await;
        let left = story.engine().exchanges().await.expect("listed");
        let left: Vec<_> =
            left.iter().map(|exchange| &*exchange.name).filter(|name| name.len() == 1).collect();
        assert_eq!(left, ["x"], "{end:?}");
        assert_eq!(story.publish("a,to=x/").await.len(), 1, "{end:?}");
    }
}

/// Its bindings to others count, those to it do not.
pub async fn an_exchange_in_use_is_kept_if_asked<F: Fixture>(fixture: F) {
    let story = two(fixture).await;
    story.exchange("y", ExchangeKind::Fanout, &[]).await;
    story.exchange("x", ExchangeKind::Fanout, &[">y"]).await;
    assert_eq!(refused(story.engine().delete_exchange("x", true).await), Refusal::ExchangeInUse);
    story.engine().delete_exchange("y", true).await.expect("deleted");
    story.engine().delete_exchange("x", true).await.expect("deleted");
}

/// As it was given; of a binding it is a part, of an exchange a note.
pub async fn arguments_are_remembered<F: Fixture>(fixture: F) {
    let story = two(fixture).await;
    let engine = story.engine();
    let noted = |byte| exchange(ExchangeKind::Fanout, |x| x.arguments = vec![byte]);
    story.exchange_as("x", noted(1), &["q"]).await;
    assert_eq!(engine.declare_exchange("x", noted(2)).await, Ok(()));
    assert_eq!(engine.exchange("x").await.expect("there").settings, noted(1));
    let other = overtake_lane::Binding { arguments: vec![7], ..binding("x", "q") };
    engine.bind(other.clone()).await.expect("bound");
    assert_eq!(engine.bindings("x").await.expect("listed"), [binding("x", "q"), other.clone()]);
    engine.unbind(other).await.expect("unbound");
    assert_eq!(engine.bindings("x").await.expect("listed"), [binding("x", "q")]);
    let long = vec![0; overtake_lane::ARGUMENTS_LEN_MAX + 1];
    let long = overtake_lane::Binding { arguments: long, ..binding("x", "q") };
    assert_eq!(refused(engine.bind(long).await), Refusal::ArgumentsInvalid);
}

//! Every no, by name. Those of one theme stand there; here are the others.

use overtake_lane::{
    ExchangeKind, ExchangeSettings, HashOn, KEY_WEIGHT_MAX, Outcome, PartitionMode, Partitions, Refusal,
    Scheme, Settings, Status,
};

use super::{ENDS, Fixture, Story, binding, refused, settings};
use crate::api::{Browse, ConsumeRequest, DeleteOnly, LeaseRequest, Select};

/// Whatever is asked of it.
pub async fn nothing_can_be_asked_of_a_queue_that_is_not_there<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let engine = story.engine();
    let (queue, id) = ("nobody", || Select::Id("a".into()));
    let lease = LeaseRequest { wait_ms: 600_000, ..LeaseRequest::new(queue.into(), 1) };
    let consume = ConsumeRequest::new(queue.into());
    assert_eq!(story.refusal("a:5,in=nobody").await, Refusal::NoSuchQueue);
    for refusal in [
        refused(engine.queue(queue).await.map(drop)),
        refused(engine.delete_queue(queue, DeleteOnly::default()).await),
        refused(engine.lease(lease).await.map(drop)),
        refused(engine.consume(consume).await.map(drop)),
        refused(engine.browse(queue, Browse { limit: 1, ..Browse::default() }).await.map(drop)),
        refused(engine.message(queue, "a").await.map(drop)),
        refused(engine.reprioritise(queue, id(), 1.into()).await),
        refused(engine.remove(queue, id()).await),
        refused(engine.purge(queue, Some(Status::Ready)).await),
        refused(engine.replay(queue, id(), None).await),
        refused(engine.bind(binding("amq.topic", "nobody #")).await),
    ] {
        assert_eq!(refusal, Refusal::NoSuchQueue);
    }
}

/// Nor of an exchange.
pub async fn nothing_can_be_asked_of_an_exchange_that_is_not_there<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    assert_eq!(story.refusal("a:5,to=nobody/key").await, Refusal::NoSuchExchange);
    let engine = story.engine();
    for refusal in [
        refused(engine.delete_exchange("nobody", false).await),
        refused(engine.bind(binding("nobody", "q")).await),
        refused(engine.unbind(binding("nobody", "q")).await),
        refused(engine.exchange("nobody").await),
        refused(engine.bindings("nobody").await),
        refused(engine.bind(binding("amq.topic", ">nobody #")).await),
    ] {
        assert_eq!(refusal, Refusal::NoSuchExchange);
    }
}

/// Settled, removed, or never there.
pub async fn nothing_can_be_asked_of_a_message_that_is_not_there<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    for id in ["never", "seq-99", "seq-", "seq-+1", ""] {
        assert_eq!(refused(story.engine().message("q", id).await.map(drop)), Refusal::NoSuchMessage, "{id}");
        assert_eq!(story.remove(id).await, Err(Refusal::NoSuchMessage), "{id}");
        assert_eq!(story.reprioritise(id, "5").await, Err(Refusal::NoSuchMessage), "{id}");
        assert_eq!(story.replay(id, None).await, Err(Refusal::NoSuchMessage), "{id}");
    }
}

/// As AMQP has them: 1 to 255 bytes. NUL alone is refused.
pub async fn a_name_must_be_one<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    let engine = story.engine();
    for name in ["", "a\0b", "\0", &"x".repeat(256)] {
        assert_eq!(
            refused(engine.declare_queue(name, Settings::default()).await),
            Refusal::NameInvalid,
            "{name:?}"
        );
    }
    for name in ["a\0b", &"x".repeat(256)] {
        assert_eq!(
            refused(engine.declare_exchange(name, ExchangeSettings::default()).await),
            Refusal::NameInvalid,
            "{name:?}"
        );
    }
    for name in ["ü", "a b", "a/b", "a\tb\r\nc", "\u{7f}", &"x".repeat(255), &"ü".repeat(127)] {
        assert!(engine.declare_queue(name, Settings::default()).await.expect("a name").made, "{name:?}");
        engine.declare_exchange(name, ExchangeSettings::default()).await.expect("a name");
    }
    drop(engine);
    story.again(ENDS[0]).await;
    for name in ["a\tb\r\nc", &"x".repeat(255)] {
        assert_eq!(&*story.engine().queue(name).await.expect("it is there still").name, name);
    }
}

/// Neither the broker's names nor anything else about it.
pub async fn an_exchange_is_what_it_was_declared_as<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let engine = story.engine();
    let direct = || ExchangeSettings::new(ExchangeKind::Direct);
    story.exchange("x", ExchangeKind::Direct, &["q"]).await;
    assert_eq!(engine.declare_exchange("x", direct()).await, Ok(()));
    for (key, other) in [
        ("kind", ExchangeSettings::new(ExchangeKind::Topic)),
        ("durable", ExchangeSettings { durable: false, ..direct() }),
        ("auto_delete", ExchangeSettings { auto_delete: true, ..direct() }),
        ("internal", ExchangeSettings { internal: true, ..direct() }),
        ("alternate", ExchangeSettings { alternate: Some("y".into()), ..direct() }),
        ("delayed", ExchangeSettings { delayed: true, ..direct() }),
        ("hash_on", ExchangeSettings { hash_on: HashOn::Header("h".into()), ..direct() }),
    ] {
        assert_eq!(refused(engine.declare_exchange("x", other).await), Refusal::ExchangeDiffers(key));
    }
    for name in ["amq.mine", ""] {
        assert_eq!(refused(engine.declare_exchange(name, direct()).await), Refusal::ExchangeReserved);
    }
    assert_eq!(engine.declare_exchange("amq.direct", direct()).await, Ok(()));
    assert_eq!(refused(engine.delete_exchange("amq.topic", false).await), Refusal::ExchangeReserved);
}

/// Numbers and names, as the scheme says.
pub async fn a_priority_must_be_one_of_the_queues_scheme<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    assert_eq!(story.refusal("a:-1").await, Refusal::PriorityOutOfRange);
    assert_eq!(story.refusal("a:high").await, Refusal::PriorityUnknown);
    story.declare("q", settings(|s| s.scheme = Scheme::Route)).await;
    assert_eq!(story.refusal("a:10").await, Refusal::PriorityOutOfRange);
    story.declare("q", settings(|s| s.scheme = Scheme::Signed)).await;
    assert_eq!(story.refusal("a:2147483648").await, Refusal::PriorityOutOfRange);
    assert_eq!(story.refusal("a:urgent").await, Refusal::PriorityUnknown);
    assert_eq!(story.left().await, "");
}

/// What names a message must be able to.
pub async fn ids_and_keys_must_be_texts_that_can_be_used<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let long = "x".repeat(201);
    for id in ["", "seq-7", "a\u{1}b", &long] {
        let mut messages = story.messages("a:5");
        messages[0].id = Some(id.to_owned());
        assert_eq!(refused(story.engine().publish(messages).await), Refusal::IdInvalid, "{id:?}");
    }
    for key in ["a\nb", &long] {
        let mut messages = story.messages("a:5");
        messages[0].key = Some(key.to_owned());
        assert_eq!(refused(story.engine().publish(messages).await), Refusal::KeyInvalid, "{key:?}");
    }
    for (key, weight) in [(None, 1), (Some(""), 1), (Some("k"), 0), (Some("k"), KEY_WEIGHT_MAX + 1)] {
        let mut messages = story.messages("a:5");
        (messages[0].key, messages[0].key_weight) = (key.map(ToOwned::to_owned), Some(weight));
        let refused = refused(story.engine().publish(messages).await);
        let why = if weight == 1 { Refusal::KeyWeightAlone } else { Refusal::KeyWeightInvalid };
        assert_eq!(refused, why, "{key:?} {weight}");
    }
}

/// Its messages or consumers keep it.
pub async fn a_queue_may_be_deleted_only_when_empty_or_unused<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let (if_empty, if_unused) = (
        DeleteOnly { if_empty: true, ..Default::default() },
        DeleteOnly { if_unused: true, ..Default::default() },
    );
    story.publish("a:5").await;
    assert_eq!(refused(story.engine().delete_queue("q", if_empty).await), Refusal::NotEmpty);
    story.lease(1).await;
    assert_eq!(refused(story.engine().delete_queue("q", if_empty).await), Refusal::NotEmpty);
    story.ack("a").await;
    let consumer = story.consume(1).await;
    assert_eq!(refused(story.engine().delete_queue("q", if_unused).await), Refusal::InUse);
    drop(consumer);
    story.until_no_consumer().await;
    assert_eq!(story.engine().delete_queue("q", DeleteOnly { if_empty: true, if_unused: true }).await, Ok(0));
}

/// One from another queue, or made up.
pub async fn a_receipt_must_be_of_a_lease<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    story.lease(1).await;
    let good = story.receipt("a");
    let forged = |change: fn(&mut overtake_lane::Receipt)| {
        let mut receipt = good;
        change(&mut receipt);
        receipt
    };
    let bad = vec![
        forged(|receipt| receipt.queue.0 += 1),
        forged(|receipt| receipt.seq.0 += 1),
        forged(|receipt| receipt.lease.0 += 1),
        forged(|receipt| receipt.queue.0 = u32::MAX),
    ];
    let stale = vec![Err(Refusal::StaleReceipt); bad.len()];
    assert_eq!(story.engine().settle(bad.clone(), Outcome::Ack).await, Ok(stale.clone()));
    assert_eq!(story.engine().extend(bad, 1).await, Ok(stale));
    story.ack("a").await;
}

/// What would not fit the store in one piece.
pub async fn a_message_too_large_for_the_broker_is_refused<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    assert_eq!(story.refusal("huge:5,bytes=200000000").await, Refusal::TooLargeAtOnce);
    assert_eq!(story.left().await, "");
    story.publish("a:5").await;
}

/// A last-value queue stays one while messages are there.
pub async fn settings_that_messages_depend_on_are_fixed_while_they_are_there<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,key=k").await;
    let changed = settings(|s| s.last_value = Some(overtake_lane::LastValue::Key));
    let refusal = refused(story.engine().declare_queue("q", changed).await);
    assert_eq!(refusal, Refusal::SettingFixed("last_value"));
    let partitions = Partitions { mode: PartitionMode::Hash, count: 16, ..Partitions::default() };
    let refusal = refused(story.engine().declare_queue("q", settings(|s| s.partitions = partitions)).await);
    assert_eq!(refusal, Refusal::SettingFixed("partitions"));
}

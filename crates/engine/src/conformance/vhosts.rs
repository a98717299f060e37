//! Virtual hosts: the same names in each, nothing that goes from one into another, and one that goes with all that is in it.

use overtake_lane::{
    DeadLetterTo, ExchangeKind, Identity, Outcome, Refusal, Settings, VHOST_DEFAULT_NAME, VHOST_TEXT_LEN_MAX,
    VhostId, VhostSettings, VhostView,
};

use super::talk::Talk;
use super::{ENDS, Fixture, Story, answered, binding, refused, settings};
use crate::api::{
    Browse, Connection, ConsumeRequest, DeclareQueue, DeleteOnly, Engine, LeaseRequest, Select,
};

async fn make<F: Fixture>(story: &Story<F>, name: &str) -> VhostId {
    story.engine().declare_vhost(name, VhostSettings::default()).await.expect("declared")
}

/// A virtual host `v` with a queue `q`, and the story there.
async fn elsewhere<F: Fixture>(fixture: F, settings: Settings) -> (Story<F>, VhostId) {
    let mut story = Story::of(fixture, settings.clone()).await;
    let vhost = make(&story, "v").await;
    story.at(vhost);
    story.declare("q", settings).await;
    (story, vhost)
}

async fn seen<F: Fixture>(story: &Story<F>) -> String {
    let all = story.engine().vhosts().await.expect("shown");
    let word = |view: &VhostView| format!("{}:{}", view.name, view.queues);
    all.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn own() -> DeclareQueue {
    let identity = Identity { exclusive: true, ..Identity::default() };
    DeclareQueue { identity, ..DeclareQueue::default() }
}

async fn is_there(engine: &dyn Engine, name: &str) -> bool {
    answered(engine.queue(name).await.map(drop)) != Err(Refusal::NoSuchQueue)
}

/// With messages, positions and views of its own.
pub async fn a_name_in_two_virtual_hosts_is_two_queues<F: Fixture>(fixture: F) {
    let (mut story, vhost) = elsewhere(fixture, Settings::default()).await;
    let copies = story.publish("a:5 b:9").await;
    assert_eq!(copies.iter().map(|copy| copy.seq.0).collect::<Vec<_>>(), [1, 2]);
    story.at(VhostId::DEFAULT);
    assert_eq!(story.left().await, "");
    story.publish("c:5").await;
    assert_eq!((&*seen(&story).await, story.view().await.vhost), ("/:1 v:1", VhostId::DEFAULT));
    story.at(vhost);
    assert_eq!((&*story.lease(9).await, story.view().await.vhost), ("b a", vhost));
    story.declare("r", Settings::default()).await;
    let queues = story.engine().queues(None, 9).await.expect("shown").queues;
    assert_eq!(queues.iter().map(|queue| &*queue.name).collect::<Vec<_>>(), ["q", "r"]);
    story.engine().delete_queue("q", DeleteOnly::default()).await.expect("deleted");
    story.at(VhostId::DEFAULT);
    assert_eq!(story.left().await, "c");
}

/// The default one, those that are predeclared, and those that are made.
pub async fn exchanges_are_those_of_their_virtual_host<F: Fixture>(fixture: F) {
    let (mut story, vhost) = elsewhere(fixture, Settings::default()).await;
    assert_eq!(story.engine().exchanges().await.expect("shown").len(), 6);
    story.exchange("x", ExchangeKind::Fanout, &["q"]).await;
    story.engine().bind(binding("amq.topic", "q k")).await.expect("bound");
    story.publish("a:5,to=x/k b:5,to=amq.topic/k c:5,to=/q").await;
    story.at(VhostId::DEFAULT);
    assert_eq!(story.refusal("d:5,to=x/k").await, Refusal::NoSuchExchange);
    story.publish("d:5,to=amq.topic/k").await;
    assert_eq!(story.left().await, "");
    story.exchange("x", ExchangeKind::Direct, &["q k"]).await;
    story.publish("e:5,to=x/k f:5,to=/q").await;
    assert_eq!(story.left().await, "e f");
    assert_eq!(story.engine().bindings("x").await.expect("shown").len(), 1);
    story.engine().delete_exchange("x", false).await.expect("deleted");
    story.at(vhost);
    assert_eq!(story.left().await, "a b c");
    assert_eq!(story.engine().exchange("x").await.expect("there").settings.kind, ExchangeKind::Fanout);
    let elsewhere = story.engine().bind(binding("x", "r")).await;
    assert_eq!(refused(elsewhere), Refusal::NoSuchQueue);
}

/// By queue and by exchange, and back again.
pub async fn dead_letters_stay_in_their_virtual_host<F: Fixture>(fixture: F) {
    let (mut story, vhost) =
        elsewhere(fixture, settings(|s| s.dead_letter = DeadLetterTo::Queue("dead".into()))).await;
    story.at(VhostId::DEFAULT);
    story.declare("dead", Settings::default()).await;
    story.exchange("x", ExchangeKind::Fanout, &["dead"]).await;
    story.at(vhost);
    story.publish("a:5").await;
    story.lease(1).await;
    story.reject("a").await;
    assert_eq!(story.left().await, "dead a", "there is no such queue here");
    story.declare("dead", Settings::default()).await;
    assert_eq!(story.replay("*", None).await, Ok(1));
    story.lease(1).await;
    story.reject("a").await;
    assert_eq!((&*story.left().await, &*story.left_in("dead").await), ("", "a"));
    let engine = story.engine();
    let all = Select::Matching(Default::default());
    assert_eq!(engine.replay("dead", all, None).await.expect("replayed"), 1);
    let to = DeadLetterTo::Exchange { name: "x".into(), routing_key: None };
    story.declare("q", settings(|s| s.dead_letter = to)).await;
    story.lease(1).await;
    story.reject("a").await;
    assert_eq!(story.left().await, "dead a", "there is no such exchange here");
    story.at(VhostId::DEFAULT);
    assert_eq!((&*story.left().await, &*story.left_in("dead").await), ("", ""));
}

/// Elsewhere it is as one that is over.
pub async fn a_receipt_holds_where_its_message_is<F: Fixture>(fixture: F) {
    let (mut story, vhost) = elsewhere(fixture, Settings::default()).await;
    story.publish("a:5 b:5").await;
    assert_eq!(story.lease(2).await, "a b");
    story.at(VhostId::DEFAULT);
    assert_eq!(story.settle("a", Outcome::Ack).await, Err(Refusal::StaleReceipt));
    assert_eq!(story.extend("a", 9).await, Err(Refusal::StaleReceipt));
    assert_eq!(story.transact("c", &[("b", Outcome::Ack)]).await, Err(Refusal::StaleReceipt));
    story.at(vhost);
    assert_eq!(story.left().await, "leased a b");
    assert_eq!(story.transact("c", &[("b", Outcome::Ack)]).await, Ok(()));
    story.ack("a").await;
    assert_eq!(story.left().await, "c");
}

/// Queues, exchanges, consumers and whoever waits; and what is made later under its name is new.
pub async fn a_virtual_host_goes_with_all_that_is_in_it<F: Fixture>(fixture: F) {
    let (mut story, vhost) = elsewhere(fixture, Settings::default()).await;
    story.exchange("x", ExchangeKind::Fanout, &["q"]).await;
    story.publish("a:5 b:5").await;
    let mut consumer = story.consume(1).await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    story.declare("r", Settings::default()).await;
    let waits = LeaseRequest { wait_ms: 60_000, ..LeaseRequest::new("r".into(), 1) };
    let engine = story.engine();
    let waiting = engine.lease(waits);
    let mine = engine.connect();
    mine.declare("mine", own()).await.expect("declared");
    assert_eq!(seen(&story).await, "/:1 v:3");
    let (ended, deleted) = tokio::join!(waiting, async {
        while engine.queue("r").await.expect("there").waiting == 0 {
            tokio::task::yield_now().await;
        }
        engine.delete_vhost("v").await
    });
    deleted.expect("deleted");
    assert_eq!(refused(ended), Refusal::NoSuchQueue);
    assert!(consumer.next().await.is_none(), "its consumers are gone with it");
    assert_eq!(seen(&story).await, "/:1");
    assert_eq!(refused(mine.check_queue("mine").await), Refusal::NoSuchVhost);
    drop(mine);
    let again = make(&story, "v").await;
    assert_ne!(again, vhost, "no number is used twice");
    story.at(again);
    assert_eq!((&*seen(&story).await, is_there(&*story.engine(), "q").await), ("/:1 v:0", false));
    assert_eq!(story.engine().exchanges().await.expect("shown").len(), 6);
    story.declare("q", Settings::default()).await;
    assert_eq!(story.left().await, "");
}

/// With every question there is.
pub async fn nothing_can_be_asked_of_a_virtual_host_that_is_not_there<F: Fixture>(fixture: F) {
    let (mut story, vhost) = elsewhere(fixture, Settings::default()).await;
    let gone = story.engine();
    gone.delete_vhost("v").await.expect("deleted");
    for vhost in [vhost, VhostId(u32::MAX)] {
        story.at(vhost);
        let engine = story.engine();
        let no = Refusal::NoSuchVhost;
        assert_eq!(refused(engine.declare_queue("r", Settings::default()).await), no);
        assert_eq!(refused(engine.check_queue("q").await), no);
        assert_eq!(refused(engine.delete_queue("q", DeleteOnly::default()).await), no);
        assert_eq!(refused(engine.queues(None, 1).await.map(drop)), no);
        assert_eq!(refused(engine.queue("q").await.map(drop)), no);
        assert_eq!(refused(engine.exchanges().await), no);
        assert_eq!(refused(engine.exchange("amq.topic").await), no);
        assert_eq!(refused(engine.bindings("amq.topic").await), no);
        assert_eq!(refused(engine.bind(binding("amq.topic", "q k")).await), no);
        assert_eq!(refused(engine.unbind(binding("amq.topic", "q k")).await), no);
        assert_eq!(story.refusal("a:5").await, no);
        assert_eq!(story.refusal("a:5,to=/q").await, no);
        assert_eq!(refused(engine.get("q", false).await.map(drop)), no);
        assert_eq!(refused(engine.consume(ConsumeRequest::new("q".into())).await.map(drop)), no);
        assert_eq!(refused(engine.browse("q", Browse { limit: 1, ..Browse::default() }).await.map(drop)), no);
        assert_eq!(refused(engine.message("q", "a").await.map(drop)), no);
        assert_eq!(refused(engine.purge("q", None).await), no);
        assert_eq!(story.remove("*").await, Err(no));
        assert_eq!(story.replay("*", None).await, Err(no));
        assert_eq!(story.reprioritise("*", "3").await, Err(no));
    }
    assert_eq!(refused(story.engine().vhost("v").await), Refusal::NoSuchVhost);
    assert_eq!(refused(story.engine().delete_vhost("v").await), Refusal::NoSuchVhost);
    assert_eq!(seen(&story).await, "/:1", "who is there does not matter for these");
}

/// It may be changed all the same.
pub async fn the_virtual_host_of_a_slash_is_always_there<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let engine = story.engine();
    let shown = engine.vhost(VHOST_DEFAULT_NAME).await.expect("there");
    assert_eq!((shown.vhost, shown.settings, shown.queues), (VhostId::DEFAULT, VhostSettings::default(), 1));
    assert_eq!(refused(engine.delete_vhost("/").await), Refusal::VhostReserved);
    let said = VhostSettings { description: "all".into(), ..VhostSettings::default() };
    assert_eq!(engine.declare_vhost("/", said.clone()).await.expect("declared"), VhostId::DEFAULT);
    assert_eq!(engine.vhost("/").await.expect("there").settings, said);
}

/// What is said of it changes, its number does not.
pub async fn a_virtual_host_that_is_declared_again_is_changed<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let engine = story.engine();
    let vhost = make(&story, "v").await;
    let said = VhostSettings {
        description: "Europe".into(),
        tags: vec!["a".into(), "b".into()],
        max_queues: Some(7),
        max_connections: Some(0),
    };
    for settings in [said.clone(), said, VhostSettings::default()] {
        assert_eq!(engine.declare_vhost("v", settings.clone()).await.expect("declared"), vhost);
        let shown = engine.vhost("v").await.expect("there");
        assert_eq!((shown.vhost, shown.settings), (vhost, settings));
    }
    for wrong in ["", "a\u{1}", &"x".repeat(201)] {
        let declared = engine.declare_vhost(wrong, VhostSettings::default()).await;
        assert_eq!(refused(declared), Refusal::NameInvalid, "{wrong}");
    }
    let long = VhostSettings { description: "x".repeat(VHOST_TEXT_LEN_MAX + 1), ..VhostSettings::default() };
    let empty = VhostSettings { tags: vec![String::new()], ..VhostSettings::default() };
    for wrong in [long, empty] {
        assert_eq!(refused(engine.declare_vhost("v", wrong).await), Refusal::VhostInvalid);
    }
    assert_eq!(engine.vhost("v").await.expect("there").settings, VhostSettings::default());
}

/// One that is lowered deletes none.
pub async fn a_virtual_host_holds_as_many_queues_as_it_may<F: Fixture>(fixture: F) {
    let (story, _) = elsewhere(fixture, Settings::default()).await;
    let engine = story.engine();
    let most = async |max_queues: u64| {
        let settings = VhostSettings { max_queues: Some(max_queues), ..VhostSettings::default() };
        engine.declare_vhost("v", settings).await.expect("declared");
    };
    let declare =
        async |name: &str| answered(engine.declare_queue(name, Settings::default()).await).map(drop);
    most(2).await;
    assert_eq!(declare("r").await, Ok(()));
    assert_eq!(declare("s").await, Err(Refusal::VhostQueuesMax));
    most(0).await;
    assert_eq!((declare("r").await, &*seen(&story).await), (Ok(()), "/:1 v:2"));
    engine.delete_queue("q", DeleteOnly::default()).await.expect("deleted");
    assert_eq!(declare("q").await, Err(Refusal::VhostQueuesMax));
    let elsewhere = engine.in_vhost(VhostId::DEFAULT);
    elsewhere.declare_queue("s", Settings::default()).await.expect("declared");
}

/// With every end, with what lasts in them, and while the journal is given back.
pub async fn virtual_hosts_survive<F: Fixture>(fixture: F) {
    let (mut story, vhost) = elsewhere(fixture, Settings::default()).await;
    story.exchange("x", ExchangeKind::Fanout, &["q"]).await;
    story.publish("a:5,to=x/k").await;
    let said = |round: usize| VhostSettings { description: round.to_string(), ..VhostSettings::default() };
    for (round, end) in ENDS.into_iter().enumerate() {
        story.engine().declare_vhost("v", said(round)).await.expect("declared");
        let gone = make(&story, "gone").await;
        story.at(gone);
        story.declare("q", Settings::default()).await;
        story.publish("lost:5").await;
        story.engine().delete_vhost("gone").await.expect("deleted");
        story.at(VhostId::DEFAULT);
        for n in 0..30 {
            story.publish(&format!("m{round}x{n},bytes=3000")).await;
            story.drain().await;
        }
        story.again(end).await;
        let shown = story.engine().vhost("v").await.expect("there");
        assert_eq!((shown.vhost, shown.settings), (vhost, said(round)), "{end:?}");
        assert_eq!((&*seen(&story).await, &*story.left().await), ("/:1 v:1", ""), "{end:?}");
        story.at(vhost);
        assert_eq!(story.left().await, "a", "{end:?}");
        story.publish("b:5,to=x/k").await;
        assert_eq!(story.left().await, "a b");
        story.remove("*").await.expect("removed");
        story.publish("a:5,to=x/k").await;
    }
}

/// Who is connected stays so, wherever it asks; and it lasts until nobody asks for it any more.
pub async fn a_queue_of_ones_own_is_so_in_its_virtual_host<F: Fixture>(fixture: F) {
    let (story, vhost) = elsewhere(fixture, Settings::default()).await;
    let root = story.engine().in_vhost(VhostId::DEFAULT);
    let mine = root.connect();
    let there: Connection = mine.in_vhost(vhost);
    assert!(there.declare("r", own()).await.expect("declared").made);
    assert!(mine.declare("r", own()).await.expect("declared").made);
    assert_eq!(refused(story.engine().check_queue("r").await), Refusal::QueueLocked);
    assert_eq!(refused(story.engine().connect().check_queue("r").await), Refusal::QueueLocked);
    assert!(mine.in_vhost(vhost).check_queue("r").await.is_ok(), "it is the same who asks");
    story.publish("a:5,in=r").await;
    drop(mine);
    story.durable().await;
    assert_eq!(there.get("r", false).await.expect("answered").expect("a message").ready, 0);
    drop(there);
    while is_there(&*story.engine(), "r").await || is_there(&*root, "r").await {
        tokio::task::yield_now().await;
    }
}

/// It asks where the engine does that it was asked of.
pub async fn who_asks_without_waiting_asks_in_a_virtual_host<F: Fixture>(fixture: F) {
    let (story, _) = elsewhere(fixture, Settings::default()).await;
    let mut talk = Talk::begin(&story);
    talk.publish("a:5 b:5").await;
    assert_eq!(talk.hear(2).await, "0=1 1=1");
    talk.consume("q", 1).await;
    assert_eq!(talk.hear(2).await, "2=done a");
    assert_eq!(story.left().await, "b · leased a");
    talk.settle("a", Outcome::Ack).await;
    assert_eq!(talk.hear(1).await, "b");
    story.engine().delete_vhost("v").await.expect("deleted");
    assert_eq!(talk.hear(1).await, "ended");
    talk.publish("c:5").await;
    assert_eq!(talk.hear(1).await, "3=no-such-vhost");
}

/// Whatever it was that nobody took.
pub async fn what_nobody_hears_of_is_put_back_where_it_was<F: Fixture>(fixture: F) {
    let (story, _) = elsewhere(fixture, Settings::default()).await;
    story.publish("a:5 b:5").await;
    let mut talk = Talk::begin(&story);
    talk.lease("q", 0).await;
    story.until_leased(1).await;
    drop(talk);
    story.until_leased(0).await;
    let mut consumer = story.consume(9).await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    story.until_leased(2).await;
    drop(consumer);
    story.until_leased(0).await;
    assert_eq!(story.left().await, "a b");
}

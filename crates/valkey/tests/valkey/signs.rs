//! What is out to a process, and what it knows of that.

use std::sync::Arc;

use overtake_engine::{ConsumeRequest, Content, Engine, NewMessage, Target};
use overtake_lane::Settings;
use overtake_peer::Vault;
use overtake_valkey::cluster::Cluster;
use overtake_valkey::engine::{ClusterEngine, Options};
use overtake_valkey::functions::{Choice, LIBRARY, Leasing, Terms};
use overtake_valkey::places::Places;

use crate::processes::{callers, of_q};
use crate::story::long;
use crate::world::{Program, World};

fn publish(body: &str) -> Vec<NewMessage> {
    let content = Content { body: body.to_owned().into(), ..Content::default() };
    vec![NewMessage { to: Target::Queue("q".into()), content, ..NewMessage::default() }]
}

/// As it is when the answer of a lease is lost: at its place the message is out to the process, which knows nothing of it, and says all the while that it is there.
#[tokio::test]
async fn what_is_out_to_a_process_that_knows_nothing_of_it_goes_back() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let engine = ClusterEngine::open(Options::new(world.nodes(), Vault::ANY)).await.expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.publish(publish("a")).await.expect("published");
    let cluster = Cluster::connect(world.nodes(), Vault::ANY, LIBRARY).await.expect("a server");
    let queue = engine.queue("q").await.expect("there").queue.0;
    let terms = Terms::new("q".into(), &Settings::default(), 0, 0);
    let nobody = ("nobody".to_owned(), Arc::default());
    let places = Places::new(
        cluster,
        (queue, of_q(&world).await),
        1,
        terms,
        nobody,
        std::time::Duration::from_secs(3_600),
    );
    let holder = Some((callers(&world).await.remove(0), 15_000));
    let (choice, granted) = (Choice::default(), Vec::new());
    let want = Leasing { max: 1, max_bytes: 1 << 20, term_ms: 0, holder, choice, granted };
    assert_eq!(places.lease(&want, long()).await.expect("leased").len(), 1);
    let mut consumer = engine.consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    engine.publish(publish("b")).await.expect("published");
    let known = consumer.next().await.expect("it comes");
    assert_eq!((known.count, &known.content.body[..]), (1, &b"b"[..]));
    let unknown = consumer.next().await.expect("it comes");
    assert_eq!((unknown.count, &unknown.content.body[..]), (2, &b"a"[..]));
    // What the process knows of stays where it is.
    assert_eq!(engine.settle(vec![known.receipt], overtake_lane::Outcome::Ack).await, Ok(vec![Ok(())]));
}

//! A queue in several places: one order over all of them, for every process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use overtake_lane::{Original, Outcome, Priority, Settings};
use overtake_peer::Vault;
use overtake_valkey::cluster::{Cluster, Nodes, Slot};
use overtake_valkey::functions::{Admission, Admit, Choice, How, LIBRARY, Leasing, Of, Said, Settle, Terms};
use overtake_valkey::places::{Given, Places};
use tokio::time::Instant;

use crate::story::long;
use crate::world::{Program, World, until};

const SWEEP: Duration = Duration::from_secs(3_600);

async fn open(nodes: Nodes, count: u32, caller: &str) -> Arc<Places> {
    open_on(connect(nodes).await, count, caller).await
}

async fn connect(nodes: Nodes) -> Arc<Cluster> {
    Cluster::connect(nodes, Vault::ANY, LIBRARY).await.expect("a cluster")
}

async fn open_on(cluster: Arc<Cluster>, count: u32, caller: &str) -> Arc<Places> {
    let terms = Terms::new("q".into(), &Settings::default(), 0, 0);
    let whose = (1, Of::queue("here", "/", "q"));
    let places =
        Places::new(cluster, whose, count, terms.clone(), (caller.to_owned(), Arc::default()), SWEEP);
    places
        .configure(terms, &|_| Some(1), (1, Said::Declared, &[]), long())
        .await
        .expect("configured")
        .expect("taken");
    places
}

fn message(priority: i32, name: &str) -> Admission {
    Admission {
        priority: Priority(priority),
        original: Original::Number(priority),
        id: Some(name.into()),
        key: None,
        key_weight: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes: name.len() as u32,
        content: name.as_bytes().to_vec().into(),
        origin: None,
        at: None,
        arrival: None,
    }
}

async fn publish(places: &Places, at: u32, priority: i32, name: &str) {
    let admit = Admit { messages: vec![message(priority, name)], tells: false };
    let told = places.ask(at, &admit, long()).await.expect("asked");
    told[0].expect("admitted");
}

fn want(max: u32) -> Leasing {
    let (choice, granted) = (Choice::default(), Vec::new());
    Leasing { max, max_bytes: 1 << 30, term_ms: 600_000, holder: None, choice, granted }
}

fn names(given: &[Given]) -> Vec<String> {
    let name = |given: &Given| {
        String::from_utf8_lossy(given.shown.content.as_deref().expect("content")).into_owned()
    };
    given.iter().map(name).collect()
}

async fn ack(places: &Places, given: &[Given]) {
    for one in given {
        let message = &one.shown.stored.message;
        let overtake_lane::State::Leased { lease, .. } = message.state else { panic!("it is leased") };
        let settle = Settle { how: How::By(Outcome::Ack), leases: vec![(message.seq, lease)] };
        assert_eq!(places.ask(one.place, &settle, long()).await, Ok(vec![true]));
    }
}

#[tokio::test]
async fn what_goes_next_goes_next_over_all_places() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let places = open(world.nodes(), 16, "one").await;
        let mut expected = Vec::new();
        for nth in 0..200_u32 {
            let priority = (nth * 7 % 10) as i32;
            let name = format!("{priority}-{nth:03}");
            publish(&places, nth * 5 % 16, priority, &name).await;
            expected.push((-priority, nth, name));
        }
        expected.sort();
        let mut got = Vec::new();
        while got.len() < expected.len() {
            let given = places.lease(&want(7), long()).await.expect("leased");
            got.extend(names(&given));
            ack(&places, &given).await;
        }
        assert_eq!(got, expected.into_iter().map(|(.., name)| name).collect::<Vec<_>>());
        let order = places.tally();
        assert_eq!((order.leased(), order.inversions_us.view().count), (200, 0));
    }
}

#[tokio::test]
async fn what_is_spread_over_places_is_claimed_at_several_of_them_at_once() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let places = open(world.nodes(), 16, "one").await;
        for nth in 0..200_u32 {
            publish(&places, nth % 16, 5, &format!("{nth:03}")).await;
        }
        let (mut got, mut leases) = (Vec::new(), 0);
        while got.len() < 200 {
            let given = places.lease(&want(50), long()).await.expect("leased");
            got.extend(names(&given));
            leases += 1;
        }
        assert!(got.is_sorted(), "{got:?}");
        // Of how many places it is to be the first waves find out.
        assert!(leases <= 12, "{leases}");
        let order = places.tally();
        assert_eq!((order.leased(), order.missed(), order.inversions_us.view().count), (200, 0, 0));
    }
}

#[tokio::test]
async fn what_places_gave_is_not_lost_where_another_does_not_answer() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let places = open(world.nodes(), 8, "one").await;
    for nth in 0..24_u32 {
        publish(&places, nth % 8, 5, &format!("{nth:02}")).await;
    }
    // It can be looked at, and nothing can be leased there.
    world.ask(0, "RENAME {1:3}:u:one {1:3}:kept").await;
    world.ask(0, "SET {1:3}:u:one nonsense").await;
    let mut got = Vec::new();
    let failed = loop {
        match places.lease_now(&want(50), long()).await {
            Ok(given) => got.extend(names(&given)),
            Err(why) => break why,
        }
    };
    assert!(failed.to_string().contains("WRONGTYPE"), "{failed}");
    let others = (0..24).filter(|nth| nth % 8 != 3).map(|nth| format!("{nth:02}"));
    assert_eq!(got, others.collect::<Vec<_>>());
    world.ask(0, "RENAME {1:3}:kept {1:3}:u:one").await;
    let given = places.lease_now(&want(50), long()).await.expect("leased");
    assert_eq!(names(&given), ["03", "11", "19"]);
}

#[tokio::test]
async fn who_waits_in_one_process_is_woken_by_what_another_publishes() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let (here, there) = (open(world.nodes(), 16, "here").await, open(world.nodes(), 16, "there").await);
        let waiting = tokio::spawn({
            let there = Arc::clone(&there);
            async move { there.lease(&want(1), long()).await }
        });
        publish(&here, 3, 5, "first").await;
        let given = waiting.await.expect("it ends").expect("leased");
        assert_eq!(names(&given), ["first"]);
        // It is given to nobody else.
        assert_eq!(here.lease(&want(1), Instant::now()).await.map(|given| given.len()), Ok(0));
        ack(&there, &given).await;
    }
}

#[tokio::test]
async fn what_is_due_in_a_place_wakes_who_waits() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let places = open(world.nodes(), 4, "one").await;
    let late = Admission { delay_ms: 50, ..message(9, "late") };
    places.ask(2, &Admit { messages: vec![late], tells: false }, long()).await.expect("asked")[0]
        .expect("admitted");
    let given = places.lease(&want(1), long()).await.expect("leased");
    assert_eq!(names(&given), ["late"]);
}

#[tokio::test]
async fn several_processes_give_each_message_once() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::cluster(program, 0, &[]).await;
    let mut takers = Vec::new();
    let publisher = open(world.nodes(), 8, "publisher").await;
    for nth in 0..300_u32 {
        publish(&publisher, nth % 8, (nth % 10) as i32, &nth.to_string()).await;
    }
    for process in 0..3 {
        let places = open(world.nodes(), 8, &format!("taker{process}")).await;
        takers.push(tokio::spawn(async move {
            let mut got = Vec::new();
            loop {
                // Nothing comes any more: what is there is taken at once.
                let given = places.lease(&want(3), Instant::now()).await.expect("leased");
                if given.is_empty() {
                    return got;
                }
                got.extend(names(&given));
                ack(&places, &given).await;
            }
        }));
    }
    let mut all = Vec::new();
    for taker in takers {
        all.extend(taker.await.expect("it ends"));
    }
    assert_eq!(all.len(), 300, "each once");
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), 300);
}

#[tokio::test]
async fn a_place_that_is_on_its_way_to_another_node_is_asked_when_it_is_there() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let cluster = connect(world.nodes()).await;
        let places = open_on(Arc::clone(&cluster), 1, "one").await;
        publish(&places, 0, 5, "a").await;
        let slot = Slot::of(b"{1:0}");
        let from = world.primary_of(0, slot).await.expect("held");
        let to = (from + 1) % 3;
        // Some of what the place is made of is there, and some is here.
        world.begin_move(slot, from, to).await;
        world.move_keys(slot, from, to, 2).await;
        let retried = || cluster.counts().retries;
        let before = retried();
        let ((), ()) = tokio::join!(publish(&places, 0, 9, "b"), async {
            until(async || retried() > before).await;
            while world.move_keys(slot, from, to, 2).await > 0 {}
            world.end_move(slot, from, to).await;
        });
        let given = places.lease(&want(3), long()).await.expect("leased");
        assert_eq!(names(&given), ["b", "a"], "{program:?}");
    }
}

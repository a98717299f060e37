//! The two halves of the proof: under faults nothing is broken that was promised; and where a confirm waits for no replica something is lost, and found out.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use overtake_valkey::cluster::Slot;
use redis::Value;
use tempfile::TempDir;

use crate::checker::{Rules, Verdict, judge};
use crate::consumer::{Consumer, consume};
use crate::history::{Event, story};
use crate::leaser::lease;
use crate::publisher::{PUBLISHERS, publish};
use crate::road::{OTHER_LOOPBACK, PORTS_ALONE, Road};
use crate::stage::{Address, MAX_ACTIVE, Stage};
use crate::support::Broker;
use crate::world::{Program, World, text};

/// How many messages, if `CLUSTER_MESSAGES` does not say.
const MESSAGES: u32 = 40_000;
/// Bytes of a body.
const BODY_LEN: usize = 256;
/// How long a node is silent before it counts as gone, milliseconds: less is too little on a machine that has two cores for all of this.
const NODE_TIMEOUT_MS: u32 = 3_000;
/// For how long a broker is cut off.
const CUT: Duration = Duration::from_secs(10);
/// Slots that move.
const MOVED: usize = 200;
/// Of those that hold something, so many.
const MOVED_FULL: usize = 8;

/// Longest that a message may be passed over, milliseconds: out to a broker that is given up 15 s after its last sign of life; or that knows nothing of it, and hears so twice; while its
/// primary falls.
const INVERSION_MOST_MS: u64 = 40_000;

/// A broker that is cut off gives its last sign of life up to 3 s before, and is given up 15 s after it. Half a second is more than a confirm and a delivery are on their ways.
const RULES: Rules =
    Rules { max_active: MAX_ACTIVE, lapse_us: 12_000_000, notice_us: 2_000_000, flight_us: 500_000 };

fn messages() -> u32 {
    let said = std::env::var("CLUSTER_MESSAGES").ok();
    said.map_or(MESSAGES, |said| said.parse().expect("CLUSTER_MESSAGES is a number"))
}

/// A cluster of three primaries with a replica each, and brokers on it.
struct Cast {
    world: World,
    brokers: Vec<Option<Broker>>,
    addresses: Vec<Address>,
    nodes: Vec<String>,
    replicas_acked: &'static str,
    dir: TempDir,
}

impl Cast {
    /// The last broker reaches the servers by way of the other address, if it has a road there.
    async fn begin(count: usize, replicas_acked: &'static str) -> Option<(Self, Road)> {
        let program = Program::all().into_iter().next_back()?;
        let world = World::cluster(program, 1, &PORTS_ALONE).await;
        let road = Road::to(world.servers.iter().map(|server| server.port));
        let nodes = |host: String| {
            let nodes: Vec<_> =
                world.servers.iter().map(|server| format!("{host}:{}", server.port)).collect();
            nodes.join(",")
        };
        let mut all = vec![nodes("127.0.0.1".to_owned()); count];
        all[count - 1] = nodes(OTHER_LOOPBACK.to_string());
        let dir = tempfile::tempdir().expect("a directory");
        let (brokers, addresses) = (Vec::new(), Vec::new());
        let mut cast = Self { world, brokers, addresses, nodes: all, replicas_acked, dir };
        cast.hurry().await;
        for number in 0..count {
            let broker = cast.start(number, &[]);
            cast.addresses.push(Address { amqp: broker.amqp.clone(), url: broker.url.clone() });
            cast.brokers.push(Some(broker));
        }
        Some((cast, road))
    }

    /// Who falls is to be missed soon.
    async fn hurry(&self) {
        for (at, _) in self.world.servers.iter().enumerate().filter(|(_, server)| server.is_running()) {
            self.world.ask(at, &format!("CONFIG SET cluster-node-timeout {NODE_TIMEOUT_MS}")).await;
        }
    }

    fn start(&self, number: usize, more: &[&str]) -> Broker {
        let engine = ["--engine", "cluster", "--engine-nodes", &self.nodes[number]];
        let acked = ["--engine-replicas-acked", self.replicas_acked];
        let dir = self.dir.path().join(format!("broker-{number}"));
        Broker::start_with(&dir, &[&engine[..], &acked, more].concat())
    }

    fn kill_broker(&mut self, number: usize) {
        self.brokers[number].take().expect("it runs").kill();
    }

    /// Where it was.
    fn start_broker_again(&mut self, number: usize) {
        let Address { amqp, url } = self.addresses[number].clone();
        let http = url.strip_prefix("http://").expect("a url").to_owned();
        self.brokers[number] = Some(self.start(number, &["--http", &http, "--amqp", &amqp]));
    }

    /// Of a primary, a replica takes over; what was killed comes back as the replica of that.
    async fn kill_primary(&mut self, at: usize, slot: Slot, asked: usize) {
        self.world.servers[at].kill();
        self.world.until_taken_over(asked, slot, at).await;
        self.world.servers[at].start();
        self.world.until_whole().await;
        self.hurry().await;
    }

    /// Moves slots that hold something, and those behind the first of them that do not.
    async fn reshard(&self, from: usize, to: usize) -> usize {
        let Value::Array(keys) = self.world.ask(from, "KEYS *").await else { panic!("no list") };
        let mut slots: Vec<_> = keys.into_iter().map(|key| Slot::of(text(key).as_bytes())).collect();
        slots.sort_unstable();
        slots.dedup();
        slots.truncate(MOVED_FULL);
        let first = slots.first().expect("it holds something").number();
        let empty = (first..).filter_map(Slot::new).filter(|slot| !slots.contains(slot));
        let empty: Vec<_> = empty.take(MOVED - slots.len()).collect();
        let mut moved = 0;
        for slot in slots.into_iter().chain(empty) {
            if self.world.primary_of(from, slot).await == Some(from) {
                self.world.move_slot(slot, from, to).await;
                moved += 1;
            }
        }
        moved
    }

    fn stop(self) {
        self.brokers.into_iter().flatten().for_each(Broker::stop);
    }
}

/// Of so many messages that are at fault it is said what happened to them.
const TOLD_MAX: usize = 5;

type Threads = Vec<JoinHandle<()>>;

fn publishers(stage: &Arc<Stage>) -> Threads {
    let one = |number| {
        let stage = Arc::clone(stage);
        std::thread::spawn(move || publish(&stage, number))
    };
    (0..PUBLISHERS).map(one).collect()
}

/// At each broker one of each kind, and two that lease at any.
fn consumers(stage: &Arc<Stage>) -> Threads {
    let mut threads = Vec::new();
    for number in 0..2 * stage.brokers.len() {
        let stage = Arc::clone(stage);
        let consumer =
            Consumer { number: number as u64, broker: number / 2, is_transactional: number % 2 == 1 };
        threads.push(std::thread::spawn(move || consume(&stage, consumer)));
    }
    for number in 0..2 {
        let stage = Arc::clone(stage);
        threads.push(std::thread::spawn(move || lease(&stage, number)));
    }
    threads
}

fn join(threads: Threads) {
    for thread in threads {
        thread.join().expect("it does not panic");
    }
}

/// When all is published: takes what is left, and judges. Answers also in which queues something stays.
fn end(stage: &Stage, consumers: Threads) -> (Verdict, Vec<String>) {
    let left = stage.drain();
    stage.end();
    join(consumers);
    let entries = stage.book.close();
    let verdict = judge(&entries, &RULES);
    println!("{verdict}");
    for message in verdict.at_fault().into_iter().take(TOLD_MAX) {
        println!("{}", story(&entries, message));
    }
    (verdict, left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_confirmed_is_kept_whatever_falls() {
    let Some((mut cast, road)) = Cast::begin(3, "1").await else { return };
    let stage = Arc::new(Stage::new(cast.addresses.clone(), messages(), BODY_LEN));
    let until = |hundredths| tokio::task::block_in_place(|| stage.until_confirmed(hundredths));
    let say = |what: &str| println!("{:>6} ms: {what}", stage.book.now_us() / 1_000);
    stage.declare();
    let (publishers, consumers) = (publishers(&stage), consumers(&stage));

    stage.release(30);
    until(5);
    say("a broker is killed");
    cast.kill_broker(0);
    until(15);
    cast.start_broker_again(0);
    say("it is there again");

    stage.release(50);
    until(30);
    say("a primary is killed");
    cast.kill_primary(0, Slot::new(0).expect("a slot"), 1).await;
    say("its replica has taken over, and it follows that");

    stage.release(70);
    until(50);
    say("slots move");
    let moved = cast.reshard(1, 2).await;
    say(&format!("{moved} have moved"));

    stage.release(100);
    until(70);
    say("a broker is cut off");
    stage.book.write(Event::Cut { broker: 2 });
    road.cut();
    tokio::task::block_in_place(|| stage.book.until(CUT, |_| false));
    road.mend();
    stage.book.write(Event::Mended { broker: 2 });
    say("it is there again");

    tokio::task::block_in_place(|| join(publishers));
    say("all is confirmed");
    let (verdict, left) = tokio::task::block_in_place(|| end(&stage, consumers));
    say("all is done");
    cast.stop();
    assert_eq!(left, Vec::<String>::new(), "nothing is left in the queues");
    assert_eq!(verdict.faults(), Vec::<String>::new());
    assert_eq!(verdict.confirmed, messages() as usize);
    let inverted = verdict.inversions_us.len();
    assert!(inverted * 20 <= verdict.confirmed, "{inverted} inversions of {}", verdict.confirmed);
    let longest = verdict.inversion_longest_ms();
    assert!(longest <= INVERSION_MOST_MS, "the longest inversion is of {longest} ms");
}

/// Bytes of a body that fill what a system keeps for a reader who does not read.
const LONG_BODY_LEN: usize = 8_192;
/// Enough of those.
const LONG_MESSAGES: u32 = 12_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_confirm_waits_for_no_replica_messages_are_lost_and_found_out() {
    let Some((mut cast, _road)) = Cast::begin(1, "0").await else { return };
    let stage = Arc::new(Stage::new(cast.addresses.clone(), LONG_MESSAGES, LONG_BODY_LEN));
    stage.declare();
    let publishers = publishers(&stage);
    stage.release(10);
    tokio::task::block_in_place(|| stage.until_confirmed(10));
    // The replica hears nothing, and what waits for it is with the primary when that falls.
    cast.world.servers[3].pause();
    stage.release(100);
    tokio::task::block_in_place(|| join(publishers));
    cast.world.servers[0].kill();
    cast.world.servers[3].resume();
    cast.world.until_taken_over(1, Slot::new(0).expect("a slot"), 0).await;
    let consumers = consumers(&stage);
    // A lease whose end was lost with the rest may stay for as long as its broker is there.
    let (verdict, _) = tokio::task::block_in_place(|| end(&stage, consumers));
    cast.stop();
    assert_eq!(verdict.confirmed, LONG_MESSAGES as usize);
    assert!(!verdict.lost.is_empty(), "nothing was lost, so nobody knows whether the checker would see it");
}

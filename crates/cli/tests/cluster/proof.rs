//! The two halves of the proof: under faults nothing is broken that was promised; and where a confirm waits for no replica something is lost, and found out.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use overtake_valkey::cluster::Slot;

use crate::cast::{Cast, network};
use crate::checker::{Rules, Verdict, judge};
use crate::consumer::{Consumer, consume};
use crate::history::{Event, story};
use crate::leaser::lease;
use crate::network::Network;
use crate::publisher::{PUBLISHERS, publish};
use crate::stage::{MAX_ACTIVE, Stage};

/// How many messages, if `CLUSTER_MESSAGES` does not say.
const MESSAGES: u32 = 24_000;
/// For how long a broker is cut off.
const CUT: Duration = Duration::from_secs(10);

/// Longest that a message may be passed over, milliseconds: out to a broker that is given up 15 s after its last sign of life; or that knows nothing of it, and hears so twice; while its
/// primary falls.
const INVERSION_MOST_MS: u64 = 40_000;

/// A broker that is cut off gives its last sign of life up to 3 s before, and is given up 15 s after it; the next one may come a second after its first answer. Half a second is more than a
/// confirm and a delivery are on their ways.
const RULES: Rules = Rules {
    max_active: MAX_ACTIVE,
    lapse_us: 11_000_000,
    notice_us: 2_000_000,
    flight_us: 500_000,
    away_us: (0, 0),
};

fn messages() -> u32 {
    let said = std::env::var("CLUSTER_MESSAGES").ok();
    said.map_or(MESSAGES, |said| said.parse().expect("CLUSTER_MESSAGES is a number"))
}

/// The last broker's clients are still there, and its servers are not.
fn cut_off(stage: &Stage, network: &Network) {
    let number = stage.brokers.len() - 1;
    let broker = u8::try_from(number).expect("there are few");
    let begun = Instant::now();
    stage.book.write(Event::Cut { broker });
    network.cut();
    while begun.elapsed() < CUT {
        assert!(!network.is_whole(), "nothing passes all the time");
    }
    network.mend();
    // What was on its way is sent again after a pause, or over a new connection; until then it is as if it were cut off.
    stage.until_answers(number);
    stage.book.write(Event::Mended { broker });
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
fn end(stage: &Stage, consumers: Threads, away_us: (u64, u64)) -> (Verdict, Vec<String>) {
    let left = stage.drain();
    stage.end();
    join(consumers);
    let entries = stage.book.close();
    let verdict = judge(&entries, &Rules { away_us, ..RULES });
    println!("{verdict}");
    for message in verdict.at_fault().into_iter().take(TOLD_MAX) {
        println!("{}", story(&entries, message));
    }
    (verdict, left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_confirmed_is_kept_whatever_falls() {
    let Some(mut cast) = Cast::begin(3, "1", network()).await else { return };
    let stage = Arc::new(Stage::new(cast.addresses.clone(), messages()));
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
    let away = stage.book.now_us();
    cast.kill_primary(0, Slot::new(0).expect("a slot"), 1).await;
    // Messages of its replica go to the next who take.
    let away_us = (away, stage.book.now_us() + RULES.flight_us);
    say("its replica has taken over, and it follows that");

    stage.release(70);
    until(50);
    say("slots move");
    let moved = cast.reshard(1, 2).await;
    say(&format!("{moved} have moved"));

    stage.release(100);
    until(70);
    if let Some(network) = cast.network_of(2) {
        say("a broker is cut off");
        tokio::task::block_in_place(|| cut_off(&stage, &network));
        say("it is there again");
    }

    tokio::task::block_in_place(|| join(publishers));
    say("all is confirmed");
    let (verdict, left) = tokio::task::block_in_place(|| end(&stage, consumers, away_us));
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

/// Messages where some are to be lost: most of them are published while nobody copies.
const LOSSY_MESSAGES: u32 = 3_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_confirm_waits_for_no_replica_messages_are_lost_and_found_out() {
    let Some(mut cast) = Cast::begin(1, "0", None).await else { return };
    let stage = Arc::new(Stage::new(cast.addresses.clone(), LOSSY_MESSAGES));
    stage.declare();
    let publishers = publishers(&stage);
    stage.release(10);
    tokio::task::block_in_place(|| stage.until_confirmed(10));
    // The replica is paused and its connection closed, so only the primary has what is published from now on.
    cast.world.servers[3].pause();
    cast.world.ask(0, "CLIENT KILL TYPE replica").await;
    stage.release(100);
    tokio::task::block_in_place(|| join(publishers));
    cast.world.servers[0].kill();
    cast.world.servers[3].resume();
    cast.world.until_taken_over(1, Slot::new(0).expect("a slot"), 0).await;
    let consumers = consumers(&stage);
    // A lease whose end was lost with the rest may stay for as long as its broker is there.
    let (verdict, _) = tokio::task::block_in_place(|| end(&stage, consumers, (0, 0)));
    cast.stop();
    assert_eq!(verdict.confirmed, LOSSY_MESSAGES as usize);
    assert!(!verdict.lost.is_empty(), "nothing was lost, so nobody knows whether the checker would see it");
}

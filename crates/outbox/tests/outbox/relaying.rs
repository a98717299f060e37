//! The relay, with sinks that fail, are lost, and come back.

use std::time::Duration;

use overtake_outbox::{Database, Outcome, Relay, Retry, Settings, Watch};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::conformance;
use crate::sinks::{sink, takes_all};
use crate::world::{World, claim};

conformance!(relaying:
    what_is_written_is_published_in_order_and_marked
    a_row_that_is_refused_is_set_aside_with_the_reason_and_blocks_nobody
    a_row_that_fails_is_tried_as_often_as_is_said_and_then_given_up
    a_sink_that_is_lost_costs_no_attempt_and_nothing_is_lost
    a_relay_that_stops_gives_back_what_it_has_not_tried
    a_crash_between_publish_and_mark_repeats_that_batch_and_no_more
    the_order_of_a_key_is_kept_when_a_row_of_it_fails
);

struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    watch: Watch,
}

fn run(database: Database, sink: Box<crate::sinks::FakeSink>, settings: Settings) -> Running {
    let relay = Relay::new(database, sink, settings);
    let watch = relay.watch();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(relay.run(async move {
        let _ = stopped.await;
    }));
    Running { stop, task, watch }
}

impl Running {
    /// Until it has written down that so many rows are published.
    async fn until_published(&self, rows: u64) {
        while self.watch.seen().published < rows {
            tokio::task::yield_now().await;
        }
    }

    async fn stop(self) -> Watch {
        self.stop.send(()).expect("it runs");
        self.task.await.expect("it ends");
        self.watch
    }
}

fn settings() -> Settings {
    let retry =
        Retry { initial: Duration::from_millis(20), max: Duration::from_millis(50), ..Retry::default() };
    Settings { id: "here".into(), retry, ..Settings::default() }
}

/// Until a row is in a state.
async fn until(world: &World, states: &str) {
    while world.states().await != states {
        tokio::task::yield_now().await;
    }
}

async fn what_is_written_is_published_in_order_and_marked(world: World) {
    let database = world.outbox_with(3, false).await;
    world.rows("a:-50 b:-50 c:0 d:50").await;
    let (fake, mut seen) = sink(takes_all);
    let running = run(database, fake, Settings { batch: 3, ..settings() });
    assert_eq!(seen.next(4).await, "d c a b");
    world.rows("e").await;
    assert_eq!(seen.next(1).await, "e");
    let counted = running.stop().await.seen();
    assert_eq!(world.states().await, "a:published b:published c:published d:published e:published");
    assert_eq!((counted.published, counted.overtaken, counted.released), (5, 0, 0));
    assert!(counted.claims.counts.iter().sum::<u64>() >= 3 && counted.has_sink && counted.has_database);
    let times = "SELECT COUNT(*) FROM outbox WHERE published_at IS NULL OR locked_by IS NOT NULL";
    assert_eq!(world.find(times).await, "0");
}

async fn a_row_that_is_refused_is_set_aside_with_the_reason_and_blocks_nobody(world: World) {
    let database = world.outbox().await;
    world.rows("a b:50 c").await;
    let (fake, mut seen) = sink(|rows| {
        let refused =
            |id: &str| if id == "b" { Outcome::Refused("it is too long".into()) } else { Outcome::Published };
        rows.iter().map(|row| refused(&row.message_id)).collect()
    });
    let running = run(database, fake, settings());
    assert_eq!(seen.next(3).await, "b! a c");
    running.stop().await;
    assert_eq!(world.states().await, "a:published b:abandoned c:published");
    let found = world.find("SELECT attempts, last_error FROM outbox WHERE message_id = 'b'").await;
    assert_eq!(found, "1 it is too long");
}

async fn a_row_that_fails_is_tried_as_often_as_is_said_and_then_given_up(world: World) {
    let database = world.outbox().await;
    world.rows("a b").await;
    let (fake, mut seen) = sink(|rows| {
        let one = |id: &str| {
            if id == "a" { Outcome::Failed("the queue is full".into()) } else { Outcome::Published }
        };
        rows.iter().map(|row| one(&row.message_id)).collect()
    });
    let retry = Retry { attempts: 3, ..settings().retry };
    let running = run(database, fake, Settings { retry, ..settings() });
    assert_eq!(seen.next(4).await, "a! b a! a!");
    until(&world, "a:abandoned b:published").await;
    let found = world.find("SELECT attempts, last_error FROM outbox WHERE message_id = 'a'").await;
    assert_eq!(found, "3 the queue is full (attempt 3, the last)");
    // People put it right.
    seen.do_with_each(takes_all);
    let again = world.again().await;
    assert_eq!(again.retry(&overtake_outbox::Filter::default()).await, Ok(1));
    assert_eq!(seen.next(1).await, "a");
    let counted = running.stop().await.seen();
    assert_eq!((counted.published, counted.failed, counted.abandoned), (2, 2, 1));
    assert_eq!(world.states().await, "a:published b:published");
}

async fn a_sink_that_is_lost_costs_no_attempt_and_nothing_is_lost(world: World) {
    let database = world.outbox_with(2, false).await;
    world.rows("a b c d").await;
    let (fake, mut seen) = sink(|rows| rows.iter().map(|_| Outcome::Lost("gone".into())).collect());
    seen.unready.lock().expect("nobody panicked").push_back("not yet".to_owned());
    let running = run(database, fake, Settings { batch: 2, ..settings() });
    // Not there, then lost with a batch; nothing is published before it is there again.
    assert_eq!(seen.next(3).await, "- a! b!");
    seen.do_with_each(takes_all);
    let mut rest: Vec<String> = Vec::new();
    while rest.len() < 4 {
        let one = seen.next(1).await;
        if !one.ends_with('!') {
            rest.push(one);
        }
    }
    assert_eq!(rest.join(" "), "a b c d");
    let counted = running.stop().await.seen();
    assert_eq!((counted.published, counted.failed), (4, 0));
    assert!(counted.released >= 2, "{counted:?}");
    assert_eq!(world.find("SELECT MAX(attempts) FROM outbox").await, "0");
}

async fn a_relay_that_stops_gives_back_what_it_has_not_tried(world: World) {
    let database = world.outbox_with(1, false).await;
    world.rows("a b c d").await;
    let (begun, has_begun) = oneshot::channel();
    let (go, may_go) = std::sync::mpsc::sync_channel::<()>(1);
    let mut begun = Some(begun);
    let (fake, mut seen) = sink(move |rows| {
        if let Some(begun) = begun.take() {
            begun.send(()).expect("somebody waits");
            tokio::task::block_in_place(|| may_go.recv().expect("it may go on"));
        }
        takes_all(rows)
    });
    let running = run(database, fake, Settings { batch: 1, ..settings() });
    has_begun.await.expect("it publishes");
    // The next claim is made meanwhile, and no other.
    until(&world, "a:processing b:processing c:pending d:pending").await;
    let Running { stop, task, watch } = running;
    stop.send(()).expect("it runs");
    go.send(()).expect("it waits");
    task.await.expect("it ends");
    // What was on its way is waited for; what was claimed behind it went or was given back.
    assert_eq!(seen.next(1).await, "a");
    let states = world.states().await;
    assert!(states.starts_with("a:published ") && !states.contains("processing"), "{states}");
    assert!(states.ends_with(" c:pending d:pending"), "{states}");
    let counted = watch.seen();
    assert_eq!(counted.published + counted.released, 2, "{counted:?}");
}

async fn a_crash_between_publish_and_mark_repeats_that_batch_and_no_more(world: World) {
    let database = world.outbox_with(2, false).await;
    world.rows("a b c d").await;
    // A relay that publishes two, and dies before it says so.
    let dead = overtake_outbox::Claim { token: "dead/1".into(), lock: Duration::ZERO };
    let published = database.claim(&dead).await.expect("a claim");
    assert_eq!(published.len(), 2);
    let (fake, mut seen) = sink(takes_all);
    let running = run(database, fake, settings());
    let mut all: Vec<String> = seen.next(4).await.split(' ').map(str::to_owned).collect();
    all.sort();
    assert_eq!(all, ["a", "b", "c", "d"], "each once more or for the first time");
    until(&world, "a:published b:published c:published d:published").await;
    while running.watch.seen().expired != 2 {
        tokio::task::yield_now().await;
    }
    running.stop().await;
}

async fn the_order_of_a_key_is_kept_when_a_row_of_it_fails(world: World) {
    let database = world.outbox_with(500, true).await;
    world.rows("a1:0:a a2:0:a b1:0:b a3:0:a x").await;
    let mut fails = 2;
    let (fake, mut seen) = sink(move |rows| {
        let mut one = |id: &str| {
            if id == "a1" && fails > 0 {
                fails -= 1;
                return Outcome::Failed("not now".into());
            }
            Outcome::Published
        };
        rows.iter().map(|row| one(&row.message_id)).collect()
    });
    let running = run(database, fake, Settings { keeps_key_order: true, ..settings() });
    let all = seen.next(7).await;
    let of_a: Vec<&str> = all.split(' ').filter(|id| id.starts_with('a')).collect();
    assert_eq!(of_a, ["a1!", "a1!", "a1", "a2", "a3"], "{all}");
    assert!(all.starts_with("a1! b1 x"), "{all}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_started_again_is_found_again() {
    let Some(mut server) = crate::servers::Server::postgres() else { return };
    let world = World::postgres_of(&server).await;
    let database = world.outbox().await;
    let (fake, mut seen) = sink(takes_all);
    let running = run(database, fake, settings());
    world.rows("a").await;
    assert_eq!(seen.next(1).await, "a");
    running.until_published(1).await;
    server.restart();
    let written = async {
        loop {
            if world.try_rows("b").await.is_ok() {
                return;
            }
        }
    };
    written.await;
    assert_eq!(seen.next(1).await, "b");
    running.until_published(2).await;
    let counted = running.stop().await.seen();
    assert_eq!((counted.published, counted.failed), (2, 0));
    assert_eq!(world.again().await.claim(&claim("x")).await.expect("a claim"), []);
}

//! Queues with more messages than one call looks at or touches.

use std::sync::Arc;

use overtake_engine::{
    Browse, BrowsedMessage, Content, Engine, Filter, LeaseRequest, LeasedMessage, NewMessage, PageCursor,
    Select, Target,
};
use overtake_lane::{BrowseOrder, Order, PartitionMode, Partitions, PickerKind, Settings};
use overtake_valkey::engine::ClusterEngine;
use overtake_valkey::functions::LOOKS_MAX;

use crate::processes::processes;
use crate::world::{Program, World};

const MESSAGES: usize = 10 * LOOKS_MAX as usize;
const LANES: usize = 4;

fn in_places(count: u16) -> Settings {
    let mode = if count == 1 { PartitionMode::None } else { PartitionMode::Hash };
    Settings { partitions: Partitions { mode, count, bands: Vec::new() }, ..Settings::default() }
}

/// A queue of which each message says when it came; every tenth has the key `k`.
async fn deep(world: &World, settings: Settings) -> Arc<ClusterEngine> {
    let engine = processes(world, 1).await.remove(0);
    engine.declare_queue("q", settings).await.expect("declared");
    for from in (0..MESSAGES).step_by(64) {
        let message = |at: usize| NewMessage {
            to: Target::Queue("q".into()),
            priority: ((at % LANES) as i64).into(),
            key: (at.is_multiple_of(10)).then(|| "k".into()),
            content: Content { body: at.to_string().into(), ..Content::default() },
            ..NewMessage::default()
        };
        let some = (from..MESSAGES.min(from + 64)).map(message).collect();
        engine.publish(some).await.expect("published");
    }
    engine
}

fn number(message: &BrowsedMessage) -> usize {
    String::from_utf8_lossy(&message.content.body).parse().expect("a number")
}

/// All pages, one after the other.
async fn pages(engine: &ClusterEngine, browse: Browse) -> Vec<usize> {
    let (mut all, mut cursor) = (Vec::new(), browse.cursor.clone());
    loop {
        let page = engine.browse("q", Browse { cursor, ..browse.clone() }).await.expect("a page");
        assert!(page.messages.len() <= browse.limit);
        all.extend(page.messages.iter().map(number));
        cursor = page.next;
        if cursor.is_none() {
            return all;
        }
    }
}

fn of(filter: Filter, order: BrowseOrder, limit: usize) -> Browse {
    Browse { filter, order, limit, ..Browse::default() }
}

#[tokio::test]
async fn pages_of_a_deep_queue_follow_each_other_in_every_order() {
    let Some(program) = Program::all().into_iter().next() else { return };
    for count in [1, 3] {
        let world = World::one(program, &[]);
        let engine = deep(&world, in_places(count)).await;
        // One broker's messages of a step are in one partition, so that their order is that of the clock.
        let published: Vec<usize> = (0..MESSAGES).collect();
        let next = of(Filter::default(), BrowseOrder::Published, 400);
        assert_eq!(pages(&engine, next).await, published);
        let newest = of(Filter::default(), BrowseOrder::Newest, 400);
        assert_eq!(pages(&engine, newest).await, published.iter().rev().copied().collect::<Vec<_>>());
        let mut urgent = published.clone();
        urgent.sort_by_key(|at| std::cmp::Reverse(at % LANES));
        let dispatch = of(Filter::default(), BrowseOrder::Dispatch, 400);
        assert_eq!(pages(&engine, dispatch).await, urgent);
        let keyed = Filter { key: Some("k".to_owned()), ..Filter::default() };
        urgent.retain(|at| at.is_multiple_of(10));
        assert_eq!(pages(&engine, of(keyed.clone(), BrowseOrder::Dispatch, 50)).await, urgent);
        let counted = Browse { with_total: true, ..of(keyed, BrowseOrder::Newest, 1) };
        let page = engine.browse("q", counted).await.expect("a page");
        assert_eq!(page.total, Some(MESSAGES as u64 / 10));
        engine.close().await;
    }
}

#[tokio::test]
async fn a_page_under_a_picker_that_takes_turns_is_as_that_of_a_shallow_queue() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let weights = [("3".to_owned(), 3), ("1".to_owned(), 2)].into();
    let settings = Settings { picker: PickerKind::Weighted(weights), ..in_places(1) };
    let engine = deep(&world, settings).await;
    let page = of(Filter::default(), BrowseOrder::Dispatch, 14);
    let page = engine.browse("q", page).await.expect("a page");
    let numbers: Vec<usize> = page.messages.iter().map(number).collect();
    let turns = [3, 7, 11, 2, 1, 5, 0, 15, 19, 23, 6, 9, 13, 4];
    assert_eq!(numbers, turns);
    // A turn goes on on the next page, wherever a page ends.
    for limit in [1, 2, 3, 5] {
        let all = pages(&engine, of(Filter::default(), BrowseOrder::Dispatch, limit)).await;
        assert_eq!((&all[..14], all.len()), (&turns[..], MESSAGES), "{limit}");
    }
    engine.close().await;
}

#[tokio::test]
async fn a_page_reads_no_more_of_a_deep_queue_than_it_may_need() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let engine = deep(&world, in_places(1)).await;
    let sent = async || sent(&world).await;
    for order in [BrowseOrder::Dispatch, BrowseOrder::Published, BrowseOrder::Newest] {
        let before = sent().await;
        let browse = Browse { with_total: true, ..of(Filter::default(), order, 5) };
        let page = engine.browse("q", browse).await.expect("a page");
        assert_eq!((page.messages.len(), page.total), (5, Some(MESSAGES as u64)));
        let bytes = sent().await - before;
        assert!(bytes < MESSAGES * 20, "{order:?}: {bytes} bytes for five of {MESSAGES} messages");
    }
    let last = engine.browse("q", of(Filter::default(), BrowseOrder::Newest, 1)).await.expect("a page");
    let before = sent().await;
    let one = engine.message("q", &last.messages[0].message.id).await.expect("it is there");
    assert_eq!(number(&one), MESSAGES - 1);
    let in_lane = (MESSAGES / LANES) as u64 - 1;
    assert_eq!((one.position, one.position_in_priority), (Some(in_lane), Some(in_lane)));
    let bytes = sent().await - before;
    assert!(bytes < MESSAGES * 20, "{bytes} bytes for one of {MESSAGES} messages");
    engine.close().await;
}

/// What the server sent for something.
async fn sent(world: &World) -> usize {
    let stats = world.text(0, "INFO stats").await;
    let line = stats.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:"));
    line.expect("it is counted").parse().expect("a number")
}

#[tokio::test]
async fn a_page_in_dispatch_order_far_back_costs_as_much_as_the_first() {
    let Some(program) = Program::all().into_iter().next() else { return };
    for count in [1, 3] {
        let world = World::one(program, &[]);
        let engine = deep(&world, in_places(count)).await;
        let (mut cursor, mut numbers) = (None, Vec::new());
        loop {
            let before = sent(&world).await;
            let page = Browse { cursor, ..of(Filter::default(), BrowseOrder::Dispatch, 5) };
            let page = engine.browse("q", page).await.expect("a page");
            let bytes = sent(&world).await - before;
            assert!(bytes < MESSAGES * 20, "{bytes} bytes after {} messages", numbers.len());
            numbers.extend(page.messages.iter().map(number));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let mut urgent: Vec<usize> = (0..MESSAGES).collect();
        urgent.sort_by_key(|at| std::cmp::Reverse(at % LANES));
        assert_eq!(numbers, urgent);
        engine.close().await;
    }
}

#[tokio::test]
async fn a_filter_that_takes_nothing_ends_in_dispatch_order_after_its_looks_and_goes_on() {
    const LOOKS: usize = 300;
    let Some(program) = Program::all().into_iter().next() else { return };
    for count in [1, 3] {
        let world = World::one(program, &[]);
        let engine = deep(&world, in_places(count)).await;
        let nothing = Filter { key: Some("none".to_owned()), ..Filter::default() };
        let mut browse = Browse { looks: Some(LOOKS), ..of(nothing, BrowseOrder::Dispatch, 5) };
        let mut looked_at = Vec::new();
        loop {
            let page = engine.browse("q", browse.clone()).await.expect("a page");
            assert!(page.messages.is_empty());
            looked_at.push(page.looked_at as usize);
            browse.cursor = page.next;
            if browse.cursor.is_none() {
                break;
            }
        }
        assert!(looked_at.iter().all(|looks| *looks <= LOOKS), "{looked_at:?}");
        assert_eq!(looked_at.iter().sum::<usize>(), MESSAGES, "each once: {looked_at:?}");
        engine.close().await;
    }
}

#[tokio::test]
async fn a_count_that_takes_more_looks_than_the_request_has_is_not_told() {
    let Some(program) = Program::all().into_iter().next() else { return };
    for count in [1, 3] {
        let world = World::one(program, &[]);
        let engine = deep(&world, in_places(count)).await;
        let keyed = Filter { key: Some("k".to_owned()), ..Filter::default() };
        for (filter, looks, expect) in [
            (keyed.clone(), Some(500), None),
            (keyed.clone(), Some(10 * MESSAGES), Some(MESSAGES as u64 / 10)),
            (keyed, None, Some(MESSAGES as u64 / 10)),
            // Gauges tell.
            (Filter::default(), Some(1), Some(MESSAGES as u64)),
        ] {
            for order in [BrowseOrder::Dispatch, BrowseOrder::Newest] {
                let counted = Browse { looks, with_total: true, ..of(filter.clone(), order, 1) };
                let page = engine.browse("q", counted).await.expect("a page");
                assert_eq!(page.total, expect, "{looks:?} {order:?}");
            }
        }
        engine.close().await;
    }
}

#[tokio::test]
async fn a_cursor_that_counts_what_was_shown_goes_on_after_so_many() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let engine = deep(&world, in_places(1)).await;
    let mut urgent: Vec<usize> = (0..MESSAGES).collect();
    urgent.sort_by_key(|at| std::cmp::Reverse(at % LANES));
    let cursor = Some(PageCursor::Passed(700));
    let rest = Browse { cursor, looks: Some(100), ..of(Filter::default(), BrowseOrder::Dispatch, 400) };
    assert_eq!(pages(&engine, rest).await, urgent[700..]);
    engine.close().await;
}

#[tokio::test]
async fn pages_of_one_status_after_another_follow_each_other_in_their_order() {
    const COUNT: usize = 300;
    let Some(program) = Program::all().into_iter().next() else { return };
    for count in [1, 3] {
        let world = World::one(program, &[]);
        let engine = processes(&world, 1).await.remove(0);
        engine.declare_queue("q", in_places(count)).await.expect("declared");
        // What comes later is due sooner.
        let message = |at: usize| NewMessage {
            to: Target::Queue("q".into()),
            delay_ms: if at.is_multiple_of(3) { 10_000_000 - 1_000 * at as u64 } else { 0 },
            content: Content { body: at.to_string().into(), ..Content::default() },
            ..NewMessage::default()
        };
        for from in (0..COUNT).step_by(10) {
            engine.publish((from..from + 10).map(message).collect()).await.expect("published");
        }
        let leased = engine.lease(LeaseRequest::new("q".into(), 50)).await.expect("leased");
        let numbers = |leased: &LeasedMessage| {
            String::from_utf8_lossy(&leased.content.body).parse::<usize>().expect("a number")
        };
        let mut expect: Vec<usize> = leased.iter().map(numbers).collect();
        expect.extend(
            (0..COUNT).filter(|at| !at.is_multiple_of(3) && !expect.contains(at)).collect::<Vec<_>>(),
        );
        expect.extend((0..COUNT).rev().filter(|at| at.is_multiple_of(3)));
        for looks in [None, Some(1_000), Some(70), Some(7)] {
            for limit in [7, 1_000] {
                let all = Browse { looks, ..of(Filter::default(), BrowseOrder::Dispatch, limit) };
                let seen = pages(&engine, all).await;
                // Of several partitions leases are in no order.
                let from = if count == 1 { 0 } else { leased.len() };
                assert_eq!(seen[from..], expect[from..], "{looks:?} {limit}");
                assert_eq!(seen.len(), COUNT, "{looks:?} {limit}");
            }
        }
        engine.close().await;
    }
}

#[tokio::test]
async fn a_message_of_a_deep_queue_in_places_says_how_many_go_before_it() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let engine = deep(&world, in_places(3)).await;
    let page = engine.browse("q", of(Filter::default(), BrowseOrder::Dispatch, 1_000)).await.expect("a page");
    for at in [0, 1, 7, 500, 999] {
        let one = engine.message("q", &page.messages[at].message.id).await.expect("it is there");
        let in_lane = at % (MESSAGES / LANES);
        assert_eq!(number(&one), number(&page.messages[at]));
        assert_eq!((one.position, one.position_in_priority), (Some(at as u64), Some(in_lane as u64)));
    }
    engine.close().await;
}

#[tokio::test]
async fn a_filter_chooses_among_all_messages_of_a_deep_queue_once() {
    let Some(program) = Program::all().into_iter().next() else { return };
    for count in [1, 3] {
        let world = World::one(program, &[]);
        let engine = deep(&world, in_places(count)).await;
        let keyed = Filter { key: Some("k".to_owned()), ..Filter::default() };
        let removed = engine.change("q", Select::Matching(keyed), overtake_engine::Change::Remove).await;
        assert_eq!(removed, Ok(MESSAGES as u64 / 10));
        let left = pages(&engine, of(Filter::default(), BrowseOrder::Published, 1_000)).await;
        assert_eq!(left, (0..MESSAGES).filter(|at| !at.is_multiple_of(10)).collect::<Vec<_>>());
        engine.close().await;
    }
}

#[tokio::test]
async fn when_a_deep_queue_gets_other_lanes_urgent_messages_go_first_and_none_is_lost() {
    let Some(program) = Program::all().into_iter().next() else { return };
    for count in [1, 3] {
        let world = World::one(program, &[]);
        let engine = deep(&world, Settings { order: Order::Fifo, ..in_places(count) }).await;
        engine.declare_queue("q", in_places(count)).await.expect("it may");
        let body = MESSAGES.to_string().into();
        let urgent = NewMessage {
            to: Target::Queue("q".into()),
            priority: 9.into(),
            content: Content { body, ..Content::default() },
            ..NewMessage::default()
        };
        engine.publish(vec![urgent]).await.expect("published");
        loop {
            let lanes = engine.queue("q").await.expect("it is there").lanes;
            let ready: u64 = lanes.iter().map(|lane| lane.ready).sum();
            assert_eq!(ready, MESSAGES as u64 + 1, "{lanes:?}");
            let known = ["fifo", "0", "1", "2", "3"];
            assert!(
                lanes.iter().all(|lane| lane.ready == 0 || lane.level == 9 || known.contains(&&*lane.lane))
            );
            if lanes.iter().all(|lane| &*lane.lane != "fifo") {
                break;
            }
        }
        let first = engine.get("q", true).await.expect("asked").expect("it is ready");
        assert_eq!(first.message.content.body, MESSAGES.to_string());
        let mut urgent: Vec<usize> = (0..MESSAGES).collect();
        urgent.sort_by_key(|at| std::cmp::Reverse(at % LANES));
        assert_eq!(pages(&engine, of(Filter::default(), BrowseOrder::Dispatch, 400)).await, urgent);
        engine.close().await;
    }
}

//! Claims, marks, and what comes back.

use std::time::Duration;

use overtake_client::outbox::Event;
use overtake_outbox::{Claim, Cleaning, Filter, Marks, Status};

use crate::conformance;
use crate::world::{LOCK, World, claim, ids, keys};

conformance!(claims:
    rows_are_claimed_by_priority_and_then_as_they_were_written_over_the_whole_table
    a_row_has_what_was_written
    two_relays_share_a_table_and_take_nothing_twice
    rows_of_a_relay_that_died_come_back_when_its_lock_is_over
    a_mark_of_a_claim_that_has_lost_its_rows_changes_nothing
    a_failed_row_waits_for_its_time_and_counts_its_attempts
    an_abandoned_row_that_is_reset_can_be_claimed_and_has_all_its_attempts
    a_released_row_keeps_its_place
    what_others_left_without_a_time_comes_back
    old_rows_are_cleaned_in_batches
    what_waits_and_why_can_be_seen
    what_a_dead_relay_left_is_found_and_put_right_where_that_is_asked_for
);

async fn rows_are_claimed_by_priority_and_then_as_they_were_written_over_the_whole_table(world: World) {
    let database = world.outbox_with(3, false).await;
    world.rows("a:-50 b:-50 c:0 d:-100 e:100 f:0 g:50").await;
    let mut order = Vec::new();
    for number in 0..3 {
        order.push(ids(&database.claim(&claim(&number.to_string())).await.expect("a claim")));
    }
    assert_eq!(order, ["e g c", "f a b", "d"]);
    // What is written meanwhile goes before what is left.
    world.rows("x:-50 y:-100 z:50").await;
    assert_eq!(ids(&database.claim(&claim("4")).await.expect("a claim")), "z x y");
    assert_eq!(database.claim(&claim("5")).await.expect("a claim"), []);
}

async fn a_row_has_what_was_written(world: World) {
    let database = world.outbox().await;
    let event = Event::new("order", "OrderPlaced", r#"{"name":"Zoë's \"☃\""}"#).metadata(r#"{"trace":"1"}"#);
    world.write(&[event.id("m-1").key("k-1").priority(i32::MIN)]).await;
    let row = database.claim(&claim("1")).await.expect("a claim").remove(0);
    let data: serde_json::Value = serde_json::from_slice(&row.data).expect("JSON");
    assert_eq!(data["name"], "Zoë's \"☃\"");
    let metadata: serde_json::Value = serde_json::from_str(&row.metadata.expect("some")).expect("JSON");
    assert_eq!(metadata["trace"], "1");
    assert_eq!((row.stream.as_deref(), row.kind.as_str()), (Ok("order"), "OrderPlaced"));
    assert_eq!((row.message_id.as_str(), row.partition_key.as_deref()), ("m-1", Some("k-1")));
    assert_eq!((row.priority, row.attempts, row.max_attempts), (i32::MIN, 0, None));
}

async fn two_relays_share_a_table_and_take_nothing_twice(world: World) {
    let one = world.outbox_with(7, false).await;
    let other = world.again().await;
    let events: Vec<_> =
        (0..400).map(|number| Event::new("s", "T", "{}").id(format!("{number:03}"))).collect();
    world.write(&events).await;
    let drain = |database: overtake_outbox::Database, name: &'static str| async move {
        let mut all = Vec::new();
        for number in 0.. {
            let rows = match database.claim(&claim(&format!("{name}/{number}"))).await {
                Ok(rows) => rows,
                // A database may ask to be asked again.
                Err(overtake_outbox::Error::Declined(_)) => continue,
                Err(error) => panic!("{error}"),
            };
            if rows.is_empty() {
                break;
            }
            all.extend(rows.into_iter().map(|row| row.message_id));
        }
        all
    };
    let (mine, others) = tokio::join!(tokio::spawn(drain(one, "a")), tokio::spawn(drain(other, "b")));
    let (mine, others) = (mine.expect("it ends"), others.expect("it ends"));
    assert!(mine.is_sorted() && others.is_sorted(), "each has its own in order");
    let mut all = [mine, others].concat();
    all.sort();
    let expected: Vec<_> = (0..400).map(|number| format!("{number:03}")).collect();
    assert_eq!(all, expected);
}

async fn rows_of_a_relay_that_died_come_back_when_its_lock_is_over(world: World) {
    let database = world.outbox().await;
    world.rows("a b").await;
    let died = Claim { token: "dead/1".to_owned(), lock: Duration::ZERO };
    assert_eq!(database.claim(&died).await.expect("a claim").len(), 2);
    world.rows("c:50").await;
    assert_eq!(ids(&database.claim(&claim("alive/1")).await.expect("a claim")), "c");
    assert_eq!(database.return_expired().await, Ok(2));
    assert_eq!(ids(&database.claim(&claim("alive/2")).await.expect("a claim")), "a b");
    assert_eq!(database.return_expired().await, Ok(0), "those have a lock");
}

async fn a_mark_of_a_claim_that_has_lost_its_rows_changes_nothing(world: World) {
    let database = world.outbox().await;
    world.rows("a b c d").await;
    let slow = Claim { token: "slow/1".to_owned(), lock: Duration::ZERO };
    let rows = keys(&database.claim(&slow).await.expect("a claim"));
    database.return_expired().await.expect("it can");
    let mut marks = Marks { published: vec![rows[0].clone()], ..Marks::default() };
    marks.failed.push((rows[1].clone(), "no".to_owned(), Duration::ZERO));
    marks.abandoned.push((rows[2].clone(), "never".to_owned()));
    marks.released.push(rows[3].clone());
    assert_eq!(database.mark("slow/1", &marks).await, Ok(0));
    assert_eq!(world.states().await, "a:pending b:pending c:pending d:pending");
    // Nor where the same relay has them by another claim.
    database.claim(&claim("slow/2")).await.expect("a claim");
    assert_eq!(database.mark("slow/1", &marks).await, Ok(0));
    assert_eq!(database.mark("slow/2", &marks).await, Ok(4));
    assert_eq!(world.states().await, "a:published b:failed c:abandoned d:pending");
    assert_eq!(database.mark("slow/2", &marks).await, Ok(0), "the same again does nothing");
    let locked = "SELECT COUNT(*) FROM outbox WHERE locked_by IS NOT NULL OR locked_until IS NOT NULL";
    assert_eq!(world.find(locked).await, "0");
}

async fn a_failed_row_waits_for_its_time_and_counts_its_attempts(world: World) {
    let database = world.outbox().await;
    world.rows("a b").await;
    let rows = keys(&database.claim(&claim("1")).await.expect("a claim"));
    let failed = |at: usize, wait| (rows[at].clone(), format!("why \u{0} {at}"), wait);
    let marks = Marks { failed: vec![failed(0, LOCK), failed(1, Duration::ZERO)], ..Marks::default() };
    assert_eq!(database.mark("1", &marks).await, Ok(2));
    assert_eq!(
        world.find("SELECT message_id, attempts, last_error FROM outbox ORDER BY id").await,
        "a 1 why  0\nb 1 why  1"
    );
    assert_eq!(
        database.claim(&claim("2")).await.expect("a claim"),
        [],
        "nothing is due before it was put back"
    );
    assert_eq!(database.return_due().await, Ok(1));
    let again = database.claim(&claim("3")).await.expect("a claim");
    assert_eq!((ids(&again).as_str(), again[0].attempts), ("b", 1));
    assert_eq!(world.states().await, "a:failed b:processing");
}

async fn an_abandoned_row_that_is_reset_can_be_claimed_and_has_all_its_attempts(world: World) {
    let database = world.outbox().await;
    world.rows("a b c:7").await;
    let rows = keys(&database.claim(&claim("1")).await.expect("a claim"));
    let abandoned = rows.iter().map(|key| (key.clone(), "the sink refuses it".to_owned())).collect();
    let marks = Marks { abandoned, ..Marks::default() };
    database.mark("1", &marks).await.expect("marked");
    assert_eq!(database.return_due().await, Ok(0));
    let filter = Filter { message_ids: vec!["b".into()], ..Filter::default() };
    assert_eq!(database.retry(&filter).await, Ok(1));
    let again = database.claim(&claim("2")).await.expect("a claim");
    assert_eq!((ids(&again).as_str(), again[0].attempts), ("b", 0));
    // By hand, as people do.
    world.run("UPDATE outbox SET status = 'pending' WHERE message_id = 'a'").await;
    assert_eq!(ids(&database.claim(&claim("3")).await.expect("a claim")), "a");
    let none = Filter { reason: Some("lost".into()), ..Filter::default() };
    assert_eq!(database.retry(&none).await, Ok(0));
    let some = Filter {
        reason: Some("refuses".into()),
        priority: Some(7),
        stream: Some("customer".into()),
        ..Filter::default()
    };
    assert_eq!(database.retry(&some).await, Ok(1));
    assert_eq!(world.states().await, "a:processing b:processing c:pending");
}

async fn a_released_row_keeps_its_place(world: World) {
    let database = world.outbox_with(2, false).await;
    world.rows("a b c").await;
    let rows = keys(&database.claim(&claim("1")).await.expect("a claim"));
    let marks = Marks { released: rows, ..Marks::default() };
    assert_eq!(database.mark("1", &marks).await, Ok(2));
    let again = database.claim(&claim("2")).await.expect("a claim");
    assert_eq!((ids(&again).as_str(), again[0].attempts), ("a b", 0));
}

async fn what_others_left_without_a_time_comes_back(world: World) {
    let database = world.outbox().await;
    world.rows("a b c").await;
    world.run("UPDATE outbox SET status = 'processing' WHERE message_id = 'a'").await;
    world.run("UPDATE outbox SET status = 'failed' WHERE message_id = 'b'").await;
    assert_eq!(database.return_expired().await, Ok(0));
    assert_eq!(database.return_due().await, Ok(0));
    assert_eq!(database.return_undated().await, Ok(2));
    assert_eq!(ids(&database.claim(&claim("1")).await.expect("a claim")), "a b c");
}

async fn old_rows_are_cleaned_in_batches(world: World) {
    let database = world.outbox().await;
    world.rows("a b c d e f g").await;
    let rows = keys(&database.claim(&claim("1")).await.expect("a claim"));
    let abandoned = rows[5..].iter().map(|key| (key.clone(), String::new())).collect();
    let marks = Marks { published: rows[..5].to_vec(), abandoned, ..Marks::default() };
    database.mark("1", &marks).await.expect("marked");
    assert_eq!(database.clean(Status::Published, LOCK, 2).await, Ok(0), "they are young");
    assert_eq!(database.uncleaned(Status::Published, LOCK).await, Ok(0));
    assert_eq!(database.uncleaned(Status::Published, Duration::ZERO).await, Ok(5));
    let mut cleaned = Vec::new();
    for _ in 0..4 {
        cleaned.push(database.clean(Status::Published, Duration::ZERO, 2).await.expect("cleaned"));
    }
    assert_eq!(cleaned, [2, 2, 1, 0]);
    assert_eq!(world.states().await, "f:abandoned g:abandoned");
    assert_eq!(database.clean(Status::Abandoned, LOCK, 9).await, Ok(0));
    assert_eq!(database.clean(Status::Abandoned, Duration::ZERO, 9).await, Ok(2));
}

async fn what_waits_and_why_can_be_seen(world: World) {
    let database = world.outbox_with(4, false).await;
    world.rows("a:50 b:50 c:0 d:0 e:-50").await;
    let rows = keys(&database.claim(&claim("relay/1")).await.expect("a claim"));
    let failed = rows[1..3].iter().map(|key| (key.clone(), "full".to_owned(), LOCK)).collect();
    let marks = Marks { published: rows[..1].to_vec(), failed, ..Marks::default() };
    database.mark("relay/1", &marks).await.expect("marked");
    let lag = database.lag().await.expect("it can be seen");
    let counts: Vec<_> =
        lag.iter().map(|lag| (lag.priority, lag.pending, lag.processing, lag.failed)).collect();
    assert_eq!(counts, [(50, 0, 0, 1), (0, 0, 1, 1), (-50, 1, 0, 0)]);
    assert!(lag.iter().all(|lag| lag.oldest_s.is_some_and(|age| (0.0..600.0).contains(&age))), "{lag:?}");
    let held = database.held().await.expect("it can be seen");
    assert_eq!((held.len(), held[0].by.as_str(), held[0].rows), (1, "relay/1", 1));
    let left = held[0].left_s.expect("a lock");
    assert!((0.0..=600.0).contains(&left), "{left}");
    let reasons = database.reasons().await.expect("it can be seen");
    assert_eq!((reasons.len(), reasons[0].reason.as_str(), reasons[0].rows), (1, "full", 2));
    let filter = Filter { status: vec![Status::Failed], ..Filter::default() };
    let shown = database.show(&filter, 10).await.expect("it can be seen");
    assert_eq!(shown.iter().map(|row| row.get("message_id")).collect::<Vec<_>>(), [Some("b"), Some("c")]);
    assert_eq!((shown[0].get("attempts"), shown[0].get("last_error")), (Some("1"), Some("full")));
}

async fn what_a_dead_relay_left_is_found_and_put_right_where_that_is_asked_for(world: World) {
    let database = world.outbox_with(3, false).await;
    world.rows("a b c d e").await;
    let dead = Claim { token: "dead/1".to_owned(), lock: Duration::ZERO };
    let rows = keys(&database.claim(&dead).await.expect("a claim"));
    let marks = Marks { published: vec![rows[0].clone()], ..Marks::default() };
    database.mark("dead/1", &marks).await.expect("marked");
    database.claim(&claim("alive/1")).await.expect("a claim");
    let cleaning = Cleaning { published_after: Some(Duration::ZERO), ..Cleaning::default() };
    let found = database.reconcile(&cleaning, false).await.expect("it can be seen");
    assert_eq!((found.gone.len(), found.gone[0].by.as_str(), found.gone[0].rows), (1, "dead/1", 2));
    assert_eq!((found.published, found.abandoned, found.returned, found.cleaned), (1, 0, 0, 0));
    assert_eq!(world.states().await, "a:published b:processing c:processing d:processing e:processing");
    let fixed = database.reconcile(&cleaning, true).await.expect("it can be done");
    assert_eq!((fixed.returned, fixed.cleaned), (2, 1));
    assert_eq!(world.states().await, "b:pending c:pending d:processing e:processing");
    let standing = database.status().await.expect("it can be seen");
    assert_eq!((standing.lag[0].pending, standing.held.len(), standing.reasons.len()), (2, 1, 0));
}

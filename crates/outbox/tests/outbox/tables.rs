//! Tables: ours, made and looked at; anybody else's, mapped; hints; the order of keys.

use std::time::Duration;

use overtake_client::outbox::Dialect;
use overtake_outbox::{Columns, Database, Error, Init, Marks, Only, StreamOf, Table};

use crate::conformance;
use crate::world::{World, claim, ids, keys};

conformance!(tables:
    a_table_is_made_once_and_found_complete_after_that
    a_table_without_an_index_is_told_so_and_not_changed
    everything_that_is_missing_or_wrong_is_named_in_one_go
    the_table_of_another_library_is_mapped
    what_python_has_pickled_is_read_as_json
    the_streams_of_the_newest_rows_are_told_each_once
    rows_of_a_key_go_one_after_the_other_where_that_is_asked_for
    a_change_is_told_where_the_database_tells
);

async fn a_table_is_made_once_and_found_complete_after_that(world: World) {
    let mut database = world.mapped(Table::default(), 500, false).await;
    assert_eq!(database.wrong(), ["there is no table `outbox`: `overtake relay init` makes it"]);
    assert_eq!(database.init(true).await, Ok(Init::Made));
    assert_eq!(database.init(true).await, Ok(Init::Complete));
    assert_eq!(world.again().await.lacks(true), [""; 0]);
    // What is printed can be run, also twice.
    for statement in database.schema(true) {
        world.run(&statement).await;
    }
}

async fn a_table_without_an_index_is_told_so_and_not_changed(world: World) {
    world.outbox().await;
    let on = if world.dialect == Dialect::MySql { " ON outbox" } else { "" };
    world.run(&format!("DROP INDEX outbox_pending{on}")).await;
    let mut database = world.again().await;
    let Ok(Init::Lacks(lacks)) = database.init(true).await else { panic!("it lacks an index") };
    assert_eq!(lacks.len(), 1, "{lacks:?}");
    world.run(&lacks[0]).await;
    assert_eq!(world.again().await.init(true).await, Ok(Init::Complete));
}

async fn everything_that_is_missing_or_wrong_is_named_in_one_go(world: World) {
    world.run("CREATE TABLE outbox (id INTEGER PRIMARY KEY, message_id VARCHAR(255), stream VARCHAR(255), type VARCHAR(255), data INTEGER, \
               metadata VARCHAR(255), priority INTEGER, partition_key VARCHAR(255), status VARCHAR(32), attempts INTEGER)").await;
    let wrong = Database::connect_checked(&world.address(), Table::default(), 500, false)
        .await
        .expect_err("it is none");
    let Error::Invalid(text) = &wrong else { panic!("{wrong}") };
    for name in [
        "next_attempt_at",
        "locked_by",
        "locked_until",
        "last_error",
        "created_at",
        "published_at",
        "abandoned_at",
    ] {
        let said = format!("there is no column `{name}` (setting `columns.{name}`)");
        assert!(text.contains(&said), "{text}");
    }
    assert!(text.contains("the column `data` is of the type int"), "{text}");
}

/// As PyPI's protean 0.18 makes it: random ids, the order in `created_at`, the stream deep in JSON, a row for each broker.
async fn the_table_of_another_library_is_mapped(world: World) {
    let (id, json, time) = match world.dialect {
        Dialect::Postgres => ("uuid", "jsonb", "timestamp"),
        Dialect::MySql => {
            ("VARCHAR(255) CHARACTER SET latin1 COLLATE latin1_general_ci", "JSON", "DATETIME(6)")
        }
        Dialect::Sqlite => ("VARCHAR(255)", "JSON", "DATETIME"),
    };
    world.run(&format!(
        "CREATE TABLE outbox (id {id} NOT NULL PRIMARY KEY, message_id VARCHAR(255) NOT NULL, stream_name VARCHAR(255), type VARCHAR(255), \
         data {json}, metadata_ {json}, created_at {time}, published_at {time}, retry_count INTEGER DEFAULT 0, last_processed_at {time}, \
         last_error {json}, status VARCHAR(32), max_retries INTEGER DEFAULT 3, next_retry_at {time}, locked_until {time}, \
         locked_by VARCHAR(128), partition_key VARCHAR(255), priority INTEGER DEFAULT 0, target_broker VARCHAR(128) NOT NULL)"
    )).await;
    let row = |number: u32, at: &str, broker: &str, metadata: &str| {
        format!(
            "INSERT INTO outbox (id, message_id, type, data, metadata_, created_at, status, target_broker) VALUES \
             ('00000000-0000-0000-0000-00000000000{number}', 'm{number}', 'T', '{{}}', '{metadata}', '{at}', 'NEW', '{broker}')"
        )
    };
    let metadata = r#"{"domain": {"stream_category": "shop::order"}}"#;
    for (number, at, broker, metadata) in [
        (1, "2026-11-23 12:00:02.000000", "default", metadata),
        (2, "2026-11-23 12:00:01.000000", "default", metadata),
        (3, "2026-11-23 12:00:00.000000", "other", metadata),
        (4, "2026-11-23 12:00:03.000000", "default", "{}"),
    ] {
        world.run(&row(number, at, broker, metadata)).await;
    }
    let name = |text: &str| Some(text.to_owned());
    let pointer = "/domain/stream_category".to_owned();
    let mut table = Table {
        columns: Columns {
            stream: StreamOf::Pointer { column: "metadata_".into(), pointer },
            metadata: name("metadata_"),
            attempts: "retry_count".into(),
            max_attempts: name("max_retries"),
            next_attempt_at: "next_retry_at".into(),
            abandoned_at: None,
            ..Columns::default()
        },
        order: vec!["created_at".into()],
        only: vec![("target_broker".into(), Only::Text("default".into()))],
        ..Table::default()
    };
    table.words.pending = "NEW".into();
    let mut database =
        Database::connect_checked(&world.address(), table, 500, false).await.expect("it is an outbox");
    let Ok(Init::Lacks(lacks)) = database.init(false).await else { panic!("it has no indexes of ours") };
    for statement in lacks {
        world.run(&statement).await;
    }
    let rows = database.claim(&claim("1")).await.expect("a claim");
    assert_eq!(ids(&rows), "m2 m1 m4", "in the order of creation, those of the other broker not");
    assert_eq!((rows[0].stream.as_deref(), rows[0].max_attempts), (Ok("shop::order"), Some(3)));
    assert!(rows[2].stream.is_err(), "{rows:?}");
    let rows = keys(&rows);
    let marks = Marks {
        published: vec![rows[0].clone()],
        failed: vec![(rows[1].clone(), "the \"sink\" is full".to_owned(), Duration::ZERO)],
        abandoned: vec![(rows[2].clone(), "no stream".to_owned())],
        released: Vec::new(),
    };
    assert_eq!(database.mark("1", &marks).await, Ok(3));
    assert_eq!(world.states().await, "m1:failed m2:published m3:NEW m4:abandoned");
    let error = world.find("SELECT last_error FROM outbox WHERE message_id = 'm1'").await;
    let error: serde_json::Value = serde_json::from_str(&error).expect("JSON, as the column wants it");
    assert_eq!(error["message"], "the \"sink\" is full");
    assert_eq!(database.return_due().await, Ok(1));
    let again = database.claim(&claim("2")).await.expect("a claim");
    assert_eq!((ids(&again).as_str(), again[0].attempts), ("m1", 1));
    assert_eq!(database.retry(&overtake_outbox::Filter::default()).await, Ok(1));
    let lag = database.lag().await.expect("it can be seen");
    assert_eq!((lag[0].pending, lag[0].processing), (1, 1));
    assert_eq!(database.streams().await.expect("they can be seen"), ["shop::order"]);
}

/// `pickle.dumps({"domain": {"stream_category": "order", "version": 1}}, 5)`.
const PICKLED: &str = "80059537000000000000007d948c06646f6d61696e947d94288c0f73747265616d5f63617465676f7279948c056f72646572948c0776657273696f6e944b0175732e";

async fn what_python_has_pickled_is_read_as_json(world: World) {
    let (key, bytes, time, literal) = match world.dialect {
        Dialect::Postgres => ("bigint", "bytea", "timestamptz", format!("'\\x{PICKLED}'")),
        Dialect::MySql => ("BIGINT", "BLOB", "DATETIME(6)", format!("X'{PICKLED}'")),
        Dialect::Sqlite => ("INTEGER", "BLOB", "TEXT", format!("X'{PICKLED}'")),
    };
    world.run(&format!(
        "CREATE TABLE outbox (id {key} NOT NULL PRIMARY KEY, data VARCHAR(255), metadata_ {bytes}, status VARCHAR(32), attempts INTEGER DEFAULT 0, \
         next_attempt_at {time}, locked_until {time}, locked_by VARCHAR(128))"
    )).await;
    world
        .run(&format!(
            "INSERT INTO outbox (id, data, metadata_, status) VALUES (1, '{{}}', {literal}, 'pending')"
        ))
        .await;
    let pointer = "/domain/stream_category".to_owned();
    let columns = Columns {
        stream: StreamOf::Pointer { column: "metadata_".into(), pointer },
        metadata: Some("metadata_".into()),
        message_id: None,
        kind: None,
        priority: None,
        partition_key: None,
        last_error: None,
        created_at: None,
        published_at: None,
        abandoned_at: None,
        ..Columns::default()
    };
    let table = Table { columns, ..Table::default() };
    let database =
        Database::connect_checked(&world.address(), table, 500, false).await.expect("it is an outbox");
    let rows = database.claim(&claim("1")).await.expect("a claim");
    assert_eq!(rows[0].stream.as_deref(), Ok("order"));
    let json = Some(r#"{"domain":{"stream_category":"order","version":1}}"#);
    assert_eq!(rows[0].metadata.as_deref(), json);
    let shown = database.show(&overtake_outbox::Filter::default(), 1).await.expect("it can be seen");
    assert_eq!((shown[0].get("metadata"), shown[0].get("stream")), (json, json));
    assert_eq!(database.streams().await.expect("they can be seen"), ["order"]);
}

async fn the_streams_of_the_newest_rows_are_told_each_once(world: World) {
    let database = world.outbox().await;
    assert_eq!(database.streams().await.expect("they can be seen"), [""; 0]);
    let event = |stream| overtake_client::outbox::Event::new(stream, "Placed", "{}");
    world.write(&["order", "customer", "order"].map(event)).await;
    assert_eq!(database.streams().await.expect("they can be seen"), ["customer", "order"]);
}

async fn rows_of_a_key_go_one_after_the_other_where_that_is_asked_for(world: World) {
    let database = world.outbox_with(2, true).await;
    world.rows("a1:0:a a2:0:a a3:0:a b1:0:b x:0 a9:50:a").await;
    let first = database.claim(&claim("1")).await.expect("a claim");
    assert_eq!(ids(&first), "a9 a1", "a more urgent one of the same key overtakes");
    // Another relay: what follows the first of its key waits, and nothing else does.
    assert_eq!(ids(&database.claim(&claim("2")).await.expect("a claim")), "b1 x");
    assert_eq!(database.claim(&claim("3")).await.expect("a claim"), []);
    let key = |at: usize| first[at].key.clone();
    let marks = Marks {
        published: vec![key(0)],
        failed: vec![(key(1), "no".to_owned(), Duration::ZERO)],
        ..Marks::default()
    };
    database.mark("1", &marks).await.expect("marked");
    assert_eq!(database.claim(&claim("4")).await.expect("a claim"), [], "it waits for the one that failed");
    database.return_due().await.expect("put back");
    assert_eq!(ids(&database.claim(&claim("5")).await.expect("a claim")), "a1 a2");
    // What died with its relay goes again; what follows waits for both of them.
    world.run("UPDATE outbox SET locked_until = created_at WHERE message_id = 'a1'").await;
    assert_eq!(database.return_expired().await, Ok(1));
    assert_eq!(ids(&database.claim(&claim("6")).await.expect("a claim")), "a1");
}

async fn a_change_is_told_where_the_database_tells(world: World) {
    let database = world.outbox().await;
    if world.dialect == Dialect::MySql {
        // It tells nothing; who relays there looks again and again.
        return;
    }
    let mut changes = database.changes();
    // The first is that it hears from now on.
    changes.next().await;
    let heard = tokio::spawn(async move {
        changes.next().await;
        changes
    });
    world.rows("a").await;
    let mut changes = heard.await.expect("it is told");
    let again = tokio::spawn(async move { changes.next().await });
    world.rows("b c").await;
    again.await.expect("it is told again");
}

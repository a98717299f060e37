//! How the databases go about a claim, with a thousand rows that wait and with a million.

use overtake_outbox::{Database, Table};

use crate::world::{World, claim, ids};

const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;

/// Many low ones, and a few that are urgent in between.
async fn fill(world: &World, from: u64, to: u64) {
    let columns = "INSERT INTO outbox (message_id, stream, type, data, priority)";
    let row = "'customer', 'CustomerUpdated', '{}'";
    let urgent = to - 10;
    let sql = match world.dialect {
        overtake_client::outbox::Dialect::Postgres => format!(
            "{columns} SELECT n::text, {row}, CASE WHEN n > {urgent} THEN 50 ELSE -50 END FROM generate_series({from}, {to}) AS n"
        ),
        overtake_client::outbox::Dialect::MySql => format!(
            "{columns} SELECT CAST(seq AS CHAR), {row}, IF(seq > {urgent}, 50, -50) FROM seq_{from}_to_{to}"
        ),
        overtake_client::outbox::Dialect::Sqlite => format!(
            "WITH RECURSIVE s(n) AS (SELECT {from} UNION ALL SELECT n + 1 FROM s WHERE n < {to}) \
             {columns} SELECT CAST(n AS TEXT), {row}, CASE WHEN n > {urgent} THEN 50 ELSE -50 END FROM s"
        ),
    };
    world.run(&sql).await;
}

fn first_line(plan: &str, words: &str) -> String {
    plan.lines()
        .find(|line| line.contains(words))
        .unwrap_or_else(|| panic!("no {words} in\n{plan}"))
        .to_owned()
}

/// The number behind a word.
fn number(line: &str, before: &str) -> f64 {
    let rest = line.split(before).nth(1).unwrap_or_else(|| panic!("no {before} in {line}"));
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().expect("a number")
}

/// Pages that a claim touches in PostgreSQL; its plan must read the index in its order, and nothing else.
async fn pages(world: &World, database: &Database, settings: &str) -> f64 {
    let claim = database.claim_statement().replace("$1", "'x'").replace("$2", "1000");
    let explain = format!(
        "BEGIN; {settings} EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) {claim}; ROLLBACK"
    );
    let plan = world.find(&explain).await;
    assert!(!plan.contains("Sort") && !plan.contains("Seq Scan"), "{plan}");
    let scan = first_line(&plan, "Index Scan using outbox_pending");
    assert!((number(&scan, "rows=") - 100.0).abs() < 0.5, "it reads what it takes: {scan}");
    number(&first_line(&plan, "Buffers:"), "hit=")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_postgresql_a_claim_of_a_million_rows_reads_as_many_pages_as_of_a_thousand() {
    let Some(world) = World::postgres().await else { return };
    let database = world.outbox_with(100, false).await;
    let ours = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; \
                SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;";
    fill(&world, 1, FEW).await;
    // Whoever reads a row first after its commit writes that down in it.
    world.find("SELECT COUNT(*) FROM outbox").await;
    let few = pages(&world, &database, ours).await;
    fill(&world, FEW + 1, MANY).await;
    world.find("SELECT COUNT(*) FROM outbox").await;
    // Before there are any statistics, and after.
    let many = pages(&world, &database, ours).await;
    world.run("ANALYZE outbox").await;
    let known = pages(&world, &database, ours).await;
    assert!(many < few * 1.5 && known < few * 1.5, "{few} pages, then {many}, then {known}");
    // Nor does it need our settings where statistics are there: the index is the best way by far.
    pages(&world, &database, "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;").await;
    let rows = database.claim(&claim("1")).await.expect("a claim");
    assert!(ids(&rows).starts_with("991 992 "), "{}", ids(&rows));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_sqlite_a_claim_reads_its_index_in_order() {
    let Some(world) = World::sqlite().await else { return };
    let database = world.outbox_with(100, false).await;
    for (from, to) in [(1, FEW), (FEW + 1, MANY)] {
        fill(&world, from, to).await;
        let plan = world.find(&format!("EXPLAIN QUERY PLAN {}", database.claim_statement())).await;
        assert!(plan.contains("USING INDEX outbox_pending") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
    assert!(ids(&database.claim(&claim("1")).await.expect("a claim")).starts_with("991 992 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_mariadb_a_claim_reads_its_index_in_order() {
    let Some(world) = World::mysql().await else { return };
    let database: Database = world.mapped(Table::default(), 100, false).await;
    for statement in database.schema(false) {
        world.run(&statement).await;
    }
    let database = world.mapped(Table::default(), 100, false).await;
    for (from, to) in [(1, FEW), (FEW + 1, MANY)] {
        fill(&world, from, to).await;
        let plan = world.find(&format!("ANALYZE FORMAT=JSON {}", database.claim_statement())).await;
        assert!(plan.contains("\"key\": \"outbox_pending\"") && !plan.contains("filesort"), "{plan}");
        let read = number(&first_line(&plan, "\"r_rows\""), "\"r_rows\": ");
        assert!(read <= 100.0, "it reads what it takes:\n{plan}");
    }
    assert!(ids(&database.claim(&claim("1")).await.expect("a claim")).starts_with("991 992 "));
}

//! The table of features in `docs/clients.md`, and which tests show each row in Rust.

use std::collections::BTreeSet;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clients.md");
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/client");

/// A row of the table, and its tests.
const ROWS: &[(&str, &[&str])] = &[
    (
        "connect",
        &["losing::a_first_connection_that_cannot_be_is_told", "secure::a_name_is_seen_at_the_broker"],
    ),
    ("declare a queue", &["losing::a_broker_that_was_killed_and_has_lost_its_queues_finds_them_declared"]),
    ("declare an exchange, bind", &["publishing::an_exchange_knows_who_gets_it"]),
    (
        "scope",
        &["priority::what_a_message_says_goes_before_the_scope_and_the_innermost_scope_before_the_others"],
    ),
    (
        "a task that is spawned keeps the scope",
        &["priority::a_scope_ends_with_a_panic_and_is_no_other_tasks"],
    ),
    ("which priority holds here", &["priority::a_scope_ends_with_a_panic_and_is_no_other_tasks"]),
    ("publish, and know that it is durable", &["publishing::what_is_confirmed_is_there_after_kill_9"]),
    ("publish many, confirmed together", &["publishing::what_is_confirmed_is_there_after_kill_9"]),
    ("publish without waiting for each", &["publishing::whoever_publishes_more_than_the_window_waits"]),
    ("consume with a window", &["consuming::the_most_urgent_comes_first_and_no_more_than_the_window_is_out"]),
    (
        "ack, nack (put back), reject (dead-letter)",
        &["consuming::ack_ends_it_nack_puts_it_back_and_reject_lets_it_die"],
    ),
    ("handle", &["handling::what_a_handler_returns_says_what_becomes_of_the_message"]),
    (
        "lease, extend, settle over HTTP",
        &["leasing::leases_are_settled_one_by_one", "leasing::a_lease_is_extended_as_long_as_it_is_there"],
    ),
    ("request and reply", &["replies::whoever_asks_gets_the_answer_to_what_it_asked"]),
    ("reconnect", &["losing::what_was_not_confirmed_is_published_again_and_consumers_go_on"]),
    ("exactly once", &["losing::with_numbers_what_is_published_again_is_there_once"]),
    (
        "TLS, client certificates",
        &["secure::streams_and_requests_are_under_tls_and_a_certificate_may_log_in"],
    ),
    (
        "read streams of Redis or Valkey, their urgent lane first",
        &["streams::streams_are_read_with_their_urgent_lane_first"],
    ),
    (
        "handle entries of streams",
        &["streams::what_a_stream_holds_is_handled_in_its_scope_and_a_failure_is_tried_again"],
    ),
    ("dead letters of streams", &["streams::dead_letters_of_streams_are_replayed_to_their_own_lane"]),
    (
        "write events into an outbox table, in the application's own transaction",
        &["outbox::an_event_is_there_if_its_transaction_is_and_has_the_priority_of_its_scope"],
    ),
    ("errors by type", &["publishing::one_that_is_refused_is_told_and_the_others_go"]),
];

#[test]
fn each_row_has_its_test_and_each_of_these_tests_is_there() {
    let docs = std::fs::read_to_string(DOCS).expect(DOCS);
    let table = docs.split("| feature |").nth(1).expect("the table").lines().skip(2);
    let rows: BTreeSet<&str> = table.take_while(|line| line.starts_with('|')).map(feature).collect();
    let shown: BTreeSet<&str> = ROWS.iter().map(|(row, _)| *row).collect();
    assert_eq!(rows, shown);
    for (module, test) in
        ROWS.iter().flat_map(|(_, tests)| *tests).map(|test| test.split_once("::").expect("a path"))
    {
        let path = format!("{TESTS}/{module}.rs");
        let text = std::fs::read_to_string(&path).expect(&path);
        assert!(text.contains(&format!("#[test]\nfn {test}() {{")), "{module}::{test}");
    }
}

/// The first column, up to what explains it.
fn feature(row: &str) -> &str {
    let cell = row.split('|').nth(1).expect("a cell").trim();
    let end = [": ", "; ", ", by "].iter().filter_map(|mark| cell.find(mark)).min();
    &cell[..end.unwrap_or(cell.len())]
}

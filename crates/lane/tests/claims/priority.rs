//! Points 1 to 5 and 7: the order, the schemes, strictness, put back, reprioritise, remove.

use expect_test::expect;

use crate::story::check;

// ---- 1: one number, larger is more urgent ----

#[test]
fn the_more_urgent_goes_first_and_among_equals_the_older() {
    check("", "publish a:5 b:9 c:5 d:0 e:9 · lease 9", expect!["b e a c d"]);
}

#[test]
fn a_priority_beats_any_age_where_a_packed_score_of_1e12_and_milliseconds_does_not() {
    // Seed 2 scores `band·10¹² + unix_ms`; unix_ms has had 13 digits since 2001, so band 1 of "now" lies in band 2's range.
    // Here the story starts in 2026: an old background message and a fresh critical one, years apart.
    let now: u64 = crate::story::START.0;
    assert!(now / 1_000_000_000_000 == 1, "the clock alone fills the band's digit");
    check(
        r#""scheme":"named""#,
        "publish old:background · +315360000000ms · publish new:critical also:background · lease 3",
        expect!["new old also"],
    );
}

#[test]
fn a_priority_beats_any_age_where_a_packed_score_of_1e13_and_microseconds_does_not() {
    // Seed 5 takes level·10¹³ from microseconds: one level is worth 10¹³ µs = 115.7 days, so it is ageing and no band.
    let days_115_7_ms: u64 = 10_000_000_000_000 / 1_000;
    assert_eq!(days_115_7_ms / 86_400_000, 115);
    check("", "publish old:4 · +10000001000ms · publish new:5 · lease 2", expect!["new old"]);
}

#[test]
fn messages_of_one_millisecond_keep_their_order_where_a_double_runs_out_of_digits() {
    // 10¹⁷-odd, as a double: neighbours are 16 apart, so scores of one moment collapse. A sequence does not.
    #[expect(clippy::float_cmp, reason = "that they are equal is the point")]
    {
        assert_eq!(1_732_678_400_000_001_f64 + 90_000_000_000_000_000_f64, 91_732_678_400_000_000_f64);
    }
    check("", "publish a:9 b:9 c:9 d:9 e:9 f:9 g:9 h:9 · lease 9", expect!["a b c d e f g h"]);
}

#[test]
fn every_priority_an_i32_holds_has_its_place() {
    check(
        r#""scheme":"signed""#,
        "publish a:-2147483648 b:2147483647 c:0 d:-1 e:1 · lease 9 · publish f:2147483648",
        expect!["b e c d a · no: priority-out-of-range"],
    );
}

// ---- 2: schemes ----

#[test]
fn ten_level_counts_above_nine_as_nine_and_shows_what_was_given() {
    check(
        "",
        "publish a:9 b:200 c d:4 · publish e:-1 f:high · show b · show c · lease 9",
        expect![
            "no: priority-out-of-range · no: priority-unknown · b 200 is ready in 9, leased 0x · c 4 is ready in 4, leased 0x · a b c d"
        ],
    );
}

#[test]
fn signed_takes_numbers_and_five_names() {
    check(
        r#""scheme":"signed""#,
        "publish a:BULK b:LOW c d:high e:CRITICAL f:49 · lease 9",
        expect!["e d f c b a"],
    );
}

#[test]
fn named_takes_five_names_and_nothing_else() {
    check(
        r#""scheme":"named""#,
        "publish a:background b:low c d:high e:critical f:urgent g:3 · lease 9",
        expect!["no: priority-unknown · no: priority-unknown · e d c b a"],
    );
}

#[test]
fn route_puts_zero_first_and_what_says_nothing_after_all_that_does() {
    check(
        r#""scheme":"route""#,
        "publish a b:9 c:0 d:10 · show c · show a · lease 9",
        expect![
            "no: priority-out-of-range · c 0 is ready in 0, leased 0x · a default is ready in default, leased 0x · c b a"
        ],
    );
}

#[test]
fn max_n_counts_above_n_as_n_and_nothing_as_zero() {
    check(r#""scheme":"max-3""#, "publish a b:3 c:99 d:1 · lease 9", expect!["b c d a"]);
}

#[test]
fn a_queue_of_one_fifo_lane_keeps_the_priority_and_does_not_order_by_it() {
    check(
        r#""scheme":"max-255","order":"fifo""#,
        "publish a:1 b:9 c:5 · show b · lease 9",
        expect!["b 9 is ready in fifo, leased 0x · a b c"],
    );
}

#[test]
fn a_default_priority_is_what_a_message_without_one_counts_as() {
    check(r#""default_priority":7"#, "publish a:6 b c:8 · lease 9", expect!["c b a"]);
}

// ---- 3: lanes ----

#[test]
fn a_threshold_makes_two_lanes_and_below_it_is_backfill_strictly() {
    check(
        r#""scheme":"signed","order":{"lanes":[{"name":"primary","from":0},{"name":"backfill"}]}"#,
        "publish a:-1 b:0 c:100 d:-100 · show a · show b · lease 9",
        expect!["a -1 is ready in backfill, leased 0x · b 0 is ready in primary, leased 0x · b c a d"],
    );
}

#[test]
fn bands_are_fifo_inside_whatever_the_priority() {
    check(
        r#""order":{"lanes":[{"name":"hot","from":7},{"name":"warm","from":4},{"name":"cold"}]}"#,
        "publish a:3 b:4 c:6 d:7 e:9 f:0 · lease 9",
        expect!["d e b c a f"],
    );
}

#[test]
fn what_is_stored_is_served_also_when_the_setting_that_named_its_lane_is_gone() {
    check(
        r#""order":{"lanes":[{"name":"hot","from":7},{"name":"cold"}]}"#,
        r#"publish a:3 b:9 · settings "order":{"lanes":[{"name":"all"}]} · publish c:9 · lease 9 · nack a · settings  · lease"#,
        expect!["a b c · a(2)"],
    );
}

#[test]
fn the_257th_priority_in_use_at_once_is_refused_and_a_lane_that_is_empty_makes_room() {
    // Two lanes are kept, for LOW and BULK.
    let many: Vec<String> = (0..254).map(|at| format!("p{at}:{at}")).collect();
    check(
        r#""scheme":"signed""#,
        &format!("publish {} · publish x:1000 · remove p7 · publish y:1000 z:7 · lease 2", many.join(" ")),
        expect!["no: too-many-lanes · no: too-many-lanes · y p253"],
    );
}

#[test]
fn whatever_numbers_are_in_use_each_priority_with_a_name_finds_a_lane() {
    let many: Vec<String> = (0..251).map(|at| format!("p{at}:{}", at - 2_000)).collect();
    check(
        r#""scheme":"signed""#,
        &format!(
            "publish {} · publish x:99 · publish a:CRITICAL b:NORMAL c:BULK d:HIGH e:LOW · lease 6 · ack a · publish y:-3000 · publish z:100 · lease",
            many.join(" ")
        ),
        expect!["no: too-many-lanes · a d b e c p250 · no: too-many-lanes · z"],
    );
}

// ---- 4: strictness ----

#[test]
fn at_each_lease_the_most_urgent_goes_also_when_it_came_last() {
    check(
        "",
        "publish a:1 b:1 · lease · publish c:9 · lease · publish d:5 · lease · lease",
        expect!["a · c · d · b"],
    );
}

#[test]
fn a_window_of_one_holds_nothing_in_hand() {
    check(
        "",
        "consume w window=1 · publish a:0 b:0 c:0 d:9 · ack a · publish e:9 · ack d · ack e · ack b",
        expect!["w:a · w:d · w:e · w:b · w:c"],
    );
}

#[test]
fn only_what_is_inside_the_window_already_can_arrive_before_a_more_urgent_one() {
    check(
        "",
        "consume w window=2 · publish a:0 b:0 c:0 d:9 · ack a · ack b",
        expect!["w:a · w:b · w:d · w:c"],
    );
}

#[test]
fn a_waiting_consumer_is_woken_at_once_by_any_arrival() {
    check(
        "",
        "lease wait=60000 as=p · +59999ms · publish a:0 · lease 2 wait=1000 as=r · publish b:1 · +1000ms",
        expect!["p:a · r:b"],
    );
}

#[test]
fn a_waiting_pull_gives_up_when_it_said() {
    check("", "lease wait=100 as=p · +99ms · +1ms · publish a:5 · left", expect!["nothing · ready a"]);
}

#[test]
fn consumers_take_turns_and_one_of_a_higher_priority_comes_first_while_it_has_room() {
    check(
        "",
        "consume a window=2 · consume b window=2 · consume v window=1 first=1 · publish m:5 n:5 o:5 p:5 q:5",
        expect!["v:m · a:n · b:o · a:p · b:q"],
    );
}

// ---- 5: put back ----

#[test]
fn a_returned_message_goes_ahead_of_the_fresh_ones_in_its_lane() {
    check("", "publish a:5 b:5 c:9 · lease · nack c · lease", expect!["c · c(2)"]);
    check("", "publish a:5 b:5 c:5 · lease 2 · nack b · nack a · lease 3", expect!["a b · a(2) b(2) c"]);
}

#[test]
fn a_returned_message_never_goes_ahead_of_a_more_urgent_one() {
    check(
        "",
        "publish a:1 b:5 · lease 2 · publish c:5 d:9 · nack a · nack b · lease 9",
        expect!["b a · d b(2) c a(2)"],
    );
}

#[test]
fn an_expired_lease_returns_to_its_place_with_its_count_up() {
    check("", "publish a:5 b:5 · lease for=100 · +99ms · lease · +1ms · lease", expect!["a · b · a(2)"]);
}

#[test]
fn what_a_lost_consumer_held_returns_to_its_place_in_order() {
    check(
        "",
        "consume w window=3 · publish a:5 b:9 c:5 d:5 · cancel w · publish e:9 · lease 9",
        expect!["w:a · w:b · w:c · b(2) e a(2) c(2) d"],
    );
}

#[test]
fn a_released_message_returns_at_once_without_backoff() {
    check(r#""backoff":{"initial_ms":500}"#, "publish a:5 b:5 · lease · release a · lease", expect!["a · a"]);
}

#[test]
fn a_failed_message_waits_aside_and_holds_up_nobody() {
    check(
        r#""backoff":{"initial_ms":500}"#,
        "publish a:9 b:5 c:9 · lease · nack a · left · lease · +500ms · lease · lease",
        expect!["a · ready c b, delayed a · c · a(2) · b"],
    );
}

// ---- 7: reprioritise, remove ----

#[test]
fn a_reprioritised_message_stands_in_the_new_lane_where_its_age_puts_it() {
    check("", "publish a:9 b:5 c:9 · reprioritise b 9 · lease 9", expect!["a b c"]);
    check("", "publish a:9 b:5 c:9 · reprioritise c 5 · publish d:5 · lease 9", expect!["a b c d"]);
}

#[test]
fn a_new_priority_survives_put_back_and_restart() {
    check(
        "",
        "publish a:5 b:5 c:5 · reprioritise c 8 · lease for=9000 · nack c · restart · show c · lease · nack c · lease",
        expect!["c · c 8 is ready in 8, leased 1x · c(2) · c(3)"],
    );
}

#[test]
fn a_delayed_message_takes_another_priority_and_stays_delayed() {
    check("", "publish a:5,delay=100 b:5 · reprioritise a 9 · lease · +100ms · lease", expect!["b · a"]);
}

#[test]
fn a_leased_or_dead_message_keeps_its_priority() {
    check(
        "",
        "publish a:5 b:5 · lease 2 · reject b · reprioritise a 9 · reprioritise b 9 · reprioritise zzz 9 · ack a · reprioritise a 9",
        expect!["a b · no: leased · no: dead · no: no-such-message · no: no-such-message"],
    );
}

#[test]
fn reprioritising_all_leaves_alone_what_cannot_be() {
    check(
        "",
        "publish a:5 b:1 c:3,delay=100 · lease · reprioritise all 7 · lanes",
        expect![
            "a · 7: 1 ready 1 delayed 2 bytes 2 published, 5: 1 leased 1 bytes 1 published 1 delivered, 3: 1 published 1 moved, 1: 1 published 1 moved"
        ],
    );
}

#[test]
fn some_are_reprioritised_by_what_a_filter_found() {
    check("", "publish a:5 b:5 c:5 d:5 · reprioritise b+d 6 · lease 9", expect!["b d a c"]);
}

#[test]
fn a_priority_the_scheme_does_not_know_changes_nothing() {
    check(
        "",
        "publish a:5 b:6 · reprioritise a -1 · reprioritise a urgent · lease 2",
        expect!["no: priority-out-of-range · no: priority-unknown · b a"],
    );
}

#[test]
fn a_message_is_removed_in_every_state() {
    check(
        "",
        "publish r:5 d:5,delay=100 x:7 l:9 · lease 2 · reject x · remove r · remove d · remove l · remove x · left · ack l · remove r",
        expect!["l x · empty · no: stale-receipt · no: no-such-message"],
    );
}

#[test]
fn what_is_removed_while_a_consumer_holds_it_keeps_its_place_until_it_is_settled() {
    check(
        "",
        "consume w window=1 · publish a:5 b:5 c:5 · remove a · left · ack a · want-back b · ack b",
        expect!["w:a · ready b c · no: stale-receipt · w:b · no: stale-receipt · w:c"],
    );
}

#[test]
fn purge_takes_what_waits_and_leaves_what_is_leased_or_dead() {
    check(
        "",
        "publish a:5 b:4 c:3 d:2,delay=9 · lease 2 · reject b · purge · left · purge dead · left · purge leased · left",
        expect!["a b · leased a, dead b · leased a · leased a"],
    );
}

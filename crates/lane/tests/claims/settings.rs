//! What may change while messages wait, and what may not.

use expect_test::expect;

use crate::story::check;

#[test]
fn order_changes_while_messages_wait_and_each_stands_where_its_age_puts_it() {
    check(
        "",
        r#"publish a:1 b:9 c:5 d:9 · order · settings "order":"fifo" · order · settings "order":{"lanes":[{"name":"hot","from":5},{"name":"cold"}]} · order · settings  · order"#,
        expect!["b d c a · a b c d · b c d a · b d c a"],
    );
}

#[test]
fn order_changes_under_messages_in_every_state() {
    check(
        "",
        r#"consume w window=1 · publish a:9 b:5 c:4,delay=100 d:3 · cancel w · consume v window=1 · lease for=50 as=p · settings "order":"fifo" · left · lanes · +50ms · cancel v · +50ms · order"#,
        expect![
            "w:a · v:a(2) · p:b · ready d, delayed c, leased a b · fifo: 1 ready 1 delayed 2 leased 4 bytes 4 published · a b c d"
        ],
    );
}

#[test]
fn the_lane_counters_carry_on_where_the_lane_keeps_its_name() {
    check(
        r#""order":{"lanes":[{"name":"hot","from":7},{"name":"cold"}]}"#,
        r#"publish a:9 b:8 c:5 d:1 · lease · ack a · settings "order":{"lanes":[{"name":"hot","from":5},{"name":"warm","from":1},{"name":"cold"}]} · lanes"#,
        expect![
            "a · hot: 2 ready 2 bytes 3 published 1 delivered 1 settled, warm: 1 ready 1 bytes 1 published, cold: 2 published 2 moved"
        ],
    );
}

#[test]
fn the_scheme_and_what_a_last_value_is_of_are_fixed_while_messages_are_there() {
    check(
        "",
        r#"publish a · settings "scheme":"named" · settings "last_value":"one" · lease · settings "scheme":"named" · ack a · settings "scheme":"named","last_value":"one" · publish b:high c:low · left"#,
        expect!["no: setting-fixed · no: setting-fixed · a · no: setting-fixed · ready c"],
    );
}

#[test]
fn where_messages_are_kept_is_fixed_while_messages_are_there() {
    check(
        "",
        r#"publish a · settings "partitions":{"mode":"hash","count":4} · lease · ack a · settings "partitions":{"mode":"hash","count":4} · publish b · settings "partitions":{"mode":"hash","count":5} · settings  · settings "max_active":1,"partitions":{"mode":"hash","count":4} · restart · settings  · left"#,
        expect![
            "no: setting-fixed · a · no: setting-fixed · no: setting-fixed · no: setting-fixed · ready b"
        ],
    );
}

#[test]
fn the_order_is_that_of_one_place_in_however_many_messages_are_kept() {
    for partitions in [
        "",
        r#""partitions":{"mode":"hash","count":1000}"#,
        r#""partitions":{"mode":"bands","bands":[7],"count":4}"#,
        r#""partitions":{"mode":"key","count":16}"#,
    ] {
        check(
            partitions,
            "publish a:1 b:9 c:5,key=k d:9 e:5 · order · lease 2 · release d · lease 9",
            expect!["b d c e a · b d · d c e a"],
        );
    }
}

#[test]
fn settings_survive_a_restart() {
    check(
        r#""max_active":1"#,
        r#"settings "max_active":2 · publish a b c · restart · lease 9"#,
        expect!["a b"],
    );
}

#[test]
fn more_priorities_than_lanes_cannot_be_spread_out_again() {
    let many: Vec<String> = (0..255).map(|at| format!("p{at}:{at}")).collect();
    check(
        r#""scheme":"signed","order":"fifo""#,
        &format!(
            r#"publish {} · settings "scheme":"signed" · remove p7 · settings "scheme":"signed" · lease 2"#,
            many.join(" ")
        ),
        expect!["no: too-many-lanes · p254 p253"],
    );
}

#[test]
fn a_queue_is_deleted_only_empty_or_unused_if_so_asked() {
    check(
        "",
        "publish a · delete q if-empty · consume w · ack a · delete q if-unused · delete q if-empty · publish b · declare q · publish c · left",
        expect!["no: not-empty · w:a · no: in-use · cancelled · no: no-such-queue · made · ready c"],
    );
}

#[test]
fn a_receipt_of_a_deleted_queue_settles_nothing_in_one_of_its_name() {
    check(
        "",
        "publish a · lease · delete q · declare q · publish b · lease · ack a · left",
        expect!["a · made · b · no: stale-receipt · leased b"],
    );
}

#[test]
fn a_store_without_room_holds_leases_back_and_pulls_still_give_up() {
    check(
        "",
        "publish a b · consume w window=1 · hold · ack a · lease wait=50 as=p · +50ms · left · go",
        expect!["w:a · nothing · ready b · w:b"],
    );
}

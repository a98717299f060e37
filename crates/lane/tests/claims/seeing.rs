//! Points 21 and 22: browsing and gauges.

use expect_test::expect;
use overtake_lane::{
    Address, Broker, BrowseOrder, Command, Cursor, MessageView, Options, Place, Priority, Publish, Query,
    Reply, Status, Step, Time, VhostId,
};

use crate::story::check;

#[test]
fn browsing_shows_dispatch_order_or_publish_order_and_takes_nothing() {
    check(
        "",
        "publish a:1 b:9 c:5,delay=50 d:7,delay=10 e:2 · lease · reject b · lease · order · published · left",
        expect!["b · e · e a d c b · a b c d e · ready a, delayed d c, leased e, dead b"],
    );
}

#[test]
fn the_newest_first_is_the_publish_order_backwards() {
    check(
        "",
        "publish a:1 b:9 c:5,delay=50 d:7 · lease · release b · publish e:2 · newest · reprioritise a 9 · newest · restart · newest",
        expect!["b · e d c b a · e d c b a · e d c b a"],
    );
}

#[test]
fn a_page_of_the_newest_does_not_walk_what_is_older() {
    let mut broker = broker();
    for at in 0..1_000_u64 {
        let publish = Publish {
            to: Address::Queue("q".into()),
            priority: 5.into(),
            id: None,
            origin: None,
            key: None,
            key_weight: None,
            ttl_ms: None,
            base_ttl_ms: None,
            delay_ms: 0,
            bytes: 1,
            place: Place(at),
        };
        broker.apply(Time(1), Command::Publish(publish), &mut Step::default()).expect("taken");
    }
    let query = Query { order: BrowseOrder::Newest, skip: 10, limit: 5, ..Query::default() };
    let mut walked = 0;
    let page = broker
        .browse(VhostId::DEFAULT, "q", &query, &mut |_| {
            walked += 1;
            true
        })
        .expect("there")
        .messages;
    assert_eq!(page.iter().map(|(_, view)| view.place.0).collect::<Vec<_>>(), [989, 988, 987, 986, 985]);
    assert_eq!(walked, 15);
    assert_eq!(broker.count(VhostId::DEFAULT, "q", &query, None).expect("it is there").count, 1_000);
    let mut odd = |place: Place| place.0 % 2 == 1;
    assert_eq!(broker.count(VhostId::DEFAULT, "q", &query, Some(&mut odd)).expect("it is there").count, 500);
}

#[test]
fn dead_letters_are_shown_in_the_order_in_which_they_died() {
    check(
        "",
        r#"publish a b c · lease 3 · reject c · +1ms · reject a · +1ms · reject b · left · settings "order":"fifo" · left · restart · left"#,
        expect!["a b c · dead c a b · dead c a b · dead c a b"],
    );
}

#[test]
fn every_gauge_of_a_lane_is_what_can_be_counted() {
    check(
        r#""max_length":4,"delivery_limit":9"#,
        "publish a:5,bytes=10 b:5,bytes=20 c:5,bytes=30,delay=900 d:5,ttl=100 · +40ms · lease 2 for=10 · ack a · +10ms · lease · reject b · +50ms · \
         publish e:5 f:5 g:5 h:5 · publish i:9 · remove h · lanes",
        expect![
            "a b · b(2) · 9: 1 ready 1 bytes 1 published, 5: 1 ready 1 delayed 1 dead 31 bytes 8 published 3 delivered 1 redelivered 1 settled 1 expired 2 evicted 1 removed 1 dead-lettered 80 waited"
        ],
    );
}

#[test]
fn a_strict_queue_passes_nothing_more_urgent_over() {
    let story = "publish a:1 b:9 c:5 d:9 · lease 2 · release b · lease · publish e:9 · lease 9 · lanes";
    check(
        "",
        story,
        expect![
            "b d · b · e c a · 9: 3 leased 3 bytes 3 published 4 delivered, 5: 1 leased 1 bytes 1 published 1 delivered, 1: 1 leased 1 bytes 1 published 1 delivered"
        ],
    );
}

#[test]
fn whatever_is_leased_while_something_more_urgent_is_ready_is_an_inversion() {
    let all = "publish a:9 b:9 c:1 d:1 · lease 4 · lanes";
    check(
        r#""picker":{"weighted":{"9":1,"1":1}}"#,
        all,
        expect![
            "a c b d · 9: 2 leased 2 bytes 2 published 2 delivered, 1: 2 leased 2 bytes 2 published 2 delivered 1 inversions"
        ],
    );
    check(
        r#""lanes":{"9":{"max_active":1}}"#,
        all,
        expect![
            "a c d · 9: 1 ready 1 leased 2 bytes 2 published 1 delivered, 1: 2 leased 2 bytes 2 published 2 delivered 2 inversions"
        ],
    );
    check(
        r#""picker":{"aging_ms":1}"#,
        "publish a:1 · +100ms · publish b:9 · lease 2 · lanes",
        expect![
            "a b · 9: 1 leased 1 bytes 1 published 1 delivered, 1: 1 leased 1 bytes 1 published 1 delivered 1 inversions 100 waited"
        ],
    );
    check(
        r#""group_limit":1"#,
        "publish a:9,key=k b:9,key=k c:1,key=l · lease 3 · lanes",
        expect![
            "a c · 9: 1 ready 1 leased 2 bytes 2 published 1 delivered, 1: 1 leased 1 bytes 1 published 1 delivered 1 inversions"
        ],
    );
    check(
        r#""picker":{"weighted":{"9":1,"1":1}}"#,
        "publish a:9 b:9 c:1 · get · get · lanes",
        expect![
            "a · 2 after · c · 1 after · 9: 1 ready 1 leased 2 bytes 2 published 1 delivered, 1: 1 leased 1 bytes 1 published 1 delivered 1 inversions"
        ],
    );
}

#[test]
fn the_oldest_age_is_that_of_the_head() {
    check(
        "",
        "publish a:5 · +10ms · publish b:5 · +5ms · lanes · lease · lanes",
        expect![
            "5: 2 ready 2 bytes 15 oldest 2 published · a · 5: 1 ready 1 leased 2 bytes 5 oldest 2 published 1 delivered 15 waited"
        ],
    );
}

fn broker() -> Broker {
    let mut broker = Broker::new(Options::default());
    let declare = Command::declare("q".into(), Box::default());
    broker.apply(Time(1), declare, &mut Step::default()).expect("made");
    broker
}

#[test]
fn a_publish_never_walks_a_deep_lane_for_a_position_and_the_question_for_it_does() {
    let mut broker = broker();
    let mut publish = |id: &str| {
        let publish = Publish {
            to: Address::Queue("q".into()),
            priority: 5.into(),
            id: Some(id.into()),
            origin: None,
            key: None,
            key_weight: None,
            ttl_ms: None,
            base_ttl_ms: None,
            delay_ms: 0,
            bytes: 1,
            place: Place(0),
        };
        match broker.apply(Time(1), Command::Publish(publish), &mut Step::default()) {
            Ok(Reply::Published(copies)) => copies[0].position,
            other => panic!("{other:?}"),
        }
    };
    for at in 0..5_000 {
        assert_eq!(publish(&format!("id{at}")), Some(at), "the newest is last");
    }
    assert_eq!(publish("id10"), Some(10), "near the head");
    assert_eq!(publish("id4990"), Some(4_990), "near the end");
    assert_eq!(publish("id2500"), None, "in the midst");
    assert_eq!(broker.message(VhostId::DEFAULT, "q", "id2500").expect("it is there").1, Some(2_500));
}

#[test]
fn pages_follow_each_other_without_gap_or_overlap() {
    let mut broker = broker();
    let mut step = Step::default();
    for at in 0..25_u32 {
        let publish = Publish {
            to: Address::Queue("q".into()),
            priority: i64::from(at % 3).into(),
            id: None,
            origin: None,
            key: Some(format!("k{}", at % 2).into()),
            key_weight: None,
            ttl_ms: None,
            base_ttl_ms: None,
            delay_ms: u64::from(at % 5 == 0) * 100,
            bytes: 1,
            place: Place(u64::from(at)),
        };
        broker.apply(Time(1), Command::Publish(publish), &mut step).expect("taken");
    }
    for order in [BrowseOrder::Dispatch, BrowseOrder::Published, BrowseOrder::Newest] {
        for (status, key, priority) in [
            (None, None, None),
            (Some(Status::Ready), None, None),
            (Some(Status::Delayed), Some("k0"), None),
            (None, Some("k1"), Some(Priority(2))),
        ] {
            let query = |limit, cursor| Query {
                status,
                priority,
                key: key.map(String::from),
                order,
                limit,
                cursor,
                ..Query::default()
            };
            let look =
                |query: &Query| broker.browse(VhostId::DEFAULT, "q", query, &mut |_| true).expect("there");
            let all = look(&query(1_000, None)).messages;
            assert!(!all.is_empty());
            let (mut pages, mut cursor): (Vec<_>, Option<Cursor>) = (Vec::new(), None);
            loop {
                let page = look(&query(4, cursor));
                pages.extend(page.messages);
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            let seqs =
                |views: &[(Cursor, MessageView)]| views.iter().map(|(_, view)| view.seq).collect::<Vec<_>>();
            assert_eq!(seqs(&pages), seqs(&all), "{order:?} {status:?} {key:?} {priority:?}");
        }
    }
}

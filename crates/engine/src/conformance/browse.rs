//! Seeing without taking.

use overtake_lane::BrowseOrder::{Dispatch, Newest, Published};
use overtake_lane::{BrowseOrder, Given, Order, Settings};

use super::words::{filter, name_of};
use super::{ENDS, Fixture, Story, settings};
use crate::api::{Browse, BrowsedMessage, Content, Filter, Page, PageCursor, Select};

/// A message that was seen is still there, as it was.
pub async fn browsing_changes_nothing<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:9").await;
    assert_eq!(story.find(Dispatch, "").await, "b a");
    assert_eq!(story.find(Dispatch, "").await, "b a");
    assert_eq!(story.lease(2).await, "b a");
}

/// Bridges want the order of publishing, people that of dispatch.
pub async fn a_queue_is_browsed_in_both_orders<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("out:9 a:1 dead:8 b:5 later:9,delay=600000 c:1").await;
    story.lease(2).await;
    story.reject("dead").await;
    assert_eq!(story.find(Dispatch, "").await, "out b a c later dead");
    assert_eq!(story.find(Published, "").await, "out a dead b later c");
}

/// People want to see first what came last, whatever has become of it.
pub async fn the_newest_are_shown_first_where_that_is_asked<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("out:9 a:1 dead:8 b:5 later:9,delay=600000 c:1").await;
    story.lease(2).await;
    story.reject("dead").await;
    assert_eq!(story.find(Newest, "").await, "c later b dead a out");
    for (filter, found) in
        [("leased", "out"), ("ready", "c b a"), ("delayed", "later"), ("dead", "dead"), ("priority=1", "c a")]
    {
        assert_eq!(story.find(Newest, filter).await, found, "{filter}");
    }
    assert_eq!(pages(&story, Newest, 2, Filter::default()).await, ["c later", "b dead", "a out"]);
    assert_eq!(pages(&story, Newest, 3, filter("priority=1")).await, ["c a"]);
    story.release("out").await;
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.find(Newest, "").await, "c later b dead a out");
    }
}

/// Whose a message is stands in its properties; how the work on it ended in its record.
pub async fn a_filter_takes_users_and_how_the_work_ended<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.history = Some("past".to_owned()))).await;
    story.declare("past", Settings { order: Order::Fifo, ..Settings::default() }).await;
    story.publish("a:9,user=ann b:8,user=bob c:7,user=ann d:1,h.colour=red,user=ann e:1").await;
    for (filter, found) in [
        ("user=ann", "d c a"),
        ("user=bob", "b"),
        ("user=an", ""),
        ("user=ann priority=1", "d"),
        ("user=ann h.colour=red", "d"),
        ("ending=failed", ""),
    ] {
        assert_eq!(story.find(Newest, filter).await, found, "{filter}");
    }
    story.lease(3).await;
    story.ack("a c").await;
    story.reject("b").await;
    let past = async |text: &str| {
        let browse = Browse { filter: filter(text), order: Newest, limit: 10, ..Browse::default() };
        let page = story.engine().browse("past", browse).await.expect("browsed");
        let names: Vec<_> = page.messages.iter().map(|message| name_of(&message.content)).collect();
        names.join(" ")
    };
    assert_eq!(past("").await, "b c a");
    assert_eq!(past("ending=completed").await, "c a");
    assert_eq!(past("ending=failed").await, "b");
    assert_eq!(past("ending=failed user=ann").await, "");
    assert_eq!(past("ending=cancelled").await, "");
}

/// Pages may be counted instead of followed.
pub async fn a_page_begins_after_what_is_left_out_and_tells_the_total<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:1,key=k b:9 c:5,key=k d:9 e:1").await;
    story.lease(1).await;
    for (order, text, skip, expect) in [
        (Newest, "", 0, "e d of 5"),
        (Newest, "", 3, "b a of 5"),
        (Newest, "", 5, " of 5"),
        (Dispatch, "ready", 1, "c a of 4"),
        (Published, "", 1, "b c of 5"),
        (Newest, "key=k", 1, "a of 2"),
        (Newest, "priority=9", 1, "b of 2"),
        (Newest, "ready priority=9", 0, "d of 1"),
        (Newest, "priority=3", 0, " of 0"),
    ] {
        let filter = filter(text);
        let browse = Browse { filter, order, skip, limit: 2, with_total: true, ..Browse::default() };
        let page = story.engine().browse("q", browse).await.expect("browsed");
        let names: Vec<_> = page.messages.iter().map(|message| name_of(&message.content)).collect();
        let total = page.total.expect("it was asked for");
        assert_eq!(format!("{} of {total}", names.join(" ")), expect, "{text} {skip}");
    }
}

/// Each alone and all together.
pub async fn a_filter_takes_status_priority_key_and_headers<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story
        .publish(
            "a:5,key=k,h.colour=red b:5,key=k,h.colour=blue c:9,key=k,h.colour=red d:5,h.colour=red,h.n=7",
        )
        .await;
    story.lease(1).await;
    for (filter, found) in [
        ("ready", "a b d"),
        ("leased", "c"),
        ("dead", ""),
        ("priority=5", "a b d"),
        ("key=k", "c a b"),
        ("h.colour=red", "c a d"),
        ("h.colour=red h.n=7", "d"),
        ("ready priority=5 key=k h.colour=red", "a"),
        ("h.colour=green", ""),
    ] {
        assert_eq!(story.find(Dispatch, filter).await, found, "{filter}");
    }
}

async fn pages(story: &Story<impl Fixture>, order: BrowseOrder, limit: usize, filter: Filter) -> Vec<String> {
    let browse = Browse { filter, order, limit, ..Browse::default() };
    let names =
        |page: &Page| page.messages.iter().map(|message| name_of(&message.content)).collect::<Vec<_>>();
    follow(story, &browse).await.iter().map(|page| names(page).join(" ")).collect()
}

/// A page, and all that come after it.
async fn follow(story: &Story<impl Fixture>, browse: &Browse) -> Vec<Page> {
    let (mut pages, mut cursor): (Vec<Page>, Option<PageCursor>) = (Vec::new(), None);
    loop {
        let page = story.engine().browse("q", Browse { cursor, ..browse.clone() }).await.expect("browsed");
        assert!(page.messages.len() <= browse.limit);
        cursor = page.next.clone();
        pages.push(page);
        if cursor.is_none() {
            return pages;
        }
    }
}

/// Each message on one page, in both orders.
pub async fn pages_follow_each_other_without_a_gap<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:1 b:9 c:5 d:9 e:1").await;
    let all = Filter::default;
    assert_eq!(pages(&story, Dispatch, 2, all()).await, ["b d", "c a", "e"]);
    assert_eq!(pages(&story, Published, 2, all()).await, ["a b", "c d", "e"]);
    assert_eq!(pages(&story, Published, 5, all()).await, ["a b c d e"]);
}

/// A page is full of what is asked for, whatever lies between.
pub async fn pages_of_a_filter_hold_what_it_takes<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:1,key=k x:9 b:5,key=k y:9 z:1 c:1,key=k").await;
    let filter = Filter { key: Some("k".into()), ..Filter::default() };
    assert_eq!(pages(&story, Published, 2, filter.clone()).await, ["a b", "c"]);
    assert_eq!(pages(&story, Dispatch, 2, filter).await, ["b a", "c"]);
}

/// Pages that end after so many looks show together what one page shows, and tell how far they have come.
pub async fn a_look_that_ends_early_goes_on_where_it_was<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story
        .publish("out:9,key=k x:1 a:1,key=k dead:8,key=k y:9 b:5,key=k z:1 later:9,delay=600000,key=k")
        .await;
    story.publish("c:1,key=k").await;
    story.lease(1).await;
    story.ack("out").await;
    story.publish("held:9,key=k").await;
    story.lease(2).await;
    for order in [Dispatch, Published, Newest] {
        for text in ["", "key=k", "key=none", "ready key=k", "leased", "priority=1"] {
            let whole = Browse { filter: filter(text), order, limit: 100, ..Browse::default() };
            let all = follow(&story, &whole).await;
            let [whole_page] = &all[..] else { panic!("one page: {} of {text:?}", all.len()) };
            for (looks, limit) in [(1, 100), (2, 100), (3, 1)] {
                let some = follow(&story, &Browse { looks: Some(looks), limit, ..whole.clone() }).await;
                let found: Vec<_> = some.iter().flat_map(|page| &page.messages).collect();
                let expect: Vec<_> = whole_page.messages.iter().collect();
                let seqs =
                    |all: &[&BrowsedMessage]| all.iter().map(|one| one.message.seq).collect::<Vec<_>>();
                assert_eq!(seqs(&found), seqs(&expect), "{order:?} {text:?} {looks} {limit}");
                assert!(some.iter().all(|page| page.in_queue == 9), "{order:?} {text:?}");
            }
            assert!(whole_page.looked_at <= 9, "{order:?} {text:?} {}", whole_page.looked_at);
            let must_look = text == "key=none" || text == "key=k";
            assert!(whole_page.looked_at == 9 || !must_look, "{order:?} {text:?} {}", whole_page.looked_at);
        }
    }
}

/// What was published without a priority is told apart from what was given the one that this counts as.
pub async fn a_filter_takes_what_has_no_priority<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.order = Order::Fifo)).await;
    story.publish("a b:4 c d:9 e").await;
    assert_eq!(pages(&story, Published, 2, filter("unprioritised")).await, ["a c", "e"]);
    let browse =
        Browse { filter: filter("ready unprioritised"), limit: 1, with_total: true, ..Browse::default() };
    assert_eq!(story.engine().browse("q", browse).await.expect("browsed").total, Some(3));
    let select = Select::Matching(filter("unprioritised"));
    assert_eq!(story.engine().reprioritise("q", select, Given::Number(9)).await, Ok(3));
    assert_eq!(pages(&story, Published, 5, filter("unprioritised")).await, [""]);
    assert_eq!(pages(&story, Published, 5, filter("priority=9")).await, ["a c d e"]);
}

/// In publish order a cursor is a place that does not move.
pub async fn a_cursor_in_publish_order_survives_what_is_taken_meanwhile<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5 d:5").await;
    let browse = |cursor| Browse { order: Published, limit: 2, cursor, ..Browse::default() };
    let first = story.engine().browse("q", browse(None)).await.expect("browsed");
    story.lease(2).await;
    story.ack("a b").await;
    story.publish("e:5").await;
    let second = story.engine().browse("q", browse(first.next)).await.expect("browsed");
    let names: Vec<_> = second.messages.iter().map(|message| name_of(&message.content)).collect();
    assert_eq!(names, ["c", "d"]);
}

/// All there is to know.
pub async fn a_message_is_shown_with_its_content<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let mut messages = story.messages("a:5,id=a,key=k,h.colour=red,h.n=-7,h.yes=true");
    let body = b"\0\xff any bytes".as_ref().into();
    messages[0].content = Content::new(Some("text/plain"), &messages[0].content.headers(), body);
    let mut published = messages[0].content.clone();
    published.route = overtake_lane::Route::by("", "q");
    story.engine().publish(messages).await.expect("published");
    let shown = story.show("a").await;
    assert_eq!(*shown.content, published);
    assert_eq!(u64::from(shown.message.bytes), published.size() as u64);
}

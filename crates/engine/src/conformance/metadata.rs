//! Small named values that last and mean nothing: set and removed together.

use overtake_lane::{METADATA_VALUE_LEN_MAX, MetadataEntry, Refusal};

use super::{ENDS, Fixture, Story, refused};

/// `a=1 -b`: sets, and removes.
async fn set<F: Fixture>(story: &Story<F>, entries: &str) -> Result<(), Refusal> {
    match story.engine().set_metadata(entries.split_whitespace().map(entry).collect()).await {
        Ok(()) => Ok(()),
        failed => Err(refused(failed)),
    }
}

fn entry(word: &str) -> MetadataEntry {
    match (word.strip_prefix('-'), word.split_once('=')) {
        (None, Some((key, value))) => MetadataEntry::set(key, value.as_bytes()),
        (removed, _) => MetadataEntry::remove(removed.expect("it sets or removes")),
    }
}

async fn seen<F: Fixture>(story: &Story<F>) -> String {
    let all = story.engine().metadata().await.expect("shown");
    let text = all.iter().map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(value)));
    text.collect::<Vec<_>>().join(" ")
}

/// In order, whichever was set first; and empty ones, too.
pub async fn values_are_seen_by_key<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    assert_eq!(seen(&story).await, "");
    set(&story, "b=2 c= user/a=1").await.expect("set");
    set(&story, "a=1 b=3").await.expect("set");
    assert_eq!(seen(&story).await, "a=1 b=3 c= user/a=1");
}

/// Also one that was never there, and one that is set again at once.
pub async fn a_value_that_is_removed_is_gone<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    set(&story, "a=1 b=2 c=3").await.expect("set");
    set(&story, "-a -never -b b=4").await.expect("removed");
    assert_eq!(seen(&story).await, "b=4 c=3");
}

/// Whatever is wrong with one of them.
pub async fn all_of_it_is_set_or_nothing<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    set(&story, "a=1 b=2").await.expect("set");
    let long = format!("c={}", "x".repeat(METADATA_VALUE_LEN_MAX + 1));
    let long_key = format!("-{}", "k".repeat(1_025));
    for wrong in ["=1", "c\u{1}=1", &long, &long_key] {
        assert_eq!(set(&story, &format!("-a b=3 {wrong} d=4")).await, Err(Refusal::MetadataInvalid));
    }
    assert_eq!(seen(&story).await, "a=1 b=2");
}

/// With every end, and while the journal is given back.
pub async fn values_survive<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    let large = "x".repeat(5_000);
    set(&story, &format!("a=1 gone=2 large={large}")).await.expect("set");
    for (round, end) in ENDS.into_iter().enumerate() {
        set(&story, &format!("-gone a={round}")).await.expect("set");
        for n in 0..30 {
            story.publish(&format!("m{round}x{n},bytes=3000")).await;
            story.drain().await;
        }
        story.again(end).await;
        assert_eq!(seen(&story).await, format!("a={round} large={large}"), "{end:?}");
    }
}

/// They are nobody's own, and end with no connection.
pub async fn whoever_is_connected_sets_values_for_all<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let connection = story.engine().connect();
    connection.set_metadata(vec![MetadataEntry::set("a", b"1")]).await.expect("set");
    assert_eq!(connection.metadata().await.expect("shown").len(), 1);
    drop(connection);
    assert_eq!(seen(&story).await, "a=1");
}

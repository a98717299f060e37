//! Producers that number what they publish: each message is taken once, however long ago it came.

use overtake_lane::{Settings, VhostSettings};

use super::{ENDS, Fixture, Story};

/// Publishes messages of a producer, `NUMBER` or `NUMBER>FLOOR` each, which are called so; answers which of them are taken now.
async fn numbered<F: Fixture>(story: &Story<F>, producer: &str, numbers: &str) -> String {
    let mut taken = Vec::new();
    for word in numbers.split_whitespace() {
        let (number, floor) = word.split_once('>').unwrap_or((word, "0"));
        let copies = story.publish(&format!("{producer}{word},of={producer}/{number}/{floor}")).await;
        taken.extend(copies.first().map(|_| word));
    }
    taken.join(" ")
}

/// Also when nothing of it waits any more.
pub async fn what_was_taken_is_not_taken_again<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    assert_eq!(numbered(&story, "a", "3 1 3 2").await, "3 1 2");
    assert_eq!(story.drain().await, "a3 a1 a2");
    assert_eq!(numbered(&story, "a", "1 4 2 3").await, "4");
    assert_eq!(numbered(&story, "b", "1 2").await, "1 2", "each has its own numbers");
    assert_eq!(story.drain().await, "a4 b1 b2");
}

/// What comes late is not taken, though nothing is known of it any more.
pub async fn below_its_floor_a_producer_publishes_nothing<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    assert_eq!(numbered(&story, "a", "7 9>8 6 7 8").await, "7 9>8 8");
}

/// With every end, and while the journal is given back.
pub async fn it_is_known_after_a_restart<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    assert_eq!(numbered(&story, "a", "5000").await, "5000");
    for (round, end) in ENDS.into_iter().enumerate() {
        assert_eq!(numbered(&story, "a", &format!("{round}")).await, format!("{round}"));
        for n in 0..30 {
            story.publish(&format!("m{round}x{n},bytes=3000")).await;
            story.drain().await;
        }
        story.again(end).await;
        assert_eq!(numbered(&story, "a", &format!("5000 {round}")).await, "", "{end:?}");
    }
}

/// What it publishes in one there, it may publish in the other.
pub async fn each_virtual_host_has_its_own<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    assert_eq!(numbered(&story, "a", "1").await, "1");
    let other = story.engine().declare_vhost("other", VhostSettings::default()).await.expect("declared");
    story.at(other);
    story.declare("q", Settings::default()).await;
    assert_eq!(numbered(&story, "a", "1 1").await, "1");
}

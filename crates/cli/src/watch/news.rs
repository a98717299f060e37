//! What happens to a queue that somebody who watches it wants to know.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::row::unix_ms;
use crate::gauges::ask::Health;
use crate::gauges::{QueueNow, Sign};
use crate::table::{count, duration};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    /// A stable word, for programs.
    pub(crate) event: &'static str,
    /// For people.
    pub(crate) text: String,
    /// Whether it is bad.
    pub(crate) is_bad: bool,
}

impl News {
    fn bad(event: &'static str, text: impl Into<String>) -> Self {
        Self { event, text: text.into(), is_bad: true }
    }

    fn good(event: &'static str, text: impl Into<String>) -> Self {
        Self { event, text: text.into(), is_bad: false }
    }

    /// A line for programs.
    pub(crate) fn json(&self, at: SystemTime) -> Value {
        json!({ "at_ms": unix_ms(at), "event": self.event, "text": self.text })
    }
}

/// Says of each thing once that it is so, and once that it no longer is.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// ms.
    warn_age: Option<u64>,
    /// What was said of the queue.
    signs: Vec<Sign>,
    is_old: bool,
    /// Why the broker refuses publishes, or everything.
    trouble: Option<String>,
    /// When the broker was lost, ms.
    lost: Option<u64>,
}

impl Watcher {
    /// All was well.
    pub(crate) fn new(warn_age: Option<u64>) -> Self {
        Self { warn_age, signs: Vec::new(), is_old: false, trouble: None, lost: None }
    }

    /// The broker does not answer.
    pub(crate) fn lose(&mut self, now: u64, why: &str) -> Option<News> {
        let is_news = self.lost.is_none();
        self.lost.get_or_insert(now);
        is_news.then(|| News::bad("lost", format!("{why}; asking again")))
    }

    /// It answered, at `now`.
    pub(crate) fn turn(&mut self, now: u64, queue: &QueueNow, health: &Health) -> Vec<News> {
        let mut news = Vec::new();
        if let Some(since) = self.lost.take() {
            let lost = duration(now.saturating_sub(since));
            news.push(News::good("back", format!("the broker is back after {lost}; rates begin anew")));
        }
        self.hear_broker(health, &mut news);
        for sign in [Sign::Paused, Sign::Full, Sign::NoConsumer, Sign::Behind] {
            let (is, was) = (queue.is(sign), self.signs.contains(&sign));
            if is != was {
                news.push(turned(sign, is));
            }
        }
        self.signs.clone_from(&queue.signs);
        if queue.new_dead > 0 {
            let dead = count(queue.new_dead, "new dead letter");
            news.push(News::bad("dead_letters", format!("{dead}, {} in all", queue.sums.dead)));
        }
        self.hear_age(queue, &mut news);
        news
    }

    fn hear_broker(&mut self, health: &Health, news: &mut Vec<News>) {
        let not_ready = health.not_ready.as_ref().map(|why| format!("the broker is not ready: {why}"));
        let trouble = not_ready.or_else(|| health.warning.clone());
        // Only the room that is left may have changed in it.
        match (&trouble, &self.trouble) {
            (Some(why), None) => news.push(News::bad("broker_warning", why.clone())),
            (None, Some(_)) => news.push(News::good("broker_well", "the broker is well again")),
            _ => {}
        }
        self.trouble = trouble;
    }

    fn hear_age(&mut self, queue: &QueueNow, news: &mut Vec<News>) {
        let Some(limit) = self.warn_age else { return };
        let is_old = queue.sums.ready > 0 && queue.sums.oldest_ms >= limit;
        if is_old != self.is_old {
            let (age, limit) = (duration(queue.sums.oldest_ms), duration(limit));
            news.push(match is_old {
                true => News::bad("old", format!("the oldest has waited {age}, {limit} or longer")),
                false => News::good("young", format!("nothing has waited for {limit} any more")),
            });
        }
        self.is_old = is_old;
    }
}

fn turned(sign: Sign, is: bool) -> News {
    match (sign, is) {
        (Sign::Paused, true) => News::bad("paused", "paused: nothing is leased"),
        (Sign::Paused, false) => News::good("resumed", "resumed"),
        (Sign::Full, true) => News::bad("full", "full: its limit is reached, or messages were dropped"),
        (Sign::Full, false) => News::good("room", "no longer full"),
        (Sign::NoConsumer, true) => News::bad("no_consumer", "messages wait, and nobody takes them"),
        (Sign::NoConsumer, false) => News::good("consumer", "somebody takes messages, or there are none"),
        (Sign::Behind, true) => News::bad("behind", "behind: the oldest message grows older and older"),
        (Sign::Behind, false) => News::good("caught_up", "no longer behind"),
        (Sign::Dying, _) => News::bad("dead_letters", "dead letters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauges::Sums;

    fn queue(signs: &[Sign], ready: u64, oldest_ms: u64) -> QueueNow {
        let sums = Sums { ready, oldest_ms, dead: 7, ..Sums::default() };
        QueueNow { sums, signs: signs.to_vec(), ..QueueNow::default() }
    }

    fn words(news: &[News]) -> String {
        news.iter().map(|news| news.event).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_thing_is_said_once_when_it_begins_and_once_when_it_ends() {
        let mut watcher = Watcher::new(Some(30_000));
        let well = Health::default();
        let mut turn = |queue: QueueNow| words(&watcher.turn(0, &queue, &well));
        assert_eq!(turn(queue(&[], 1, 10)), "");
        assert_eq!(turn(queue(&[Sign::Full, Sign::Paused], 1, 29_999)), "paused full");
        assert_eq!(turn(queue(&[Sign::Full, Sign::Paused], 1, 30_000)), "old");
        assert_eq!(turn(queue(&[Sign::Full, Sign::Paused], 1, 31_000)), "");
        assert_eq!(turn(queue(&[], 0, 0)), "resumed room young");
        assert_eq!(turn(queue(&[Sign::NoConsumer], 1, 0)), "no_consumer");
        assert_eq!(turn(queue(&[Sign::Behind], 1, 0)), "consumer behind");
        assert_eq!(turn(queue(&[], 1, 0)), "caught_up");
    }

    #[test]
    fn every_time_messages_die_it_is_said_how_many() {
        let mut watcher = Watcher::new(None);
        let dead = QueueNow { new_dead: 2, ..queue(&[Sign::Dying], 0, 0) };
        for _ in 0..2 {
            let news = watcher.turn(0, &dead, &Health::default());
            assert_eq!(
                (words(&news).as_str(), news[0].text.as_str()),
                ("dead_letters", "2 new dead letters, 7 in all")
            );
        }
        assert_eq!(watcher.turn(0, &queue(&[], 0, 0), &Health::default()), []);
    }

    #[test]
    fn a_lost_broker_is_news_once_and_so_is_its_return() {
        let mut watcher = Watcher::new(None);
        assert_eq!(watcher.lose(1_000, "no answer").expect("news").text, "no answer; asking again");
        assert_eq!(watcher.lose(2_000, "no answer"), None);
        let news = watcher.turn(61_000, &queue(&[], 0, 0), &Health::default());
        assert_eq!(news[0].text, "the broker is back after 1m00s; rates begin anew");
        assert_eq!(watcher.turn(62_000, &queue(&[], 0, 0), &Health::default()), []);
    }

    #[test]
    fn a_disk_that_is_full_is_news_however_the_room_on_it_changes() {
        let mut watcher = Watcher::new(None);
        let full =
            |room: u32| Health { warning: Some(format!("{room} bytes are free")), ..Health::default() };
        let mut turn = |health: &Health| words(&watcher.turn(0, &queue(&[], 0, 0), health));
        assert_eq!(turn(&full(9)), "broker_warning");
        assert_eq!(turn(&full(8)), "");
        assert_eq!(turn(&Health::default()), "broker_well");
    }
}

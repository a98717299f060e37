//! What is wrong with a queue, in the words of somebody who has to do something about it.

use std::cmp::Reverse;
use std::sync::Arc;

use overtake_lane::Overflow;
use serde::Serialize;

use crate::history::History;
use crate::look::{QueueLook, QueueRole};

/// Within how many samples what is new is new: a minute.
const RECENT_SAMPLES: usize = 6;
/// From so long on what is most urgent waits too long while others are served, ms.
const OVERTAKEN_MS: u64 = 60_000;
/// From so many on it is worth a word that a queue grows.
const GROWS_FROM: u64 = 100;

/// Something that is wrong with a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// What.
    pub kind: TroubleKind,
    /// How bad it is: 3, work stands still or is lost; 2, it will be; 1, worth knowing.
    pub severity: u8,
    /// The lane it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<Arc<str>>,
    /// How many messages it is about.
    pub messages: u64,
}

/// What may be wrong with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TroubleKind {
    /// Messages wait, and nobody takes them.
    NoConsumer,
    /// It takes no more, or gives old messages away for new ones.
    Full,
    /// Messages cannot be read, because what holds them is damaged.
    Unreadable,
    /// Messages became dead letters within the last minute.
    NewDeadLetters,
    /// Something waits for more than a minute in the most urgent lane while less urgent messages are leased.
    Overtaken,
    /// Messages wait, and it is paused.
    Paused,
    /// More comes than goes, and it grows.
    Grows,
    /// Messages wait because as many are leased as may be.
    AtCap,
    /// Dead letters lie there.
    DeadLetters,
}

impl TroubleKind {
    fn severity(self) -> u8 {
        match self {
            Self::NoConsumer | Self::Full | Self::Unreadable => 3,
            Self::NewDeadLetters | Self::Overtaken => 2,
            Self::Paused | Self::Grows | Self::AtCap | Self::DeadLetters => 1,
        }
    }
}

/// All that is wrong with a queue, the worst first.
pub(crate) fn of(queue: &QueueLook, history: &History) -> Vec<Trouble> {
    let settings = queue.view.effective_settings();
    let (ready, leased) = (queue.sum(|lane| lane.ready), queue.sum(|lane| lane.leased));
    let flow = queue.flow();
    let mut troubles = Vec::new();
    let mut say = |kind: TroubleKind, lane: Option<&Arc<str>>, messages: u64| {
        troubles.push(Trouble { kind, severity: kind.severity(), lane: lane.cloned(), messages });
    };
    let is_kept = is_kept_to_be_seen(queue);
    if settings.paused && ready > 0 {
        say(TroubleKind::Paused, None, ready);
    } else if ready > 0 && !is_kept && is_left_alone(queue) {
        say(TroubleKind::NoConsumer, None, ready);
    }
    let bytes = queue.sum(|lane| lane.bytes);
    let waiting = ready + queue.sum(|lane| lane.delayed);
    let is_full = settings.max_length > 0 && waiting >= settings.max_length
        || settings.max_bytes > 0 && bytes >= settings.max_bytes;
    // A history is meant to be full, and the oldest of it to go.
    let gives_way = queue.role == QueueRole::History && settings.overflow == Overflow::Evict;
    if is_full && !gives_way {
        say(TroubleKind::Full, None, waiting);
    }
    if queue.view.quarantined > 0 {
        say(TroubleKind::Unreadable, None, queue.view.quarantined);
    }
    let new_dead =
        queue.view.lanes.iter().map(|lane| history.new_dead(queue.view.queue, lane, RECENT_SAMPLES)).sum();
    let dead = queue.sum(|lane| lane.dead);
    let dead = dead + if queue.role == QueueRole::DeadLetters { waiting } else { 0 };
    if new_dead > 0 {
        say(TroubleKind::NewDeadLetters, None, new_dead);
    } else if dead > 0 {
        say(TroubleKind::DeadLetters, None, dead);
    }
    if let Some(urgent) = queue.most_urgent_waiting() {
        let others = queue.view.lanes.iter().zip(&queue.lanes).filter(|(lane, _)| lane.level < urgent.level);
        let others: f64 = others.map(|(_, look)| look.flow.delivered).sum();
        if urgent.oldest_age_ms >= OVERTAKEN_MS && others > 0.0 {
            say(TroubleKind::Overtaken, Some(&urgent.lane), urgent.ready);
        }
    }
    if settings.max_active > 0 && leased >= u64::from(settings.max_active) && ready > 0 {
        say(TroubleKind::AtCap, None, ready);
    } else if !is_kept && ready >= GROWS_FROM && flow.delivered > 0.0 && flow.published > flow.delivered * 1.1
    {
        say(TroubleKind::Grows, None, ready);
    }
    troubles.sort_by_key(|trouble| (Reverse(trouble.severity), trouble.kind));
    troubles
}

/// Whether nobody takes from it: no consumer that stays, nobody who waits, nothing leased now or since the look before.
fn is_left_alone(queue: &QueueLook) -> bool {
    let view = &queue.view;
    view.consumers == 0
        && view.waiting == 0
        && queue.sum(|lane| lane.leased) == 0
        && queue.flow().delivered == 0.0
}

/// Whether messages are kept in it to be looked at: records of work that is over, dead letters, or the newest of each key.
fn is_kept_to_be_seen(queue: &QueueLook) -> bool {
    queue.role != QueueRole::Work || queue.view.effective_settings().last_value.is_some()
}

/// How bad the worst is, and since when the most urgent message waits: the queue to look at first has the largest.
pub(crate) fn rank(queue: &QueueLook) -> (u8, u64, u64) {
    let worst = queue.troubles.first().map_or(0, |trouble| trouble.severity);
    let oldest = queue.most_urgent_waiting().map_or(0, |lane| lane.oldest_age_ms);
    (worst, oldest, queue.sum(|lane| lane.ready))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use overtake_lane::{DeadLetterTo, QueueView, Time};

    use super::*;
    use crate::look::Look;
    use crate::overview::tests::queue;

    /// What is said of a queue that stood so ten seconds before, and a name that leads to it.
    fn said(before: QueueView, now: QueueView, others: Vec<QueueView>) -> Vec<(TroubleKind, u64)> {
        let place = |view: QueueView| ("/".into(), view);
        let first = Look::after(None, Time(10_000), vec![place(before)]);
        let queues = std::iter::once(now).chain(others).map(place).collect();
        let look = Look::after(Some((&first, Duration::from_secs(10))), Time(20_000), queues);
        let troubles = of(&look.queues[0], &History::default());
        troubles.into_iter().map(|trouble| (trouble.kind, trouble.messages)).collect()
    }

    fn still(now: QueueView) -> Vec<(TroubleKind, u64)> {
        said(now.clone(), now, Vec::new())
    }

    #[test]
    fn nobody_takes_from_it_unless_somebody_does() {
        let waits = queue(1, &[("high", 3, 3)]);
        assert_eq!(still(waits.clone()), [(TroubleKind::NoConsumer, 3)]);
        assert_eq!(still(queue(1, &[("high", 3, 0)])), []);
        assert_eq!(still(QueueView { consumers: 1, ..waits.clone() }), []);
        assert_eq!(still(QueueView { waiting: 1, ..waits.clone() }), []);
        let mut served = waits.clone();
        served.lanes[0].delivered = 1;
        assert_eq!(said(waits.clone(), served, Vec::new()), [], "somebody came and took one");
        let mut paused = waits;
        paused.settings.paused = true;
        assert_eq!(still(paused), [(TroubleKind::Paused, 3)]);
    }

    #[test]
    fn what_keeps_messages_to_be_looked_at_needs_no_consumer() {
        let mut work = queue(2, &[]);
        work.settings.history = Some("queue-1".to_owned());
        let mut kept = queue(1, &[("high", 3, 3)]);
        kept.settings.max_length = 3;
        assert_eq!(said(kept.clone(), kept.clone(), vec![work.clone()]), []);
        work.settings.history = None;
        work.settings.dead_letter = DeadLetterTo::Queue("queue-1".to_owned());
        assert_eq!(
            said(kept.clone(), kept.clone(), vec![work]),
            [(TroubleKind::Full, 3), (TroubleKind::DeadLetters, 3)]
        );
        kept.settings.max_length = 0;
        kept.settings.last_value = Some(overtake_lane::LastValue::Key);
        assert_eq!(still(kept), []);
    }

    #[test]
    fn urgent_work_that_is_overtaken_is_said_with_its_lane() {
        let before = queue(1, &[("high", 1, 1), ("low", 9, 9)]);
        let mut now = QueueView { consumers: 1, ..before.clone() };
        now.lanes[1].delivered = 4;
        now.lanes[0].oldest_age_ms = OVERTAKEN_MS;
        assert_eq!(said(before.clone(), now.clone(), Vec::new()), [(TroubleKind::Overtaken, 1)]);
        now.lanes[0].oldest_age_ms -= 1;
        assert_eq!(said(before, now, Vec::new()), []);
    }

    #[test]
    fn messages_that_cannot_be_read_are_said_even_of_an_empty_queue() {
        let damaged = QueueView { quarantined: 62, ..queue(1, &[("high", 62, 0)]) };
        assert_eq!(still(damaged), [(TroubleKind::Unreadable, 62)]);
    }

    #[test]
    fn the_worst_comes_first() {
        let mut both = queue(1, &[("high", 300, 300)]);
        both.settings.max_length = 300;
        both.settings.max_active = 2;
        both.lanes[0].leased = 2;
        both.lanes[0].dead = 1;
        let kinds: Vec<_> = still(both).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [TroubleKind::Full, TroubleKind::AtCap, TroubleKind::DeadLetters]);
        let before = queue(1, &[("high", 300, 300)]);
        let mut grows = QueueView { consumers: 1, ..before.clone() };
        (grows.lanes[0].published, grows.lanes[0].delivered) = (400, 50);
        assert_eq!(said(before, grows, Vec::new()), [(TroubleKind::Grows, 300)]);
    }
}

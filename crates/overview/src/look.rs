//! All queues at one moment, and what has changed since the moment before.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use overtake_lane::{DeadLetterTo, LaneView, QueueId, QueueView, Time, VhostId};
use serde::Serialize;

use crate::quantile::quantile_ms;
use crate::trouble::Trouble;

/// All queues at one moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// When it was.
    pub at: Time,
    /// All queues, by virtual host and name.
    pub queues: Vec<QueueLook>,
}

/// A queue at one moment.
#[derive(Clone, Debug)]
pub struct QueueLook {
    /// The name of its virtual host.
    pub vhost: Arc<str>,
    /// It, as it was.
    pub view: QueueView,
    /// What it is there for.
    pub role: QueueRole,
    /// One for each of its lanes, in their order.
    pub lanes: Vec<LaneLook>,
    /// What is wrong with it, the worst first.
    pub troubles: Vec<Trouble>,
}

/// What a queue is there for, as far as others say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueRole {
    /// Its messages are to be worked on.
    #[default]
    Work,
    /// It is the history of another queue.
    History,
    /// Another queue's dead letters go there.
    DeadLetters,
}

/// What has changed in a lane since the look before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LaneLook {
    /// What moved.
    #[serde(flatten)]
    pub flow: Flow,
    /// Half of those that were leased since had waited no longer, ms; missing when none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_p50_ms: Option<f64>,
    /// 95 of 100 had waited no longer, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_p95_ms: Option<f64>,
}

/// Messages per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Flow {
    /// Published.
    pub published: f64,
    /// Leased.
    pub delivered: f64,
    /// Acknowledged.
    pub settled: f64,
    /// That became dead letters.
    pub dead_lettered: f64,
}

impl Flow {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            published: self.published + other.published,
            delivered: self.delivered + other.delivered,
            settled: self.settled + other.settled,
            dead_lettered: self.dead_lettered + other.dead_lettered,
        }
    }

    /// Between two looks at a lane that lie so far apart. A counter that is smaller than before began anew.
    fn between(before: &LaneView, now: &LaneView, apart: Duration) -> Self {
        let seconds = apart.as_secs_f64().max(0.001);
        let rate = |before: u64, now: u64| now.checked_sub(before).unwrap_or(now) as f64 / seconds;
        Self {
            published: rate(before.published, now.published),
            delivered: rate(before.delivered, now.delivered),
            settled: rate(before.settled, now.settled),
            dead_lettered: rate(before.dead_lettered, now.dead_lettered),
        }
    }
}

impl LaneLook {
    /// What has changed between two looks at a lane. One that was not there is as new: since when is not known.
    #[must_use]
    pub(crate) fn between(before: Option<&LaneView>, now: &LaneView, apart: Duration) -> Self {
        let Some(before) = before else { return Self::default() };
        let waited = |share| quantile_ms(Some(&before.wait), &now.wait, share);
        Self { flow: Flow::between(before, now, apart), wait_p50_ms: waited(0.5), wait_p95_ms: waited(0.95) }
    }
}

impl QueueLook {
    /// What moves in all its lanes.
    #[must_use]
    pub fn flow(&self) -> Flow {
        self.lanes.iter().fold(Flow::default(), |sum, lane| sum.and(lane.flow))
    }

    /// A sum over its lanes.
    pub(crate) fn sum(&self, of: impl Fn(&LaneView) -> u64) -> u64 {
        self.view.lanes.iter().map(of).sum()
    }

    /// The most urgent lane in which something waits.
    #[must_use]
    pub fn most_urgent_waiting(&self) -> Option<&LaneView> {
        self.view.lanes.iter().find(|lane| lane.ready > 0)
    }
}

impl Look {
    /// These queues at this moment, so long after the look before; without one nothing moves yet.
    pub(crate) fn after(
        before: Option<(&Self, Duration)>,
        at: Time,
        queues: Vec<(Arc<str>, QueueView)>,
    ) -> Self {
        let known: HashMap<QueueId, &QueueView> = before
            .iter()
            .flat_map(|(look, _)| &look.queues)
            .map(|queue| (queue.view.queue, &queue.view))
            .collect();
        let apart = before.map_or(Duration::ZERO, |(_, apart)| apart);
        let roles = roles(&queues);
        let look_at = |(vhost, view): (Arc<str>, QueueView)| {
            let was = known.get(&view.queue);
            let before_of =
                |lane: &LaneView| was.and_then(|was| was.lanes.iter().find(|one| one.lane == lane.lane));
            // A lane that is new in a queue that is not began with nothing.
            let nothing = LaneView::default();
            let of = |lane| LaneLook::between(before_of(lane).or(was.map(|_| &nothing)), lane, apart);
            let lanes = view.lanes.iter().map(of).collect();
            let role = roles.get(&(view.vhost, Arc::clone(&view.name))).copied().unwrap_or_default();
            QueueLook { vhost, view, role, lanes, troubles: Vec::new() }
        };
        Self { at, queues: queues.into_iter().map(look_at).collect() }
    }
}

/// The queues that are there for others, by virtual host and name.
fn roles(queues: &[(Arc<str>, QueueView)]) -> HashMap<(VhostId, Arc<str>), QueueRole> {
    let mut roles = HashMap::new();
    for (_, view) in queues {
        let settings = view.effective_settings();
        if let DeadLetterTo::Queue(name) = &settings.dead_letter {
            roles.entry((view.vhost, name.as_str().into())).or_insert(QueueRole::DeadLetters);
        }
        if let Some(name) = &settings.history {
            roles.insert((view.vhost, name.as_str().into()), QueueRole::History);
        }
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overview::tests::queue;

    #[test]
    fn rates_are_what_came_between_two_looks() {
        let first = queue(1, &[("high", 10, 4)]);
        let mut second = queue(1, &[("high", 30, 4), ("low", 8, 8)]);
        second.lanes[0].delivered = 6;
        let look = Look::after(None, Time(1), vec![("/".into(), first)]);
        assert_eq!(look.queues[0].lanes, [LaneLook::default()], "nothing moves yet");
        let next =
            Look::after(Some((&look, Duration::from_secs(2))), Time(2_001), vec![("/".into(), second)]);
        let flows: Vec<_> = next.queues[0].lanes.iter().map(|lane| lane.flow).collect();
        assert_eq!(flows[0], Flow { published: 10.0, delivered: 3.0, ..Flow::default() });
        assert_eq!(flows[1], Flow { published: 4.0, ..Flow::default() }, "a lane that came meanwhile");
        assert_eq!(next.queues[0].flow().published, 14.0);
        assert_eq!(next.queues[0].most_urgent_waiting().map(|lane| &*lane.lane), Some("high"));
    }

    #[test]
    fn counters_that_began_anew_are_no_flood() {
        let look = Look::after(None, Time(1), vec![("/".into(), queue(1, &[("high", 1_000, 0)]))]);
        let again = vec![("/".into(), queue(1, &[("high", 5, 0)]))];
        let next = Look::after(Some((&look, Duration::from_secs(1))), Time(1_001), again);
        assert_eq!(next.queues[0].flow().published, 5.0);
        let another = vec![("/".into(), queue(2, &[("high", 9, 0)]))];
        let next = Look::after(Some((&look, Duration::from_secs(1))), Time(1_001), another);
        assert_eq!(next.queues[0].flow().published, 0.0, "a queue that is new to us is not all of now");
    }
}

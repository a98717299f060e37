//! Queues and lanes, and the store beneath them, as an engine tells them.

use std::collections::BTreeSet;
use std::sync::Arc;

use overtake_engine::{Engine, Failure, every_queue_everywhere};
use overtake_lane::{KeyView, LaneView, Order, PickerKind, QueueView, Settings, VhostView};

use crate::family::Kind::{self, Counter, Gauge, UpDownCounter};
use crate::family::{Family, Histogram, Labels, Point, Value, labels};
use crate::registry::{Collected, Source};
use crate::rounds::Rounds;
use crate::routes::Routes;
use crate::store;

/// Families of an engine: what it holds, and what it did since it was opened.
pub struct Broker {
    engine: Arc<dyn Engine>,
    version: Arc<str>,
    /// Where queues are on servers.
    rounds: Rounds,
}

impl Broker {
    /// Of this engine, in a server of this version.
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>, version: &str) -> Self {
        Self { rounds: Rounds::new(Arc::clone(&engine)), engine, version: version.into() }
    }
}

impl Source for Broker {
    fn collect(&self) -> Collected<'_> {
        Box::pin(async {
            let is_on_servers = self.engine.health().servers.is_some();
            let found = match is_on_servers {
                true => Some(self.rounds.families().await),
                false => look(&*self.engine).await,
            };
            let version = labels([("version", &self.version)]);
            let build = Family::new("overtake.build_info", Gauge, "", "1, and the version of the server.");
            let mut all = vec![build.with(version, Value::Whole(1))];
            all.extend(store::families(&self.engine.health(), found.is_some()));
            all.extend(found.unwrap_or_default());
            all
        })
    }
}

/// Queues, lanes and routes as the engine tells them; `None` where it does not answer.
pub(crate) async fn look(engine: &dyn Engine) -> Option<Vec<Family>> {
    let (mut queues, mut routes) = (Queues::default(), Routes::default());
    let show = |vhost: &VhostView, queue| {
        queues.add(&vhost.name, &queue);
        routes.add_queue(&vhost.name, &queue);
    };
    every_queue_everywhere(engine, show).await.ok()?;
    add_routes(engine, &mut routes).await.ok()?;
    let mut all = queues.families();
    all.extend(routes.families());
    Some(all)
}

/// The routes of every virtual host. One that is deleted meanwhile is left out.
async fn add_routes(engine: &dyn Engine, routes: &mut Routes) -> Result<(), Failure> {
    for vhost in engine.vhosts().await? {
        match engine.in_vhost(vhost.vhost).routes().await {
            Ok(view) => routes.add(&vhost.name, &view),
            Err(Failure::Refused(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// A family of which each queue, or lane, has one series.
struct Each<T> {
    family: Family,
    number: fn(&T) -> Value,
}

const fn each<T>(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    help: &'static str,
    number: fn(&T) -> Value,
) -> Each<T> {
    Each { family: Family::new(name, kind, unit, help), number }
}

fn whole(number: impl Into<u64>) -> Value {
    Value::Whole(number.into())
}

static OF_QUEUES: [Each<QueueView>; 7] = [
    each("overtake.queue.consumers", UpDownCounter, "{consumer}", "Consumers that stay.", |queue| {
        whole(queue.consumers)
    }),
    each(
        "overtake.queue.waiting_requests",
        UpDownCounter,
        "{request}",
        "Requests that wait for a message.",
        |queue| whole(queue.waiting),
    ),
    each("overtake.queue.paused", Gauge, "", "Whether nothing is leased for now.", |queue| {
        whole(queue.effective_settings().paused)
    }),
    each(
        "overtake.queue.max_active_messages",
        Gauge,
        "{message}",
        "Most messages leased at once over all consumers; 0: no cap.",
        |queue| whole(queue.effective_settings().max_active),
    ),
    each(
        "overtake.queue.max_messages",
        Gauge,
        "{message}",
        "Most messages that may wait; 0: no limit.",
        |queue| whole(queue.effective_settings().max_length),
    ),
    each(
        "overtake.queue.max_bytes",
        Gauge,
        "By",
        "Most bytes of content that may wait; 0: no limit.",
        |queue| whole(queue.effective_settings().max_bytes),
    ),
    each(
        "overtake.queue.delivery_limit",
        Gauge,
        "{delivery}",
        "Deliveries after which a message that fails again is a dead letter; 0: never.",
        |queue| whole(queue.effective_settings().delivery_limit),
    ),
];

const fn lanes(name: &'static str, help: &'static str, number: fn(&LaneView) -> Value) -> Each<LaneView> {
    each(name, UpDownCounter, "{message}", help, number)
}

const fn counted(name: &'static str, help: &'static str, number: fn(&LaneView) -> Value) -> Each<LaneView> {
    each(name, Counter, "{message}", help, number)
}

static OF_LANES: [Each<LaneView>; 18] = [
    lanes("overtake.lane.ready_messages", "Messages ready.", |lane| whole(lane.ready)),
    lanes("overtake.lane.delayed_messages", "Messages out of the lane until due.", |lane| {
        whole(lane.delayed)
    }),
    lanes("overtake.lane.leased_messages", "Messages leased.", |lane| whole(lane.leased)),
    lanes("overtake.lane.dead_messages", "Dead letters.", |lane| whole(lane.dead)),
    each(
        "overtake.lane",
        UpDownCounter,
        "By",
        "Bytes of content of what is ready, delayed and leased.",
        |lane| whole(lane.bytes),
    ),
    each(
        "overtake.lane.max_active_messages",
        Gauge,
        "{message}",
        "Most messages leased at once; 0: no cap.",
        |lane| whole(lane.max_active),
    ),
    each(
        "overtake.lane.oldest_age",
        Gauge,
        "s",
        "Age of the oldest ready message; 0 when none is.",
        |lane| Value::Real(lane.oldest_age_ms as f64 / 1_000.0),
    ),
    each("overtake.lane.level", Gauge, "", "How urgent the lane is: the larger, the more urgent.", |lane| {
        Value::Real(lane.level.into())
    }),
    counted("overtake.lane.published", "Messages published here or moved here.", |lane| {
        whole(lane.published)
    }),
    counted("overtake.lane.delivered", "Leases given.", |lane| whole(lane.delivered)),
    counted("overtake.lane.settled", "Messages acknowledged.", |lane| whole(lane.settled)),
    counted("overtake.lane.redelivered", "Leases given of messages that had been leased before.", |lane| {
        whole(lane.redelivered)
    }),
    counted(
        "overtake.lane.inversions",
        "Leases given while a more urgent lane had a message ready.",
        |lane| whole(lane.inversions),
    ),
    counted("overtake.lane.expired", "Messages whose time to live was over.", |lane| whole(lane.expired)),
    counted("overtake.lane.evicted", "Messages dropped because the queue was full.", |lane| {
        whole(lane.evicted)
    }),
    counted("overtake.lane.removed", "Messages removed, purged, replaced or dropped.", |lane| {
        whole(lane.removed)
    }),
    counted("overtake.lane.moved", "Messages that left for another lane or queue.", |lane| whole(lane.moved)),
    counted("overtake.lane.dead_lettered", "Messages that became dead letters.", |lane| {
        whole(lane.dead_lettered)
    }),
];

/// Those that people look for by the names an execution queue gave them. Without a unit, so that none is put into the names on the
/// way through a collector; `queue.wait_time` is in seconds.
static OF_PRIORITIES: [Each<LaneView>; 5] = [
    each("queue.depth", UpDownCounter, "", "Messages that wait: ready and delayed.", |lane| {
        whole(lane.ready + lane.delayed)
    }),
    each("queue.active", UpDownCounter, "", "Messages leased.", |lane| whole(lane.leased)),
    each("queue.enqueue.total", Counter, "", "Messages published here or moved here.", |lane| {
        whole(lane.published)
    }),
    each("queue.schedule.total", Counter, "", "Leases given.", |lane| whole(lane.delivered)),
    each("queue.wait_time", Kind::Histogram, "", "Seconds from publish to first lease.", |lane| {
        let wait = &lane.wait;
        Value::Histogram(Box::new(Histogram::scaled(&wait.buckets, wait.count, wait.sum_ms, 1_000)))
    }),
];

/// Of the keys with the most messages of each queue whose settings speak of keys.
static OF_KEYS: [Each<KeyView>; 3] = [
    each(
        "overtake.key.ready_messages",
        UpDownCounter,
        "{message}",
        "Messages ready of one of the largest keys.",
        |key| whole(key.ready),
    ),
    each(
        "overtake.key.leased_messages",
        UpDownCounter,
        "{message}",
        "Messages leased of one of the largest keys.",
        |key| whole(key.leased),
    ),
    each(
        "overtake.key.oldest_age",
        Gauge,
        "s",
        "Age of the oldest ready message of one of the largest keys; 0 when none is.",
        |key| Value::Real(key.oldest_age_ms as f64 / 1_000.0),
    ),
];

/// How a queue is set, for what is joined with it: an alert about strict queues only.
const INFO: Family = Family::new("overtake.queue.info", Gauge, "", "1, and how the queue is set.");

/// The families of queues while they grow: in the order of the four tables, then [`INFO`].
struct Queues {
    families: Vec<Family>,
    /// Queues that are the history of another, with their virtual hosts.
    histories: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl Default for Queues {
    fn default() -> Self {
        let of_lanes = OF_LANES.iter().chain(&OF_PRIORITIES).map(|each| each.family.clone());
        let of_queues = OF_QUEUES.iter().map(|each| each.family.clone());
        let of_keys = OF_KEYS.iter().map(|each| each.family.clone());
        let families = of_queues.chain(of_lanes).chain(of_keys).chain([INFO]);
        Self { families: families.collect(), histories: BTreeSet::new() }
    }
}

impl Queues {
    fn add(&mut self, vhost: &Arc<str>, queue: &QueueView) {
        let (of_queues, rest) = self.families.split_at_mut(OF_QUEUES.len());
        let (of_lanes, rest) = rest.split_at_mut(OF_LANES.len());
        let (of_priorities, rest) = rest.split_at_mut(OF_PRIORITIES.len());
        let (of_keys, info) = rest.split_at_mut(OF_KEYS.len());
        let pair = [("vhost", Arc::clone(vhost)), ("queue", Arc::clone(&queue.name))];
        grow(of_queues, &OF_QUEUES, &Labels::from(pair.clone()), queue);
        for lane in &queue.lanes {
            let [vhost, queue] = pair.clone();
            let by = |label| Labels::from([vhost.clone(), queue.clone(), (label, Arc::clone(&lane.lane))]);
            grow(of_lanes, &OF_LANES, &by("lane"), lane);
            grow(of_priorities, &OF_PRIORITIES, &by("priority"), lane);
        }
        for key in &queue.keys {
            let [vhost, queue] = pair.clone();
            grow(of_keys, &OF_KEYS, &Labels::from([vhost, queue, ("key", Arc::clone(&key.key))]), key);
        }
        let settings = queue.effective_settings();
        if let Some(history) = &settings.history {
            self.histories.insert((Arc::clone(vhost), history.as_str().into()));
        }
        let set =
            [("picker", picker(settings)), ("order", order(settings)), ("held_back", held_back(settings))];
        let set = set.map(|(label, word)| (label, Arc::from(word)));
        let labels = pair.into_iter().chain(set).collect();
        info[0].points.push(Point { labels, value: Value::Whole(1) });
    }

    /// The families, with histories left out of [`OF_PRIORITIES`]: their messages are work that is over.
    fn families(mut self) -> Vec<Family> {
        let is_work = |point: &Point| match &*point.labels {
            [(_, vhost), (_, queue), ..] => !self.histories.contains(&(Arc::clone(vhost), Arc::clone(queue))),
            _ => true,
        };
        let before = OF_QUEUES.len() + OF_LANES.len();
        for family in &mut self.families[before..before + OF_PRIORITIES.len()] {
            family.points.retain(is_work);
        }
        self.families
    }
}

fn grow<T>(families: &mut [Family], table: &[Each<T>], labels: &Labels, of: &T) {
    for (family, each) in families.iter_mut().zip(table) {
        family.points.push(Point { labels: Arc::clone(labels), value: (each.number)(of) });
    }
}

fn picker(settings: &Settings) -> &'static str {
    match settings.picker {
        PickerKind::Strict => "strict",
        PickerKind::AgingMs(_) => "aging",
        PickerKind::Weighted(_) => "weighted",
    }
}

fn order(settings: &Settings) -> &'static str {
    match settings.order {
        Order::Priority => "priority",
        Order::Fifo => "fifo",
        Order::Lanes(_) => "lanes",
    }
}

/// What may hold a more urgent message back whatever the picker: `lane_cap`, `key`, or `no`.
fn held_back(settings: &Settings) -> &'static str {
    if settings.lanes.values().any(|lane| lane.max_active > 0) {
        "lane_cap"
    } else if settings.out_per_key() > 0 || settings.key_rate_limit.is_some() {
        "key"
    } else {
        "no"
    }
}

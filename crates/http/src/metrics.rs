//! Gauges and counters in the text format of Prometheus, version 0.0.4. Every number is read from the engine when it is
//! asked for; only the requests of this interface are counted here.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Method;
use overtake_engine::Health;
use overtake_lane::{LaneView, QueueView};

/// Requests answered, by route, method and status. As many series as the interface has, whatever is asked.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<HashMap<Box<str>, Counts>>);

/// By method and status.
type Counts = BTreeMap<(&'static str, u16), u64>;

impl Requests {
    /// One more.
    pub(crate) fn count(&self, route: &str, method: &Method, status: u16) {
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (method_label(method), status);
        match routes.get_mut(route) {
            Some(counts) => *counts.entry(key).or_default() += 1,
            None => {
                routes.insert(route.into(), BTreeMap::from([(key, 1)]));
            }
        }
    }

    fn by_route(&self) -> BTreeMap<Box<str>, Counts> {
        let routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        routes.iter().map(|(route, counts)| (route.clone(), counts.clone())).collect()
    }
}

/// Anybody can invent methods, and each would be a series.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// A queue, and the name of its virtual host.
pub(crate) type Placed = (Arc<str>, QueueView);

type QueueNumber = fn(&QueueView) -> u64;
type LaneNumber = fn(&LaneView) -> u64;

/// Name without `overtake_lane_`, help, number.
const LANE_GAUGES: [(&str, &str, LaneNumber); 6] = [
    ("ready_messages", "Messages ready.", |lane| lane.ready),
    ("delayed_messages", "Messages out of the lane until due.", |lane| lane.delayed),
    ("leased_messages", "Messages leased.", |lane| lane.leased),
    ("dead_messages", "Dead letters.", |lane| lane.dead),
    ("bytes", "Bytes of content of what is ready, delayed and leased.", |lane| lane.bytes),
    ("max_active_messages", "Most messages leased at once; 0: no cap.", |lane| u64::from(lane.max_active)),
];

/// Name without `overtake_lane_` and `_total`, help, number.
const LANE_COUNTERS: [(&str, &str, LaneNumber); 9] = [
    ("published", "Messages published here or moved here.", |lane| lane.published),
    ("delivered", "Leases given.", |lane| lane.delivered),
    ("settled", "Messages acknowledged.", |lane| lane.settled),
    ("redelivered", "Leases given of messages that had been leased before.", |lane| lane.redelivered),
    ("expired", "Messages whose time to live was over.", |lane| lane.expired),
    ("evicted", "Messages dropped because the queue was full.", |lane| lane.evicted),
    ("removed", "Messages removed, purged, replaced or dropped after rejection.", |lane| lane.removed),
    ("moved", "Messages that left for another lane or queue.", |lane| lane.moved),
    ("dead_lettered", "Messages that became dead letters.", |lane| lane.dead_lettered),
];

/// Everything, as text. `queues` is `None` when the engine does not answer.
pub(crate) fn render(
    version: &str,
    health: &Health,
    queues: Option<&[Placed]>,
    requests: &Requests,
) -> String {
    let mut text = Exposition::default();
    text.family("overtake_build_info", "gauge", "Version of the server.");
    text.sample("overtake_build_info", &[("version", version)], "1");
    engine(&mut text, health, queues.is_some());
    queues_and_lanes(&mut text, queues.unwrap_or_default());
    text.family("overtake_http_requests_total", "counter", "Requests answered.");
    for (route, counts) in requests.by_route() {
        for ((method, status), count) in counts {
            let labels = [("route", &*route), ("method", method), ("status", &status.to_string())];
            text.sample("overtake_http_requests_total", &labels, &count.to_string());
        }
    }
    text.0
}

fn engine(text: &mut Exposition, health: &Health, answers: bool) {
    let flag = |is: bool| u64::from(is);
    let up = flag(answers && health.down.is_none());
    text.single("overtake_engine_up", "gauge", "Whether the engine serves.", up);
    text.single(
        "overtake_engine_full",
        "gauge",
        "Whether publishes are refused for lack of room.",
        flag(health.full.is_some()),
    );
    if let Some(disk) = health.disk {
        text.single("overtake_disk_free_bytes", "gauge", "Bytes free on the disk of the store.", disk.free);
        let help = "Below so many free bytes publishes are refused; 0: never.";
        text.single("overtake_disk_low_watermark_bytes", "gauge", help, disk.low);
        let help = "Above so many free bytes publishes are taken again.";
        text.single("overtake_disk_high_watermark_bytes", "gauge", help, disk.high);
        let help = "Whether publishes are refused because the disk is below its low watermark.";
        text.single("overtake_disk_low", "gauge", help, flag(disk.is_low));
    }
    let memory = health.memory;
    text.single("overtake_memory_bytes", "gauge", "Bytes of memory that messages take, about.", memory.bytes);
    let help = "Messages that wait in segments only.";
    text.single("overtake_spilled_messages", "gauge", help, memory.spilled);
    text.single("overtake_segments", "gauge", "Segments that hold messages.", memory.segments);
    text.single("overtake_segment_bytes", "gauge", "Bytes of segments on disk.", memory.segment_bytes);
    text.single("overtake_journal_bytes", "gauge", "Bytes of journal on disk.", health.journal_bytes);
    text.single(
        "overtake_journal_syncs_total",
        "counter",
        "Syncs of the journal since it was opened.",
        health.syncs,
    );
    text.single(
        "overtake_journal_unsynced_records",
        "gauge",
        "Records waiting to be durable.",
        health.unsynced,
    );
}

fn queues_and_lanes(text: &mut Exposition, queues: &[Placed]) {
    let of_queue: [(&str, &str, QueueNumber); 2] = [
        ("overtake_queue_consumers", "Consumers that stay.", |queue| queue.consumers),
        ("overtake_queue_waiting_requests", "Requests that wait for a message.", |queue| queue.waiting),
    ];
    for (name, help, number) in of_queue {
        text.family(name, "gauge", help);
        for (vhost, queue) in queues {
            text.sample(name, &[("vhost", vhost), ("queue", &queue.name)], &number(queue).to_string());
        }
    }
    for (name, help, number) in LANE_GAUGES {
        of_lanes(text, &format!("overtake_lane_{name}"), "gauge", help, queues, |lane| {
            number(lane).to_string()
        });
    }
    let help = "Age of the oldest ready message; 0 when none is.";
    of_lanes(text, "overtake_lane_oldest_age_seconds", "gauge", help, queues, |lane| {
        seconds(lane.oldest_age_ms)
    });
    for (name, help, number) in LANE_COUNTERS {
        of_lanes(text, &format!("overtake_lane_{name}_total"), "counter", help, queues, |lane| {
            number(lane).to_string()
        });
    }
    waits(text, queues);
}

fn of_lanes(
    text: &mut Exposition,
    name: &str,
    kind: &str,
    help: &str,
    queues: &[Placed],
    number: impl Fn(&LaneView) -> String,
) {
    text.family(name, kind, help);
    for (labels, lane) in lanes(queues) {
        text.sample(name, &labels, &number(lane));
    }
}

fn waits(text: &mut Exposition, queues: &[Placed]) {
    let name = "overtake_lane_wait_seconds";
    text.family(name, "histogram", "How long messages waited from publish to first lease.");
    for (base, lane) in lanes(queues) {
        for (bound_ms, count) in &lane.wait.buckets {
            let labels = [base[0], base[1], base[2], ("le", &seconds(*bound_ms))];
            text.sample("overtake_lane_wait_seconds_bucket", &labels, &count.to_string());
        }
        let all = [base[0], base[1], base[2], ("le", "+Inf")];
        text.sample("overtake_lane_wait_seconds_bucket", &all, &lane.wait.count.to_string());
        text.sample("overtake_lane_wait_seconds_sum", &base, &seconds(lane.wait.sum_ms));
        text.sample("overtake_lane_wait_seconds_count", &base, &lane.wait.count.to_string());
    }
}

type Labels<'a> = [(&'a str, &'a str); 3];

/// Every lane, with its labels: those of a queue as RabbitMQ calls them.
fn lanes(queues: &[Placed]) -> impl Iterator<Item = (Labels<'_>, &LaneView)> {
    queues.iter().flat_map(|(vhost, queue)| {
        queue
            .lanes
            .iter()
            .map(move |lane| ([("vhost", &**vhost), ("queue", &*queue.name), ("lane", &*lane.lane)], lane))
    })
}

/// Milliseconds as seconds, exactly and without zeros at the end.
fn seconds(ms: u64) -> String {
    let whole = format!("{}.{:03}", ms / 1_000, ms % 1_000);
    whole.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a String does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, number: u64) {
        self.family(name, kind, help);
        self.sample(name, &[], &number.to_string());
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], number: &str) {
        self.0.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            self.0.push_str(label);
            self.0.push_str("=\"");
            self.escaped(value);
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        self.0.push(' ');
        self.0.push_str(number);
        self.0.push('\n');
    }

    fn escaped(&mut self, value: &str) {
        for char in value.chars() {
            match char {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                char => self.0.push(char),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact_seconds() {
        for (ms, expect) in [(0, "0"), (1, "0.001"), (500, "0.5"), (2_500, "2.5"), (86_400_000, "86400")] {
            assert_eq!(seconds(ms), expect);
        }
    }

    #[test]
    fn labels_are_escaped() {
        let mut text = Exposition::default();
        text.sample("m", &[("queue", "a\"b\\c\nd"), ("lane", "9")], "1");
        assert_eq!(text.0, "m{queue=\"a\\\"b\\\\c\\nd\",lane=\"9\"} 1\n");
    }
}

//! How late messages arrive over a link that is nearly full and down for a while: alerts in a hundred times as much telemetry, sent by priority, and
//! beside it as they came.
//!
//! The whole path but routes: published into a queue on disk, sent by an endpoint to a webhook, over a link of 100 kB/s. Both at once, each over a link
//! of its own, so that both see the same machine.

mod chart;
mod link;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use overtake_access::Gate;
use overtake_connectors::{Endpoint, Endpoints};
use overtake_engine::{Clock, Content, Engine, LocalEngine, NewMessage, SystemClock, Target};
use overtake_lane::{Order, Settings};
use serde_json::json;
use tokio::sync::mpsc;

use crate::Plan;
use crate::report::{Cell, Grid, Line};
use crate::spread::Spread;
use link::{Arrival, receiver};

const BYTES_PER_SECOND: u32 = 100_000;
/// Of telemetry; with the request around it 1.26 kB, so that the link is full to three quarters.
const TELEMETRY: usize = 1_000;
const TELEMETRY_PER_SECOND: u64 = 60;
/// One alert for so many of telemetry.
const PER_ALERT: u64 = 100;
const ALERT: usize = 100;

/// When it is down, and how long messages are published, seconds.
#[derive(Clone, Copy)]
struct Times {
    down: [f64; 2],
    end: f64,
}

/// A message that arrived: when it was published, and how long it took, seconds.
#[derive(Clone, Copy, Debug)]
struct Seen {
    is_alert: bool,
    at: f64,
    took: f64,
}

pub(crate) fn run(plan: Plan) -> Grid {
    let times = if plan.quick {
        Times { down: [1.0, 3.0], end: 6.0 }
    } else {
        Times { down: [10.0, 20.0], end: 60.0 }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory for the stores");
    let [priority, fifo] = ["priority", "fifo"].map(|name| dir.path().join(name));
    let (by_priority, as_they_came) = runtime.block_on(async {
        tokio::join!(measure(&priority, Order::Priority, times), measure(&fifo, Order::Fifo, times))
    });
    let mut notes = vec![format!(
        "a link of {} kB/s, down from {} s to {} s of {} s; {TELEMETRY_PER_SECOND} messages of {TELEMETRY} bytes a second, and an alert for each {PER_ALERT}",
        BYTES_PER_SECOND / 1_000,
        times.down[0],
        times.down[1],
        times.end
    )];
    match chart::write(&by_priority, &as_they_came, times) {
        Ok(path) => notes.push(format!("the chart is in {}", path.display())),
        Err(error) => notes.push(format!("no chart: {error}")),
    }
    grid(&by_priority, &as_they_came, notes)
}

fn grid(by_priority: &[Seen], as_they_came: &[Seen], notes: Vec<String>) -> Grid {
    let columns = ["messages", "median", "99 %", "longest"].map(str::to_owned).to_vec();
    let mut lines = Vec::new();
    for (what, is_alert) in [("alerts", true), ("telemetry", false)] {
        for (who, seen, is_reference) in
            [("by priority", by_priority, false), ("as they came", as_they_came, true)]
        {
            let took: Vec<u64> = seen
                .iter()
                .filter(|one| one.is_alert == is_alert)
                .map(|one| (one.took * 1e9) as u64)
                .collect();
            let count = took.len() as f64;
            let mut spread = Spread::of(took);
            let parts = [0.5, 0.99, 1.0].map(|part| spread.percentile_ms(part));
            let cells = [Some(count)].into_iter().chain(parts);
            let cells = cells.map(|value| value.map(|value| Cell { value, times_better: None })).collect();
            lines.push(Line { what, unit: "ms from publish to arrival", who, is_reference, cells });
        }
    }
    Grid { columns, lines, notes }
}

async fn measure(dir: &Path, order: Order, times: Times) -> Vec<Seen> {
    let (arrivals, mut arrived) = mpsc::channel(100_000);
    let link = receiver(BYTES_PER_SECOND, arrivals).await;
    let engine = Arc::new(LocalEngine::open(dir).expect("a new store"));
    let settings = Settings { order, ..Settings::default() };
    engine.declare_queue("out", settings).await.expect("declared");
    let all: Arc<dyn Engine> = Arc::clone(&engine) as _;
    let gate = Arc::new(Gate::open(Arc::clone(&all), || SystemClock.now()).await.expect("it opens"));
    let endpoint: Endpoint = serde_json::from_value(json!({
        "queue": "out",
        "to": {"webhook": {"url": format!("http://{}/", link.address)}},
        "send": {"reconnect": {"initial_ms": 100, "multiplier": 1, "max_ms": 100}},
    }))
    .expect("an endpoint");
    let endpoints = Endpoints::open(all, gate, Arc::new(SystemClock), vec![("out".to_owned(), endpoint)]);
    let endpoints = endpoints.await.expect("it opens");

    let began = now();
    let publishing = tokio::spawn(publish(Arc::clone(&engine), began, times.end));
    for (at, is_cut) in [(times.down[0], true), (times.down[1], false)] {
        until(began + at).await;
        link.cut(is_cut);
    }
    let published = publishing.await.expect("it does not panic");
    let mut seen = Vec::with_capacity(published as usize);
    let mut known = std::collections::BTreeSet::new();
    while known.len() < published as usize {
        let Arrival { at, body } = arrived.recv().await.expect("the receiver goes on");
        let mut parts = body.split(' ');
        let mut part = || parts.next().expect("kind, number, time").to_owned();
        let (kind, number, sent) = (part(), part(), part().parse::<f64>().expect("a time"));
        // What was in doubt when the link was cut comes twice.
        if known.insert(number) {
            seen.push(Seen { is_alert: kind == "alert", at: sent - began, took: at - sent });
        }
    }
    endpoints.stop(Duration::from_secs(1)).await;
    engine.close();
    seen
}

/// Answers how many there were.
async fn publish(engine: Arc<LocalEngine>, began: f64, end: f64) -> u64 {
    let mut number = 0;
    while now() < began + end {
        let is_alert = number % (PER_ALERT + 1) == PER_ALERT;
        let (kind, len) = if is_alert { ("alert", ALERT) } else { ("data", TELEMETRY) };
        let body = format!("{kind} {number} {} ", now());
        let message = NewMessage {
            to: Target::Queue("out".into()),
            priority: if is_alert { 9 } else { 1 }.into(),
            content: Content { body: Bytes::from(format!("{body:<len$}")), ..Content::default() },
            ..NewMessage::default()
        };
        engine.publish(vec![message]).await.expect("there is room");
        number += 1;
        until(began + number as f64 / TELEMETRY_PER_SECOND as f64).await;
    }
    number
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

async fn until(at: f64) {
    tokio::time::sleep(Duration::from_secs_f64((at - now()).max(0.0))).await;
}

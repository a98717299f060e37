//! The same for programs.

use serde_json::{Value, json};

use super::now::{LaneNow, QueueNow, Sums};
use super::wait::Quantile;

impl Sums {
    /// Counts, rates a second, ages in ms; null is what is not known yet.
    pub(crate) fn json(&self) -> Value {
        json!({
            "ready": self.ready,
            "delayed": self.delayed,
            "leased": self.leased,
            "dead": self.dead,
            "bytes": self.bytes,
            "oldest_age_ms": self.oldest_ms,
            "in_per_s": self.in_rate.map(tenths),
            "out_per_s": self.out_rate.map(tenths),
        })
    }
}

impl QueueNow {
    /// The queue with its lanes, the most urgent first.
    pub(crate) fn json(&self) -> Value {
        let mut queue = self.sums.json();
        queue["name"] = self.name.as_str().into();
        put_waits(&mut queue, self.p50, self.p95);
        queue["takers"] = self.takers.into();
        queue["states"] = self.signs.iter().map(|sign| sign.name()).collect();
        queue["lanes"] = self.lanes.iter().map(LaneNow::json).collect();
        queue
    }
}

impl LaneNow {
    fn json(&self) -> Value {
        let mut lane = self.sums.json();
        lane["lane"] = self.name.as_str().into();
        put_waits(&mut lane, self.p50, self.p95);
        lane["max_active"] = self.cap.into();
        lane
    }
}

fn put_waits(of: &mut Value, p50: Option<Quantile>, p95: Option<Quantile>) {
    of["wait_p50_ms"] = p50.map(Quantile::ms).into();
    of["wait_p95_ms"] = p95.map(Quantile::ms).into();
}

/// More would be chance.
fn tenths(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}

//! Picking among places by their heads, on one core: how the cost grows with their number, beside looking at each of them.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use overtake_lane::{Head, Merger, PickerKind, Seq, Time};

use crate::Plan;
use crate::report::{Row, time};

const LEVELS: i32 = 10;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let mut rows = Vec::new();
    for places in [1, 10, 100, 1_000, 10_000, 100_000] {
        let what = format!("pick, take, show: {places} places");
        if plan.wants(&what) {
            let count = plan.times(if plan.quick { 20_000 } else { 500_000 });
            rows.push(Row::new(what, "picks", count, merged(places, count)));
        }
        let what = format!("looking at each: {places} places");
        if plan.wants(&what) {
            let heads = plan.times(if plan.quick { 10_000_000 } else { 200_000_000 });
            let count = (heads / places as usize).min(5_000_000);
            rows.push(Row::new(what, "picks", count, looked_at(places, count)));
        }
    }
    rows
}

/// Each place has a head in one lane: what comes after a message is of another level.
fn head(seq: u64) -> Head {
    let level = (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i32 % LEVELS;
    Head { level, since: Time(seq), seq: Seq(seq) }
}

fn merged(places: u32, count: usize) -> Duration {
    let mut merger = Merger::new(&PickerKind::Strict, BTreeMap::new());
    for place in 0..places {
        let head = head(place.into());
        merger.show(place, head.level, Some(head));
    }
    let mut seq = u64::from(places);
    time(|| {
        for _ in 0..count {
            let (place, picked) = merger.pick(|_| true).expect("each place has a head");
            merger.charge(picked.level);
            merger.show(place, picked.level, None);
            let next = head(seq);
            merger.show(place, next.level, Some(next));
            seq += 1;
        }
        black_box(&merger);
    })
}

fn looked_at(places: u32, count: usize) -> Duration {
    let mut heads: Vec<Head> = (0..places).map(|place| head(place.into())).collect();
    let mut seq = u64::from(places);
    time(|| {
        for _ in 0..count {
            let first = heads.iter_mut().min_by_key(|head| (-head.level, head.seq)).expect("there is one");
            *first = head(black_box(seq));
            seq += 1;
        }
        black_box(&heads);
    })
}

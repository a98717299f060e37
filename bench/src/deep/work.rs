//! The work itself, the same for every store, in two lives with a kill -9 between them.

use std::path::Path;
use std::time::Instant;

use super::case::Case;
use super::measure::{Findings, Measure, percentiles};
use super::queue::{Leased, MinimalQueue};
use super::traffic::Traffic;
use crate::proc::{self, Memory, Written};

/// Messages in one call.
pub(super) const BATCH: usize = 256;
/// Messages that may be asked for and not yet durable. A store that must be told to sync is told so this often, one
/// that does it on its own has so many in flight.
pub(super) const UNCONFIRMED_MAX: usize = 4_096;
/// Single leases, and urgent messages.
const SINGLES: usize = 1_000;
/// These levels and those below are the least urgent ones.
const LEAST: u8 = 2;

const MIB: f64 = (1 << 20) as f64;

/// The first life: an empty store is filled. Whoever gets the store says how it ends.
pub(super) fn fill<Q: MinimalQueue>(case: Case, dir: &Path) -> (Findings, Q) {
    let mut worker = Worker::new(Q::create(dir), case);
    worker.queue.sync();
    let (empty, written) = (Memory::now(), Written::now(dir));
    let start = Instant::now();
    let mut left = case.depth;
    while left > 0 {
        let batch = left.min(BATCH);
        worker.publish(batch);
        left -= batch;
    }
    worker.sync();
    let seconds = start.elapsed().as_secs_f64();
    let (filled, published) = (Memory::now(), (case.depth * case.body_bytes) as f64);
    let mut findings = vec![(Measure::Fill, case.depth as f64 / seconds)];
    findings.extend(written_since(written, dir, published, [Measure::FillWritten, Measure::FillDevice]));
    findings.extend([
        (Measure::Own, filled.own as f64 / MIB),
        (Measure::OwnEach, filled.own.saturating_sub(empty.own) as f64 / case.depth as f64),
        (Measure::Resident, filled.resident as f64 / MIB),
        (Measure::Peak, filled.peak as f64 / MIB),
    ]);
    (findings, worker.queue)
}

/// The second life: what was filled is opened, used at its depth, and drained.
pub(super) fn use_and_drain<Q: MinimalQueue>(case: Case, dir: &Path) -> (Findings, Q) {
    let start = Instant::now();
    let mut queue = Q::open(dir);
    let open_ms = start.elapsed().as_secs_f64() * 1e3;
    let first = queue.lease_batch(1);
    let first_ms = start.elapsed().as_secs_f64() * 1e3;
    let mut findings = vec![
        (Measure::Open, open_ms),
        (Measure::FirstLease, first_ms),
        (Measure::OpenPeak, Memory::now().peak as f64 / MIB),
    ];

    let mut worker = Worker::new(queue, case);
    worker.traffic.skip(case.depth);
    worker.came(first);
    worker.sync();
    findings.extend(worker.singles());
    findings.extend(worker.urgent());
    findings.extend(worker.steady(case, dir));
    findings.extend(worker.drain());
    (findings, worker.queue)
}

/// Bytes written since then for each byte published: by this process, and on the device.
fn written_since(then: Written, dir: &Path, published: f64, [handed, device]: [Measure; 2]) -> Findings {
    let now = Written::now(dir);
    let mut findings = vec![(handed, (now.handed - then.handed) as f64 / published)];
    let on_device = now.device.zip(then.device).map(|(now, then)| (now - then) as f64);
    findings.extend(on_device.map(|bytes| (device, bytes / published)));
    findings
}

struct Worker<Q: MinimalQueue> {
    queue: Q,
    traffic: Traffic,
    unconfirmed: usize,
    came: u64,
}

impl<Q: MinimalQueue> Worker<Q> {
    fn new(queue: Q, case: Case) -> Self {
        Self { queue, traffic: Traffic::new(case.body_bytes), unconfirmed: 0, came: 0 }
    }

    fn publish(&mut self, count: usize) {
        let batch = self.traffic.batch(count);
        self.queue.publish_batch(batch);
        self.asked(count);
    }

    /// Leases, compares with what must come, and acknowledges. Answers how many, and the level of the first.
    fn pass(&mut self, max: usize) -> (usize, Option<u8>) {
        let leased = self.queue.lease_batch(max);
        let (count, level) = (leased.len(), leased.first().map(|one| one.priority));
        self.came(leased);
        (count, level)
    }

    fn came(&mut self, leased: Vec<Leased<Q::Ticket>>) {
        for one in &leased {
            self.traffic.came(one.priority, &one.body);
        }
        let count = leased.len();
        self.came += count as u64;
        if count > 0 {
            self.queue.ack_batch(leased.into_iter().map(|one| one.ticket).collect());
            self.asked(count);
        }
    }

    fn asked(&mut self, count: usize) {
        self.unconfirmed += count;
        if !Q::IS_PIPELINED && self.unconfirmed >= UNCONFIRMED_MAX {
            self.sync();
        }
    }

    fn sync(&mut self) {
        self.queue.sync();
        self.unconfirmed = 0;
    }

    fn singles(&mut self) -> Findings {
        let (mut leases, mut both) = (Vec::new(), Vec::new());
        for _ in 0..SINGLES {
            let start = Instant::now();
            let leased = self.queue.lease_batch(1);
            leases.push(start.elapsed().as_nanos() as u64);
            assert_eq!(leased.len(), 1, "the backlog is deeper than this");
            self.came(leased);
            self.sync();
            both.push(start.elapsed().as_nanos() as u64);
        }
        let (lease, both) = (percentiles(leases), percentiles(both));
        vec![
            (Measure::LeaseP50, lease.0),
            (Measure::LeaseP99, lease.1),
            (Measure::LeaseAckP50, both.0),
            (Measure::LeaseAckP99, both.1),
        ]
    }

    /// Its confirm is not waited for: the lease is what counts.
    fn urgent(&mut self) -> Findings {
        let mut samples = Vec::new();
        for _ in 0..SINGLES {
            let urgent = self.traffic.urgent();
            let start = Instant::now();
            self.queue.publish_batch(vec![urgent.clone()]);
            let leased = self.queue.lease_batch(1);
            samples.push(start.elapsed().as_nanos() as u64);
            assert!(
                leased.len() == 1 && leased[0].body == urgent.body,
                "another message overtook the urgent one"
            );
            self.came(leased);
            self.sync();
        }
        let (p50, p99) = percentiles(samples);
        vec![(Measure::UrgentP50, p50), (Measure::UrgentP99, p99)]
    }

    fn steady(&mut self, case: Case, dir: &Path) -> Findings {
        let (written, busy, start) = (Written::now(dir), proc::busy_ns(), Instant::now());
        let rounds = case.steady.div_ceil(BATCH);
        for _ in 0..rounds {
            self.publish(BATCH);
            let (count, _) = self.pass(BATCH);
            assert_eq!(count, BATCH, "what was published can be leased");
        }
        self.sync();
        let messages = (rounds * BATCH) as f64;
        let mut findings = vec![
            (Measure::Steady, start.elapsed().as_secs_f64() * 1e6 / messages),
            (Measure::SteadyBusy, (proc::busy_ns() - busy) as f64 / 1e3 / messages),
        ];
        let published = messages * case.body_bytes as f64;
        findings.extend(written_since(
            written,
            dir,
            published,
            [Measure::SteadyWritten, Measure::SteadyDevice],
        ));
        findings
    }

    fn drain(&mut self) -> Findings {
        let (start, waiting) = (Instant::now(), self.traffic.waiting() as f64);
        let mut least = None;
        loop {
            let left = self.traffic.waiting() as f64;
            let before = Instant::now();
            let (count, level) = self.pass(BATCH);
            if count == 0 {
                break;
            }
            if level.is_some_and(|level| level <= LEAST) && least.is_none() {
                least = Some((before, left));
            }
        }
        self.sync();
        let (least_start, least_waiting) = least.expect("the least urgent come last");
        self.traffic.close();
        vec![
            (Measure::Drain, waiting / start.elapsed().as_secs_f64()),
            (Measure::DrainLeast, least_waiting / least_start.elapsed().as_secs_f64()),
            (Measure::Conserved, self.came as f64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Store;
    use super::super::overtake::Overtake;
    use super::*;

    #[test]
    fn two_lives_find_every_measure_of_a_case() {
        let dir = tempfile::tempdir().expect("a directory");
        let case = Case { store: Store::Overtake, depth: 3_000, body_bytes: 100, steady: 1_000 };
        let (mut found, queue) = fill::<Overtake>(case, dir.path());
        drop(queue);
        found.extend(use_and_drain::<Overtake>(case, dir.path()).0);
        // Ratios are between cases, and not every directory is on one device.
        use Measure::{FillDevice, SteadyBusyRatio, SteadyDevice, SteadyRatio};
        let always =
            |measure: &Measure| !matches!(measure, SteadyRatio | SteadyBusyRatio | FillDevice | SteadyDevice);
        let found: Vec<Measure> = found.into_iter().map(|(measure, _)| measure).filter(always).collect();
        let expected: Vec<Measure> = Measure::ALL.into_iter().filter(always).collect();
        assert_eq!(found, expected);
    }
}

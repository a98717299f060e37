//! How much happened, so that one can see that faults really are drawn.

use std::collections::BTreeMap;
use std::fmt;

use overtake_lane::Refusal;

use crate::plan::Fault;

/// Counts over one or many seeds.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Seeds run.
    pub seeds: u64,
    /// Events.
    pub events: u64,
    /// Steps of an engine.
    pub steps: u64,
    /// Answers.
    pub answers: u64,
    /// Answers that were no refusals.
    pub accepted: u64,
    /// Answers lost on their way.
    pub lost_answers: u64,
    /// Leases given.
    pub leases: u64,
    /// Times the engine ended without being asked to.
    pub crashes: u64,
    /// Openings that failed because of a fault.
    pub failed_starts: u64,
    /// Recoveries whose log ended within a step.
    pub cut_steps: u64,
    /// Recoveries of copies of a running store.
    pub peeks: u64,
    /// Openings.
    pub starts: u64,
    /// Times there was no room for a file.
    pub full: u64,
    /// Turns of the loop that found the disk low.
    pub low: u64,
    /// Times that leases were held when the calm began.
    pub held: u64,
    /// Worlds that dead letters flooded in the calm: they ended there.
    pub floods: u64,
    /// Requests that waited for a journal file because of what they take, each time they were looked at.
    pub waits: u64,
    /// Steps after which records waited for room.
    pub behind: u64,
    /// Segments written.
    pub spilled: u64,
    /// Segments rewritten into others.
    pub rewritten: u64,
    /// Segments for which there was no room.
    pub no_room: u64,
    /// Segments removed.
    pub removed: u64,
    /// Commits.
    pub commits: u64,
    /// Bytes that keeping house wrote to the journal while there was room,
    pub house_bytes: u64,
    /// and while there was no more to be had.
    pub full_house_bytes: u64,
    /// Bytes that everything else wrote to it.
    pub other_bytes: u64,
    /// Files given back.
    pub retired: u64,
    /// Connections of clients that speak AMQP.
    pub wires: u64,
    /// Of those, how many broke.
    pub cuts: u64,
    /// Channels that the broker closed.
    pub channel_errors: u64,
    /// Messages that such clients got.
    pub deliveries: u64,
    /// Confirms that they heard, many publishes each.
    pub confirms: u64,
    /// Publishes that were sent again.
    pub resends: u64,
    /// Times they heard that publishes are not taken.
    pub blocked: u64,
    /// Faults struck.
    pub faults: BTreeMap<Fault, u64>,
    /// What was done, by kind.
    pub requests: BTreeMap<&'static str, u64>,
    /// What was refused, by why.
    pub refusals: BTreeMap<&'static str, u64>,
    /// What was seen of routes.
    pub routes: BTreeMap<&'static str, u64>,
    /// What endpoints did, and what came of it.
    pub endpoints: BTreeMap<&'static str, u64>,
    /// Flipped bytes by what came of them.
    pub flips: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        for (mine, more) in [
            (&mut self.seeds, other.seeds),
            (&mut self.events, other.events),
            (&mut self.steps, other.steps),
            (&mut self.answers, other.answers),
            (&mut self.accepted, other.accepted),
            (&mut self.lost_answers, other.lost_answers),
            (&mut self.leases, other.leases),
            (&mut self.crashes, other.crashes),
            (&mut self.failed_starts, other.failed_starts),
            (&mut self.cut_steps, other.cut_steps),
            (&mut self.peeks, other.peeks),
            (&mut self.starts, other.starts),
            (&mut self.full, other.full),
            (&mut self.low, other.low),
            (&mut self.waits, other.waits),
            (&mut self.behind, other.behind),
            (&mut self.held, other.held),
            (&mut self.floods, other.floods),
            (&mut self.commits, other.commits),
            (&mut self.spilled, other.spilled),
            (&mut self.rewritten, other.rewritten),
            (&mut self.no_room, other.no_room),
            (&mut self.removed, other.removed),
            (&mut self.house_bytes, other.house_bytes),
            (&mut self.full_house_bytes, other.full_house_bytes),
            (&mut self.other_bytes, other.other_bytes),
            (&mut self.retired, other.retired),
            (&mut self.wires, other.wires),
            (&mut self.cuts, other.cuts),
            (&mut self.channel_errors, other.channel_errors),
            (&mut self.deliveries, other.deliveries),
            (&mut self.confirms, other.confirms),
            (&mut self.resends, other.resends),
            (&mut self.blocked, other.blocked),
        ] {
            *mine += more;
        }
        add(&mut self.faults, &other.faults);
        add(&mut self.requests, &other.requests);
        add(&mut self.refusals, &other.refusals);
        add(&mut self.flips, &other.flips);
        add(&mut self.routes, &other.routes);
        add(&mut self.endpoints, &other.endpoints);
    }

    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        *self.refusals.entry(refusal.code()).or_default() += 1;
    }
}

fn add<K: Ord + Copy>(mine: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>) {
    for (key, count) in other {
        *mine.entry(*key).or_default() += count;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |counts: Vec<String>| counts.join(", ");
        let named = |counts: &BTreeMap<&'static str, u64>| {
            list(counts.iter().map(|(name, n)| format!("{name} {n}")).collect())
        };
        writeln!(
            f,
            "  {} steps, {} answers ({} lost), {} leases, {} commits, {} files given back, {} copies recovered",
            self.steps, self.answers, self.lost_answers, self.leases, self.commits, self.retired, self.peeks
        )?;
        writeln!(
            f,
            "  bytes written to journals: {} by keeping house, {} by that on a full disk, {} by everything else",
            self.house_bytes, self.full_house_bytes, self.other_bytes
        )?;
        let faults = self.faults.iter().map(|(fault, n)| format!("{fault:?} {n}")).collect();
        writeln!(f, "  faults: {}", list(faults))?;
        writeln!(
            f,
            "  no room for a file {}, low {}, requests waited for a file {}, records waited for room {}, leases held in the calm {}, floods {}",
            self.full, self.low, self.waits, self.behind, self.held, self.floods
        )?;
        writeln!(
            f,
            "  segments written {}, rewritten {}, without room {}, removed {}",
            self.spilled, self.rewritten, self.no_room, self.removed
        )?;
        writeln!(
            f,
            "  starts: {}, failed {}, log ended within a step {}",
            self.starts, self.failed_starts, self.cut_steps
        )?;
        writeln!(
            f,
            "  AMQP: connections {}, broken {}, channels closed by the broker {}, deliveries {}, confirms {}, sent again {}, blocked {}",
            self.wires,
            self.cuts,
            self.channel_errors,
            self.deliveries,
            self.confirms,
            self.resends,
            self.blocked
        )?;
        writeln!(f, "  routes: {}", named(&self.routes))?;
        writeln!(f, "  endpoints: {}", named(&self.endpoints))?;
        writeln!(f, "  flipped bytes: {}", named(&self.flips))?;
        writeln!(f, "  done: {}", named(&self.requests))?;
        write!(f, "  refused: {}", named(&self.refusals))
    }
}

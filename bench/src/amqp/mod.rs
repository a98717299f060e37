//! A broker from outside, by AMQP: as fast as it takes and gives, how urgent work fares under bulk, what idle clients cost.
//!
//! One load generator for every broker, with our own codec, so that it costs little; how little is measured first, against
//! a sink. Client and broker share the same two cores. Beside ours, in the same run and with the same work, brokers that
//! others made, each started anew for each scenario. Every message that comes is compared with what went in: which lose,
//! repeat, damage or disorder one, fail.

mod conditions;
mod finding;
mod letter;
mod paced;
pub(crate) mod peer;
mod scenario;
mod tally;
mod trickle;
mod wire;
mod work;

use crate::report::{Grid, Section};
use crate::{Plan, proc};
use conditions::Conditions;
use finding::{Finding, tables};
use peer::{Broker, Peer};
use scenario::{SCENARIOS, Scenario};

/// Bytes of a body.
const BODY_LEN: usize = 256;
/// Levels of urgency, 0 the least.
const LEVELS: u8 = 10;
/// At most so many messages of a publisher are not confirmed.
const WINDOW: u64 = 1_000;

/// One scenario with one broker.
struct Stage<'a> {
    peer: Peer,
    broker: &'a Broker,
    plan: Plan,
}

impl Stage<'_> {
    /// This many, or fewer where it is to go quickly or the broker is slow.
    fn count(&self, count: u64) -> u64 {
        self.same_count(count) / self.peer.slowness()
    }

    /// This many, or fewer where it is to go quickly; whoever the broker is.
    fn same_count(&self, count: u64) -> u64 {
        if self.plan.quick { count / 10 } else { count }
    }
}

/// What became of a run.
pub(crate) struct Outcome {
    pub(crate) conditions: Vec<(String, String)>,
    pub(crate) sections: Vec<Section>,
    /// Whether a broker lost, repeated or disordered a message, or did not do what was asked.
    pub(crate) failed: bool,
}

pub(crate) fn run(plan: Plan) -> Outcome {
    let mut notes = Vec::new();
    if proc::is_in_memory(&std::env::temp_dir()) {
        notes.push("the temporary directory is in memory: set TMPDIR to one on a disk".to_owned());
    }
    conditions::two_cores(&mut notes);
    conditions::raise_files(&mut notes);
    let peers = in_turn(chosen(plan, &mut notes));
    let mut conditions = Conditions::now();
    let (mut sections, mut failed) = (Vec::new(), false);
    for scenario in SCENARIOS {
        if !scenario.is_wanted(plan) {
            continue;
        }
        let mut found = Vec::new();
        for peer in &peers {
            if !(scenario.fits)(*peer) {
                continue;
            }
            match perform(scenario, *peer, plan, &mut conditions, &mut notes) {
                Some(findings) => found.push((*peer, findings)),
                None => failed = true,
            }
        }
        sections.extend(tables(scenario.about, &found));
    }
    conditions.end();
    sections.push(Section { title: "notes".to_owned(), grid: Grid { notes, ..Grid::default() } });
    Outcome { conditions: conditions.into_lines(), sections, failed }
}

/// `None` when it failed; nothing at all when the broker is not there to be measured.
fn perform(
    scenario: &Scenario,
    peer: Peer,
    plan: Plan,
    conditions: &mut Conditions,
    notes: &mut Vec<String>,
) -> Option<Vec<Finding>> {
    let name = peer.name();
    let broker = match peer.start(plan.url) {
        Ok(broker) => broker,
        Err(error) => {
            let note = format!("{name} was skipped: {error:#}");
            if !notes.contains(&note) {
                eprintln!("amqp: {note}");
                notes.push(note);
            }
            return Some(Vec::new());
        }
    };
    conditions.saw(peer, &broker);
    eprintln!("amqp: {}, {name}, load {}", scenario.name, conditions::load());
    match (scenario.run)(&Stage { peer, broker: &broker, plan }) {
        Ok(findings) => Some(findings),
        Err(error) => {
            let note = format!("{name} FAILED: {}: {error:#}", scenario.name);
            eprintln!("amqp: {note}");
            notes.push(note);
            None
        }
    }
}

/// Those that were named; else all but those that must be asked for.
fn chosen(plan: Plan, notes: &mut Vec<String>) -> Vec<Peer> {
    let named: Vec<&str> = plan.peers.split(',').filter(|name| !name.is_empty()).collect();
    for name in named.iter().filter(|name| Peer::ALL.iter().all(|peer| peer.name() != **name)) {
        notes.push(format!("there is no peer `{name}`"));
    }
    let by_itself = |peer: Peer| match peer {
        Peer::Given => !plan.url.is_empty(),
        Peer::BeanstalkdUnsynced | Peer::RedisUnsynced | Peer::NatsUnsynced => false,
        Peer::Sink | Peer::Overtake => true,
        Peer::RabbitMq | Peer::Beanstalkd | Peer::Redis => plan.url.is_empty(),
    };
    let is_chosen = |peer: &Peer| match &named[..] {
        [] => by_itself(*peer),
        named => named.contains(&peer.name()) || (*peer == Peer::Given && by_itself(*peer)),
    };
    Peer::ALL.into_iter().filter(is_chosen).collect()
}

/// A broker that was given, and ours, twice in turn: the pace of a machine changes.
fn in_turn(mut peers: Vec<Peer>) -> Vec<Peer> {
    if peers.contains(&Peer::Given) && peers.contains(&Peer::Overtake) {
        peers.retain(|peer| !matches!(peer, Peer::Given | Peer::Overtake));
        peers.extend([Peer::Overtake, Peer::Given, Peer::Overtake, Peer::Given]);
    }
    peers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(peers: &'static str, url: &'static str) -> Vec<&'static str> {
        let plan = Plan { peers, url, ..Plan::default() };
        in_turn(chosen(plan, &mut Vec::new())).into_iter().map(Peer::name).collect()
    }

    #[test]
    fn a_broker_that_is_given_is_measured_twice_in_turn_with_ours() {
        assert_eq!(measured("", ""), ["sink", "overtake", "rabbitmq", "beanstalkd", "redis"]);
        assert_eq!(measured("", "amqp://a"), ["sink", "overtake", "url", "overtake", "url"]);
        assert_eq!(measured("overtake", "amqp://a"), ["overtake", "url", "overtake", "url"]);
        assert_eq!(measured("sink", "amqp://a"), ["sink", "url"]);
    }
}

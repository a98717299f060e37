//! Records with a real priority, which every Debian machine has: what is installed.
//!
//! Each package is published with its priority. Half-way through draining them the broker is killed with −9 and started
//! again. Every package must arrive, in order of priority and then of the file, and none that was acknowledged again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Broker, run};

/// Where dpkg keeps them.
pub const STATUS: &str = "/var/lib/dpkg/status";

/// dpkg's priorities, the most urgent first, and what they are called in the scheme `signed`.
const PRIORITIES: [(&str, &str); 5] = [
    ("required", "CRITICAL"),
    ("important", "HIGH"),
    ("standard", "NORMAL"),
    ("optional", "LOW"),
    ("extra", "BULK"),
];
/// What a package without a priority is, as Debian's policy has it (section 2.5).
const OPTIONAL: usize = 3;
/// How long a package that was lent when the broker died stays away.
const VISIBILITY_TIMEOUT: &str = "1s";

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Name and architecture: unique on a machine.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its place in dpkg's priorities, 0 the most urgent.
    pub rank: usize,
}

impl Package {
    /// The priority as dpkg says it.
    pub fn priority(&self) -> &'static str {
        PRIORITIES[self.rank].0
    }

    /// The message that stands for it, as `publish --json-lines` takes it.
    fn message(&self) -> Value {
        json!({
            "id": self.id,
            "priority": PRIORITIES[self.rank].1,
            "headers": { "version": self.version },
            "body": format!("{} {}", self.id, self.version),
        })
    }
}

/// The packages of a status file: paragraphs between empty lines, a field per line (deb822).
pub fn packages(status: &str) -> Vec<Package> {
    status.split("\n\n").filter_map(package).collect()
}

fn package(paragraph: &str) -> Option<Package> {
    let field = |name: &str| {
        let value = paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(str::trim)
    };
    let rank = PRIORITIES.iter().position(|(name, _)| Some(*name) == field("Priority")).unwrap_or(OPTIONAL);
    let id = format!("{}:{}", field("Package")?, field("Architecture").unwrap_or("all"));
    Some(Package { id, version: field("Version").unwrap_or("?").to_owned(), rank })
}

/// Publishes, drains half, kills, restarts, drains the rest; panics where a promise is broken.
pub fn tell(data: &Path, packages: &[Package], say: &mut dyn FnMut(String)) {
    say(census(packages));
    let mut expected: Vec<_> = packages.iter().collect();
    // Stable: packages of one priority stay as they are in the file.
    expected.sort_by_key(|package| package.rank);
    let expected: Vec<_> = expected.into_iter().map(|package| package.id.clone()).collect();

    let broker = Broker::start(data);
    broker.run(&["queue", "declare", "packages", "scheme=signed"]).ok();
    let lines: String = packages.iter().map(|package| format!("{}\n", package.message())).collect();
    let published =
        broker.feed(&["publish", "packages", "--lines", "-", "--json-lines"], lines.as_bytes()).ok();
    say(published.trim_end().to_owned());

    let half = expected.len() / 2;
    let first = drain_until_killed(broker, half);
    assert_eq!(first, expected[..first.len()], "the first half comes in order");
    say(format!(
        "killed the broker with -9 while package {} of {} was under way",
        first.len(),
        expected.len()
    ));

    let broker = Broker::start(data);
    // A consumer takes the next one only when the last one is acknowledged; so of what came, only the last is in doubt.
    let (in_doubt, acknowledged) = first.split_last().expect("half of them came");
    let gone = broker.run(&["peek", "packages", "--id", in_doubt]).code != 0;
    let left: Vec<_> = expected[first.len() - usize::from(!gone)..].to_vec();
    let lent: BTreeSet<String> =
        ids(&broker.run(&["peek", "packages", "--status", "leased", "--json"]).stdout, "messages");
    say(format!(
        "started it again: {} left, {} of them still lent to the consumer that lost its broker",
        left.len(),
        lent.len()
    ));

    let count = left.len().to_string();
    let second = broker.run(&["consume", "packages", "--json", "--wait", "30s", "--count", &count]).ok();
    let second: Vec<_> = second.lines().map(id).collect();
    // Those that were lent come when their leases end; all others in order.
    let in_order =
        |list: &[String]| list.iter().filter(|id| !lent.contains(*id)).cloned().collect::<Vec<_>>();
    assert_eq!(in_order(&second), in_order(&left), "the second half comes in order");
    assert_eq!(second.iter().collect::<BTreeSet<_>>(), left.iter().collect(), "every package arrives");
    assert!(!second.iter().any(|id| acknowledged.contains(id)), "an acknowledged one never comes again");

    let totals = broker.run(&["queue", "show", "packages", "--json"]).json()["totals"].clone();
    assert_eq!((&totals["ready"], &totals["leased"], &totals["delayed"]), (&0.into(), &0.into(), &0.into()));
    broker.stop();
    run(&["store", "check", data.to_str().expect("a path of text")], b"").ok();
    say(format!(
        "every package arrived, in order of priority and then of the file; none of the {} acknowledged before came again",
        acknowledged.len() + usize::from(gone)
    ));
}

/// How many packages there are of each priority.
fn census(packages: &[Package]) -> String {
    let mut counts = BTreeMap::new();
    for package in packages {
        *counts.entry(package.rank).or_insert(0) += 1;
    }
    let counts: Vec<_> =
        counts.iter().map(|(rank, count)| format!("{count} {}", PRIORITIES[*rank].0)).collect();
    format!("{} packages: {}", packages.len(), counts.join(", "))
}

/// Drains one by one and kills the broker when so many have come; answers with all that came.
fn drain_until_killed(broker: Broker, many: usize) -> Vec<String> {
    let words = ["consume", "packages", "--all", "--json", "--visibility-timeout", VISIBILITY_TIMEOUT];
    let mut consumer = broker.command(&words);
    let consumer = consumer.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut consumer = consumer.spawn().expect("the binary runs");
    let mut lines = BufReader::new(consumer.stdout.take().expect("piped")).lines();
    let mut came: Vec<_> = lines.by_ref().take(many).map(|line| id(&line.expect("text"))).collect();
    broker.signal(Signal::KILL);
    broker.end();
    came.extend(lines.map(|line| id(&line.expect("text"))));
    let ended = consumer.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(69), "{}", String::from_utf8_lossy(&ended.stderr));
    came
}

fn id(message: &str) -> String {
    let message: Value = serde_json::from_str(message).expect(message);
    message["id"].as_str().expect("an id").to_owned()
}

fn ids(answer: &str, list: &str) -> BTreeSet<String> {
    let answer: Value = serde_json::from_str(answer).expect(answer);
    answer[list]
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| message["id"].as_str().expect("an id").to_owned())
        .collect()
}

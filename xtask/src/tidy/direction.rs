//! Arrows between crates point down only, and the pure crates are pure all the way down.

use super::Finding;
use super::repo::{Edge, Kind, Repo};

/// Which of our crates each of our crates may depend on, outside its tests. A new row or a new arrow is a change of
/// the architecture and says so.
const DIRECTION: &[(&str, &[&str])] = &[
    ("overtake-lane", &[]),
    ("overtake-store", &["overtake-lane"]),
    ("overtake-properties", &[]),
    ("overtake-amqp", &["overtake-lane", "overtake-properties"]),
    ("overtake-engine", &["overtake-lane", "overtake-store", "overtake-properties", "overtake-routes"]),
    (
        "overtake-amqp-session",
        &["overtake-lane", "overtake-properties", "overtake-amqp", "overtake-engine", "overtake-redact"],
    ),
    ("overtake-access", &["overtake-lane", "overtake-routes", "overtake-engine"]),
    ("overtake-api", &["overtake-lane", "overtake-engine", "overtake-routes", "overtake-redact"]),
    ("overtake-schedules", &["overtake-lane", "overtake-properties", "overtake-engine", "overtake-access"]),
    ("overtake-categories", &["overtake-lane", "overtake-engine", "overtake-access", "overtake-redact"]),
    ("overtake-overview", &["overtake-lane", "overtake-engine"]),
    ("overtake-page", &[]),
    ("overtake-routes", &["overtake-redact"]),
    ("overtake-redact", &[]),
    ("overtake-telemetry", &["overtake-lane", "overtake-engine", "overtake-redact"]),
    ("overtake-forward", &["overtake-lane"]),
    ("overtake-corpus", &[]),
    ("overtake-free-port", &[]),
    ("overtake-peer", &["overtake-redact"]),
    ("overtake-streams", &["overtake-lane", "overtake-peer"]),
    ("overtake-valkey", &["overtake-engine", "overtake-lane", "overtake-peer", "overtake-store"]),
    (
        "overtake-outbox",
        &["overtake-lane", "overtake-client", "overtake-peer", "overtake-streams", "overtake-redact"],
    ),
    (
        "overtake-client",
        &["overtake-lane", "overtake-properties", "overtake-amqp", "overtake-streams", "overtake-redact"],
    ),
    (
        "overtake-connectors",
        &[
            "overtake-lane",
            "overtake-properties",
            "overtake-amqp",
            "overtake-engine",
            "overtake-access",
            "overtake-telemetry",
            "overtake-forward",
            "overtake-peer",
            "overtake-redact",
        ],
    ),
    (
        "overtake-http",
        &[
            "overtake-lane",
            "overtake-routes",
            "overtake-engine",
            "overtake-access",
            "overtake-api",
            "overtake-forward",
            "overtake-categories",
            "overtake-connectors",
            "overtake-schedules",
            "overtake-overview",
            "overtake-telemetry",
            "overtake-redact",
        ],
    ),
    (
        "overtake-management",
        &[
            "overtake-lane",
            "overtake-properties",
            "overtake-amqp",
            "overtake-amqp-session",
            "overtake-engine",
            "overtake-access",
            "overtake-telemetry",
            "overtake-redact",
        ],
    ),
    (
        "overtake-connections",
        &[
            "overtake-lane",
            "overtake-amqp",
            "overtake-amqp-session",
            "overtake-engine",
            "overtake-access",
            "overtake-api",
            "overtake-management",
        ],
    ),
    (
        "overtake-server",
        &[
            "overtake-lane",
            "overtake-routes",
            "overtake-store",
            "overtake-amqp",
            "overtake-engine",
            "overtake-access",
            "overtake-categories",
            "overtake-connections",
            "overtake-connectors",
            "overtake-schedules",
            "overtake-overview",
            "overtake-telemetry",
            "overtake-http",
            "overtake-management",
            "overtake-page",
            "overtake-peer",
            "overtake-valkey",
            "overtake-redact",
        ],
    ),
    (
        "overtake",
        &[
            "overtake-lane",
            "overtake-routes",
            "overtake-store",
            "overtake-engine",
            "overtake-outbox",
            "overtake-streams",
            "overtake-telemetry",
            "overtake-http",
            "overtake-server",
            "overtake-valkey",
            "overtake-peer",
            "overtake-redact",
        ],
    ),
    // Nothing may depend on the simulator: it is never in a release binary.
    (
        "overtake-sim",
        &[
            "overtake-lane",
            "overtake-routes",
            "overtake-store",
            "overtake-properties",
            "overtake-amqp",
            "overtake-amqp-session",
            "overtake-engine",
            "overtake-forward",
        ],
    ),
    (
        "overtake-bench",
        &[
            "overtake-lane",
            "overtake-routes",
            "overtake-store",
            "overtake-properties",
            "overtake-amqp",
            "overtake-client",
            "overtake-engine",
            "overtake-access",
            "overtake-connectors",
            "overtake-free-port",
            "overtake-overview",
            "overtake-telemetry",
            "overtake-http",
            "overtake-server",
            "overtake-peer",
            "overtake-valkey",
        ],
    ),
    ("xtask", &[]),
];

/// A crate with nothing of this kind anywhere beneath it.
pub(crate) struct Pure {
    pub(crate) name: &'static str,
    without: &'static [&'static [&'static str]],
}

const TOKIO: &[&str] = &["tokio"];
/// What polls sockets and files, beneath `tokio` or instead of it.
const POLLING: &[&str] = &["mio", "async-std", "smol"];
const SOCKETS: &[&str] = &["socket2"];
/// Servers of HTTP and what comes with them. A crate without them builds in seconds, also with the instrumentation of a fuzzer.
const SERVERS: &[&str] = &["axum", "hyper", "tower", "rustls"];
const SYSTEM: &[&str] = &["libc", "rustix"];
const CHANCE: &[&str] = &["rand", "rand_core", "fastrand", "getrandom"];
const CLOCKS: &[&str] =
    &["chrono", "time", "jiff", "quanta", "coarsetime", "minstant", "web-time", "instant"];

/// The model, the forwarder and the language of routes have no I/O, clock, thread or chance; the store has no runtime and no clock; AMQP has no socket, clock or
/// chance; a conversation, which waits for an engine through `tokio`'s channels, has no socket and no clock either. Requests of the HTTP API are decoded without
/// sockets and without a server.
pub(crate) const PURE: &[Pure] = &[
    Pure { name: "overtake-lane", without: &[TOKIO, POLLING, SOCKETS, SYSTEM, CHANCE, CLOCKS] },
    Pure { name: "overtake-store", without: &[TOKIO, POLLING, CLOCKS] },
    Pure { name: "overtake-forward", without: &[TOKIO, POLLING, SOCKETS, SYSTEM, CHANCE, CLOCKS] },
    Pure { name: "overtake-routes", without: &[TOKIO, POLLING, SOCKETS, SYSTEM, CHANCE, CLOCKS] },
    Pure { name: "overtake-amqp", without: &[TOKIO, POLLING, SOCKETS, CHANCE, CLOCKS] },
    Pure { name: "overtake-amqp-session", without: &[POLLING, SOCKETS, CHANCE, CLOCKS] },
    Pure { name: "overtake-api", without: &[POLLING, SOCKETS, SERVERS] },
];

/// Every arrow between our crates is in the table.
pub(crate) fn downwards(repo: &Repo) -> Vec<Finding> {
    let row = |name: &str| DIRECTION.iter().find(|(from, _)| *from == name).map(|(_, to)| *to);
    let unknown = repo.members.iter().filter(|member| row(member).is_none());
    let mut found: Vec<_> = unknown
        .map(|member| Finding::error(member, 0, "has no row in the table of directions (xtask)"))
        .collect();
    for edge in between_ours(repo, Kind::Normal) {
        if !row(&edge.from).unwrap_or_default().contains(&edge.to.as_str()) {
            found.push(Finding::error(&edge.from, 0, format!("must not depend on {}", edge.to)));
        }
    }
    found
}

/// Nothing forbidden lies anywhere below a pure crate.
pub(crate) fn purity(repo: &Repo) -> Vec<Finding> {
    let mut found = Vec::new();
    for pure in PURE {
        let below = repo.trees.get(pure.name).into_iter().flatten();
        let forbidden =
            below.filter(|package| pure.without.iter().any(|kind| kind.contains(&package.as_str())));
        let said = forbidden.map(|package| Finding::error(pure.name, 0, format!("has {package} below it")));
        found.extend(said);
    }
    found
}

/// The arrows that exist for tests only, as one line: allowed, and worth knowing.
pub(crate) fn test_edges(repo: &Repo) -> String {
    let edges = between_ours(repo, Kind::Dev).filter(|edge| edge.from != edge.to);
    let list: Vec<_> = edges.map(|edge| format!("{} → {}", edge.from, edge.to)).collect();
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

fn between_ours(repo: &Repo, kind: Kind) -> impl Iterator<Item = &Edge> {
    repo.edges
        .iter()
        .filter(move |edge| edge.kind == kind && repo.is_ours(&edge.from) && repo.is_ours(&edge.to))
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    fn workspace() -> Repo {
        Repo::default().with_members(&["overtake-lane", "overtake-store", "overtake-sim", "overtake"])
    }

    #[test]
    fn an_arrow_that_points_up_is_found() {
        let repo = workspace().with_edge("overtake-lane", "overtake-store", Kind::Normal);
        check(downwards, repo, &["overtake-lane: must not depend on overtake-store"]);
        let repo = workspace().with_edge("overtake", "overtake-sim", Kind::Normal);
        check(downwards, repo, &["overtake: must not depend on overtake-sim"]);
    }

    #[test]
    fn an_arrow_down_and_an_arrow_of_a_test_are_fine() {
        let repo = workspace().with_edge("overtake-store", "overtake-lane", Kind::Normal);
        let repo = repo.with_edge("overtake-lane", "overtake-sim", Kind::Dev);
        assert_eq!(test_edges(&repo), "overtake-lane → overtake-sim");
        check(downwards, repo, &[]);
    }

    #[test]
    fn a_crate_nobody_placed_is_found() {
        let repo = Repo::default().with_members(&["overtake-utils"]);
        check(downwards, repo, &["overtake-utils: has no row in the table of directions (xtask)"]);
    }

    #[test]
    fn tokio_deep_below_the_model_is_found() {
        let mut repo = workspace();
        repo.trees.insert("overtake-lane".into(), vec!["serde".into(), "tokio".into()]);
        repo.trees.insert("overtake-store".into(), vec!["jiff".into(), "rand".into()]);
        check(purity, repo, &["overtake-lane: has tokio below it", "overtake-store: has jiff below it"]);
    }

    #[test]
    fn the_table_has_no_circle() {
        let below = |name: &str| DIRECTION.iter().find(|(from, _)| *from == name).map(|(_, to)| *to).unwrap();
        for (from, to) in DIRECTION {
            assert!(
                to.iter().all(|to| !below(to).contains(from)),
                "{from} and one of its dependencies want each other"
            );
        }
    }
}

//! Learning who holds what, from the nodes themselves; and what a node must be for any of this to work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use overtake_peer::redis::{Fault, Line, RedisServer};
use redis::{Cmd, Value, cmd};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at};

use super::map::{Map, Place};
use super::nodes::{Kind, Nodes};
use super::roads::Roads;

/// So many nodes are asked at once, of those known.
const ASKED_MAX: usize = 5;
/// So many answers are enough: the newest of them counts.
const ANSWERS_MAX: usize = 3;
/// How long the others are waited for after the first answer.
const OTHERS: Duration = Duration::from_millis(200);
/// Least time between two looks.
const REST: Duration = Duration::from_millis(20);
/// The first version with functions, and with sharded channels.
const VERSION_MIN: (u32, u32) = (7, 0);
/// The first version with `WAITAOF`, of Redis; Valkey began with it.
const WAITAOF_MIN: (u32, u32) = (7, 2);

/// What a server says of itself, `INFO`'s lines by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Info(BTreeMap<String, String>);

impl Info {
    pub(super) fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        Self(lines.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// What it is, and its version, as people say it.
    pub(super) fn product(&self) -> String {
        match (self.get("valkey_version"), self.get("redis_version")) {
            (Some(version), _) => format!("Valkey {version}"),
            (None, Some(version)) => format!("Redis {version}"),
            (None, None) => "a server that does not say its version".to_owned(),
        }
    }

    /// That of Redis, which Valkey says, too.
    fn version(&self) -> Option<(u32, u32)> {
        let mut parts = self.get("redis_version")?.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    }
}

/// A node that answers, and whom it says holds what.
///
/// # Errors
/// Why it is none to work with, as a phrase that tells what to do.
pub(super) async fn begin(server: &RedisServer, nodes: &Nodes) -> Result<Map, String> {
    let ms = nodes.patience.connect_ms;
    let begun = timeout(nodes.patience.connect(), async {
        let mut line = server.line().await?;
        let info = info(&mut line).await?.map_err(|fault| forbidden(&fault, "INFO"))?;
        check(&info, nodes)?;
        map_of(&mut line, server, nodes).await
    });
    // One that knows nothing of TLS waits for the end of the line that it takes a greeting for.
    let hint = if server.is_secure() { "; if it knows nothing of TLS, say redis://" } else { "" };
    let server = server.authority();
    let begun = begun.await.map_err(|_| format!("{server} does not answer within {ms} ms{hint}"))?;
    begun.map_err(|why| if why.contains(&server) { why } else { format!("{server}: {why}") })
}

/// `INFO`, the sections that matter, of servers that do not take several at once, too.
pub(super) async fn info(line: &mut Line) -> Result<Result<Info, Fault>, String> {
    Ok(line.ask(cmd("INFO").arg("all")).await?.map(|answer| Info::parse(&text(&answer))))
}

pub(super) fn text(answer: &Value) -> String {
    match answer {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        _ => String::new(),
    }
}

pub(super) fn forbidden(fault: &Fault, command: &str) -> String {
    let what_to_do = if fault.is_forbidden() {
        format!("; the user must have the right to {command} (ACL SETUSER)")
    } else {
        String::new()
    };
    format!("to {command} it answers {} {}{what_to_do}", fault.code(), fault.details())
}

fn check(info: &Info, nodes: &Nodes) -> Result<(), String> {
    let product = info.product();
    if info.version().is_some_and(|version| version < VERSION_MIN) {
        return Err(format!(
            "it is {product}, and functions are there from Redis 7.0 and Valkey 7.2 on: upgrade it"
        ));
    }
    if nodes.durability.is_fsync_acked && info.version().is_some_and(|version| version < WAITAOF_MIN) {
        return Err(format!(
            "it is {product}, which cannot say what is in its log (WAITAOF): upgrade it to Valkey or Redis 7.2, or leave out \
             `fsync_acked`; with `appendfsync always` a server answers only what is in its log anyway"
        ));
    }
    if nodes.durability.is_fsync_acked && info.get("aof_enabled") == Some("0") {
        return Err("`fsync_acked` wants a log, and it keeps none: say `appendonly yes` there".to_owned());
    }
    let is_cluster = info.get("cluster_enabled") == Some("1");
    match nodes.kind {
        Kind::Cluster if !is_cluster => {
            Err("it is no node of a cluster: say kind = \"redis\", or start it with `cluster-enabled yes`"
                .to_owned())
        }
        Kind::Redis if is_cluster => {
            Err("it is a node of a cluster, which holds only a part: say kind = \"cluster\"".to_owned())
        }
        Kind::Redis if info.get("role") == Some("slave") => {
            let host = info.get("master_host").unwrap_or("?");
            let port = info.get("master_port").unwrap_or("?");
            Err(format!("it is a replica, which takes no writes: name its primary, {host}:{port}"))
        }
        _ => Ok(()),
    }
}

async fn map_of(line: &mut Line, server: &RedisServer, nodes: &Nodes) -> Result<Map, String> {
    if nodes.kind == Kind::Redis {
        return Ok(Map::of_one(Place::new(server.host(), server.port())));
    }
    let cluster = |what: &str| cmd("CLUSTER").arg(what).take();
    let state = said(line, &cluster("INFO"), "CLUSTER INFO").await?;
    let epoch = Info::parse(&text(&state)).number("cluster_current_epoch").unwrap_or(0);
    let slots = said(line, &cluster("SLOTS"), "CLUSTER SLOTS").await?;
    Map::parse(epoch, slots, server.host())
        .ok_or_else(|| "it answers CLUSTER SLOTS as no cluster does".to_owned())
}

async fn said(line: &mut Line, command: &Cmd, name: &str) -> Result<Value, String> {
    line.ask(command).await?.map_err(|fault| forbidden(&fault, name))
}

/// Looks again and again: at intervals, and when somebody was told something that the map does not say.
pub(super) async fn keep_looking(roads: Arc<Roads>) {
    let patience = roads.nodes.patience;
    let mut ticks = interval_at(Instant::now() + patience.look(), patience.look());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = 0;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = roads.look.notified() => {}
        }
        if roads.nodes.kind == Kind::Redis {
            continue;
        }
        match newest(&roads).await {
            Some(map) => {
                if std::mem::take(&mut failed) > 0 {
                    tracing::info!("a node of the cluster says who holds what again");
                }
                roads.maps.send_if_modified(|known| {
                    let is_new = **known != map;
                    if is_new {
                        *known = Arc::new(map);
                    }
                    is_new
                });
                roads.forget_lanes();
            }
            None => {
                // How each of them stands is told of each.
                if failed == 0 {
                    tracing::warn!("no node of the cluster says who holds what");
                }
                failed += 1;
            }
        }
        tokio::time::sleep(REST + patience.backoff(failed)).await;
    }
}

/// The newest of what some nodes say.
pub(super) async fn newest(roads: &Arc<Roads>) -> Option<Map> {
    let map = roads.map();
    let known = map.nodes().into_iter().filter_map(|place| roads.server(place).ok());
    let mut candidates: Vec<_> = known.chain(roads.seeds.iter().cloned()).collect();
    candidates.sort_by_key(RedisServer::authority);
    candidates.dedup_by_key(|server| server.authority());
    shuffle(&mut candidates);
    let mut asked = JoinSet::new();
    let mut rest = candidates.into_iter();
    for server in rest.by_ref().take(ASKED_MAX) {
        let roads = Arc::clone(roads);
        asked.spawn(async move { begin(&server, &roads.nodes).await });
    }
    let mut found = Vec::new();
    let mut until = None;
    while found.len() < ANSWERS_MAX {
        let next = match until {
            Some(until) => timeout_at(until, asked.join_next()).await.unwrap_or(None),
            None => asked.join_next().await,
        };
        match next {
            Some(Ok(Ok(map))) => {
                found.push(map);
                until.get_or_insert_with(|| Instant::now() + OTHERS);
            }
            Some(Ok(Err(why))) => tracing::debug!(why, "a node does not say who holds what"),
            Some(Err(_)) => {}
            None if !found.is_empty() => break,
            None => {
                // None of these: the others.
                let server = rest.next()?;
                let roads = Arc::clone(roads);
                asked.spawn(async move { begin(&server, &roads.nodes).await });
            }
        }
    }
    // Of two that have seen as much the one that says more.
    found.into_iter().max_by_key(|map| (map.epoch, map.is_whole()))
}

fn shuffle<T>(all: &mut [T]) {
    for at in (1..all.len()).rev() {
        all.swap(at, getrandom::u32().unwrap_or_default() as usize % (at + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &str) -> Info {
        Info::parse(&lines.replace(' ', "\r\n"))
    }

    fn why(info: &str, kind: Kind, is_fsync_acked: bool) -> String {
        let mut nodes = Nodes::new(kind, vec![]);
        nodes.durability.is_fsync_acked = is_fsync_acked;
        check(&said(info), &nodes).expect_err("refused")
    }

    #[test]
    fn a_server_that_cannot_do_it_is_told_apart_with_what_to_do() {
        let old = why("redis_version:6.2.14 cluster_enabled:1", Kind::Cluster, false);
        assert!(old.contains("Redis 6.2.14") && old.contains("upgrade"), "{old}");
        let alone = "redis_version:7.0.15 cluster_enabled:0 role:master";
        assert!(why(alone, Kind::Cluster, false).contains("kind = \"redis\""));
        assert!(
            why("redis_version:7.0.15 cluster_enabled:1", Kind::Redis, false).contains("kind = \"cluster\"")
        );
        assert!(why(alone, Kind::Redis, true).contains("WAITAOF"));
        let quiet = "redis_version:7.2.4 valkey_version:8.0.1 cluster_enabled:0 aof_enabled:0";
        assert!(why(quiet, Kind::Redis, true).contains("appendonly yes"));
        let replica = "redis_version:7.0.15 cluster_enabled:0 role:slave master_host:h master_port:7";
        assert!(why(replica, Kind::Redis, false).contains("h:7"));
        assert_eq!(said(quiet).product(), "Valkey 8.0.1");
        check(&said(alone), &Nodes::new(Kind::Redis, vec![])).expect("fine");
    }
}

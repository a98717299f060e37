//! One node, asked what it is like.

use std::collections::BTreeMap;

use overtake_peer::redis::{Line, RedisServer};
use redis::{Value, cmd};

use super::super::library::{Library, version_at};
use super::super::look::{Info, info, text};
use super::super::map::Place;
use super::super::nodes::{Durability, Kind};
use super::rights;
use super::{NodeFacts, ReplicaFacts};

pub(super) async fn ask(
    server: &RedisServer,
    kind: Kind,
    durability: Durability,
    library: Library,
) -> Result<NodeFacts, String> {
    let mut line = server.line().await?;
    let info = info(&mut line)
        .await?
        .map_err(|fault| format!("to INFO it answers {} {}", fault.code(), fault.details()))?;
    let settings = settings(&mut line).await?;
    let number = |name: &str| settings.get(name)?.parse().ok();
    let is_yes = |name: &str| settings.get(name).map(|value| value == "yes");
    let is_primary = info.get("role") != Some("slave");
    Ok(NodeFacts {
        place: String::new(),
        trouble: None,
        product: info.product(),
        is_primary,
        slots: 0,
        is_following: (!is_primary).then(|| info.get("master_link_status") == Some("up")),
        replicas: replicas(&info),
        appendonly: is_yes("appendonly").or_else(|| Some(info.get("aof_enabled")? == "1")),
        appendfsync: settings.get("appendfsync").cloned(),
        maxmemory: info.number("maxmemory"),
        maxmemory_policy: info.get("maxmemory_policy").map(ToOwned::to_owned),
        min_replicas_to_write: settings.get("min-replicas-to-write").and_then(|value| value.parse().ok()),
        cluster_node_timeout_ms: number("cluster-node-timeout"),
        cluster_require_full_coverage: is_yes("cluster-require-full-coverage"),
        is_cluster_well: is_cluster_well(&mut line, kind).await?,
        library_version: version_at(&mut line, library.name).await?,
        rights_missing: rights::missing(&mut line, kind, durability, library).await?,
    })
}

/// `None` where there is no cluster, or it is not told.
async fn is_cluster_well(line: &mut Line, kind: Kind) -> Result<Option<bool>, String> {
    if kind == Kind::Redis {
        return Ok(None);
    }
    let said = line.ask(cmd("CLUSTER").arg("INFO")).await?;
    Ok(said.ok().and_then(|said| Some(Info::parse(&text(&said)).get("cluster_state")? == "ok")))
}

/// Nothing where they are not told: a service that runs servers for others keeps them to itself.
async fn settings(line: &mut Line) -> Result<BTreeMap<String, String>, String> {
    let mut get = cmd("CONFIG");
    get.arg("GET").arg("append*").arg("min-replicas-to-write").arg("cluster-node-timeout");
    get.arg("cluster-require-full-coverage");
    let Ok(Value::Array(all)) = line.ask(&get).await? else { return Ok(BTreeMap::new()) };
    let mut all = all.iter().map(text);
    let mut settings = BTreeMap::new();
    while let (Some(name), Some(value)) = (all.next(), all.next()) {
        settings.insert(name, value);
    }
    Ok(settings)
}

/// `slave0:ip=127.0.0.1,port=7001,state=online,offset=1234,lag=0`
pub(in super::super) fn replicas(info: &Info) -> Vec<ReplicaFacts> {
    let written = info.number("master_repl_offset").unwrap_or(0);
    let lines = (0..).map_while(|number| info.get(&format!("slave{number}")));
    let one = |line: &str| {
        let parts: BTreeMap<_, _> = line.split(',').filter_map(|part| part.split_once('=')).collect();
        let number = |name: &str| parts.get(name)?.parse::<u64>().ok();
        let port = u16::try_from(number("port")?).ok()?;
        Some(ReplicaFacts {
            place: Place::new(parts.get("ip")?, port).to_string(),
            is_online: parts.get("state") == Some(&"online"),
            behind: written.saturating_sub(number("offset").unwrap_or(0)),
            lag_s: number("lag").unwrap_or(0),
        })
    };
    lines.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_read_as_their_primary_tells_of_them() {
        let info = Info::parse(
            "master_repl_offset:100\r\nslave0:ip=::1,port=7001,state=online,offset=90,lag=1\r\nslave1:ip=b,port=7002,state=wait_bgsave,offset=0,lag=0",
        );
        let found = replicas(&info);
        let first = ReplicaFacts { place: "[::1]:7001".into(), is_online: true, behind: 10, lag_s: 1 };
        assert_eq!(found[0], first);
        assert!(!found[1].is_online && found.len() == 2);
    }
}

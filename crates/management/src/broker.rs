//! The broker as a whole: overview, nodes, its name, what it can.

use std::thread::available_parallelism;

use overtake_access::Tag;
use overtake_lane::QueueView;
use overtake_telemetry::process;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{Answer, done, seen};
use crate::app::App;
use crate::ask::Ask;
use crate::options::{Listener, RABBITMQ_VERSION};
use crate::problem::Problem;
use crate::rates::Counts;
use crate::routes::Routes;
use crate::{exchanges, parameters, queues, sockets};

/// The kinds of exchanges there are, and what they go by.
const EXCHANGE_TYPES: [(&str, &str); 6] = [
    ("direct", "by the routing key"),
    ("fanout", "to all that is bound"),
    ("headers", "by headers"),
    ("topic", "by the words of the routing key"),
    ("x-consistent-hash", "shared out by a hash"),
    ("x-delayed-message", "later, as the exchange that it names"),
];

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Management, "/api/overview", overview)
        .get(Tag::Management, "/api/cluster-name", name)
        .put(Tag::Administrator, "/api/cluster-name", rename)
        .get(Tag::Monitoring, "/api/nodes", nodes)
        .get(Tag::Monitoring, "/api/nodes/{node}", node)
        .get(Tag::Monitoring, "/api/nodes/{node}/memory", memory)
        .get(Tag::Management, "/api/extensions", nothing)
        .get(Tag::Management, "/api/feature-flags", nothing)
        .get(Tag::Management, "/api/deprecated-features", nothing)
        .get(Tag::Management, "/api/deprecated-features/used", nothing)
        .get(Tag::Management, "/api/auth", auth)
        .delete(Tag::Administrator, "/api/reset", reset)
        .post(Tag::Administrator, "/api/rebalance/queues", reset)
}

async fn nothing(_: Ask) -> Answer {
    seen(&json!([]))
}

/// What a cluster could be told to do, which one broker has always done.
async fn reset(_: Ask) -> Answer {
    done()
}

async fn auth(_: Ask) -> Answer {
    seen(&json!({ "oauth_enabled": false }))
}

fn exchange_types() -> Value {
    let shown = |(name, about): (&str, &str)| json!({ "name": name, "description": about, "enabled": true });
    EXCHANGE_TYPES.into_iter().map(shown).collect()
}

fn listener(app: &App, listener: &Listener) -> Value {
    json!({
        "node": app.options.node,
        "protocol": listener.protocol,
        "ip_address": listener.address.ip().to_string(),
        "port": listener.address.port(),
    })
}

fn contexts(app: &App) -> Value {
    let http = app.options.listeners.iter().filter(|one| one.protocol.starts_with("http"));
    let shown = |one: &Listener| {
        json!({
            "description": "Management",
            "path": "/",
            "node": app.options.node,
            "ip": one.address.ip().to_string(),
            "port": one.address.port().to_string(),
            "ssl_opts": [],
        })
    };
    http.map(shown).collect()
}

async fn overview(ask: Ask) -> Answer {
    ask.app.watch();
    let app = &ask.app;
    let (mut counts, mut queues_seen, mut exchanges_seen) = (Counts::default(), 0, 0);
    for desk in ask.desks().await? {
        let queues: Vec<QueueView> = queues::all(&desk).await?;
        counts = queues.iter().map(Counts::of).fold(counts, Counts::and);
        queues_seen += queues.len();
        exchanges_seen += exchanges::all(&desk).await?.len();
    }
    let connected = sockets::visible(&ask, None).await;
    let channels: usize = connected.iter().map(|one| one.looks.view.channels.len()).sum();
    let (created, closed) = app.connections.churn();
    let samples = app.rates.whole();
    let listeners: Vec<Value> = app.options.listeners.iter().map(|one| listener(app, one)).collect();
    let mut shown = json!({
        "management_version": RABBITMQ_VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": "Overtake",
        "product_version": app.options.version,
        "erlang_version": "",
        "erlang_full_version": "",
        "release_series_support_status": "supported",
        "cluster_name": parameters::cluster_name(app).await?,
        "cluster_tags": {},
        "node_tags": {},
        "node": app.options.node,
        "rates_mode": "basic",
        "disable_stats": false,
        "enable_queue_totals": false,
        "is_op_policy_updating_enabled": true,
        "default_queue_type": "classic",
        "statistics_db_event_queue": 0,
        "sample_retention_policies": {"global": [300], "basic": [300], "detailed": [300]},
        "exchange_types": exchange_types(),
        "churn_rates": {
            "connection_created": created,
            "connection_created_details": {"rate": 0.0},
            "connection_closed": closed,
            "connection_closed_details": {"rate": 0.0},
            "channel_created": 0,
            "channel_closed": 0,
            "queue_declared": 0,
            "queue_created": 0,
            "queue_deleted": 0,
        },
        "object_totals": {
            "connections": connected.len(),
            "channels": channels,
            "consumers": counts.consumers,
            "queues": queues_seen,
            "exchanges": exchanges_seen,
        },
        "queue_totals": samples.stocks(&counts),
        "message_stats": samples.flows(&counts),
    });
    if ask.who.must_have(Tag::Monitoring).is_ok() {
        shown["listeners"] = listeners.into();
        shown["contexts"] = contexts(app);
    }
    seen(&shown)
}

async fn name(ask: Ask) -> Answer {
    seen(&json!({ "name": parameters::cluster_name(&ask.app).await? }))
}

async fn rename(ask: Ask) -> Answer {
    #[derive(Deserialize)]
    struct Name {
        name: String,
    }
    let Name { name } = ask.body()?;
    parameters::set_cluster_name(&ask, &name).await?;
    done()
}

// ---- nodes ----

fn node_shown(app: &App) -> Value {
    let health = app.health();
    let processors = available_parallelism().map_or(1, usize::from);
    let (free, low) = health.disk.map_or((0, 0), |disk| (disk.free, disk.low));
    let memory = process::memory();
    let uptime = u64::try_from(app.options.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let sockets = app.connections.open();
    json!({
        "name": app.options.node,
        "type": "disc",
        "running": health.down.is_none(),
        "being_drained": false,
        "uptime": uptime,
        "os_pid": std::process::id().to_string(),
        "processors": processors,
        "run_queue": 0,
        "rabbitmq_version": RABBITMQ_VERSION,
        "rates_mode": "basic",
        "mem_used": memory,
        "mem_used_details": {"rate": 0.0},
        "mem_limit": process::machine_memory(),
        "mem_alarm": false,
        "mem_calculation_strategy": "rss",
        "disk_free": free,
        "disk_free_details": {"rate": 0.0},
        "disk_free_limit": low,
        "disk_free_alarm": health.full.is_some(),
        "fd_used": process::open_files(),
        "fd_used_details": {"rate": 0.0},
        "fd_total": process::open_files_max(),
        "sockets_used": sockets,
        "sockets_used_details": {"rate": 0.0},
        "sockets_total": app.options.max_connections,
        "proc_used": 1,
        "proc_used_details": {"rate": 0.0},
        "proc_total": 1,
        "partitions": [],
        "cluster_links": [],
        "applications": [{"name": "overtake", "description": "Overtake", "version": app.options.version}],
        "enabled_plugins": ["rabbitmq_management"],
        "exchange_types": exchange_types(),
        "auth_mechanisms": [
            {"name": "PLAIN", "description": "a name and a password", "enabled": true},
            {"name": "AMQPLAIN", "description": "the same in a table", "enabled": true},
            {"name": "EXTERNAL", "description": "a certificate", "enabled": true},
        ],
        "contexts": contexts(app),
        "net_ticktime": 60,
        "log_files": [],
        "config_files": [],
        "metrics_gc_queue_length": {},
    })
}

async fn nodes(ask: Ask) -> Answer {
    crate::paging::list(&ask, vec![node_shown(&ask.app)])
}

fn must_be_this(ask: &Ask) -> Result<(), Problem> {
    (ask.named("node") == ask.app.options.node).then_some(()).ok_or_else(Problem::not_found)
}

async fn node(ask: Ask) -> Answer {
    must_be_this(&ask)?;
    seen(&node_shown(&ask.app))
}

async fn memory(ask: Ask) -> Answer {
    must_be_this(&ask)?;
    let (all, messages) = (process::memory(), ask.app.health().memory.bytes);
    seen(&json!({ "memory": {
        "strategy": "rss",
        "queue_procs": messages,
        "other_system": all.saturating_sub(messages),
        "total": {"rss": all, "allocated": all, "erlang": all},
    }}))
}

//! The broker as a whole: overview, nodes, its name, what it can.

use std::thread::available_parallelism;

use overtake_access::Tag;
use overtake_engine::Full;
use overtake_telemetry::process;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{Answer, done, seen};
use crate::app::App;
use crate::ask::Ask;
use crate::options::{Listener, RABBITMQ_VERSION};
use crate::problem::Problem;
use crate::rates::{CHURN, Counts, OF_NODES, Watched};
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
    let app = &ask.app;
    app.watch(Watched::Queues);
    app.watch(Watched::Node);
    let (mut queues, mut exchanges_seen) = (Vec::new(), 0);
    for desk in ask.desks().await? {
        queues.extend(queues::all(&desk).await?);
        exchanges_seen += exchanges::all(&desk).await?.len();
    }
    let connected = sockets::visible(&ask, None).await;
    let channels: usize = connected.iter().map(|one| one.looks.view.channels.len()).sum();
    let counts = queues.iter().map(Counts::of).fold(Counts::default(), Counts::and);
    // Whoever sees a part is told the rates of that part.
    let sees_all = ask.who.must_have(Tag::Monitoring).is_ok();
    let samples = if sees_all { app.rates.whole() } else { app.rates.queues(&queues) };
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
        "churn_rates": app.rates.node().counters(&CHURN, &app.sources().node()),
        "object_totals": {
            "connections": connected.len(),
            "channels": channels,
            "consumers": counts.consumers,
            "queues": queues.len(),
            "exchanges": exchanges_seen,
        },
        "queue_totals": samples.stocks(&counts),
        "message_stats": samples.flows(&counts),
    });
    if sees_all {
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
    app.watch(Watched::Node);
    let (health, node) = (app.health(), app.sources().node());
    let processors = available_parallelism().map_or(1, usize::from);
    let low = health.disk.map_or(0, |disk| disk.low);
    let is_memory = matches!(health.full, Some(Full::Memory { .. }));
    let uptime = u64::try_from(app.options.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut shown = json!({
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
        "mem_limit": process::machine_memory(),
        "mem_alarm": is_memory,
        "mem_calculation_strategy": "rss",
        "disk_free_limit": low,
        "disk_free_alarm": health.full.is_some() && !is_memory,
        "fd_total": process::open_files_max(),
        "sockets_total": app.options.max_connections,
        "proc_total": process::threads_max(),
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
    });
    let used = app.rates.node().gauges(&OF_NODES, &node);
    shown.as_object_mut().expect("it was made an object").extend(used);
    shown
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

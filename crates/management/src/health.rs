//! Whether the broker is well, for those who ask again and again: `{"status":"ok"}`, or 503 and why not.

use axum::http::StatusCode;
use overtake_access::Tag;
use overtake_engine::Full;
use serde_json::{Value, json};

use crate::answer::{Answer, json as answer, seen};
use crate::ask::Ask;
use crate::problem::Problem;
use crate::routes::Routes;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Management, "/api/aliveness-test/{vhost}", alive)
        .get(Tag::Management, "/api/health/checks/alarms", alarms)
        .get(Tag::Management, "/api/health/checks/local-alarms", alarms)
        .get(Tag::Management, "/api/health/checks/port-listener/{port}", port)
        .get(Tag::Management, "/api/health/checks/protocol-listener/{protocol}", protocol)
        .get(Tag::Management, "/api/health/checks/virtual-hosts", serving)
        .get(Tag::Management, "/api/health/checks/ready-to-serve-clients", serving)
        .get(Tag::Management, "/api/health/checks/is-in-service", serving)
        .get(Tag::Management, "/api/health/checks/node-is-quorum-critical", serving)
        .get(Tag::Management, "/api/health/checks/node-is-mirror-sync-critical", serving)
        .get(Tag::Management, "/api/health/checks/metadata-store/initialized", serving)
        .get(Tag::Management, "/api/health/checks/below-node-connection-limit", below_limit)
}

fn ok() -> Answer {
    seen(&json!({ "status": "ok" }))
}

/// What is wrong, and what else is to be said.
fn failed(reason: &str, mut more: Value) -> Answer {
    more["status"] = "failed".into();
    more["reason"] = reason.into();
    Ok(answer(StatusCode::SERVICE_UNAVAILABLE, &more))
}

/// It answers, in a virtual host that is there.
async fn alive(ask: Ask) -> Answer {
    ask.desk().await?;
    serving(ask).await
}

async fn serving(ask: Ask) -> Answer {
    match ask.app.health().down {
        None => ok(),
        Some(why) => failed(&why, json!({})),
    }
}

async fn alarms(ask: Ask) -> Answer {
    let health = ask.app.health();
    if health.full.is_none() && health.down.is_none() {
        return ok();
    }
    let resource = if matches!(health.full, Some(Full::Memory { .. })) { "memory" } else { "disk" };
    let alarm = json!({ "node": ask.app.options.node, "resource": resource });
    failed("There are alarms in effect in the cluster", json!({ "alarms": [alarm] }))
}

async fn port(ask: Ask) -> Answer {
    let wanted: u16 = ask.named("port").parse().map_err(|_| Problem::bad("the port is no port"))?;
    let ports: Vec<u16> = ask.app.options.listeners.iter().map(|one| one.address.port()).collect();
    if ports.contains(&wanted) {
        return seen(&json!({ "status": "ok", "port": wanted }));
    }
    failed("No active listener", json!({ "missing": wanted, "ports": ports }))
}

async fn protocol(ask: Ask) -> Answer {
    let wanted = ask.named("protocol");
    let protocols: Vec<&str> = ask.app.options.listeners.iter().map(|one| one.protocol).collect();
    let is = |protocol: &&str| {
        let name = match wanted {
            "amqp091" | "amqp0.9.1" | "amqp0-9-1" => "amqp",
            "amqps" | "amqp/tls" => "amqp/ssl",
            name => name,
        };
        **protocol == *name
    };
    if protocols.iter().any(is) {
        return seen(&json!({ "status": "ok", "protocol": wanted }));
    }
    failed("No active listener", json!({ "missing": [wanted], "protocols": protocols }))
}

async fn below_limit(ask: Ask) -> Answer {
    let (open, most) = (ask.app.connections.open(), ask.app.options.max_connections as usize);
    if most == 0 || open < most {
        return seen(&json!({ "status": "ok", "current": open, "limit": most }));
    }
    failed("Connection limit reached", json!({ "current": open, "limit": most }))
}

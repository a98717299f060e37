//! Connections over AMQP and their channels.
//!
//! Somebody without the tag `monitoring` sees the own ones; the own ones may be closed, and those of others by administrators.

use std::sync::Arc;

use axum::http::HeaderMap;
use overtake_access::{Deed, Tag};
use overtake_amqp::connection::{ChannelView, ConnectionState};
use serde_json::{Value, json};

use crate::answer::{Answer, done, seen};
use crate::ask::Ask;
use crate::connections::Connected;
use crate::idle;
use crate::paging;
use crate::problem::Problem;
use crate::rates::{OF_CHANNELS, OF_CONNECTIONS, Octets, Watched};
use crate::routes::Routes;
use crate::tables;

/// Why a connection is closed when nobody says.
const NO_REASON: &str = "Closed via management plugin";

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Management, "/api/connections", list)
        .get(Tag::Management, "/api/vhosts/{vhost}/connections", list)
        .get(Tag::Management, "/api/connections/{name}", show)
        .delete(Tag::Management, "/api/connections/{name}", close)
        .get(Tag::Management, "/api/connections/{name}/channels", channels_of_one)
        .get(Tag::Management, "/api/connections/username/{user}", of_user)
        .delete(Tag::Management, "/api/connections/username/{user}", close_of_user)
        .get(Tag::Management, "/api/channels", channels)
        .get(Tag::Management, "/api/vhosts/{vhost}/channels", channels)
        .get(Tag::Management, "/api/channels/{name}", channel)
}

/// Everybody who is connected and whom whoever asks may see, in one virtual host if the path names it.
pub(crate) async fn visible(ask: &Ask, vhost: Option<&str>) -> Vec<Connected> {
    let mut all = ask.app.connections.look().await;
    let sees_all = ask.who.must_have(Tag::Monitoring).is_ok();
    all.retain(|one| {
        (sees_all || *one.looks.user == **ask.who.user())
            && vhost.is_none_or(|vhost| one.looks.view.vhost == vhost)
    });
    all
}

async fn of_path(ask: &Ask) -> Result<Vec<Connected>, Problem> {
    ask.app.watch(Watched::Connections);
    let Some(vhost) = ask.in_path("vhost") else { return Ok(visible(ask, None).await) };
    ask.desk_in(vhost).await?;
    Ok(visible(ask, Some(vhost)).await)
}

async fn named(ask: &Ask) -> Result<Connected, Problem> {
    ask.app.watch(Watched::Connections);
    let name = ask.named("name");
    let all = visible(ask, None).await;
    all.into_iter().find(|one| one.caller.name() == name).ok_or_else(Problem::not_found)
}

fn state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Starting => "starting",
        ConnectionState::Running => "running",
        ConnectionState::Blocked => "blocked",
        ConnectionState::Closing => "closing",
    }
}

fn shown(ask: &Ask, one: &Connected) -> Value {
    let (caller, looks) = (&one.caller, &one.looks);
    let view = &looks.view;
    let properties = tables::shown(view.client_properties.view());
    let protocol = if caller.is_secure { "AMQP 0-9-1 (TLS)" } else { "AMQP 0-9-1" };
    let mut shown = json!({
        "name": caller.name(),
        "user_provided_name": properties["connection_name"],
        "node": ask.app.options.node,
        "user": looks.user,
        "user_who_performed_action": looks.user,
        "vhost": view.vhost,
        "state": state(view.state),
        "protocol": protocol,
        "type": "network",
        "auth_mechanism": view.mechanism,
        "host": caller.local.ip().to_string(),
        "port": caller.local.port(),
        "peer_host": caller.peer.ip().to_string(),
        "peer_port": caller.peer.port(),
        "ssl": caller.is_secure,
        "channels": view.channels.len(),
        "channel_max": view.channel_max,
        "frame_max": view.frame_max,
        "timeout": view.heartbeat_s,
        "connected_at": caller.connected_at.0,
        "client_properties": properties,
    });
    let octets = ask.app.rates.connection(one.number).counters(&OF_CONNECTIONS, &Octets::of(looks));
    shown.as_object_mut().expect("it was made an object").extend(octets);
    shown
}

async fn list(ask: Ask) -> Answer {
    let all = of_path(&ask).await?;
    paging::list(&ask, all.iter().map(|one| shown(&ask, one)).collect())
}

async fn show(ask: Ask) -> Answer {
    let one = named(&ask).await?;
    paging::one(&ask, shown(&ask, &one))
}

async fn of_user(ask: Ask) -> Answer {
    ask.app.watch(Watched::Connections);
    let mut all = visible(&ask, None).await;
    all.retain(|one| one.looks.user == ask.named("user"));
    paging::list(&ask, all.iter().map(|one| shown(&ask, one)).collect())
}

/// Closes one, for the reason that the header `X-Reason` gives.
async fn end(ask: &Ask, headers: &HeaderMap, one: &Connected) -> Result<(), Problem> {
    if *one.looks.user != **ask.who.user() {
        ask.who.must_have(Tag::Administrator)?;
    }
    let why = headers.get("x-reason").and_then(|value| value.to_str().ok()).unwrap_or(NO_REASON);
    ask.app.connections.close(one.number, why).await;
    let deed = Deed::of(Some(&ask.who), "connection.close", one.caller.name()).within(&one.looks.view.vhost);
    ask.app.desks.gate().record(deed.from_to(json!({ "user": one.looks.user }), Value::Null));
    Ok(())
}

async fn close(headers: HeaderMap, ask: Ask) -> Answer {
    let one = named(&ask).await?;
    end(&ask, &headers, &one).await?;
    done()
}

async fn close_of_user(headers: HeaderMap, ask: Ask) -> Answer {
    for one in visible(&ask, None).await.iter().filter(|one| one.looks.user == ask.named("user")) {
        end(&ask, &headers, one).await?;
    }
    done()
}

// ---- channels ----

/// What RabbitMQ calls a channel: its connection, and its number.
pub(crate) fn channel_name(one: &Connected, number: u16) -> String {
    format!("{} ({number})", one.caller.name())
}

/// Of which connection something is.
pub(crate) fn connection_details(one: &Connected) -> Value {
    json!({
        "name": one.caller.name(),
        "peer_host": one.caller.peer.ip().to_string(),
        "peer_port": one.caller.peer.port(),
    })
}

fn channel_shown(ask: &Ask, one: &Connected, channel: &ChannelView) -> Value {
    let global = if channel.shares_prefetch { channel.prefetch } else { 0 };
    let state = if channel.is_closing { "closing" } else { state(one.looks.view.state) };
    let samples = ask.app.rates.channel(one.number, channel.number);
    let mut shown = json!({
        "name": channel_name(one, channel.number),
        "number": channel.number,
        "node": ask.app.options.node,
        "user": one.looks.user,
        "vhost": one.looks.view.vhost,
        "state": state,
        "confirm": channel.confirms,
        "transactional": channel.transactional,
        "consumer_count": channel.consumers.len(),
        "prefetch_count": if channel.shares_prefetch { 0 } else { channel.prefetch },
        "global_prefetch_count": global,
        "messages_unacknowledged": channel.unacked,
        "messages_unconfirmed": if channel.confirms { channel.unconfirmed } else { 0 },
        "messages_uncommitted": channel.uncommitted,
        "acks_uncommitted": channel.uncommitted_acks,
        "connection_details": connection_details(one),
        "message_stats": samples.counters(&OF_CHANNELS, &channel.counts),
    });
    idle::show(&mut shown, &ask.app, channel.active_at);
    shown
}

fn every_channel(ask: &Ask, all: &[Connected]) -> Vec<Value> {
    let of = |one: &Connected| -> Vec<Value> {
        one.looks.view.channels.iter().map(|channel| channel_shown(ask, one, channel)).collect()
    };
    all.iter().flat_map(of).collect()
}

async fn channels(ask: Ask) -> Answer {
    let all = of_path(&ask).await?;
    paging::list(&ask, every_channel(&ask, &all))
}

async fn channels_of_one(ask: Ask) -> Answer {
    let one = named(&ask).await?;
    paging::list(&ask, every_channel(&ask, &[one]))
}

async fn channel(ask: Ask) -> Answer {
    ask.app.watch(Watched::Connections);
    let all = visible(&ask, None).await;
    let name = ask.named("name");
    let of = |one: &Connected| {
        let channel =
            one.looks.view.channels.iter().find(|channel| channel_name(one, channel.number) == name)?;
        Some((channel_shown(&ask, one, channel), consumers(&ask, one, channel.number)))
    };
    let (mut shown, consumers) = all.iter().find_map(of).ok_or_else(Problem::not_found)?;
    shown["consumer_details"] = consumers;
    seen(&shown)
}

fn consumers(ask: &Ask, one: &Connected, number: u16) -> Value {
    let vhost: Arc<str> = one.looks.view.vhost.as_str().into();
    let mut all = crate::consumers::all(&ask.app, std::slice::from_ref(one), &[], &vhost);
    all.retain(|consumer| consumer["channel_details"]["number"] == number);
    all.into()
}

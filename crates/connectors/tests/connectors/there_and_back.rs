//! What an endpoint sends, a source brings back with all that it says.

use overtake_engine::{Content, NewMessage};
use overtake_lane::{Given, HeaderValue, Headers};
use overtake_properties::{Fields, Short};
use serde_json::{Value, json};

use crate::outward::{Outward, message};
use crate::servers::Server;

fn whole() -> NewMessage {
    let headers: Headers = [("tenant".to_owned(), HeaderValue::Text("a b".to_owned()))].into();
    let described = Content::new(Some("image/x"), &headers, "".into());
    let properties = Fields {
        correlation_id: Short::new(b"c1"),
        reply_to: Short::new(b"back"),
        ..Fields::of(described.properties.view())
    };
    let content =
        Content { properties: properties.encode(), body: b"\0\xff\r\n"[..].into(), ..Content::default() };
    NewMessage {
        key: Some("k".to_owned()),
        key_weight: Some(3),
        ttl_ms: Some(600_000),
        content,
        ..message("m", 7)
    }
}

async fn check(to: Value, from: Value) {
    let world = Outward::open(to).await;
    let _sources = world.source(from).await;
    world.publish(whole()).await;
    world.publish(message("next", 1)).await;
    let came = world.comes_in().await;
    let (sent, content) = (whole(), &came.content);
    assert_eq!((came.message.id.as_str(), came.message.key.as_deref()), ("m", Some("k")));
    assert_eq!(came.message.key_weight, Some(3));
    assert_eq!((&came.message.priority, &content.body), (&Given::Number(7), &sent.content.body));
    assert_eq!(content.headers(), sent.content.headers());
    let short = |short: Option<Short<'_>>| short.and_then(Short::text).map(str::to_owned);
    let said = |content: &Content| {
        let view = content.properties.view();
        [view.content_type(), view.correlation_id(), view.reply_to()].map(short)
    };
    assert_eq!(said(content), said(&sent.content));
    let left_ms = came.message.expires.expect("it expires").since(came.message.since);
    assert!((500_000..=600_000).contains(&left_ms), "{left_ms}");
    assert_eq!(world.comes_in().await.message.id, "next");
}

#[tokio::test]
async fn over_a_stream_of_redis() {
    let Some(server) = Server::redis(&[]) else { return };
    let url = format!("redis://127.0.0.1:{}", server.port);
    let to = json!({"redis": {"url": url, "stream": "jobs"}});
    check(to, json!({"redis": {"url": url, "streams": ["jobs"]}})).await;
}

#[tokio::test]
async fn over_a_topic_of_mqtt() {
    let Some(server) = Server::mosquitto("allow_anonymous true") else { return };
    let url = format!("mqtt://127.0.0.1:{}", server.port);
    let to = json!({"mqtt": {"url": url, "topic": "jobs/{priority}"}});
    check(to, json!({"mqtt": {"url": url, "topics": ["jobs/#"], "client_id": "overtake"}})).await;
}

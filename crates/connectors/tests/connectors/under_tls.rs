//! Redis and MQTT under TLS, where both sides show who they are.

use serde_json::{Value, json};

use crate::certificates::Certificates;
use crate::outward::{Outward, message};
use crate::servers::Server;

fn tls(certificates: &Certificates) -> Value {
    let Certificates { authority, certificate, key } = certificates;
    json!({"ca_file": authority, "cert_file": certificate, "key_file": key})
}

/// Sends one message; and says what is wrong where the authority of the server is nobody we know.
async fn check(mut to: Value, kind: &str) {
    let world = Outward::open(to.clone()).await;
    world.publish(message("m", 5)).await;
    world.until_empty().await;
    to[kind].as_object_mut().expect("an object").remove("tls");
    let why = Outward::open(to).await.trouble().await;
    assert!(why.contains("TLS with localhost") && why.contains("certificate"), "{why}");
}

fn secure_redis() -> Option<(Server, Certificates)> {
    let mut made = None;
    let server = Server::redis_with(|server| {
        let Certificates { authority, certificate, key } = made.insert(Certificates::in_dir(server.dir()));
        let [authority, certificate, key] =
            [authority, certificate, key].map(|path| path.to_str().expect("text").to_owned());
        let port = server.port;
        let words =
            format!("--port 0 --tls-port {port} --tls-auth-clients yes --tls-ca-cert-file {authority}");
        let own = format!("--tls-cert-file {certificate} --tls-key-file {key}");
        words.split(' ').chain(own.split(' ')).map(str::to_owned).collect()
    })?;
    made.map(|certificates| (server, certificates))
}

fn secure_mosquitto() -> Option<(Server, Certificates)> {
    let mut made = None;
    let server = Server::mosquitto_with(|server| {
        let Certificates { authority, certificate, key } = made.insert(Certificates::in_dir(server.dir()));
        let [authority, certificate, key] = [authority, certificate, key].map(|path| path.display());
        format!(
            "allow_anonymous true\nrequire_certificate true\ncafile {authority}\ncertfile {certificate}\nkeyfile {key}"
        )
    })?;
    made.map(|certificates| (server, certificates))
}

#[tokio::test]
async fn redis_under_tls_is_told_who_we_are_and_must_be_vouched_for() {
    let Some((server, certificates)) = secure_redis() else { return };
    let url = format!("rediss://localhost:{}", server.port);
    let to = json!({"redis": {"url": url, "stream": "jobs", "tls": tls(&certificates)}});
    check(to, "redis").await;
}

#[tokio::test]
async fn mqtt_under_tls_is_told_who_we_are_and_must_be_vouched_for() {
    let Some((server, certificates)) = secure_mosquitto() else { return };
    let url = format!("mqtts://localhost:{}", server.port);
    let to = json!({"mqtt": {"url": url, "topic": "jobs", "tls": tls(&certificates)}});
    check(to, "mqtt").await;
}

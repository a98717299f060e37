//! What people do with endpoints, and what they are told.

use overtake_connectors::{NotConfigured, Provenance};
use overtake_forward::State;
use serde_json::{Value, json};

use crate::receiver::{Receiver, Says};
use crate::world::{World, endpoint};

fn to_queue() -> Value {
    json!({"queue": "out", "to": {"queue": {"name": "in"}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_lasts_with_its_pause_until_it_is_deleted() {
    let world = World::new().await;
    assert_eq!(world.try_put("move", to_queue()).await, Ok(true));
    assert_eq!(world.try_put("move", to_queue()).await, Ok(false));
    let desk = world.desk("guest").await;
    world.endpoints.pause(&desk, "move", true).await.expect("paused");
    let world = world.again().await;
    world.publish("a:5").await;
    let view = world.view("move").await;
    assert_eq!((view.is_paused, view.provenance, view.work.state), (true, Provenance::Api, State::Paused));
    assert_eq!(world.sees("out").await, "a ready");
    let desk = world.desk("guest").await;
    world.endpoints.pause(&desk, "move", false).await.expect("resumed");
    world.until_empty().await;
    world.endpoints.delete(&desk, "move").await.expect("deleted");
    assert_eq!(world.endpoints.list(&desk).await.expect("a list").len(), 0);
    let world = world.again().await;
    let desk = world.desk("guest").await;
    assert_eq!(world.endpoints.list(&desk).await.expect("a list").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_endpoint_neither_connects_nor_sends_when_it_is_opened_again() {
    let world = World::new().await;
    assert_eq!(world.try_put("move", to_queue()).await, Ok(true));
    let desk = world.desk("guest").await;
    world.endpoints.pause(&desk, "move", true).await.expect("paused");
    world.publish("a:5").await;
    let world = world.again().await;
    let work = world.view("move").await.work;
    assert_eq!((work.state, work.connections), (State::Paused, 0));
    assert_eq!(world.sees("out").await, "a ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_file_is_changed_there() {
    let world = World::new().await;
    let World { disk, engine, endpoints, .. } = world;
    endpoints.stop(std::time::Duration::ZERO).await;
    engine.close();
    disk.clear_hook();
    let world = World::open(disk, vec![("move".to_owned(), endpoint(to_queue()))]).await;
    assert_eq!(world.try_put("move", to_queue()).await, Err(NotConfigured::OfFile));
    let desk = world.desk("guest").await;
    assert_eq!(world.endpoints.delete(&desk, "move").await, Err(NotConfigured::OfFile));
    assert_eq!(world.view("move").await.provenance, Provenance::File);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said_and_changes_nothing() {
    let world = World::new().await;
    let said = [
        (json!({"queue": {"name": "out"}}), "to.queue: out would be sent to itself"),
        (json!({"queue": {}}), "to.queue: `name` must be a queue, or `exchange` an exchange"),
        (json!({"webhook": {"url": "ftp://x"}}), "to.webhook: `ftp://x` must begin with http:// or https://"),
        (
            json!({"webhook": {"url": "http://a:b@x"}}),
            "to.webhook: `url` names a user or a password, which is not sent: say it in `headers`, as {\"authorization\": {\"env\": \"OVERTAKE_SECRET_…\"}}, a variable of the server",
        ),
        (
            json!({"webhook": {"url": "http://x", "signing_key": {"env": "HOME"}}}),
            "to.webhook: `signing_key`: over the API a secret is {\"env\": \"OVERTAKE_SECRET_…\"}, a variable of the server",
        ),
        (
            json!({"webhook": {"url": "http://x", "headers": {"x-key": {"file": "/etc/shadow"}}}}),
            "to.webhook: `headers.x-key`: over the API a secret is {\"env\": \"OVERTAKE_SECRET_…\"}, a variable of the server",
        ),
        (
            json!({"webhook": {"url": "https://x", "tls": {"ca_file": "/etc/shadow"}}}),
            "to.webhook: `tls` names files of the server: say it in its configuration, not over the API",
        ),
    ];
    for (to, why) in said {
        let refused = world.try_put("bad", json!({"queue": "out", "to": to})).await;
        assert_eq!(refused, Err(NotConfigured::Bad(why.to_owned())));
    }
    let send = json!({"queue": "out", "to": {"queue": {"name": "in"}}, "send": {"fan_out": 0}});
    let why = NotConfigured::Bad("send: `fan_out` must be 1 to 64".to_owned());
    assert_eq!(world.try_put("bad", send).await, Err(why));
    assert_eq!(world.try_put("", to_queue()).await, Err(NotConfigured::BadName));
    let desk = world.desk("guest").await;
    assert!(world.endpoints.list(&desk).await.expect("a list").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_connects_and_says_what_is_wrong() {
    let (world, server) = (World::new().await, Receiver::new(|_| Says::Status(200, "")).await);
    let desk = world.desk("guest").await;
    let hook = |url: String| endpoint(json!({"queue": "out", "to": {"webhook": {"url": url}}}));
    let test = async |draft| world.endpoints.test(&desk, "draft", Some(draft)).await.expect("tested");
    assert!(test(hook(server.url())).await.is_ok());
    let why = test(hook("http://no-such-host.invalid/".to_owned())).await.expect_err("nobody is there");
    assert!(why.starts_with("the name no-such-host.invalid is not known here"), "{why}");
    let why = test(hook(format!("https://{}/", server.address))).await.expect_err("no TLS is there");
    assert!(why.starts_with("TLS with 127.0.0.1: "), "{why}");
    let no_queue = endpoint(json!({"queue": "nope", "to": {"webhook": {"url": server.url()}}}));
    assert!(test(no_queue).await.expect_err("no queue").starts_with("the queue nope: "));
    assert_eq!(world.endpoints.test(&desk, "draft", None).await, Err(NotConfigured::NoSuch));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_goes_with_its_virtual_host() {
    use overtake_engine::Engine;
    let world = World::new().await;
    let vhost = world.engine.declare_vhost("v", Default::default()).await.expect("declared");
    world.engine.in_vhost(vhost).declare_queue("out", Default::default()).await.expect("declared");
    let desks = overtake_access::Desks::new(world.engine.clone(), world.gate.clone());
    let permission = overtake_access::Permission::try_from(overtake_access::Patterns {
        configure: ".*".into(),
        write: ".*".into(),
        read: ".*".into(),
    });
    let permission = permission.expect("patterns");
    let change =
        overtake_access::Change::SetPermission { user: "guest".into(), vhost: "v".into(), permission };
    world.gate.change(None, vec![change]).await.expect("changed");
    let desk = desks.desk(world.gate.on_behalf_of("guest"), "v").await.expect("a desk");
    world.endpoints.put(&desk, "move", endpoint(to_queue())).await.expect("made");
    assert_eq!(world.endpoints.every().await.len(), 1);
    world.engine.delete_vhost("v").await.expect("deleted");
    assert_eq!(world.endpoints.every().await.len(), 0);
    let kept = world.engine.metadata().await.expect("read");
    assert!(!kept.iter().any(|(key, _)| key.starts_with("endpoint")), "nothing of it is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_named_and_not_said() {
    let world = World::new().await;
    let desk = world.desk("guest").await;
    let hook =
        |url: &str, value: Value| json!({"to": {"webhook": {"url": url, "headers": {"x-api-key": value}}}});
    let said = hook("http://127.0.0.1:9/", "sesame".into());
    let why = NotConfigured::Bad(
        "to.webhook.headers.x-api-key: a secret would be stored and backed up as it stands: say where it is, as \
         {\"env\": \"OVERTAKE_SECRET_…\"}, a variable of the server"
            .to_owned(),
    );
    assert_eq!(world.try_put("hook", said.clone()).await, Err(why.clone()));
    let tested = world.endpoints.test(&desk, "hook", Some(endpoint(said.clone()))).await;
    assert_eq!(tested.map(drop), Err(why));
    let why = world
        .try_put("hook", hook("http://127.0.0.1:9/?sig=sesame", json!({"env": "OVERTAKE_SECRET_X"})))
        .await;
    let why = why.expect_err("the URL says a secret").to_string();
    assert!(why.starts_with("to.webhook.url?sig: ") && !why.contains("sesame"), "{why}");
    let named = hook("http://127.0.0.1:9/", json!({"env": "OVERTAKE_SECRET_X"}));
    assert_eq!(world.try_put("hook", named).await, Ok(true));
}

/// One that was stored before secrets had to be named.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_stored_already_keeps_working() {
    use overtake_engine::Engine;
    let world = World::new().await;
    let url = "http://127.0.0.1:9/";
    world.put("hook", json!({"to": {"webhook": {"url": url, "headers": {"x-plain": "sesame"}}}})).await;
    let all = world.engine.metadata().await.expect("read");
    let (key, kept) = all.iter().find(|(key, _)| key.ends_with("/hook")).expect("it is kept");
    let older = String::from_utf8(kept.to_vec()).expect("JSON").replace("x-plain", "x-api-key");
    let older = overtake_lane::MetadataEntry::set(key, older.as_bytes());
    world.engine.set_metadata(vec![older]).await.expect("set");

    let world = world.again().await;
    let definition = world.view("hook").await.definition;
    let kept = serde_json::to_value(&*definition).expect("JSON");
    assert_eq!(kept["to"]["webhook"]["headers"], json!({"x-api-key": "sesame"}));
    let mut changed = overtake_connectors::shown(&*definition);
    changed["to"]["webhook"]["event_type"] = "changed".into();
    assert_eq!(world.try_put("hook", changed.clone()).await, Ok(false), "what is not shown stays");
    changed["to"]["webhook"]["headers"]["x-api-key"] = "open".into();
    let why = world.try_put("hook", changed).await.expect_err("another secret").to_string();
    assert!(why.starts_with("to.webhook.headers.x-api-key: "), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_a_secret_is_kept_and_never_told() {
    let world = World::new().await;
    let receiver = Receiver::new(|_| Says::Status(204, "")).await;
    let url = format!("{}&tenant=secret", receiver.url());
    let hook = json!({"to": {"webhook": {"url": url, "headers": {"x-key": "secret"}}}});
    world.put("hook", hook.clone()).await;
    let mut shown = overtake_connectors::shown(&*world.view("hook").await.definition);
    let host = receiver.url().split('?').next().expect("a URL").to_owned();
    assert_eq!(shown["to"]["webhook"], json!({"url": format!("{host}?***"), "headers": {"x-key": "***"}}));

    shown["to"]["webhook"]["event_type"] = "changed".into();
    world.put("hook", shown.clone()).await;
    let kept = serde_json::to_value(&*world.view("hook").await.definition).expect("JSON");
    assert_eq!(kept["to"]["webhook"]["headers"], hook["to"]["webhook"]["headers"]);
    assert_eq!(kept["to"]["webhook"]["url"], hook["to"]["webhook"]["url"]);

    shown["to"]["webhook"]["url"] = "http://127.0.0.1:9/elsewhere".into();
    let why = world.try_put("hook", shown).await.expect_err("told to no other receiver").to_string();
    assert!(why.contains("`headers.x-key`: *** stands for"), "{why}");
    let told = format!("{:?}", world.gate.audit().recent());
    assert!(told.contains("endpoint.put") && !told.contains("secret"), "{told}");
}

//! Definitions move over, in and out.

use overtake_management::definitions;
use serde_json::{Value, json};

use crate::world::{TEST12, World};

/// As RabbitMQ writes it, with what a migration has to carry.
fn of_rabbitmq() -> Value {
    json!({
        "rabbit_version": "3.13.7", "rabbitmq_version": "3.13.7", "product_name": "RabbitMQ", "product_version": "3.13.7",
        "users": [
            {"name": "shop", "password_hash": TEST12, "hashing_algorithm": "rabbit_password_hashing_sha256",
             "tags": ["management"], "limits": {}},
            {"name": "old", "password_hash": TEST12, "hashing_algorithm": "rabbit_password_hashing_sha256",
             "tags": "policymaker,monitoring"},
        ],
        "vhosts": [{"name": "/"}, {"name": "prod", "description": "what pays", "tags": ["a"],
                    "metadata": {"description": "what pays", "tags": ["a"]}}],
        "permissions": [{"user": "shop", "vhost": "prod", "configure": "^shop\\.", "write": ".*", "read": ".*"}],
        "topic_permissions": [],
        "parameters": [{"value": {"src-uri": "amqp://"}, "vhost": "prod", "component": "shovel", "name": "s"}],
        "global_parameters": [{"name": "cluster_name", "value": "rabbit@old"}],
        "policies": [],
        "exchanges": [
            {"name": "orders", "vhost": "prod", "type": "topic", "durable": true, "auto_delete": false,
             "internal": false, "arguments": {"alternate-exchange": "lost"}},
            {"name": "lost", "vhost": "prod", "type": "fanout", "durable": true, "auto_delete": false,
             "internal": true, "arguments": {}},
        ],
        "queues": [
            {"name": "shop.orders", "vhost": "prod", "durable": true, "auto_delete": false, "type": "classic",
             "arguments": {"x-max-priority": 10, "x-message-ttl": 60000, "x-dead-letter-exchange": "lost",
                           "x-queue-type": "classic"}},
            {"name": "lost", "vhost": "prod", "durable": true, "auto_delete": false, "arguments": {}},
        ],
        "bindings": [
            {"source": "orders", "vhost": "prod", "destination": "shop.orders", "destination_type": "queue",
             "routing_key": "order.#", "arguments": {}},
            {"source": "lost", "vhost": "prod", "destination": "lost", "destination_type": "queue",
             "routing_key": "", "arguments": {}},
            {"source": "orders", "vhost": "prod", "destination": "lost", "destination_type": "exchange",
             "routing_key": "x.*", "arguments": {"x-match": "any", "n": 7}},
        ],
    })
}

#[tokio::test]
async fn a_file_of_rabbitmq_moves_over_and_its_users_log_in() {
    let world = World::new().await;
    let file = of_rabbitmq().to_string();
    let dry = world.post("/api/definitions?dry_run=true", &file).await.expect(200);
    assert_eq!(dry.json["changes"].as_array().map(Vec::len), Some(13));
    assert_eq!(dry.json["changes"][0], "vhost prod");
    world.get("/api/vhosts/prod").await.expect(404);

    world.post("/api/definitions", &file).await.expect(204);
    let shop = Some(("shop", "test12"));
    let queue = world.ask_as(shop, "GET", "/api/queues/prod/shop.orders", "").await.expect(200);
    assert_eq!(queue.json["arguments"]["x-max-priority"], 10);
    world.ask_as(shop, "PUT", "/api/queues/prod/shop.more", "{}").await.expect(201);
    world.ask_as(shop, "PUT", "/api/queues/prod/other", "{}").await.expect(403);
    let tags = world.ask_as(Some(("old", "test12")), "GET", "/api/whoami", "").await.expect(200);
    assert_eq!(tags.json["tags"], json!(["monitoring", "policymaker"]));
    assert_eq!(world.get("/api/cluster-name").await.json["name"], "rabbit@old");
    assert_eq!(world.get("/api/vhosts/prod").await.json["description"], "what pays");
    let message = r#"{"routing_key":"order.new","payload":"hi"}"#;
    let routed = world.ask_as(shop, "POST", "/api/exchanges/prod/orders/publish", message).await.expect(200);
    assert_eq!(routed.json["routed"], true);
}

#[tokio::test]
async fn importing_twice_changes_nothing() {
    let world = World::new().await;
    let file = of_rabbitmq().to_string();
    assert_eq!(definitions::load(&world.desks, file.as_bytes()).await.expect("it moves over").len(), 13);
    assert!(definitions::load(&world.desks, file.as_bytes()).await.expect("again").is_empty());
    let plan = definitions::plan(&world.desks, file.as_bytes()).await.expect("it can be told");
    assert!(plan.changes().is_empty());
}

#[tokio::test]
async fn what_one_broker_exports_another_takes() {
    let (one, other) = (World::new().await, World::new().await);
    one.post("/api/definitions", &of_rabbitmq().to_string()).await.expect(204);
    let file = one.get("/api/definitions").await.expect(200);
    assert_eq!(
        (&file.json["product_name"], &file.json["rabbitmq_version"]),
        (&json!("Overtake"), &json!("4.1.0"))
    );
    other.post("/api/definitions", &file.text).await.expect(204);
    let mut again = other.get("/api/definitions").await.expect(200).json;
    // Whose password was hashed where.
    let mut first = file.json.clone();
    for file in [&mut first, &mut again] {
        for list in ["users", "queues", "exchanges", "bindings", "permissions"] {
            file[list].as_array_mut().expect("a list").sort_by_key(Value::to_string);
        }
    }
    assert_eq!(first, again);
}

#[tokio::test]
async fn a_virtual_host_moves_into_another() {
    let world = World::new().await;
    world.post("/api/definitions", &of_rabbitmq().to_string()).await.expect(204);
    let file = world.get("/api/definitions/prod").await.expect(200);
    assert!(file.json["queues"][0].get("vhost").is_none());
    world.put("/api/vhosts/test", "").await.expect(201);
    world.post("/api/definitions/test", &file.text).await.expect(204);
    assert_eq!(world.get("/api/queues/test").await.expect(200).all("name"), "lost shop.orders");
    let bindings = world.get("/api/queues/test/shop.orders/bindings").await.expect(200);
    assert_eq!(bindings.all("routing_key"), "shop.orders order.#");
}

#[tokio::test]
async fn what_cannot_be_is_named_with_its_place_and_nothing_is_done() {
    let world = World::new().await;
    let check = async |place: &str, value: Value, expect: &str| {
        let mut file = of_rabbitmq();
        *file.pointer_mut(place).expect("a place in the file") = value;
        let reply = world.post("/api/definitions", &file.to_string()).await.expect(400);
        assert!(reply.reason().contains(expect), "{place}: {}", reply.text);
    };
    check("/queues/0/arguments/x-max-priority", json!(1_000), "queues[0]: invalid arg 'x-max-priority'")
        .await;
    check("/queues/0/durable", json!("perhaps"), "queues[0]").await;
    check("/queues/1/vhost", json!("nowhere"), "queues[1]: there is no vhost 'nowhere'").await;
    check("/users/0/password_hash", json!("rubbish"), "users[0]: the hash must be base64").await;
    check("/users/1/hashing_algorithm", json!("rabbit_password_hashing_md5"), "users[1]").await;
    check("/permissions/0/user", json!("nobody"), "permissions[0]: there is no user `nobody`").await;
    check("/permissions/0/read", json!("("), "permissions[0]").await;
    check("/exchanges/0/type", json!("x-random"), "exchanges[0]: unknown exchange type 'x-random'").await;
    check("/bindings/0/source", json!("no"), "bindings[0]: there is no exchange 'no' in vhost 'prod'").await;
    check("/bindings/1/destination", json!("no"), "bindings[1]: there is no queue 'no'").await;
    check("/policies", json!([{"name": "ha"}]), "policies[0]").await;
    let list = "expected an object, found a list";
    let with = |settings: Value| json!([{"name": "q", "vhost": "prod", "settings": settings}]);
    for settings in [
        json!([]),
        json!({"backoff": [7, 3, 9]}),
        json!({"rate_limit": [5, 1_000]}),
        json!({"order": {"lanes": [["p", 0]]}}),
        json!({"dead_letter": {"exchange": ["x", "k"]}}),
    ] {
        check("/queues", with(settings), list).await;
    }
    check("/vhosts", json!([["/"]]), list).await;
    check("/topic_permissions", json!([{}]), "topic_permissions[0]").await;
    assert_eq!(world.get("/api/vhosts").await.all("name"), "/");
    assert_eq!(world.get("/api/users").await.all("name"), "guest");
}

#[tokio::test]
async fn what_is_there_and_differs_is_not_overwritten() {
    let world = World::new().await;
    world.post("/api/definitions", &of_rabbitmq().to_string()).await.expect(204);
    let mut file = of_rabbitmq();
    file["queues"][0]["arguments"]["x-max-priority"] = json!(5);
    let reply = world.post("/api/definitions", &file.to_string()).await.expect(400);
    let expect = "queues[0]: inequivalent arg 'x-max-priority' for queue 'shop.orders' in vhost 'prod'";
    assert!(reply.reason().starts_with(expect), "{}", reply.text);
}

#[tokio::test]
async fn a_queue_that_arguments_do_not_describe_moves_over_with_its_settings() {
    use overtake_engine::Engine;
    use overtake_lane::{Scheme, Settings};
    let (one, other) = (World::new().await, World::new().await);
    let settings = Settings { scheme: Scheme::Named, max_active: 7, ..Settings::default() };
    one.engine.declare_queue("q", settings.clone()).await.expect("it is made");
    let file = one.get("/api/definitions").await.expect(200).text;
    assert!(
        definitions::plan(&one.desks, file.as_bytes()).await.expect("it is as it is").changes().is_empty()
    );
    other.post("/api/definitions", &file).await.expect(204);
    assert_eq!(other.engine.queue("q").await.expect("it is there").settings, settings);
}

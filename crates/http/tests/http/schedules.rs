//! Schedules over HTTP: made, changed, listed, shown and deleted, and what is wrong with those that cannot be.

use serde_json::{Value, json};

use crate::world::World;

const DAILY: &str = r#"{"queue":"q","cron":"30 9 29 2 *","timezone":"Europe/Berlin","message":{"body":"report","priority":7,"key":"k","content_type":"text/plain","headers":{"a":1},"ttl_ms":5000}}"#;

#[tokio::test]
async fn a_schedule_is_made_shown_changed_and_deleted() {
    let world = World::with_queue("").await;
    let made = world.put("/v1/schedules/daily%2Freport", DAILY).await.expect(201).json;
    assert_eq!((&made["name"], &made["user"]), (&json!("daily/report"), &json!("guest")));
    assert_eq!((&made["cron"], &made["timezone"]), (&json!("30 9 29 2 *"), &json!("Europe/Berlin")));
    let message = json!({"priority": 7, "key": "k", "ttl_ms": 5000, "content_type": "text/plain", "headers": {"a": 1}, "body": "report"});
    assert_eq!(made["message"], message);
    let next = made["next"].as_array().expect("occurrences");
    assert_eq!(next.len(), 5);
    assert!(next.is_sorted_by_key(|at| at.as_str().expect("text")));
    assert_eq!(world.get("/v1/schedules/daily%2Freport").await.expect(200).json, made);

    let waits = world.get("/v1/queues/q/messages").await.expect(200);
    let at = next[0].as_str().expect("text").replace(".000Z", "Z");
    assert_eq!(waits.all("id"), [format!("daily/report@{at}")]);
    assert_eq!((waits.all("status"), waits.all("user_id")), (vec!["delayed".into()], vec!["guest".into()]));

    let changed = DAILY.replace("report", "other");
    world.put("/v1/schedules/daily%2Freport", &changed).await.expect(200);
    assert_eq!(world.get("/v1/queues/q/messages").await.bodies(), "other");
    let listed = world.get("/v1/schedules").await.expect(200).json;
    let one = &listed["schedules"][0];
    assert_eq!(
        (&one["name"], &one["message"], one["next"][0] == next[0]),
        (&json!("daily/report"), &Value::Null, true)
    );

    world.delete("/v1/schedules/daily%2Freport").await.expect(204);
    assert_eq!(world.get("/v1/queues/q/messages").await.bodies(), "");
    assert_eq!(world.delete("/v1/schedules/daily%2Freport").await.code(), "404 no-such-schedule");
    let audit = world.get("/v1/audit").await.expect(200);
    let actions: Vec<_> =
        audit.json["deeds"].as_array().expect("deeds").iter().map(|deed| &deed["action"]).collect();
    assert_eq!(actions[..3], ["schedule.delete", "schedule.put", "schedule.put"]);
    assert!(!audit.text.contains("other"), "what it publishes is nobody's business: {}", audit.text);
}

#[tokio::test]
async fn a_schedule_is_in_its_virtual_host() {
    let world = World::with_queue("").await;
    world.put("/v1/vhosts/v", "{}").await.expect(201);
    assert_eq!(world.put("/v1/schedules/s?vhost=v", DAILY).await.code(), "404 no-such-queue");
    world.put("/v1/queues/q?vhost=v", "").await.expect(201);
    world.put("/v1/schedules/s?vhost=v", DAILY).await.expect(201);
    assert_eq!(world.get("/v1/schedules").await.json["schedules"], json!([]));
    assert_eq!(world.get("/v1/schedules/s").await.code(), "404 no-such-schedule");
    assert_eq!(world.get("/v1/schedules?vhost=v").await.json["schedules"][0]["name"], "s");
    assert_eq!(world.get("/v1/queues/q/messages").await.bodies(), "");
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_field() {
    let world = World::with_queue("").await;
    let whole: Value = serde_json::from_str(DAILY).expect("JSON");
    let check = async |path: &str, value: Value, code: &str, key: &str| {
        let mut schedule = whole.clone();
        *schedule.pointer_mut(path).expect("a field") = value;
        let reply = world.put("/v1/schedules/s", &schedule.to_string()).await;
        assert_eq!((reply.code().as_str(), reply.json["key"].as_str()), (code, Some(key)), "{}", reply.text);
        assert!(reply.json["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
        reply
    };
    let bad = check("/cron", json!("61 * * * *"), "422 value-invalid", "cron").await;
    assert!(bad.json["hint"].as_str().is_some_and(|hint| hint.contains("30 9 * * MON-FRI")));
    check("/cron", json!("0 0 30 2 *"), "422 value-invalid", "cron").await;
    check("/timezone", json!("Mars/Olympus"), "422 value-invalid", "timezone").await;
    check("/queue", json!(""), "422 name-invalid", "queue").await;
    let none = check("/queue", json!("none"), "404 no-such-queue", "queue").await;
    assert_eq!(none.json["detail"], "no queue `none` in vhost `/`");
    check("/message/priority", json!("urgent"), "422 priority-unknown", "message.priority").await;
    check("/message/body", json!("x".repeat(33_000)), "413 schedule-too-large", "message").await;
    check("/message", json!({"body": "", "id": "a"}), "422 value-invalid", "message.id").await;
    check("/message", json!({"body": "", "delay_ms": 5}), "422 value-invalid", "message.delay_ms").await;
    check("/message", json!({"body": "", "user_id": "guest"}), "422 value-invalid", "message.user_id").await;
    check("/message", json!({}), "422 value-invalid", "message.body").await;
    let long = format!("/v1/schedules/{}", "n".repeat(180));
    assert_eq!(world.put(&long, DAILY).await.code(), "422 name-invalid");
    assert_eq!(world.get("/v1/schedules").await.json["schedules"], json!([]));
}

//! The executions of a queue and its history: each path, each refusal.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::world::{Reply, World};

const ROOT: &str = "/api/v1/admin/executions";

/// The pair of queues, and what is done with them.
struct Works(World);

impl Works {
    async fn new() -> Self {
        let world = World::new();
        let past = r#"{"order":"fifo","scheme":"named"}"#;
        world.put("/v1/queues/executions.history", past).await.expect(201);
        let queue = r#"{"scheme":"named","max_active":3,"history":"executions.history","delivery_limit":1}"#;
        world.put("/v1/queues/executions", queue).await.expect(201);
        Self(world)
    }

    async fn submit(&self, message: Value) {
        self.0.post("/v1/queues/executions/messages", &message.to_string()).await.expect(201);
    }

    /// `id:priority` each.
    async fn submit_all(&self, words: &str) {
        for word in words.split_whitespace() {
            let (id, priority) = word.split_once(':').unwrap_or((word, "normal"));
            self.submit(json!({"id": id, "priority": priority, "body": id})).await;
        }
    }

    /// Leases one and settles it so; `{}` leaves it leased.
    async fn work(&self, settle: Value) {
        let leased = self.0.post("/v1/queues/executions/leases", r#"{"max":1}"#).await.expect(200);
        let receipts = leased.all("receipt");
        assert_eq!(receipts.len(), 1, "there is one to be done");
        let mut body = json!({"receipts": receipts});
        let Value::Object(fields) = settle else { unreachable!("it is an object") };
        if !fields.is_empty() {
            body.as_object_mut().expect("an object").extend(fields);
            self.0.post("/v1/queues/executions/settle", &body.to_string()).await.expect(200);
        }
    }

    async fn get(&self, path: &str) -> Reply {
        self.0.get(&format!("{ROOT}{path}")).await
    }

    async fn post(&self, path: &str) -> Reply {
        self.0.post(&format!("{ROOT}{path}"), "").await
    }

    async fn put(&self, path: &str, body: &str) -> Reply {
        self.0.put(&format!("{ROOT}{path}"), body).await
    }

    /// `id status` of each, then ` of total` and whether there are more.
    async fn list(&self, query: &str) -> String {
        let list = self.get(query).await.expect(200).json;
        let executions = list["executions"].as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let told = executions.map(|one| format!("{} {}", text(&one["execution_id"]), text(&one["status"])));
        let more = if list["has_more"] == true { ", more" } else { "" };
        format!("{} of {}{more}", told.collect::<Vec<_>>().join(", "), list["total"])
    }
}

#[tokio::test]
async fn executions_are_listed_the_newest_first_and_what_is_finished_after_what_is_not() {
    let works = Works::new().await;
    works.submit_all("a:critical b:critical c:critical d:critical").await;
    works.work(json!({"how": "ack", "report": {"exit_code": 0, "output": "fine\n"}})).await;
    works.work(json!({"how": "reject", "report": {"exit_code": 3, "error": "exit 3"}})).await;
    works.work(json!({})).await;
    works.submit_all("e:low f:high").await;
    works.submit(json!({"id": "g", "body": "", "delay_ms": 600_000, "priority": "high"})).await;
    works.post("/f/cancel").await.expect(200);
    let all = "g delayed, e queued, d queued, c running, f cancelled, b failed, a completed of 7";
    assert_eq!(works.list("").await, all);
    for (query, expect) in [
        ("?limit=3", "g delayed, e queued, d queued of 7, more"),
        ("?limit=3&skip=3", "c running, f cancelled, b failed of 7, more"),
        ("?limit=3&skip=6", "a completed of 7"),
        ("?skip=7", " of 7"),
        ("?skip=99", " of 7"),
        ("?status=queued", "e queued, d queued of 2"),
        ("?status=delayed", "g delayed of 1"),
        ("?status=running", "c running of 1"),
        ("?status=completed", "a completed of 1"),
        ("?status=failed", "b failed of 1"),
        ("?status=cancelled", "f cancelled of 1"),
        ("?status=timeout", " of 0"),
        ("?priority=critical", "d queued, c running, b failed, a completed of 4"),
        ("?priority=critical&status=queued&limit=1", "d queued of 1"),
        ("?priority=high", "g delayed, f cancelled of 2"),
        ("?priority=high&limit=1&skip=1", "f cancelled of 2"),
        ("?priority=background", " of 0"),
        ("?queue=executions&vhost=%2F&limit=1", "g delayed of 7, more"),
    ] {
        assert_eq!(works.list(query).await, expect, "{query}");
    }
    let list = works.get("?limit=2&skip=1").await.expect(200).json;
    assert_eq!((&list["limit"], &list["skip"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn an_execution_tells_how_it_is() {
    let works = Works::new().await;
    works.0.put("/v1/users/ann", r#"{"password":"secret"}"#).await.expect(201);
    works.submit(json!({"id": "a", "body": "x", "priority": "critical", "key": "k", "user_id": "ann"})).await;
    works.submit_all("b").await;
    let shown = works.get("/a").await.expect(200).json;
    let expect = json!({
        "execution_id": "a", "status": "queued", "priority": "critical", "user_id": "ann", "key": "k",
        "attempts": 0, "queued_at": shown["queued_at"], "position": 0,
    });
    assert_eq!(shown, expect);
    assert!(shown["queued_at"].as_str().expect("a moment").ends_with('Z'));
    works
        .work(json!({"how": "reject", "report": {"exit_code": 3, "error": "exit 3", "output": "oh\n"}}))
        .await;
    let over = works.get("/a").await.expect(200).json;
    let said = ["status", "exit_code", "error", "output", "attempts", "user_id", "key", "priority"];
    let expect = ["failed", "3", "exit 3", "oh\n", "1", "ann", "k", "critical"];
    let texts = said.map(|name| over[name].as_str().map_or_else(|| over[name].to_string(), Into::into));
    assert_eq!(texts, expect.map(String::from));
    assert_eq!(over["queued_at"], shown["queued_at"]);
    assert!(over["started_at"].is_string() && over["finished_at"].is_string(), "{over}");
    works.work(json!({})).await;
    let running = works.get("/b").await.expect(200).json;
    assert_eq!((&running["status"], &running["attempts"]), (&json!("running"), &json!(1)));
    assert!(running["started_at"].is_string() && running.get("finished_at").is_none(), "{running}");
    assert_eq!(works.list("?user_id=ann").await, "a failed of 1");
    assert_eq!(works.list("?user_id=ann&status=queued").await, " of 0");
    assert_eq!(works.get("/none").await.code(), "404 no-such-execution");
}

#[tokio::test]
async fn a_priority_changes_while_an_execution_waits() {
    let works = Works::new().await;
    works.submit_all("a b:critical c").await;
    let now = works.put("/c/priority", r#"{"priority":"high"}"#).await.expect(200).json;
    assert_eq!((&now["priority"], &now["position"]), (&json!("high"), &json!(1)));
    assert_eq!(works.put("/none/priority", r#"{"priority":"high"}"#).await.code(), "404 no-such-execution");
    for body in [r#"{"priority":"urgent"}"#, r#"{"priority":true}"#, "{}", r#"{"prio":"high"}"#] {
        let reply = works.put("/a/priority", body).await;
        assert_eq!(reply.status, 422, "{body}: {}", reply.text);
    }
    assert_eq!(works.put("/a/priority", r#"{"priority":"urgent"}"#).await.json["key"], "priority");
    // A name counts in any case, and in no other way.
    let now = works.put("/a/priority", r#"{"priority":"LOW"}"#).await.expect(200).json;
    assert_eq!(now["priority"], "low");
    for (body, code, detail) in [
        (
            r#"{"priority":null}"#,
            "422 value-invalid",
            "`priority` is `null`: expected a priority: a whole number or a name",
        ),
        (
            r#"{"priority":""}"#,
            "422 priority-unknown",
            "`priority` is ``: the priority is none the queue's scheme knows",
        ),
        (
            r#"{"priority":" high"}"#,
            "422 priority-unknown",
            "`priority` is ` high`: the priority is none the queue's scheme knows",
        ),
    ] {
        let reply = works.put("/a/priority", body).await;
        assert_eq!((reply.code(), reply.json["key"].as_str()), (code.to_owned(), Some("priority")), "{body}");
        assert_eq!(reply.json["detail"], detail, "{body}");
    }
    let now = works.get("/a").await.expect(200).json;
    assert_eq!(now["priority"], "low", "what is refused changes nothing");
    works.work(json!({})).await;
    assert_eq!(works.put("/b/priority", r#"{"priority":"low"}"#).await.code(), "409 leased");
    works.work(json!({"how": "ack"})).await;
    assert_eq!(works.put("/c/priority", r#"{"priority":"low"}"#).await.code(), "409 execution-finished");
    let deeds = works.0.get("/v1/audit").await.expect(200).json;
    assert_eq!(
        (&deeds["deeds"][0]["action"], &deeds["deeds"][0]["user"]),
        (&json!("message.reprioritise"), &json!("guest"))
    );
}

#[tokio::test]
async fn an_execution_is_cancelled_and_done_again() {
    let works = Works::new().await;
    works.submit_all("a:critical b").await;
    works.work(json!({})).await;
    let asked = works.post("/a/cancel").await.expect(200).json;
    assert_eq!((&asked["status"], &asked["cancel_asked"]), (&json!("running"), &json!(true)));
    let gone = works.post("/b/cancel").await.expect(200).json;
    assert_eq!((&gone["status"], &gone["attempts"]), (&json!("cancelled"), &json!(0)));
    assert!(gone["finished_at"].is_string());
    assert_eq!(works.post("/b/cancel").await.code(), "409 execution-finished");
    assert_eq!(works.post("/none/cancel").await.code(), "404 no-such-execution");
    assert_eq!(works.post("/a/retry").await.code(), "409 execution-pending");
    assert_eq!(works.post("/none/retry").await.code(), "404 no-such-execution");
    let again = works.post("/b/retry").await.expect(200).json;
    assert_eq!((&again["status"], &again["attempts"]), (&json!("queued"), &json!(0)));
    assert_eq!(works.list("").await, "b queued, a running of 2");
    assert_eq!(works.post("/b/retry").await.code(), "409 execution-pending");
    works.work(json!({"how": "ack"})).await;
    assert_eq!(works.list("").await, "a running, b completed of 2");
}

/// What failed and waits for its next attempt says how each attempt ended; so does what is over, and what is done again.
#[tokio::test]
async fn each_attempt_is_shown() {
    let works = Works::new().await;
    works.0.ask("PATCH", "/v1/queues/executions", r#"{"delivery_limit":3}"#).await.expect(200);
    works.submit_all("a").await;
    let report = |code: u32| json!({"exit_code": code, "error": format!("exit {code}"), "output": "oh"});
    works.work(json!({"how": "nack", "delay_ms": 0, "report": report(1)})).await;
    works.work(json!({"how": "nack", "delay_ms": 60_000, "report": report(2)})).await;
    let codes = |execution: &Value| {
        let all = execution["past_attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().map(|one| one["exit_code"].as_u64().expect("a number")).collect::<Vec<u64>>()
    };
    let waits = works.get("/a").await.expect(200).json;
    assert_eq!(
        (&waits["status"], &waits["attempts"], codes(&waits)),
        (&json!("delayed"), &json!(2), vec![1, 2])
    );
    let last = &waits["past_attempts"][1];
    assert_eq!(
        (&last["ending"], &last["error"], &last["output"]),
        (&json!("failed"), &json!("exit 2"), &json!("oh"))
    );
    assert!(last["started_at"].is_string() && last["finished_at"].is_string(), "{last}");
    let refused = works.post("/a/retry").await;
    assert_eq!(refused.code(), "409 execution-pending");
    assert!(refused.text.contains("`a` failed (exit 2) and is tried again at 2"), "{}", refused.text);
    let page = works.get("").await.expect(200).json;
    assert_eq!(page["executions"][0]["past_attempts"], Value::Null, "a page of many does not say it");
    let last = &page["executions"][0]["last_attempt"];
    assert_eq!(
        (&last["exit_code"], &last["error"], &last["output"]),
        (&json!(2), &json!("exit 2"), &Value::Null)
    );
    let message = works.0.get("/v1/queues/executions/messages/a").await.expect(200).json;
    assert_eq!(codes(&message), [1, 2]);

    works.submit_all("b").await;
    for code in 1..=3 {
        works.work(json!({"how": "nack", "delay_ms": 0, "report": report(code)})).await;
    }
    let over = works.get("/b").await.expect(200).json;
    assert_eq!(
        (&over["status"], &over["exit_code"], codes(&over)),
        (&json!("failed"), &json!(3), vec![1, 2])
    );
    let again = works.post("/b/retry").await.expect(200).json;
    assert_eq!((&again["status"], codes(&again)), (&json!("queued"), vec![1, 2, 3]));
}

/// A dead letter that its own queue keeps, without a history, says how its last attempt ended, and once only.
#[tokio::test]
async fn without_a_history_the_last_attempt_is_shown() {
    let works = Works::new().await;
    works.0.ask("PATCH", "/v1/queues/executions", r#"{"history":null,"delivery_limit":2}"#).await.expect(200);
    works.submit_all("a").await;
    for code in [1, 2] {
        works
            .work(json!({"how": "nack", "delay_ms": 0, "report": {"exit_code": code, "output": "oh"}}))
            .await;
    }
    let over = works.get("/a").await.expect(200).json;
    assert_eq!(
        (&over["status"], &over["exit_code"], &over["output"]),
        (&json!("failed"), &json!(2), &json!("oh"))
    );
    assert_eq!(over["past_attempts"].as_array().map(Vec::len), Some(1), "{over}");
}

#[tokio::test]
async fn one_without_an_id_of_its_own_is_never_taken_for_another() {
    let works = Works::new().await;
    works.submit(json!({"body": "first", "priority": "critical"})).await;
    works.submit(json!({"body": "second"})).await;
    works.work(json!({"how": "ack"})).await;
    let list = works.get("").await.expect(200).json;
    let ids: Vec<_> =
        list["executions"].as_array().expect("two").iter().map(|one| &one["execution_id"]).collect();
    let [waits, over] = ids[..] else { panic!("{ids:?}") };
    let (waits, over) = (waits.as_str().expect("text"), over.as_str().expect("text"));
    assert!(over.ends_with("@history") && !waits.contains('@'), "{ids:?}");
    assert_eq!(works.get(&format!("/{over}")).await.json["status"], "completed");
    assert_eq!(works.get(&format!("/{waits}")).await.json["status"], "queued");
    let bare = over.strip_suffix("@history").expect("it has it");
    assert_ne!(works.get(&format!("/{bare}")).await.json["status"], "completed");
    works.post(&format!("/{over}/retry")).await.expect(204);
    assert_eq!(works.get("?status=queued").await.json["total"], 2);
    assert_eq!(works.post(&format!("/{waits}/cancel")).await.json["status"], "cancelled");
}

#[tokio::test]
async fn an_execution_may_be_called_as_the_queue_is() {
    let works = Works::new().await;
    works.submit_all("queue").await;
    assert_eq!(works.get("/%71ueue").await.expect(200).json["execution_id"], "queue");
    assert_eq!(works.get("/queue").await.expect(200).json["queue_depth"], 1);
    works.put("/queue/priority", r#"{"priority":"high"}"#).await.expect(200);
    works.post("/queue/cancel").await.expect(200);
}

#[tokio::test]
async fn the_queue_tells_how_full_it_is_and_is_changed_live() {
    let works = Works::new().await;
    let empty = works.get("/queue").await.expect(200);
    let expect = json!({
        "queue": "executions", "history": "executions.history", "queue_depth": 0, "active_count": 0,
        "max_concurrent": 3, "paused": false, "by_priority": {},
    });
    assert_eq!(empty.json, expect);
    works.submit_all("a:critical b:low c:high d:low e:critical").await;
    works.work(json!({})).await;
    let reply = works.get("/queue").await.expect(200);
    assert_eq!((&reply.json["queue_depth"], &reply.json["active_count"]), (&json!(4), &json!(1)));
    assert!(reply.text.contains(r#""by_priority":{"critical":1,"high":1,"low":2}"#), "{}", reply.text);
    let before = works.0.get("/v1/queues/executions").await.expect(200).json["settings"].clone();
    let changed = works.put("/queue/max_concurrent", r#"{"max_concurrent":1}"#).await.expect(200).json;
    assert_eq!(changed["max_concurrent"], 1);
    let none = works.0.post("/v1/queues/executions/leases", "{}").await.expect(200);
    assert_eq!(none.bodies(), "", "one runs already");
    works.put("/queue/max_concurrent", r#"{"max_concurrent":3}"#).await.expect(200);
    assert_eq!(works.post("/queue/pause").await.expect(200).json["paused"], true);
    let none = works.0.post("/v1/queues/executions/leases", "{}").await.expect(200);
    assert_eq!(none.bodies(), "", "none begins");
    assert_eq!(works.post("/queue/resume").await.expect(200).json["paused"], false);
    let after = works.0.get("/v1/queues/executions").await.expect(200).json["settings"].clone();
    assert_eq!(after, before, "no other setting has changed");
    works.work(json!({"how": "ack"})).await;
    for body in [
        "{}",
        r#"{"max_concurrent":-1}"#,
        r#"{"max_concurrent":"3"}"#,
        r#"{"max_concurrent":4294967296}"#,
        r#"{"max":3}"#,
    ] {
        let reply = works.put("/queue/max_concurrent", body).await;
        assert_eq!(reply.status, 422, "{body}: {}", reply.text);
    }
    let deeds = works.0.get("/v1/audit").await.expect(200).json;
    let deed = &deeds["deeds"][0];
    assert_eq!((&deed["action"], &deed["object"]), (&json!("queue.declare"), &json!("executions")));
    assert_eq!((&deed["before"]["paused"], &deed["after"]["paused"]), (&json!(true), &json!(false)));
}

#[tokio::test]
async fn what_cannot_be_meant_is_named() {
    let works = Works::new().await;
    for (query, code, key) in [
        ("?status=done", "422 value-invalid", "status"),
        ("?limit=0", "422 value-invalid", "limit"),
        ("?limit=201", "422 value-invalid", "limit"),
        ("?skip=x", "422 value-invalid", "skip"),
        ("?priority=urgent", "422 priority-unknown", "priority"),
        ("?user=ann", "422 parameter-unknown", "user"),
        ("?queue=none", "404 no-such-queue", "queue"),
        ("/a?status=queued", "422 parameter-unknown", "status"),
        ("/queue?queue=none", "404 no-such-queue", "queue"),
    ] {
        let reply = works.get(query).await;
        assert_eq!(
            (reply.code().as_str(), &reply.json["key"]),
            (code, &json!(key)),
            "{query}: {}",
            reply.text
        );
    }
    let missing = works.get("?queue=none").await;
    let hint = missing.json["hint"].as_str().expect("a hint");
    assert!(hint.contains("overtake exec create --queue none"), "{hint}");
    assert_eq!(missing.json["detail"], "no queue `none` in vhost `/`");
    assert_eq!(works.get("?vhost=none").await.code(), "404 no-such-vhost");
}

#[tokio::test]
async fn a_history_of_another_scheme_is_told_from_a_wrong_priority() {
    let works = Works::new().await;
    works.0.put("/v1/queues/executions.history?replace=true", r#"{"order":"fifo"}"#).await.expect(200);
    let reply = works.get("?priority=high").await;
    let hint = reply.json["hint"].as_str().expect("a hint");
    assert!(reply.status == 422 && hint.contains("`named`, and give its history the same"), "{}", reply.text);
    assert_eq!(works.list("?priority=high&status=queued").await, " of 0");
}

#[tokio::test]
async fn only_administrators_see_executions() {
    let works = Works::new().await;
    works.submit_all("a").await;
    works.0.put("/v1/users/ann", r#"{"password":"secret","tags":["monitoring"]}"#).await.expect(201);
    let all = r#"{"configure":".*","write":".*","read":".*"}"#;
    works.0.put("/v1/users/ann/permissions/%2F", all).await.expect(204);
    let ann = format!("Basic {}", STANDARD.encode("ann:secret"));
    for (method, path, body) in [
        ("GET", "", ""),
        ("GET", "/a", ""),
        ("GET", "/queue", ""),
        ("PUT", "/a/priority", r#"{"priority":"high"}"#),
        ("POST", "/a/cancel", ""),
        ("POST", "/a/retry", ""),
        ("PUT", "/queue/max_concurrent", r#"{"max_concurrent":1}"#),
        ("POST", "/queue/pause", ""),
        ("POST", "/queue/resume", ""),
        ("GET", "?status=nothing", ""),
        ("GET", "?queue=none", ""),
    ] {
        let path = format!("{ROOT}{path}");
        let reply = works.0.ask_as(Some(&ann), method, &path, body).await;
        assert_eq!(reply.code(), "403 access-refused", "{method} {path}");
        assert_eq!(reply.json["detail"], "user 'ann' does not have the tag 'administrator'");
        assert_eq!(
            works.0.ask_as(None, method, &path, body).await.code(),
            "401 login-required",
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn nobody_submits_in_the_name_of_another_but_administrators() {
    let works = Works::new().await;
    works.0.put("/v1/users/ann", r#"{"password":"secret"}"#).await.expect(201);
    let write = r#"{"configure":"","write":".*","read":""}"#;
    works.0.put("/v1/users/ann/permissions/%2F", write).await.expect(204);
    let ann = format!("Basic {}", STANDARD.encode("ann:secret"));
    let path = "/v1/queues/executions/messages";
    let own = r#"{"body":"","id":"own","user_id":"ann"}"#;
    works.0.ask_as(Some(&ann), "POST", path, own).await.expect(201);
    let other = works.0.ask_as(Some(&ann), "POST", path, r#"{"body":"","user_id":"bob"}"#).await;
    assert_eq!(other.code(), "403 access-refused");
    assert_eq!(other.json["detail"], "user_id property set to 'bob' but authenticated user was 'ann'");
    works.submit(json!({"id": "for-bob", "body": "", "user_id": "bob"})).await;
    assert_eq!(works.list("?user_id=bob").await, "for-bob queued of 1");
    assert_eq!(works.0.post(path, r#"{"body":"","user_id":""}"#).await.json["key"], "user_id");
    let seen = works.0.get("/v1/queues/executions/messages?user_id=ann").await.expect(200);
    assert_eq!((seen.all("id"), seen.all("user_id")), (vec!["own".to_owned()], vec!["ann".to_owned()]));
    let newest = works.0.get("/v1/queues/executions/messages?order=newest&limit=1").await.expect(200);
    assert_eq!(newest.all("id"), ["for-bob"]);
    let cursor = newest.json["next_cursor"].as_str().expect("there is more");
    let path = format!("/v1/queues/executions/messages?order=newest&limit=1&cursor={cursor}");
    assert_eq!(works.0.get(&path).await.expect(200).all("id"), ["own"]);
}

#[tokio::test]
async fn a_queue_without_a_history_lists_what_is_there() {
    let world = World::with_queue(r#"{"scheme":"named"}"#).await;
    world.post("/v1/queues/q/messages", r#"{"body":"","id":"a"}"#).await.expect(201);
    world.post("/v1/queues/q/messages", r#"{"body":"","id":"b"}"#).await.expect(201);
    let (_, receipts) = world.lease(1).await;
    let settle = json!({"receipts": receipts, "how": "reject"}).to_string();
    world.post("/v1/queues/q/settle", &settle).await.expect(200);
    let list = world.get(&format!("{ROOT}?queue=q&status=failed")).await.expect(200).json;
    assert_eq!((&list["total"], &list["executions"][0]["execution_id"]), (&json!(1), &json!("a")));
    assert_eq!(list["executions"][0]["error"], "rejected");
    let path = format!("{ROOT}/a/priority?queue=q");
    assert_eq!(world.put(&path, r#"{"priority":"high"}"#).await.code(), "409 execution-finished");
    let again = world.post(&format!("{ROOT}/a/retry?queue=q"), "").await.expect(200).json;
    assert_eq!(again["status"], "queued");
    let gone = world.post(&format!("{ROOT}/b/cancel?queue=q"), "").await.expect(200).json;
    assert_eq!(gone["status"], "cancelled");
    assert_eq!(world.get(&format!("{ROOT}/b?queue=q")).await.code(), "404 no-such-execution");
}

#[tokio::test]
async fn who_works_on_one_and_what_it_has_printed_is_seen() {
    let works = Works::new().await;
    works.submit(json!({"id": "a", "body": ""})).await;
    let lease = r#"{"worker":"build-7:4711"}"#;
    let leased = works.0.post("/v1/queues/executions/leases", lease).await.expect(200);
    let receipts = leased.all("receipt");
    let path = "/v1/queues/executions/messages/a";
    let (shown, one) =
        (works.0.get(path).await.expect(200).json, works.0.get(&format!("{ROOT}/a")).await.json);
    for holder in [&shown["holder"], &one["holder"], &works.0.get(ROOT).await.json["executions"][0]["holder"]]
    {
        assert_eq!((&holder["user"], &holder["worker"]), (&json!("guest"), &json!("build-7:4711")));
        assert_eq!(holder["since"], shown["started"]);
    }
    assert!(shown.get("progress").is_none() && leased.json["messages"][0].get("holder").is_none());
    let extend = |report: serde_json::Value| {
        json!({"receipts": receipts, "visibility_timeout_ms": 60_000, "report": report}).to_string()
    };
    let extend_path = "/v1/queues/executions/extend";
    for output in ["10 %\n", "10 %\n20 %\n"] {
        works.0.post(extend_path, &extend(json!({"output": output}))).await.expect(200);
        let seen = works.0.get(path).await.expect(200).json["progress"].clone();
        assert_eq!(seen["output"], output);
        assert!(seen["at"].as_str().expect("a time").ends_with('Z'));
        assert_eq!(works.0.get(&format!("{ROOT}/a")).await.json["progress"], seen);
    }
    let settle = json!({"receipts": receipts, "how": "ack", "report": {"output": "all\n"}}).to_string();
    works.0.post("/v1/queues/executions/settle", &settle).await.expect(200);
    let done = works.0.get(&format!("{ROOT}/a")).await.json;
    assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!("all\n")));
    assert!(done.get("progress").is_none() && done.get("holder").is_none());
    assert_eq!(works.0.post(extend_path, &extend(json!({"output": ""}))).await.code(), "409 stale-receipt");
}

/// A worker hears at once that a message is wanted back, or gone.
#[tokio::test]
async fn an_extension_that_waits_is_answered_when_its_message_is_withdrawn() {
    let works = Works::new().await;
    works.submit_all("a b").await;
    let leased = works.0.post("/v1/queues/executions/leases", r#"{"max":2}"#).await.expect(200);
    assert!(leased.json["messages"][0].get("run_timeout_ms").is_none());
    let receipts = leased.all("receipt");
    let wait = |receipts: &[String], wait_ms: u64| {
        let body = json!({"receipts": receipts, "visibility_timeout_ms": 60_000, "wait_ms": wait_ms});
        let path = "/v1/queues/executions/extend";
        let world = &works.0;
        async move { world.post(path, &body.to_string()).await }
    };
    let (waited, _) = tokio::join!(wait(&receipts[..1], 60_000), works.post("/a/cancel"));
    assert_eq!(waited.code(), "409 cancel-asked");
    let (waited, _) =
        tokio::join!(wait(&receipts[1..], 60_000), works.0.delete("/v1/queues/executions/messages/b"));
    assert_eq!(waited.code(), "409 stale-receipt");
    let many = wait(&receipts, 1).await;
    assert_eq!((many.status, &many.json["key"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("wait_ms")));
    let change = r#"{"run_timeout_ms":90000}"#;
    works.0.ask("PATCH", "/v1/queues/executions", change).await.expect(200);
    works.submit_all("c").await;
    let leased = works.0.post("/v1/queues/executions/leases", r#"{"max":1}"#).await.expect(200);
    assert_eq!(leased.json["messages"][0]["run_timeout_ms"], 90_000);
    wait(&leased.all("receipt"), 1).await.expect(200);
}

#[tokio::test]
async fn what_cannot_be_said_of_work_that_goes_on_is_refused() {
    let world = World::with_queue("").await;
    world.publish("a:1 b:1").await;
    let (_, receipts) = world.lease(2).await;
    let extend = |receipts: &[String], report: serde_json::Value| {
        json!({"receipts": receipts, "visibility_timeout_ms": 60_000, "report": report}).to_string()
    };
    let path = "/v1/queues/q/extend";
    let many = world.post(path, &extend(&receipts, json!({"output": ""}))).await;
    assert_eq!((many.status, &many.json["key"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("report")));
    let code = world.post(path, &extend(&receipts[..1], json!({"output": "", "exit_code": 1}))).await;
    assert_eq!(code.status, StatusCode::UNPROCESSABLE_ENTITY, "how it ended is said when it ends");
    let long = json!({"output": "x".repeat(32_769)});
    assert_eq!(world.post(path, &extend(&receipts[..1], long)).await.code(), "413 report-too-large");
    for worker in ["", "a\nb", &"x".repeat(201)] {
        let refused = world.post("/v1/queues/q/leases", &json!({"worker": worker}).to_string()).await;
        assert_eq!(
            (refused.status, &refused.json["key"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("worker"))
        );
    }
}

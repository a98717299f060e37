//! Endpoints and sources that cannot be are known before anything starts.

use expect_test::expect;

use crate::file;

#[test]
fn an_endpoint_that_cannot_be_is_refused_with_the_place_of_its_key() {
    file(
        "[endpoints.cloud]\nqueue = \"out\"\nto.webhook = { url = \"ftp://x\" }\n",
        expect![[r#"
            overtake.toml:3:4: `endpoints.cloud.to.webhook`: `ftp://x` must begin with http:// or https://
              3 | to.webhook = …
                |    ^^^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[endpoints.cloud.to.webhook]\nurl = \"https://x\"\nheaders = { \"a b\" = \"1\" }\n",
        expect![[r#"
        overtake.toml:1:21: `endpoints.cloud.to.webhook`: `a b` is no name of a header
          1 | [endpoints.cloud.to.webhook]
            |                     ^^^^^^^
        hint: see docs/endpoints.md for what each key means
    "#]],
    );
    file(
        "[endpoints.cloud]\nto.queue.name = \"in\"\n[endpoints.cloud.send]\nbatch = 5\nfan_out = 0\n",
        expect![[r#"
            overtake.toml:5:1: `endpoints.cloud.send`: `fan_out` must be 1 to 64
              5 | fan_out = …
                | ^^^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[endpoints.cloud]\nto.queue.name = \"in\"\nsend.reconnect = { initial_ms = 0 }\n",
        expect![[r#"
            overtake.toml:3:20: `endpoints.cloud.send`: `reconnect.initial_ms` must be 1 or more
              3 | send.reconnect = …
                |                  ^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[endpoints.cloud]\nto.queue = {}\n",
        expect![[r#"
            overtake.toml:2:4: `endpoints.cloud.to.queue`: `name` must be a queue, or `exchange` an exchange
              2 | to.queue = …
                |    ^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[endpoints.cloud]\nto.queue.name = \"cloud\"\n",
        expect![[r#"
            overtake.toml:2:4: `endpoints.cloud.to.queue`: cloud would be sent to itself
              2 | to.queue.name = …
                |    ^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[endpoints.cloud]\nqueue = \"\"\nto.queue.name = \"in\"\n",
        expect![[r#"
            overtake.toml:2:1: `endpoints.cloud`: `queue`: the name is empty, too long or holds characters that it may not
              2 | queue = …
                | ^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[endpoints.cloud]\nto.mqtt = { url = \"mqtt://h\", topic = \"a/{prio}\" }\n",
        expect![[r#"
            overtake.toml:2:31: `endpoints.cloud.to.mqtt`: `topic`: there is no {prio}, only {priority}, {lane}, {key}, {queue}, {routing_key}
              2 | to.mqtt = …
                |           ^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[endpoints.cloud]\nto.amqp = { url = \"amqps://h\", tls = { cert_file = \"/nowhere/cert.pem\" } }\n",
        expect![[r#"
            overtake.toml:2:4: `endpoints.cloud.to.amqp`: `cert_file` and `key_file` go together
              2 | to.amqp = …
                |    ^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[endpoints.\"\"]\nto.queue.name = \"in\"\n",
        expect![[r#"
            overtake.toml:1:12: `endpoints.`: the name is 1 to 200 bytes of text without control characters
              1 | …
                | ^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
}

#[test]
fn priorities_are_held_against_the_queues_of_the_same_file() {
    let endpoint = |scheme: &str, priority: &str| {
        format!(
            "[queues.out]\nscheme = \"{scheme}\"\n[endpoints.out]\nto.webhook = {{ url = \"https://h\" }}\n{priority}\n"
        )
    };
    file(
        &endpoint("named", "priority = { table = { low = 1, default = 2 } }"),
        expect![[r#"
            fine
        "#]],
    );
    file(
        &endpoint("ten-level", "priority = { table = { low = 1 } }"),
        expect![[r#"
        overtake.toml:5:24: `endpoints.out.priority.table`: `low`: the priority is none the queue's scheme knows, which is ten-level
          5 | priority = …
            |            ^
        hint: see docs/endpoints.md for what each key means
    "#]],
    );
    file(
        &endpoint("named", "reserve_from = \"urgent\"\nsend = { daily_bytes = 9, reserve_bytes = 5 }"),
        expect![[r#"
            overtake.toml:5:1: `endpoints.out.reserve_from`: `urgent`: the priority is none the queue's scheme knows, which is named
              5 | reserve_from = …
                | ^^^^^^^^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        &endpoint("named", "reserve_from = \"high\"\nsend = { daily_bytes = 9 }"),
        expect![[r#"
            overtake.toml:5:1: `endpoints.out.reserve_from`: nothing is reserved: set `send.reserve_bytes`, or leave `reserve_from` out
              5 | reserve_from = …
                | ^^^^^^^^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        &endpoint("ten-level", "priority = { table = { \"0\" = 1, \"00\" = 2 } }"),
        expect![[r#"
        overtake.toml:5:24: `endpoints.out.priority.table`: `0` and `00` are the same priority: name it once
          5 | priority = …
            |            ^
        hint: see docs/endpoints.md for what each key means
    "#]],
    );
    let source = |priority: &str| {
        format!(
            "[queues.in]\nscheme = \"named\"\n[sources.jobs]\nfrom.amqp = {{ url = \"amqp://h\", queue = \"q\" }}\nto.queue = \"in\"\npriority = {priority}\n"
        )
    };
    file(
        &source("{ header = \"p\", table = { fatal = \"critical\", default = \"low\" } }"),
        expect![[r#"
            fine
        "#]],
    );
    file(
        &source("{ header = \"p\", table = { fatal = \"urgent\" } }"),
        expect![[r#"
        overtake.toml:6:28: `sources.jobs.priority.table`: `urgent`: the priority is none the queue's scheme knows, which is named
          6 | priority = …
            |            ^
        hint: see docs/endpoints.md for what each key means
    "#]],
    );
    file(
        &source("{ value = \"urgent\" }"),
        expect![[r#"
        overtake.toml:6:14: `sources.jobs.priority.value`: `urgent`: the priority is none the queue's scheme knows, which is named
          6 | priority = …
            |            ^
        hint: see docs/endpoints.md for what each key means
    "#]],
    );
    file(
        &source("{ value = 7, scheme = \"max-9\" }"),
        expect![[r#"
            fine
        "#]],
    );
    file(
        &source("{ table = { High = \"high\", high = \"low\" } }"),
        expect![[r#"
        overtake.toml:6:24: `sources.jobs.priority.table`: `High` and `high` are the same priority: name it once
          6 | priority = …
            |            ^
        hint: see docs/endpoints.md for what each key means
    "#]],
    );
}

#[test]
fn a_source_that_cannot_be_is_refused_with_the_place_of_its_key() {
    file(
        "[sources.jobs]\nbatch = 0\nfrom.amqp = { url = \"amqp://h\", queue = \"q\" }\nto.queue = \"in\"\n",
        expect![[r#"
            overtake.toml:2:1: `sources.jobs`: `batch` must be 1 to 10000
              2 | batch = …
                | ^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[sources.jobs]\nto.queue = \"in\"\n[sources.jobs.from.redis]\nurl = \"redis://h/x\"\nstreams = [\"a\"]\n",
        expect![[r#"
            overtake.toml:3:20: `sources.jobs.from.redis`: `redis://h/x` must end in the number of a database, as redis://HOST:6379/0
              3 | [sources.jobs.from.redis]
                |                    ^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[sources.jobs]\nto.queue = \"in\"\n[sources.jobs.from.mqtt]\nurl = \"mqtt://h\"\nclient_id = \"c\"\ntopics = [\"a/#/b\"]\n",
        expect![[r#"
            overtake.toml:6:1: `sources.jobs.from.mqtt`: `topics`: `a/#/b` must have `+` for whole levels only, and `#` for the last one only
              6 | topics = …
                | ^^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[sources.jobs]\nfrom.amqp = { url = \"amqp://h\", queue = \"q\" }\nto.queue = \"\"\n",
        expect![[r#"
            overtake.toml:3:4: `sources.jobs`: `to.queue`: the name is empty, too long or holds characters that it may not
              3 | to.queue = …
                |    ^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[sources.jobs]\nto.queue = \"in\"\n[sources.jobs.from.amqp]\nurl = \"amqp://h\"\nqueue = \"q\"\nprefetch = 0\n",
        expect![[r#"
            overtake.toml:6:1: `sources.jobs.from.amqp`: `prefetch` must be at least 1: with 0 the server sends all it has, and it would wait in memory here
              6 | prefetch = …
                | ^^^^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
}

#[cfg(not(feature = "kafka"))]
#[test]
fn a_build_without_kafka_says_so() {
    file(
        "[endpoints.cloud]\nto.kafka = { brokers = [\"h:9092\"], topic = \"t\" }\n",
        expect![[r#"
            overtake.toml:2:4: `endpoints.cloud.to.kafka`: this build has no Kafka: install the package or the image, or build with `--features kafka`
              2 | to.kafka = …
                |    ^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
    file(
        "[sources.jobs]\nfrom.kafka = { brokers = [\"h:9092\"], topics = [\"t\"] }\nto.queue = \"in\"\n",
        expect![[r#"
            overtake.toml:2:6: `sources.jobs.from.kafka`: this build has no Kafka: install the package or the image, or build with `--features kafka`
              2 | from.kafka = …
                |      ^^^^^
            hint: see docs/endpoints.md for what each key means
        "#]],
    );
}

#[test]
fn secrets_and_certificates_need_not_be_where_a_configuration_is_checked() {
    let tls = "tls = { ca_file = \"/nowhere/ca.pem\", cert_file = \"/nowhere/cert.pem\", key_file = \"/nowhere/key.pem\" }";
    for to in [
        "webhook = { url = \"https://h\", signing_key = { env = \"NO_SUCH_VARIABLE\" }, TLS }",
        "amqp = { url = \"amqps://h\", user = \"u\", password = { file = \"/nowhere/password\" }, TLS }",
        "mqtt = { url = \"mqtts://u@h\", topic = \"t\", password = { file = \"/nowhere/password\" }, TLS }",
        "redis = { url = \"rediss://u@h\", stream = \"s\", password = { env = \"NO_SUCH_VARIABLE\" }, TLS }",
    ] {
        let text = format!("[endpoints.cloud]\nto.{}\n", to.replace("TLS", tls));
        file(
            &text,
            expect![[r#"
            fine
        "#]],
        );
    }
}

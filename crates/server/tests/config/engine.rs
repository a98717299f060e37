//! Where messages are kept.

use std::time::Duration;

use expect_test::expect;
use overtake_server::config::Servers;

use crate::{Said, check, file, flag, variable};

fn servers(said: &Said<'_>) -> Option<Servers> {
    said.load().expect("fine").engine.servers()
}

#[test]
fn messages_are_in_the_embedded_store_unless_servers_are_named() {
    assert_eq!(servers(&Said::default()), None);
    let text = "[engine]\nkind = \"cluster\"\nnodes = [\"10.0.0.1:6379\", \"rediss://b:7000\"]\nusername = \"broker\"\n\
                password = { file = \"/run/secrets/valkey\" }\nfsync_acked = true\nsweep_ms = \"250ms\"\n\
                [engine.tls]\nca_file = \"/etc/ca.pem\"\n";
    let Servers { nodes, sweep } = servers(&Said { file: Some(text), ..Said::default() }).expect("servers");
    expect![[r#"
        Nodes {
            kind: Cluster,
            nodes: [
                "redis://10.0.0.1:6379",
                "rediss://b:7000",
            ],
            username: Some(
                "broker",
            ),
            password: Some(
                File(
                    "/run/secrets/valkey",
                ),
            ),
            tls: Tls {
                ca_file: Some(
                    "/etc/ca.pem",
                ),
                cert_file: None,
                key_file: None,
            },
            durability: Durability {
                replicas_acked: 1,
                is_fsync_acked: true,
            },
            patience: Patience {
                connect_ms: 2000,
                answer_ms: 5000,
                replicas_ms: 1000,
                shortfall_ms: 2000,
                look_ms: 5000,
                backoff_first_ms: 5,
                backoff_max_ms: 500,
            },
            connections: 2,
        }
    "#]]
    .assert_debug_eq(&nodes);
    assert_eq!(sweep, Duration::from_millis(250));
}

#[test]
fn variables_and_flags_name_servers_with_commas_between() {
    let variables = [
        ("OVERTAKE__ENGINE__KIND", "cluster"),
        ("OVERTAKE__ENGINE__NODES", "a:1, b:2"),
        ("OVERTAKE__ENGINE__PASSWORD", "{ env = \"VALKEY_PASSWORD\" }"),
    ];
    let by_variables = Said { variables: &variables, ..Said::default() };
    let flags = [
        ("engine", "cluster"),
        ("engine-nodes", "redis://a:1,redis://b:2"),
        ("engine-password", "{ env = \"VALKEY_PASSWORD\" }"),
    ];
    let by_flags = Said { flags: &flags, ..Said::default() };
    assert_eq!(servers(&by_variables), servers(&by_flags));
    assert_eq!(servers(&by_flags).expect("servers").nodes.nodes, ["redis://a:1", "redis://b:2"]);
}

#[test]
fn a_confirm_waits_for_one_replica_in_a_cluster_and_for_none_of_one_server_unless_told() {
    let acked = |kind: &str, more: &[(&str, &str)]| {
        let flags = [&[("engine", kind), ("engine-nodes", "a:1")], more].concat();
        servers(&Said { flags: &flags, ..Said::default() }).expect("servers").nodes.durability.replicas_acked
    };
    assert_eq!((acked("cluster", &[]), acked("redis", &[])), (1, 0));
    assert_eq!(acked("cluster", &[("engine-replicas-acked", "0")]), 0);
    assert_eq!(acked("redis", &[("engine-replicas-acked", "2")]), 2);
}

#[test]
fn what_keeps_messages_nowhere_is_refused() {
    file(
        "[engine]\nkind = \"cluster\"\n",
        expect![[r#"
            overtake.toml:2:1: `engine.kind` is `cluster`: `nodes` names no server: say where one is, as redis://HOST:6379
            hint: name them in engine.nodes (--engine-nodes 10.0.0.1:6379,10.0.0.2:6379)
        "#]],
    );
    file(
        "[engine]\nnodes = [\"a:1\"]\n",
        expect![[r#"
            overtake.toml:2:1: `engine.nodes` is `["redis://a:1"]`: messages are kept in the embedded store
            hint: say engine.kind = "cluster" (--engine cluster), or "redis" for one server, or leave the nodes out
        "#]],
    );
    file(
        "[engine]\nkind = \"redis\"\nnodes = [\"a:1\", \"b:2\"]\n",
        expect![[r#"
            overtake.toml:3:1: `engine.nodes` is `["redis://a:1", "redis://b:2"]`: with kind = "redis" `nodes` names one server; several that share the work are kind = "cluster"
        "#]],
    );
    file(
        "[engine]\nkind = \"cluster\"\nnodes = \"a:1\"\n",
        expect![[r#"
            overtake.toml:3:9: `engine.nodes`: expected a list of servers such as ["10.0.0.1:6379", "10.0.0.2:6379"], found a string
              3 | nodes = …
                |         ^
        "#]],
    );
    file(
        "[engine]\nkind = \"cluster\"\nnodes = [\"a:1\"]\nusername = \"broker\"\n",
        expect![[r#"
            overtake.toml:3:1: `engine.nodes` is `["redis://a:1"]`: a user is known by its password: say it in `password`
        "#]],
    );
    flag(
        "engine",
        "raft",
        expect![[r#"
        flag --engine: `raft` is none of embedded, redis, cluster
    "#]],
    );
    variable(
        "OVERTAKE__ENGINE__NODES",
        "[a",
        expect![[r#"
            environment OVERTAKE__ENGINE__NODES: `engine.nodes`: this is no list of servers: use one such as 10.0.0.1:6379,10.0.0.2:6379
        "#]],
    );
    flag(
        "engine-replicas-acked",
        "all",
        expect![[r#"
        flag --engine-replicas-acked: `all` is no number of replicas: use one such as 1, or auto
    "#]],
    );
    flag(
        "engine-sweep-ms",
        "0",
        expect![[r#"
            flag --engine-sweep-ms: `engine.sweep_ms` is `0`: it must be 1 or more
        "#]],
    );
    let huge = [("engine", "redis"), ("engine-nodes", "a:1"), ("max-message-bytes", "300MiB")];
    check(
        &Said { flags: &huge, ..Said::default() },
        expect![[r#"
            flag --max-message-bytes: `limits.max_message_bytes` is `300MiB`: it must be at most 268435456, which servers take
            hint: send large bodies another way
        "#]],
    );
}

#[test]
fn a_password_that_is_said_itself_is_refused_and_not_repeated() {
    flag(
        "engine-password",
        "hunter2",
        expect![[r#"
        flag --engine-password: a password is not said itself: say where it is, as { file = "…" } or { env = "…" }, or off
    "#]],
    );
    flag(
        "engine-password",
        "{ text = \"hunter2\" }",
        expect![[r#"
        flag --engine-password: a password is not said itself: say where it is, as { file = "…" } or { env = "…" }, or off
    "#]],
    );
    file(
        "[engine]\npassword = \"hunter2\"\n",
        expect![[r#"
            overtake.toml:2:12: `engine.password`: a password is not said itself: say where it is, as { file = "…" } or { env = "…" }, or off
              2 | password = …
                |            ^
        "#]],
    );
    file(
        "[engine]\npassword = { text = \"hunter2\" }\n",
        expect![[r#"
            overtake.toml:2:12: `engine.password`: a secret is not said itself: say where it is, as { env = "VARIABLE" } or { file = "PATH" }
              2 | password = …
                |            ^
        "#]],
    );
}

//! Exit codes and what is said with them, where no broker is needed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use expect_test::{Expect, expect};
use overtake_free_port::free_port;

use crate::support;

fn check(words: &[&str], expect: Expect) {
    expect.assert_eq(&support::run(words, b"").picture());
}

/// An address nobody listens on.
fn nobody() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}

/// A server that gives every request the same answer, or none; `overtake health` against it.
fn against(answer: Option<String>, words: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut request = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        while request.read_line(&mut line)? > 2 {
            line.clear();
        }
        match answer {
            Some(answer) => stream.write_all(answer.as_bytes()),
            None => request.read_to_end(&mut Vec::new()).map(drop),
        }
    });
    let url = format!("http://{address}");
    let run = support::run(&[&["--url", &url], words].concat(), b"");
    run.picture().replace(&address.to_string(), "BROKER")
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_command_line_that_makes_no_sense_is_2() {
    check(
        &["publsh"],
        expect![[r#"
        exit 2
        error: unrecognized subcommand 'publsh'

          tip: a similar subcommand exists: 'publish'

        Usage: overtake [OPTIONS] <COMMAND>

        For more information, try '--help'.
    "#]],
    );
    check(
        &["--url", "amqp://localhost", "health"],
        expect![[r#"
            exit 2
            error: `amqp://localhost` is no address of a broker: it must begin with http:// or https://
             hint: use one such as http://127.0.0.1:15672 with --url or OVERTAKE_URL
        "#]],
    );
    check(
        &["publish", "q", "body", "--header", "novalue"],
        expect![[r#"
        exit 2
        error: invalid value 'novalue' for '--header <NAME=VALUE>': `novalue` is not of the form NAME=VALUE

        For more information, try '--help'.
    "#]],
    );
    check(
        &["publish", "q", "body", "--ttl", "soon"],
        expect![[r#"
            exit 2
            error: invalid value 'soon' for '--ttl <DURATION>': `soon` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d

            For more information, try '--help'.
        "#]],
    );
    check(
        &["publish", "q", "body", "--lines", "f"],
        expect![[r#"
        exit 2
        error: the argument '[BODY]' cannot be used with '--lines <FILE>'

        Usage: overtake publish <QUEUE> <BODY>

        For more information, try '--help'.
    "#]],
    );
    check(
        &["consume", "q", "--ack", "--nack"],
        expect![[r#"
        exit 2
        error: the argument '--ack' cannot be used with '--nack'

        Usage: overtake consume --ack <QUEUE>

        For more information, try '--help'.
    "#]],
    );
    check(
        &["remove", "q"],
        expect![[r#"
        exit 2
        error: no messages were named
         hint: give ids, or conditions such as --key or --status, or --all
    "#]],
    );
    check(
        &["remove", "q", "seq-1", "--all"],
        expect![[r#"
        exit 2
        error: give ids, or conditions, or --all: one of them
    "#]],
    );
    check(
        &["queue", "declare", "q", "scheme"],
        expect![[r#"
        exit 2
        error: invalid value 'scheme' for '[KEY=VALUE]...': `scheme` is not of the form NAME=VALUE

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn what_cannot_be_undone_needs_a_yes_where_nobody_can_be_asked() {
    check(
        &["purge", "q"],
        expect![[r#"
        exit 2
        error: not done without being asked: Purge everything that waits in queue `q`?
         hint: say --yes: there is no terminal to ask on
    "#]],
    );
    check(
        &["queue", "delete", "q"],
        expect![[r#"
        exit 2
        error: not done without being asked: Delete queue `q` with everything in it?
         hint: say --yes: there is no terminal to ask on
    "#]],
    );
    check(
        &["exchange", "delete", "x"],
        expect![[r#"
        exit 2
        error: not done without being asked: Delete exchange `x` with its bindings?
         hint: say --yes: there is no terminal to ask on
    "#]],
    );
    check(
        &["remove", "q", "--all"],
        expect![[r#"
        exit 2
        error: not done without being asked: Remove every message of queue `q`, also leased and dead ones?
         hint: say --yes: there is no terminal to ask on
    "#]],
    );
}

#[test]
fn a_broker_that_is_not_there_is_69() {
    let address = nobody().to_string();
    let seen = support::run(&["--url", &format!("http://{address}"), "health"], b"").picture();
    expect![[r#"
        exit 69
        error: cannot reach the broker at http://BROKER: Connection refused (os error 111)
         hint: start one with `overtake serve`, or say where it is with --url or OVERTAKE_URL
    "#]]
    .assert_eq(&seen.replace(&address, "BROKER"));
}

#[test]
fn what_speaks_no_http_is_told_from_a_broker_that_is_not_there() {
    expect![[r#"
        exit 69
        error: what listens at http://BROKER does not speak HTTP
         hint: is that the port of AMQP? The broker says at its start where it serves HTTP, 15672 by default
    "#]]
    .assert_eq(&against(Some("AMQP\0\0\u{9}\u{1}".to_owned()), &["queue", "list"]));
}

/// Whoever reads the output of a program reads its errors, too.
#[test]
fn with_json_errors_are_json() {
    let denied = r#"{"title":"no","detail":"ada may not read here","code":"forbidden","hint":"ask for the right `read`"}"#;
    expect![[r#"
        exit 77
        {"code":"forbidden","error":"ada may not read here (403 forbidden)","exit":77,"hint":"ask for the right `read`"}
    "#]]
    .assert_eq(&against(Some(answer("403 Forbidden", denied)), &["queue", "list", "--json"]));
    check(
        &["publsh", "--json"],
        expect![[r#"
        exit 2
        {"error":"unrecognized subcommand 'publsh'","exit":2}
    "#]],
    );
    check(
        &["consume", "jobs", "--wait", "60", "--json"],
        expect![[r#"
            exit 2
            {"error":"invalid value '60' for '--wait [<DURATION>]': `60` has no unit: say 60s for seconds, or 60ms for milliseconds","exit":2}
        "#]],
    );
}

#[test]
fn other_answers_have_their_codes() {
    let denied = r#"{"title":"no","detail":"ada may not read here","code":"forbidden","hint":"ask for the right `read`"}"#;
    expect![[r#"
        exit 77
        error: ada may not read here (403 forbidden)
         hint: ask for the right `read`
    "#]]
    .assert_eq(&against(Some(answer("403 Forbidden", denied)), &["queue", "list"]));
    let draining = r#"{"detail":"the server is draining","code":"draining"}"#;
    expect![[r#"
        exit 69
        error: the server is draining (503 draining)
    "#]]
    .assert_eq(&against(Some(answer("503 Service Unavailable", draining)), &["queue", "list"]));
    let stranger = || Some(answer("200 OK", "<html></html>"));
    expect![[r#"
        exit 1
        error: http://BROKER answered something that is not JSON
         hint: is there an Overtake broker at this address?
    "#]]
    .assert_eq(&against(stranger(), &["queue", "list"]));
    expect![[r#"
        exit 1
        error: what answers there is no Overtake broker
    "#]]
    .assert_eq(&against(stranger(), &["health"]));
    let teapot = answer("418 Teapot", "short\u{1b}[31m");
    expect![[r#"
        exit 1
        error: the broker answers 418 I'm a teapot: short\u{1b}[31m
    "#]]
    .assert_eq(&against(Some(teapot), &["queue", "list"]));
    expect![[r#"
        exit 75
        error: http://BROKER did not answer within 50ms
         hint: it is not known whether it did what was asked; wait longer with --timeout
    "#]]
    .assert_eq(&against(None, &["queue", "list", "--timeout", "50ms"]));
}

#[test]
fn a_configuration_that_cannot_be_used_is_78() {
    check(
        &["config", "check", "--http", "0.0.0.0:0", "--data-dir", "d"],
        expect![[r#"
            exit 1
            error: 0.0.0.0:0 can be reached from other machines, and the only administrator, guest, comes from this one only
             hint: name one with --admin-user and --admin-password-file, or listen on 127.0.0.1 and make one: overtake user put NAME --new-password --tag administrator
        "#]],
    );
    check(
        &["config", "check", "--config", "/nowhere/overtake.toml"],
        expect![[r#"
            exit 78
            error: cannot read the configuration file /nowhere/overtake.toml: No such file or directory (os error 2)
             hint: check the path and who may read it; `--config`, OVERTAKE_CONFIG, $CONFIGURATION_DIRECTORY/overtake.toml and /etc/overtake/overtake.toml are tried in this order
        "#]],
    );
    check(
        &["serve", "--on-damage", "ignore", "--data-dir", "d"],
        expect![[r#"
        exit 78
        error: flag --on-damage: `ignore` is none of refuse, skip
    "#]],
    );
}

#[test]
fn a_configuration_that_can_be_used_is_0() {
    check(
        &["config", "check", "--data-dir", "d", "--queue", "jobs"],
        expect![[r#"
            exit 0
            the configuration is good (1 queue declared at start)
            not checked: whether the addresses are free, and what endpoints, sources and the collector answer
        "#]],
    );
    check(
        &["config", "show", "--origin", "--data-dir", "d", "--queue", "jobs={ scheme = \"named\" }"],
        expect![[r#"
            exit 0
            [http]
            listen = "127.0.0.1:15672"                 # default
            tls_listen = "off"                         # default
            max_request_bytes = "64MiB"                # default
            hosts = []                                 # default
            max_connections = 10000                    # default
            header_timeout_ms = 30000                  # default

            [amqp]
            listen = "127.0.0.1:5672"                  # default
            tls_listen = "off"                         # default
            max_connections = 20000                    # default
            max_channels = 2047                        # default
            heartbeat_ms = 60000                       # default
            send_timeout_ms = 60000                    # default

            [tls]
            cert_file = ""                             # default
            key_file = ""                              # default
            client_ca_file = ""                        # default

            [access]
            admin_user = ""                            # default
            admin_password_file = ""                   # default
            load_definitions = ""                      # default
            audit_file = ""                            # default
            link_local_targets = false                 # default

            [engine]
            kind = "embedded"                          # default
            nodes = []                                 # default
            username = ""                              # default
            password = "off"                           # default
            replicas_acked = "auto"                    # default
            fsync_acked = false                        # default
            sweep_ms = 1000                            # default

            [engine.tls]
            ca_file = ""                               # default
            cert_file = ""                             # default
            key_file = ""                              # default

            [store]
            data_dir = "d"                             # flag --data-dir
            shards = 1                                 # default
            segment_bytes = "64MiB"                    # default
            memory_bytes = "128MiB"                    # default
            on_damage = "refuse"                       # default
            disk_low_bytes = "auto"                    # default
            disk_high_bytes = "auto"                   # default

            [routes]
            file = ""                                  # default

            [limits]
            max_message_bytes = "16MiB"                # default
            default_ttl_ms = 0                         # default

            [log]
            level = "info"                             # default
            format = "text"                            # default

            [telemetry]
            otlp_endpoint = "off"                      # default
            otlp_headers = ""                          # default
            otlp_interval_ms = 60000                   # default
            traces_sample = 0                          # default
            trace_url = ""                             # default
            service_name = "overtake"                  # default
            resource_attributes = ""                   # default

            [server]
            drain_timeout_ms = 10000                   # default
            ports_file = ""                            # default
            connection_memory_bytes = "auto"           # default

            [server.priority_lanes]
            enabled = false                            # default
            threshold = 0                              # default
            backfill_suffix = "backfill"               # default

            [queues."jobs"]                            # flag --queue
            scheme = "named"
        "#]],
    );
    let json = support::run(
        &[
            "config",
            "show",
            "--json",
            "--origin",
            "--admin-user",
            "ann",
            "--admin-password-file",
            "/run/admin",
        ],
        b"",
    )
    .json();
    assert_eq!(
        json["access.admin_user"],
        serde_json::json!({ "value": "ann", "origin": "flag --admin-user" })
    );
}

#[test]
fn a_directory_that_is_no_store_cannot_be_checked() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().to_str().expect("text");
    for words in [["store", "check", path], ["store", "check", "/nowhere/at/all"]] {
        let run = support::run(&words, b"");
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains("hint: give the directory the broker was started with"), "{run:?}");
    }
}

#[test]
fn what_is_wrong_in_a_file_is_said_without_its_values() {
    let files: [(&[&str], &str, &str); 6] = [
        (&["endpoint", "put", "hook", "-"], "bearer_token = \"hunter2\n", "1 | bearer_token = …"),
        (&["endpoint", "put", "hook", "-"], "bearer_token = hunter2\n", "1 | bearer_token = …"),
        (&["source", "put", "in", "-"], "hunter2\n", "1 | …"),
        (&["source", "put", "in", "-"], "{\"token\": hunter2}", "expected value at line 1 column 11"),
        (&["endpoint", "test", "hook", "--with", "-"], "[to]\npassword = 'hunter2\n", "2 | password = …"),
        (&["--url", "http://ann:hunter2/hunter2@h", "health"], "", "`http://ann:***@h` is no address"),
    ];
    for (words, text, expect) in files {
        let picture = support::run(words, text.as_bytes()).picture();
        assert!(picture.contains(expect) && !picture.contains("hunter2"), "{words:?}: {picture}");
    }
}

/// A variable may mend the fault where the environment holds, so a check warns and does not refuse.
#[test]
fn a_fault_of_an_environment_that_does_not_hold_is_a_warning() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("overtake.toml");
    std::fs::write(&file, "[env.production.limits]\nmax_message_bytes = 0\n").expect("a file");
    let said =
        support::run(&["config", "check", "--no-files", "--config", file.to_str().expect("text")], b"").ok();
    let warning = "overtake.toml:2:1: `limits.max_message_bytes` is `0`: it must be 1 or more; so it is in the environment `production`";
    assert!(said.starts_with("warning: ") && said.contains(warning), "{said}");
    assert!(said.contains("the configuration is good (0 queues declared at start)"), "{said}");
}

//! Every way a configuration can be wrong, with its place; every way a setting can be said.

mod connectors;
mod engine;
mod environments;

use std::path::Path;

use expect_test::{Expect, expect};
use overtake_server::config::{Around, Config, ConfigError, Flag, KEYS, Origin, load, show};

/// The sources of one configuration.
#[derive(Default)]
struct Said<'a> {
    file: Option<&'a str>,
    variables: &'a [(&'a str, &'a str)],
    flags: &'a [(&'a str, &'a str)],
}

impl Said<'_> {
    fn load(&self) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("overtake.toml");
        if let Some(text) = self.file {
            std::fs::write(&path, text).expect("a file");
        }
        let around = Around {
            variables: self.variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            is_root: true,
            ..Around::default()
        };
        let flags: Vec<_> = self
            .flags
            .iter()
            .map(|(name, value)| Flag { name: (*name).into(), value: (*value).into() })
            .collect();
        load(&around, self.file.map(|_| path.as_path()), &flags)
            .map_err(|error| without_dir(error, dir.path()))
    }
}

/// An error whose file is named without its directory, which differs every time.
fn without_dir(mut error: ConfigError, dir: &Path) -> ConfigError {
    if let Some(Origin::File { path, .. }) = &mut error.place
        && let Ok(name) = path.strip_prefix(dir)
    {
        *path = name.to_owned();
    }
    error.more = error.more.into_iter().map(|fault| without_dir(fault, dir)).collect();
    error
}

fn check(said: &Said<'_>, expect: Expect) {
    let seen = match said.load() {
        Ok(_) => "fine\n".to_owned(),
        Err(error) => match &error.hint {
            Some(hint) => format!("{error}\nhint: {hint}\n"),
            None => format!("{error}\n"),
        },
    };
    expect.assert_eq(&seen);
}

fn file(text: &str, expect: Expect) {
    check(&Said { file: Some(text), ..Said::default() }, expect);
}

fn variable(name: &str, value: &str, expect: Expect) {
    check(&Said { variables: &[(name, value)], ..Said::default() }, expect);
}

fn flag(name: &str, value: &str, expect: Expect) {
    check(&Said { flags: &[(name, value)], ..Said::default() }, expect);
}

#[test]
fn a_file_is_refused_with_its_line_and_column() {
    file(
        "[http]\nlistn = \"127.0.0.1:0\"\n",
        expect![[r#"
            overtake.toml:2:1: `http.listn`: unknown field `listn`, expected one of `listen`, `tls_listen`, `max_request_bytes`, `hosts`, `max_connections`, `header_timeout_ms`
              2 | listn = …
                | ^^^^^
            hint: did you mean `listen`?
        "#]],
    );
    file(
        "[htp]\nlisten = \"127.0.0.1:0\"\n",
        expect![[r#"
            overtake.toml:2:1: `htp.listen`: unknown field `listen`, expected one of `http`, `amqp`, `tls`, `access`, `engine`, `store`, `routes`, `limits`, `log`, `telemetry`, `server`, `queues`, `endpoints`, `sources`
              2 | listen = …
                | ^^^^^^
            hint: did you mean `http`? The sections are http, amqp, tls, access, engine, store, routes, limits, log, telemetry, server, queues, endpoints, sources; an environment, which holds where OVERTAKE_ENV names it, is [env.htp]
        "#]],
    );
    file(
        "[http]\nlisten = 15672\n",
        expect![[r#"
            overtake.toml:2:10: `http.listen` is `15672`: expected an address such as "127.0.0.1:15672", found a whole number
              2 | listen = …
                |          ^
        "#]],
    );
    file(
        "[http]\n  listen = \"broker:1\" # here\n",
        expect![[r#"
            overtake.toml:2:12: `http.listen`: `broker:1` is no address with a port: use one such as 127.0.0.1:15672 or [::1]:0
              2 |   listen = …
                |            ^
        "#]],
    );
    file(
        "[http]\nlisten = \n",
        expect![[r#"
            overtake.toml:2:10: string values must be quoted, expected literal string
              2 | listen =
                |         ^
        "#]],
    );
    file(
        "[http]\nmax_connections = -1\n",
        expect![[r#"
            overtake.toml:2:19: `http.max_connections` is `-1`: expected a whole number, found a negative number
              2 | max_connections = …
                |                   ^
        "#]],
    );
    file(
        "[http]\nmax_request_bytes = \"1MiB\"\n",
        expect![[r#"
            overtake.toml:2:1: `http.max_request_bytes` is `1MiB`: it must be at least limits.max_message_bytes, which is 16777216
            hint: leave room for base64, too: 4/3 of the largest message and a little
        "#]],
    );
    file(
        "[store]\ndisk_low_bytes = \"1GiB\"\ndisk_high_bytes = \"512MiB\"\n",
        expect![[r#"
            overtake.toml:3:1: `store.disk_high_bytes` is `512MiB`: it must be at least store.disk_low_bytes, which is 1073741824
            hint: publishes are refused below the low one, and taken again above the high one
        "#]],
    );
    file(
        "[store]\ndisk_low_bytes = \"5%\"\n",
        expect![[r#"
            overtake.toml:2:18: `store.disk_low_bytes`: `5%` is no number of bytes: use one such as 1GiB, 0, or auto
              2 | disk_low_bytes = …
                |                  ^
        "#]],
    );
    file(
        "[store]\ndisk_low_bytes = 0\ndisk_high_bytes = 1000\n",
        expect![[r#"
        fine
    "#]],
    );
    file(
        "[store]\ndisk_low_bytes = \"auto\"\ndisk_high_bytes = \"1GiB\"\n",
        expect![[r#"
        fine
    "#]],
    );
    file(
        "[http]\nmax_connections = 0\n",
        expect![[r#"
            overtake.toml:2:1: `http.max_connections` is `0`: it must be 1 or more
        "#]],
    );
    file(
        "[http]\nlisten = \"0.0.0.0:15672\"\n",
        expect![[r#"
            fine
        "#]],
    );
    file(
        "[store]\nsegment_bytes = \"64 apples\"\n",
        expect![[r#"
            overtake.toml:2:17: `store.segment_bytes`: `64 apples` is no number of bytes: use one such as 67108864 or 64MiB
              2 | segment_bytes = …
                |                 ^
        "#]],
    );
    file(
        "[store]\nsegment_bytes = -1\n",
        expect![[r#"
            overtake.toml:2:17: `store.segment_bytes` is `-1`: expected a number of bytes such as 67108864 or "64MiB", found a negative number
              2 | segment_bytes = …
                |                 ^
        "#]],
    );
    file(
        "[store]\nsegment_bytes = 1.5\n",
        expect![[r#"
            overtake.toml:2:17: `store.segment_bytes` is `1.5`: expected a number of bytes such as 67108864 or "64MiB", found a decimal number
              2 | segment_bytes = …
                |                 ^
        "#]],
    );
    file(
        "[store]\non_damage = \"ignore\"\n",
        expect![[r#"
            overtake.toml:2:13: `store.on_damage`: `ignore` is none of refuse, skip
              2 | on_damage = …
                |             ^
        "#]],
    );
    file(
        "[store]\ndata_dir = \"\"\n",
        expect![[r#"
            overtake.toml:2:1: `store.data_dir` is empty: it must name a directory
        "#]],
    );
    file(
        "[limits]\nmax_message_bytes = 0\n",
        expect![[r#"
            overtake.toml:2:1: `limits.max_message_bytes` is `0`: it must be 1 or more
        "#]],
    );
    file(
        "[limits]\ndefault_ttl_ms = \"9999d\"\n",
        expect![[r#"
            overtake.toml:2:1: `limits.default_ttl_ms` is `863913600000`: it must be at most ten years
        "#]],
    );
    file(
        "[log]\nlevel = \"loud\"\n",
        expect![[r#"
            overtake.toml:2:9: `log.level`: `loud` is no log level: use error, warn, info, debug or trace, or such as info,overtake_engine=debug
              2 | level = …
                |         ^
        "#]],
    );
    file(
        "[log]\nformat = \"xml\"\n",
        expect![[r#"
            overtake.toml:2:10: `log.format`: `xml` is none of text, json
              2 | format = …
                |          ^
        "#]],
    );
    file(
        "[log]\nlevel = \"info\"\nlevel = \"warn\"\n",
        expect![[r#"
            overtake.toml:3:1: duplicate key
              3 | level = …
                | ^^^^^
        "#]],
    );
}

#[test]
fn the_settings_of_a_queue_are_refused_where_they_stand() {
    file(
        "[queues.orders]\nscheme = \"signed\"\nmax_activ = 10\n",
        expect![[r#"
            overtake.toml:3:1: `queues.orders.max_activ`: unknown field `max_activ`, expected one of `scheme`, `default_priority`, `order`, `picker`, `lanes`, `partitions`, `paused`, `max_active`, `group_limit`, `rate_limit`, `key_rate_limit`, `fair_keys`, `key_weights`, `max_length`, `max_bytes`, `overflow`, `reject_below`, `max_message_bytes`, `ttl_ms`, `max_ttl_ms`, `expire_at_once`, `evict_at_once`, `check_entire_queue_on_cleanup`, `visibility_timeout_ms`, `delivery_limit`, `backoff`, `dead_letter`, `history`, `run_timeout_ms`, `dead_letter_expired`, `dead_letter_evicted`, `last_value`, `max_unacked`, `max_consumers`, `expires_ms`, `consumer_timeout_ms`, `single_active_consumer`
              3 | max_activ = …
                | ^^^^^^^^^
            hint: did you mean `max_active`?
        "#]],
    );
    file("[queues.orders]\nmax_bytes = \"10MiB\"\nhistory = \"past\"\n", expect!["fine\n"]);
    file(
        "[queues.a]\nhistory = \"b\"\n[queues.b]\nhistory = \"a\"\n",
        expect![[r#"
            overtake.toml:2:1: `queues.a.history`: the `history` of the queue is the queue itself, or leads back to it
              2 | history = …
                | ^^^^^^^
            overtake.toml:4:1: `queues.b.history`: the `history` of the queue is the queue itself, or leads back to it
              4 | history = …
                | ^^^^^^^
            hint: name another queue as `history`, whose own `history` does not lead back to this one, or none
        "#]],
    );
    file(
        "[queues.orders]\nscheme = \"five\"\n",
        expect![[r#"
            overtake.toml:2:10: `queues.orders.scheme`: unknown scheme `five`: use ten-level, signed, named, route or max-1 to max-255
              2 | scheme = …
                |          ^
        "#]],
    );
    file(
        "[queues.orders]\nmax_active = 10\nmax_unacked = 0\n",
        expect![[r#"
            overtake.toml:3:1: `queues.orders.max_unacked` is `0`: it must be 1 to 1000000
              3 | max_unacked = …
                | ^^^^^^^^^^^
        "#]],
    );
    file(
        "[queues.orders.backoff]\ninitial_ms = 1\nmultiplier = 0\n",
        expect![[r#"
            overtake.toml:3:1: `queues.orders.backoff.multiplier` is `0`: it must be 1 to 1000
              3 | multiplier = …
                | ^^^^^^^^^^
        "#]],
    );
    file(
        "[queues.orders]\nbackoff = [7]\n",
        expect![[r#"
            overtake.toml:2:11: `queues.orders.backoff` is `[7]`: expected a table, found a list
              2 | backoff = …
                |           ^
        "#]],
    );
    file(
        "[queues.orders]\norder = { lanes = [[\"p\", 0]] }\n",
        expect![[r#"
            overtake.toml:2:20: `queues.orders.order.lanes` is `[["p", 0]]`: expected a table, found a list
              2 | order = …
                |         ^
        "#]],
    );
    file(
        "[queues.\"\"]\n",
        expect![[r#"
            overtake.toml:1:9: `queues.`: the name is empty, too long or holds characters that it may not: use 1 to 255 bytes of text without NUL for a queue or an exchange, else 1 to 200 bytes without control characters
              1 | …
                | ^
        "#]],
    );
    file(
        "[queues.mail]\norder = { lanes = [{ name = \"primary\", from = 0 }, { name = \"backfill\" }] }\nscheme = \"signed\"\n",
        expect![[r#"
            fine
        "#]],
    );
}

#[test]
fn all_faults_are_named_at_once() {
    file(
        "[http]\nlisten = 1\n[queues.a]\nscheme = \"five\"\n[queues.b]\nmax_active = 3\n[queues.c]\nmax_activ = 1\npaused = 5\n[env.production.queues.d]\nmax_active = -1\n",
        expect![[r#"
            overtake.toml:2:10: `http.listen` is `1`: expected an address such as "127.0.0.1:15672", found a whole number
              2 | listen = …
                |          ^
            overtake.toml:4:10: `queues.a.scheme`: unknown scheme `five`: use ten-level, signed, named, route or max-1 to max-255
              4 | scheme = …
                |          ^
            overtake.toml:8:1: `queues.c.max_activ`: unknown field `max_activ`, expected one of `scheme`, `default_priority`, `order`, `picker`, `lanes`, `partitions`, `paused`, `max_active`, `group_limit`, `rate_limit`, `key_rate_limit`, `fair_keys`, `key_weights`, `max_length`, `max_bytes`, `overflow`, `reject_below`, `max_message_bytes`, `ttl_ms`, `max_ttl_ms`, `expire_at_once`, `evict_at_once`, `check_entire_queue_on_cleanup`, `visibility_timeout_ms`, `delivery_limit`, `backoff`, `dead_letter`, `history`, `run_timeout_ms`, `dead_letter_expired`, `dead_letter_evicted`, `last_value`, `max_unacked`, `max_consumers`, `expires_ms`, `consumer_timeout_ms`, `single_active_consumer`
              8 | max_activ = …
                | ^^^^^^^^^
            overtake.toml:9:10: `queues.c.paused` is `5`: expected true or false, found a whole number
              9 | paused = …
                |          ^
            overtake.toml:11:14: `env.production.queues.d.max_active` is `-1`: expected a whole number from 0 to 4294967295, found one outside of that range
              11 | max_active = …
                 |              ^
            hint: did you mean `max_active`?
        "#]],
    );
    file(
        "[http]\nmax_connections = 0\n[queues.a]\nmax_unacked = 0\n[queues.b]\n[queues.c]\nhistory = \"c\"\n",
        expect![[r#"
            overtake.toml:2:1: `http.max_connections` is `0`: it must be 1 or more
            overtake.toml:4:1: `queues.a.max_unacked` is `0`: it must be 1 to 1000000
              4 | max_unacked = …
                | ^^^^^^^^^^^
            overtake.toml:7:1: `queues.c.history`: the `history` of the queue is the queue itself, or leads back to it
              7 | history = …
                | ^^^^^^^
            hint: name another queue as `history`, whose own `history` does not lead back to this one, or none
        "#]],
    );
    file(
        "aaa = 1\nstore = [1]\nlog = [\"info\"]\n[foo]\na = 1\n[bar]\nb = 2\n",
        expect![[r#"
        overtake.toml:1:1: `aaa`: unknown field `aaa`, expected one of `http`, `amqp`, `tls`, `access`, `engine`, `store`, `routes`, `limits`, `log`, `telemetry`, `server`, `queues`, `endpoints`, `sources`
          1 | aaa = …
            | ^^^
        overtake.toml:2:9: `store`: expected a table of settings, found a list
          2 | store = …
            |         ^
        overtake.toml:3:7: `log`: expected a table of settings, found a list
          3 | log = …
            |       ^
        overtake.toml:5:1: `foo.a`: unknown field `a`, expected one of `http`, `amqp`, `tls`, `access`, `engine`, `store`, `routes`, `limits`, `log`, `telemetry`, `server`, `queues`, `endpoints`, `sources`
          5 | a = …
            | ^
        overtake.toml:7:1: `bar.b`: unknown field `b`, expected one of `http`, `amqp`, `tls`, `access`, `engine`, `store`, `routes`, `limits`, `log`, `telemetry`, `server`, `queues`, `endpoints`, `sources`
          7 | b = …
            | ^
        hint: the sections are http, amqp, tls, access, engine, store, routes, limits, log, telemetry, server, queues, endpoints, sources; an environment, which holds where OVERTAKE_ENV names it, is [env.foo]
        the sections are http, amqp, tls, access, engine, store, routes, limits, log, telemetry, server, queues, endpoints, sources; an environment, which holds where OVERTAKE_ENV names it, is [env.bar]
    "#]],
    );
    let variables = [("OVERTAKE__LOG__LEVEL", "loud"), ("OVERTAKE__QUEUES__a", "{ scheme = \"five\" }")];
    let said = Said { variables: &variables, flags: &[("http", "here")], ..Said::default() };
    check(
        &said,
        expect![[r#"
            environment OVERTAKE__LOG__LEVEL: `log.level`: `loud` is no log level: use error, warn, info, debug or trace, or such as info,overtake_engine=debug
            environment OVERTAKE__QUEUES__a: `queues.a.scheme`: unknown scheme `five`: use ten-level, signed, named, route or max-1 to max-255
            flag --http: `here` is no address with a port: use one such as 127.0.0.1:15672 or [::1]:0
            hint: give the settings as an inline table: { scheme = "signed", max_active = 10 }
        "#]],
    );
}

#[test]
fn a_key_that_is_nearly_another_is_answered_with_that_one() {
    let hint = |said: &Said<'_>| said.load().expect_err("a fault").hint.unwrap_or_default();
    for (text, expect) in [
        ("[queues.a]\nttl = \"5s\"\n", "did you mean `ttl_ms`? It counts milliseconds: 5000"),
        ("[queues.a]\nttl = true\n", "did you mean `ttl_ms`?"),
        ("[queues.a]\nttl_ms = \"5s\"\n", "`ttl_ms` counts milliseconds: 5000"),
        (
            "[queues.a]\nvisibility_timout = \"1m\"\n",
            "did you mean `visibility_timeout_ms`? It counts milliseconds: 60000",
        ),
        (
            "[queues.a]\nbackoff = { initial = \"1s\" }\n",
            "did you mean `initial_ms`? It counts milliseconds: 1000",
        ),
        ("[queues.a]\nmax-activ = 3\n", "did you mean `max_active`?"),
        ("[queues.a]\nx-max-length = 3\n", "did you mean `max_length`?"),
        (
            "[http]\nheader_timeout = \"5s\"\n",
            "did you mean `header_timeout_ms`? It counts milliseconds: 5000",
        ),
        ("[limits]\nmax_message = 3\n", "did you mean `max_message_bytes`?"),
        ("[env.production.queues.a]\nttl = \"5s\"\n", "did you mean `ttl_ms`? It counts milliseconds: 5000"),
    ] {
        assert_eq!(hint(&Said { file: Some(text), ..Said::default() }), expect, "{text}");
    }
    let inline = [("queue", "a={ ttl = \"5s\" }")];
    let inline = hint(&Said { flags: &inline, ..Said::default() });
    assert_eq!(inline, "did you mean `ttl_ms`? It counts milliseconds: 5000");
    for (name, expect) in [
        ("OVERTAKE__HTTP__LISTN", "did you mean `OVERTAKE__HTTP__LISTEN`? In [http]"),
        ("OVERTAKE__SERVER__DRAIN_TIMEOUT", "did you mean `OVERTAKE__SERVER__DRAIN_TIMEOUT_MS`? In [server]"),
    ] {
        let said = hint(&Said { variables: &[(name, "5s")], ..Said::default() });
        assert!(said.starts_with(expect), "{said}");
    }
    // Of what others put into the environment nothing is said.
    let single = [("OVERTAKE_HTTP_LISTEN", "127.0.0.1:0"), ("OVERTAKE_SERVICE_HOST", "a")];
    let config = Said { variables: &single, ..Said::default() }.load().expect("it is fine");
    let warning = "environment OVERTAKE_HTTP_LISTEN: it sets nothing; did you mean OVERTAKE__HTTP__LISTEN?";
    assert_eq!(config.warnings, [warning]);
}

/// A secret may stand under a key that nobody knows, and in a setting that names servers.
#[test]
fn a_value_is_named_unless_it_may_be_a_secret() {
    for (text, what) in [
        ("[http]\nmax_connections = -1\n", "`http.max_connections` is `-1`: expected"),
        ("[http]\nmax_connections = 0\n", "`http.max_connections` is `0`: it must be 1 or more"),
        ("[queues.a]\npaused = \"no\"\n", "`queues.a.paused` is `no`: expected true or false"),
        ("[queues.a]\nttl_ms = \"5s\"\n", "`queues.a.ttl_ms` is `5s`: expected a whole number"),
        ("[queues.a]\npaused = \"4711x\"\n", "`queues.a.paused`: expected true or false"),
        ("[queues.a]\nmax_unacked = 0\n", "`queues.a.max_unacked` is `0`: it must be 1 to 1000000"),
        ("[env.x.http]\nlisten = 15672\n", "`env.x.http.listen` is `15672`: expected an address"),
        ("[engine]\npassword = 4711\n", "`engine.password`: "),
        ("[engine]\nnodes = 4711\n", "`engine.nodes`: "),
        ("[http]\npassword = 4711\n", "`http.password`: unknown field"),
    ] {
        let error = Said { file: Some(text), ..Said::default() }.load().expect_err(text);
        assert!(error.what.starts_with(what), "{text}: {error}");
        assert!(!error.to_string().contains("4711"), "{error}");
    }
    let queue = [("OVERTAKE__QUEUES__a", "{ max_active = -1, paused = 3 }")];
    let error = Said { variables: &queue, ..Said::default() }.load().expect_err("two faults").to_string();
    assert!(
        error.contains("OVERTAKE__QUEUES__a: `queues.a.max_active` is `-1`: expected a whole"),
        "{error}"
    );
    assert!(
        error.contains("OVERTAKE__QUEUES__a: `queues.a.paused` is `3`: expected true or false"),
        "{error}"
    );
}

#[test]
fn a_variable_is_refused_with_its_name() {
    variable(
        "OVERTAKE__HTTP__LISTN",
        "127.0.0.1:0",
        expect![[r#"
            environment OVERTAKE__HTTP__LISTN: there is no setting `http.listn`
            hint: did you mean `OVERTAKE__HTTP__LISTEN`? In [http] there are http.listen, http.tls_listen, http.max_request_bytes, http.hosts, http.max_connections, http.header_timeout_ms
        "#]],
    );
    variable(
        "OVERTAKE__GRPC__LISTEN",
        "127.0.0.1:0",
        expect![[r#"
            environment OVERTAKE__GRPC__LISTEN: there is no setting `grpc.listen`
            hint: The sections are http, amqp, tls, access, engine, store, routes, limits, log, telemetry, server and queues; write OVERTAKE__SECTION__KEY
        "#]],
    );
    variable(
        "OVERTAKE__ACCESS__ADMIN_USER",
        "ann",
        expect![[r#"
            environment OVERTAKE__ACCESS__ADMIN_USER: `access.admin_user` is `ann`: access.admin_password_file is not set
            hint: name a file with the password (--admin-password-file); it is never given on the command line
        "#]],
    );
    variable(
        "OVERTAKE__HTTP__LISTEN",
        "here",
        expect![[r#"
        environment OVERTAKE__HTTP__LISTEN: `http.listen`: `here` is no address with a port: use one such as 127.0.0.1:15672 or [::1]:0
    "#]],
    );
    variable(
        "OVERTAKE__HTTP__LISTEN",
        "here",
        expect![[r#"
        environment OVERTAKE__HTTP__LISTEN: `http.listen`: `here` is no address with a port: use one such as 127.0.0.1:15672 or [::1]:0
    "#]],
    );
    variable(
        "OVERTAKE__HTTP__LISTEN",
        "0.0.0.0:0",
        expect![[r#"
            fine
        "#]],
    );
    variable(
        "OVERTAKE__QUEUES__orders",
        "{ scheme = \"signed\"",
        expect![[r#"
            environment OVERTAKE__QUEUES__orders: `queues.orders`: unclosed inline table, expected `}`
            hint: give the settings as an inline table: { scheme = "signed", max_active = 10 }
        "#]],
    );
    variable(
        "OVERTAKE__QUEUES__orders",
        "{ max_unacked = 0 }",
        expect![[r#"
            environment OVERTAKE__QUEUES__orders: `queues.orders.max_unacked` is `0`: it must be 1 to 1000000
        "#]],
    );
    variable(
        "OVERTAKE_CONFIG",
        "/nowhere/overtake.toml",
        expect![[r#"
            cannot read the configuration file /nowhere/overtake.toml: No such file or directory (os error 2)
            hint: check the path and who may read it; `--config`, OVERTAKE_CONFIG, $CONFIGURATION_DIRECTORY/overtake.toml and /etc/overtake/overtake.toml are tried in this order
        "#]],
    );
    variable(
        "OVERTAKE_URL",
        "http://127.0.0.1:1",
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn a_flag_is_refused_with_its_name() {
    flag(
        "http",
        "here",
        expect![[r#"
        flag --http: `here` is no address with a port: use one such as 127.0.0.1:15672 or [::1]:0
    "#]],
    );
    flag(
        "segment-bytes",
        "many",
        expect![[r#"
        flag --segment-bytes: `many` is no number of bytes: use one such as 67108864 or 64MiB
    "#]],
    );
    flag(
        "http",
        "[::]:0",
        expect![[r#"
            fine
        "#]],
    );
    flag(
        "queue",
        "orders={ max_activ = 1 }",
        expect![[r#"
            flag --queue: `queues.orders.max_activ`: unknown field `max_activ`, expected one of `scheme`, `default_priority`, `order`, `picker`, `lanes`, `partitions`, `paused`, `max_active`, `group_limit`, `rate_limit`, `key_rate_limit`, `fair_keys`, `key_weights`, `max_length`, `max_bytes`, `overflow`, `reject_below`, `max_message_bytes`, `ttl_ms`, `max_ttl_ms`, `expire_at_once`, `evict_at_once`, `check_entire_queue_on_cleanup`, `visibility_timeout_ms`, `delivery_limit`, `backoff`, `dead_letter`, `history`, `run_timeout_ms`, `dead_letter_expired`, `dead_letter_evicted`, `last_value`, `max_unacked`, `max_consumers`, `expires_ms`, `consumer_timeout_ms`, `single_active_consumer`
            hint: did you mean `max_active`?
        "#]],
    );
    flag(
        "queue",
        "=",
        expect![[r#"
            flag --queue: `queues.`: the name is empty, too long or holds characters that it may not: use 1 to 255 bytes of text without NUL for a queue or an exchange, else 1 to 200 bytes without control characters
        "#]],
    );
}

#[test]
fn flags_win_over_variables_over_the_file_over_the_defaults() {
    let config = Said {
        file: Some(
            "[limits]\nmax_message_bytes = \"1MiB\"\ndefault_ttl_ms = 1\n[store]\nsegment_bytes = 4194304\n[queues.b]\nscheme = \"named\"\n[queues.a]\n",
        ),
        variables: &[
            ("OVERTAKE__LIMITS__DEFAULT_TTL_MS", "2"),
            ("OVERTAKE__STORE__SEGMENT_BYTES", "8MiB"),
            ("OVERTAKE__QUEUES__Jobs", ""),
            ("STATE_DIRECTORY", "/state/one:/state/two"),
        ],
        flags: &[
            ("segment-bytes", "16MiB"),
            ("queue", "b={ scheme = \"signed\", order = { lanes = [{ name = \"all\" }] } }"),
        ],
    };
    let text = show(&config.load().expect("fine"), true);
    // The directory of the file differs every time.
    let text: String = text
        .lines()
        .map(|line| match (line.find("# /"), line.find("overtake.toml")) {
            (Some(start), Some(end)) => format!("{}# {}\n", &line[..start], &line[end..]),
            _ => format!("{line}\n"),
        })
        .collect();
    expect![[r#"
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
        data_dir = "/state/one"                    # environment STATE_DIRECTORY
        shards = 1                                 # default
        segment_bytes = "16MiB"                    # flag --segment-bytes
        memory_bytes = "128MiB"                    # default
        on_damage = "refuse"                       # default
        disk_low_bytes = "auto"                    # default
        disk_high_bytes = "auto"                   # default

        [routes]
        file = ""                                  # default

        [limits]
        max_message_bytes = "1MiB"                 # overtake.toml:2:1
        default_ttl_ms = 2                         # environment OVERTAKE__LIMITS__DEFAULT_TTL_MS

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

        [queues."Jobs"]                            # environment OVERTAKE__QUEUES__Jobs

        [queues."a"]                               # overtake.toml:8:9

        [queues."b"]                               # flag --queue
        order = { "lanes" = [{ "name" = "all" }] }
        scheme = "signed"
    "#]]
    .assert_eq(&text);
}

#[test]
fn what_is_shown_is_a_file_that_says_the_same() {
    let first = Said {
        flags: &[
            (
                "queue",
                "q={ scheme = \"max-10\", lanes = { \"3\" = { max_active = 2 } }, picker = { aging_ms = 5 } }",
            ),
            ("queue", "empty"),
        ],
        ..Said::default()
    };
    let first = show(&first.load().expect("fine"), false);
    let second = Said { file: Some(&first), ..Said::default() };
    assert_eq!(show(&second.load().expect(&first), false), first);
}

#[test]
fn every_setting_can_be_said_in_all_three_ways() {
    for key in KEYS {
        let (section, name) = key.path.split_once('.').expect("section.key");
        let shown =
            Config::default().entries().iter().find(|(path, ..)| *path == key.path).expect("shown").1.clone();
        let word = shown.trim_matches('"');
        let as_file = format!("[{section}]\n{name} = {shown}\n");
        let variable = key.variable();
        for said in [
            Said { file: Some(&as_file), ..Said::default() },
            Said { variables: &[(&variable, word)], ..Said::default() },
            Said { flags: &[(key.flag, word)], ..Said::default() },
        ] {
            let config = said.load().expect(key.path);
            let origin =
                config.entries().into_iter().find(|(path, ..)| *path == key.path).expect("there").2.clone();
            assert_ne!(origin, Origin::Default, "{}", key.path);
        }
    }
}

#[test]
fn the_data_directory_is_where_this_user_keeps_such_things() {
    let dir = |around: &Around| load(around, None, &[]).expect("fine").store.data_dir.value;
    let with = |variables: &[(&str, &str)]| Around {
        variables: variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        ..Around::default()
    };
    let home = ("HOME", "/people/ada");
    assert_eq!(dir(&Around { is_root: true, ..with(&[home]) }), Path::new("/var/lib/overtake"));
    assert_eq!(dir(&Around { owns_system_dir: true, ..with(&[home]) }), Path::new("/var/lib/overtake"));
    assert_eq!(dir(&with(&[home])), Path::new("/people/ada/.local/share/overtake"));
    assert_eq!(dir(&with(&[home, ("XDG_DATA_HOME", "/data")])), Path::new("/data/overtake"));
    assert_eq!(dir(&with(&[home, ("STATE_DIRECTORY", "/state")])), Path::new("/state"));
}

#[test]
fn the_variables_of_opentelemetry_come_after_the_file_and_before_our_own() {
    let config = Said {
        file: Some(
            "[telemetry]\notlp_endpoint = \"http://file:4318\"\notlp_interval_ms = \"10s\"\nservice_name = \"file\"\n",
        ),
        variables: &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://standard:4318/otlp/"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret,x-tenant=7"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "5000"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=1,b=x%2Cy"),
            ("OTEL_SERVICE_NAME", ""),
            ("OVERTAKE__TELEMETRY__OTLP_INTERVAL_MS", "7s"),
        ],
        flags: &[("service-name", "flag")],
    };
    let text = show(&config.load().expect("fine"), true);
    let section =
        text.split_once("[telemetry]\n").and_then(|(_, rest)| rest.split_once("\n\n")).expect("a section").0;
    expect![[r#"
        otlp_endpoint = "https://standard:4318/otlp" # environment OTEL_EXPORTER_OTLP_ENDPOINT
        otlp_headers = "api-key=***,x-tenant=***"  # environment OTEL_EXPORTER_OTLP_HEADERS
        otlp_interval_ms = 7000                    # environment OVERTAKE__TELEMETRY__OTLP_INTERVAL_MS
        traces_sample = 0                          # default
        trace_url = ""                             # default
        service_name = "flag"                      # flag --service-name
        resource_attributes = "a=1,b=x%2Cy"        # environment OTEL_RESOURCE_ATTRIBUTES"#]]
    .assert_eq(section);
}

#[test]
fn what_pushing_is_told_wrong_is_refused() {
    let cases = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://ann:secret@collector"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a"),
    ];
    let said = cases.map(|case| match (Said { variables: &[case], ..Said::default() }).load() {
        Ok(_) => panic!("{case:?} is taken"),
        Err(error) => error.to_string(),
    });
    assert!(!said.concat().contains("secret"), "{said:?}");
    expect![[r#"
        environment OTEL_EXPORTER_OTLP_ENDPOINT: `telemetry.otlp_endpoint`: `127.0.0.1:4318` does not begin with http:// or https://: use one such as http://127.0.0.1:4318, or off
        environment OTEL_EXPORTER_OTLP_ENDPOINT: `telemetry.otlp_endpoint`: an address holds no password: give it as a header, in otlp_headers, or off
        environment OTEL_EXPORTER_OTLP_HEADERS: `telemetry.otlp_headers`: part 1 is not NAME=VALUE: use such as a=1,b=2
        environment OTEL_METRIC_EXPORT_INTERVAL: `telemetry.otlp_interval_ms`: `soon` is no duration: use milliseconds, or a unit as in 250ms, 30s, 5m, 1h30m, 7d
        environment OTEL_METRIC_EXPORT_INTERVAL: `telemetry.otlp_interval_ms` is `0`: it must be 1 or more
        environment OTEL_RESOURCE_ATTRIBUTES: `telemetry.resource_attributes`: part 1 is not NAME=VALUE: use such as a=1,b=2"#]]
    .assert_eq(&said.join("\n"));
}

#[test]
fn an_error_in_a_file_shows_no_value() {
    let cases = [
        (
            "[endpoints.a]\nto.webhook = { url = \"http://h\", bearer_token = \"hunter2\" }\n",
            "a secret is not said itself",
        ),
        ("[endpoints.a.to.webhook]\nurl = \"http://h\"\nbearer_token = \"hunter2\n", "bearer_token = …"),
        ("[endpoints.a.to.webhook]\nurl = \"http://h\"\nbearer_token = hunter2\n", "bearer_token = …"),
        ("[endpoints.a.to.webhook]\nurl = \"http://h\"\nsigning_key hunter2\n", "3 | …"),
        (
            "[endpoints.a.to.webhook]\nurl = \"http://h\"\nsigning_key = \"\"\"\nhunter2=\n\\q\"\"\"\n",
            "5 | …",
        ),
        ("[endpoints.a.to.webhook]\nurl = \"http://ann:hunter2/hunter2@h\"\n", "say it in `headers`"),
        ("[endpoints.a.to.webhook]\nurl = \"http://h\"\nformat = \"hunter2\"\n", "expected one of `raw`"),
        (
            "[endpoints.a.to.kafka]\nbrokers = [\"a:1\"]\ntopic = \"t\"\npassword = \"hunter2\"\n",
            "`password`: a secret",
        ),
        ("[engine]\nkind = \"redis\"\npasword = \"hunter2\"\n", "unknown field `pasword`"),
        ("[engine]\nkind = \"redis\"\nnodes = \"redis://ann:hunter2@h\"\n", "expected a list of servers"),
        (
            "[engine]\nkind = \"redis\"\nnodes = [\"redis://ann:hunter2#hunter2@h\"]\n",
            "say the password in `password`",
        ),
        ("[telemetry]\notlp_endpoint = \"http://ann:hunter2/hunter2@h\"\n", "`telemetry.otlp_endpoint`"),
        ("[telemetry]\notlp_headers = [\"hunter2\"]\n", "found a list"),
        ("[queues.q]\npaused = \"hunter2\"\n", "expected true or false, found a string"),
        ("hunter2\n", "1 | …"),
    ];
    for (text, expect) in cases {
        let file = Said { file: Some(text), ..Said::default() };
        let error = file.load().expect_err(text);
        let said = format!("{error}\n{:?}", error.hint);
        assert!(said.contains(expect) && !said.contains("hunter2"), "{text}\n{said}");
    }
}

#[test]
fn a_long_value_is_not_repeated() {
    let weights: String = (0..1_001).map(|key| format!("k{key} = 2\n")).collect();
    file(
        &format!("[queues.q]\nfair_keys = true\n[queues.q.key_weights]\n{weights}"),
        expect![[r#"
            overtake.toml:3:11: `queues.q.key_weights` may name 1000 keys, and names 1001
              3 | [queues.q.key_weights]
                |           ^^^^^^^^^^^
        "#]],
    );
}

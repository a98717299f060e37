//! Tables of environments, and the lanes that they are mostly for.

use expect_test::expect;
use overtake_server::config::{Around, LogFormat, Origin, faults_elsewhere, show};

use crate::{Said, check, file};

const BOTH: &str = "\
[server.priority_lanes]
enabled = false

[env.production.server.priority_lanes]
enabled = true
threshold = -25

[env.production.log]
format = \"json\"

[env.development]
";

fn lanes(environment: &str) -> (bool, i32, Origin) {
    let said = Said { file: Some(BOTH), variables: &[("OVERTAKE_ENV", environment)], ..Said::default() };
    let config = said.load().expect("a configuration");
    let lanes = config.server.priority_lanes;
    (lanes.enabled.value, lanes.threshold.value.0, lanes.threshold.origin)
}

#[test]
fn what_an_environment_says_holds_where_it_is_named_and_knows_its_place() {
    let (enabled, threshold, origin) = lanes("production");
    assert_eq!((enabled, threshold), (true, -25));
    assert!(matches!(origin, Origin::File { line: 6, column: 1, .. }), "{origin}");
    for other in ["development", ""] {
        assert_eq!(lanes(other), (false, 0, Origin::Default), "{other}");
    }
}

#[test]
fn a_variable_and_a_flag_go_before_an_environment() {
    let variables = &[("OVERTAKE_ENV", "production"), ("OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD", "-1")];
    let flags = &[("priority-lanes-suffix", "migration")];
    let config = Said { file: Some(BOTH), variables, flags }.load().expect("a configuration");
    let shown = show(&config, false);
    let at = shown.find("[server.priority_lanes]").expect("the section");
    let section: String = shown[at..].lines().take(4).map(|line| line.to_owned() + "\n").collect();
    expect![[r#"
        [server.priority_lanes]
        enabled = true
        threshold = -1
        backfill_suffix = "migration"
    "#]]
    .assert_eq(&section);
}

#[test]
fn lanes_whose_names_would_be_mixed_up_are_refused_with_their_place() {
    file(
        "[server.priority_lanes]\nbackfill_suffix = \"dlq\"",
        expect![[r#"
            overtake.toml:2:1: `server.priority_lanes.backfill_suffix` is `dlq`: `dlq` is what dead letters are called: name another
        "#]],
    );
    file(
        "[server.priority_lanes]\nbackfill_suffix = \" \"",
        expect![[r#"
            overtake.toml:2:1: `server.priority_lanes.backfill_suffix` is ` `: ` ` is blank: the streams of both lanes would have one name
        "#]],
    );
    file(
        "[server.priority_lanes]\nbackfill_suffix = \"a:b\"",
        expect![[r#"
            overtake.toml:2:1: `server.priority_lanes.backfill_suffix` is `a:b`: `a:b` has a colon, which stands between the parts of a stream's name
        "#]],
    );
}

#[test]
fn a_threshold_is_a_whole_number() {
    file(
        "[server.priority_lanes]\nthreshold = \"low\"",
        expect![[r#"
            overtake.toml:2:13: `server.priority_lanes.threshold`: `low` is no whole number from -2147483648 to 2147483647
              2 | threshold = …
                |             ^
        "#]],
    );
    file(
        "[server.priority_lanes]\nthreshold = 0.5",
        expect![[r#"
            overtake.toml:2:13: `server.priority_lanes.threshold` is `0.5`: expected a whole number, found a decimal number
              2 | threshold = …
                |             ^
        "#]],
    );
    file(
        "[server.priority_lanes]\nthreshold = 3_000_000_000",
        expect![[r#"
            overtake.toml:2:13: `server.priority_lanes.threshold`: `3000000000` is no whole number from -2147483648 to 2147483647
              2 | threshold = …
                |             ^
        "#]],
    );
}

#[test]
fn an_unknown_key_is_named_in_every_environment_also_in_those_that_do_not_hold() {
    file(
        "[server.priority_lanes]\nenable = true",
        expect![[r#"
            overtake.toml:2:1: `server.priority_lanes.enable`: unknown field `enable`, expected one of `enabled`, `threshold`, `backfill_suffix`
              2 | enable = …
                | ^^^^^^
            hint: did you mean `enabled`?
        "#]],
    );
    check(
        &Said { file: Some("[env.staging.server.priority_lanes]\nenable = true"), ..Said::default() },
        expect![[r#"
            overtake.toml:2:1: `env.staging.server.priority_lanes.enable`: unknown field `enable`, expected one of `enabled`, `threshold`, `backfill_suffix`
              2 | enable = …
                | ^^^^^^
            hint: did you mean `enabled`?
        "#]],
    );
    file(
        "[stor]\ndata_dir = \"/tmp\"",
        expect![[r#"
            overtake.toml:2:1: `stor.data_dir`: unknown field `data_dir`, expected one of `http`, `amqp`, `tls`, `access`, `engine`, `store`, `routes`, `limits`, `log`, `telemetry`, `server`, `queues`, `endpoints`, `sources`
              2 | data_dir = …
                | ^^^^^^^^
            hint: did you mean `store`? The sections are http, amqp, tls, access, engine, store, routes, limits, log, telemetry, server, queues, endpoints, sources; an environment, which holds where OVERTAKE_ENV names it, is [env.stor]
        "#]],
    );
}

/// Variables and flags of another place decide whether a value can be there, so a start does not ask, and a check warns.
#[test]
fn a_value_that_cannot_be_is_told_of_every_environment() {
    let text = "[store]\ndata_dir = \"/tmp/d\"\n\n[env.staging.limits]\nmax_message_bytes = 0\n\n\
                [env.staging.queues.q]\npaused = true\nmax_unacked = 0\n\n[env.production.log]\nformat = \"json\"\n";
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("overtake.toml");
    std::fs::write(&path, text).expect("a file");
    let seen = |environment: &str| {
        let variables = vec![("OVERTAKE_ENV".to_owned(), environment.to_owned())];
        let around = Around { variables, is_root: true, ..Around::default() };
        let faults = faults_elsewhere(&around, Some(&path)).expect("a file").join("\n");
        faults.replace(&format!("{}/", dir.path().display()), "") + "\n"
    };
    expect![[r#"
        overtake.toml:5:1: `limits.max_message_bytes` is `0`: it must be 1 or more; so it is in the environment `staging`, unless a variable or a flag says otherwise
        overtake.toml:9:1: `queues.q.max_unacked` is `0`: it must be 1 to 1000000; so it is in the environment `staging`, unless a variable or a flag says otherwise
    "#]]
    .assert_eq(&seen("production"));
    assert_eq!(seen("staging"), "\n", "what holds is refused by the load");
    check(
        &Said { file: Some(text), variables: &[("OVERTAKE_ENV", "staging")], ..Said::default() },
        expect![[r#"
            overtake.toml:5:1: `limits.max_message_bytes` is `0`: it must be 1 or more
            overtake.toml:9:1: `queues.q.max_unacked` is `0`: it must be 1 to 1000000
              9 | max_unacked = …
                | ^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn an_environment_that_is_not_declared_is_refused() {
    let of = |file, environment, expect| {
        check(&Said { file, variables: &[("OVERTAKE_ENV", environment)], ..Said::default() }, expect);
    };
    of(
        Some(BOTH),
        "prodution",
        expect![[r#"
        environment OVERTAKE_ENV: there is no environment `prodution`; did you mean `production`?
        hint: the configuration has `development`, `production`: name one of these, declare [env.prodution] in the file, or unset OVERTAKE_ENV
    "#]],
    );
    of(
        Some(BOTH),
        "test",
        expect![[r#"
        environment OVERTAKE_ENV: there is no environment `test`
        hint: the configuration has `development`, `production`: name one of these, declare [env.test] in the file, or unset OVERTAKE_ENV
    "#]],
    );
    of(
        Some("[http]"),
        "production",
        expect![[r#"
        environment OVERTAKE_ENV: there is no environment `production`
        hint: the configuration has no environment: declare [env.production] in the file, or unset OVERTAKE_ENV
    "#]],
    );
    of(
        None,
        "production",
        expect![[r#"
        environment OVERTAKE_ENV: there is no environment `production`
        hint: the configuration has no environment: declare [env.production] in the file, or unset OVERTAKE_ENV
    "#]],
    );
    of(None, "", expect![["fine\n"]]);
}

#[test]
fn a_table_that_is_no_section_is_an_environment_of_the_old_form_only_where_it_can_be_one() {
    let old = "[production.log]\nformat = \"json\"\n";
    let said = Said { file: Some(old), variables: &[("OVERTAKE_ENV", "production")], ..Said::default() };
    let config = said.load().expect("a configuration");
    assert_eq!(config.log.format.value, LogFormat::Json);
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    assert!(config.warnings[0].contains("as [env.production]"), "{:?}", config.warnings);
    file(
        "[acess]\n",
        expect![[r#"
        overtake.toml:1:2: `acess` is no section
          1 | [acess]
            |  ^^^^^
        hint: did you mean `access`? The sections are http, amqp, tls, access, engine, store, routes, limits, log, telemetry, server, queues, endpoints, sources; an environment, which holds where OVERTAKE_ENV names it, is [env.acess]
    "#]],
    );
    file(
        "[plant]\n",
        expect![[r#"
        overtake.toml:1:2: `plant` is no section
          1 | [plant]
            |  ^^^^^
        hint: the sections are http, amqp, tls, access, engine, store, routes, limits, log, telemetry, server, queues, endpoints, sources; an environment, which holds where OVERTAKE_ENV names it, is [env.plant]
    "#]],
    );
    file(
        "[htttp.log]\nlevel = \"info\"\n",
        expect![[r#"
        overtake.toml:1:2: `htttp` is no section
          1 | [htttp.log]
            |  ^^^^^
        hint: did you mean `http`? The sections are http, amqp, tls, access, engine, store, routes, limits, log, telemetry, server, queues, endpoints, sources; an environment, which holds where OVERTAKE_ENV names it, is [env.htttp]
    "#]],
    );
    file(
        "[env]\nlog = 3\n",
        expect![[r#"
        overtake.toml:2:7: `env.log`: expected a table of settings, found a whole number
          2 | log = …
            |       ^
    "#]],
    );
    file(
        "[env.production.lgo]\nlevel = \"info\"\n",
        expect![[r#"
            overtake.toml:1:17: `env.production.lgo`: unknown field `lgo`, expected one of `http`, `amqp`, `tls`, `access`, `engine`, `store`, `routes`, `limits`, `log`, `telemetry`, `server`, `queues`, `endpoints`, `sources`
              1 | [env.production.lgo]
                |                 ^^^
            hint: did you mean `log`?
        "#]],
    );
}

use std::time::Duration;

use super::*;
use crate::table::StreamOf;

const LEAST: &str = "[database]\nurl = \"postgres://app@localhost/shop\"\n[sink.overtake]\nurl = \"amqp://relay@localhost\"\n";

fn check(more: &str, said: &str) {
    let text = format!("{LEAST}{more}");
    let error = Config::parse(&text, "relay.toml").expect_err(more);
    assert_eq!(error.to_string(), said);
}

#[test]
fn a_database_and_a_sink_are_enough() {
    let config = Config::parse(LEAST, "relay.toml").expect("a configuration");
    assert_eq!(config.table, Table::default());
    assert_eq!((config.settings.batch, config.settings.lock), (500, Duration::from_secs(30)));
    assert_ne!(config.settings.id, Config::parse(LEAST, "relay.toml").expect("another").settings.id);
}

#[test]
fn an_error_names_its_line_and_its_key() {
    check(
        "exchang = \"x\"\n",
        "relay.toml:5: `sink.overtake.exchang`: unknown field `exchang`, expected one of `url`, `password`, `tls`, `exchange`, `routing_key`, `queue`, `mandatory`, `body`, `content_type`, `priority_scheme`",
    );
    check(
        "[relay]\nbatch = \"many\"\n",
        "relay.toml:6: `relay.batch`: expected a whole number of at least 0, found a string",
    );
    check(
        "[relay]\nid = \"a\"\nlock = \"30\"\n",
        "relay.toml:7: `relay.lock`: `30` is no time: say it as \"250ms\", \"30s\", \"5m\", \"2h\" or \"7d\"",
    );
    check(
        "[relay]\nlock = \"10ms\"\n",
        "relay.toml:6: `relay.lock`: it must be: at least \"1s\": all of a claim must be published in it",
    );
    check("[retry]\njitter = 2.0\n", "relay.toml:6: `retry.jitter`: it must be: a part, 0 to 1");
    check(
        "[lanes]\nenabled = true\n",
        "relay.toml:5: `lanes`: lanes are for the sink `redis`; queues of the broker have lanes of their own",
    );
    check(
        "[database.columns]\ndata = false\n",
        "relay.toml:6: `database.columns.data`: the relay cannot do without this column",
    );
    check(
        "[database.columns]\ndata = \"a.b\"\n",
        "relay.toml:6: `database.columns.data`: `a.b` has '.' in it, which no name needs",
    );
    check(
        "[sink.redis]\nurl = \"redis://h\"\n",
        "relay.toml:5: `sink.redis`: a relay has one sink: run another for the other",
    );
}

#[test]
fn an_error_repeats_no_value() {
    let texts = [
        "[sink.overtake]\nurl = \"amqp://a@h\"\npassword = \"hunter2\"\n",
        "[sink.overtake]\nurl = \"amqp://a:hunter2@h\"\n",
        "[sink.overtake]\nurl = \"amqp://a:hunter2/hunter2@h\"\n",
        "[sink.overtake]\nurl = \"amqp://a:hunter2#hunter2@h\"\n",
        "[sink.overtake]\nurl = \"amqp://a@h\"\npasword = \"hunter2\"\n",
        "[sink.overtake]\nurl = \"amqp://a@h\"\nbody = \"hunter2\"\n",
        "[sink.overtake]\nurl = \"amqp://a@h\"\npassword = hunter2\n",
        "[sink.overtake]\nurl = \"amqp://a@h\"\npassword = \"hunter2\n",
        "[sink]\novertake = \"hunter2\"\n",
    ];
    for text in texts {
        let text = format!("[database]\nurl = \"postgres://app@localhost/shop\"\n{text}");
        let why = Config::parse(&text, "relay.toml").expect_err(&text).to_string();
        assert!(!why.contains("hunter2"), "{text}: {why}");
    }
}

#[test]
fn a_password_is_never_in_the_file() {
    for text in [LEAST.replace("app@", "app:pw@"), LEAST.replace("relay@", "relay:pw@")] {
        let error = Config::parse(&text, "relay.toml").expect_err("it is there").to_string();
        assert!(error.contains("in `password`") && !error.contains("pw"), "{error}");
    }
    let secret = LEAST.replace("\"postgres://app@localhost/shop\"", "{ env = \"DATABASE_URL\" }");
    assert!(Config::parse(&secret, "relay.toml").is_ok());
}

#[test]
fn anothers_table_is_mapped() {
    let text = r#"
        [database]
        url = "sqlite:/srv/shop.sqlite"
        table = "outbox"
        order = "created_at"
        only = { target_broker = "default" }
        [database.columns]
        stream = { column = "metadata_", pointer = "/domain/stream_category" }
        metadata = "metadata_"
        attempts = "retry_count"
        max_attempts = "max_retries"
        next_attempt_at = "next_retry_at"
        abandoned_at = false
        [sink.redis]
        url = "redis://localhost"
        [lanes]
        enabled = true
        threshold = -25
        [clean]
        published_after = false
    "#;
    let config = Config::parse(text, "relay.toml").expect("a configuration");
    let columns = &config.table.columns;
    let pointer = "/domain/stream_category".to_owned();
    assert_eq!(columns.stream, StreamOf::Pointer { column: "metadata_".into(), pointer });
    assert_eq!((columns.attempts.as_str(), columns.abandoned_at.as_ref()), ("retry_count", None));
    assert_eq!(config.settings.cleaning.published_after, None);
    let error = Config::parse(&text.replace("-25", "-25\nbackfill_suffix = \"dlq\""), "relay.toml")
        .expect_err("refused");
    assert_eq!((error.line, error.key.as_str()), (19, "lanes.backfill_suffix"));
}

#[test]
fn lanes_are_said_once_and_by_an_environment_of_the_file() {
    let text = "[database]\nurl = \"sqlite:a\"\n[sink.redis]\nurl = \"redis://h\"\n[server.priority_lanes]\nenabled = true\n";
    let parse = |text: &str, variable: (&'static str, &'static str)| {
        let variables = [(variable.0.to_owned(), variable.1.to_owned())].into();
        Config::parse_with(text, "relay.toml", &variables)
    };
    let refused = |text: &str, variable| parse(text, variable).expect_err("refused").to_string();
    assert_eq!(
        refused(&format!("{text}[lanes]\n"), ("", "")),
        "relay.toml:7: `lanes`: `server.priority_lanes` says the same: leave this table out"
    );
    assert!(parse(text, ("OVERTAKE_ENV", "production")).is_ok(), "the file is the same in all of them");
    assert_eq!(
        refused(&format!("{text}[env.development]\n[env.staging]\n"), ("OVERTAKE_ENV", "production")),
        "relay.toml:7: `env`: OVERTAKE_ENV is `production`, and the file has `development`, `staging`: add [env.production], or name one of these"
    );
    assert_eq!(
        refused(&format!("{text}[env.staging.server.priority_lanes]\nbackfill_suffix = \"a:b\"\n"), ("", "")),
        "relay.toml:8: `env.staging.server.priority_lanes.backfill_suffix`: `a:b` has a colon, which stands between the parts of a stream's name"
    );
    let variable = "OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD";
    assert_eq!(
        refused(text, (variable, "low")),
        format!("environment: {variable}: `low` is no whole number from -2147483648 to 2147483647")
    );
    let misspelled = "OVERTAKE__SERVER__PRIORITY_LANES__ENABELD";
    let why = format!(
        "environment: there is no variable {misspelled}; there are OVERTAKE__SERVER__PRIORITY_LANES__ENABLED, "
    );
    assert!(refused(text, (misspelled, "true")).starts_with(&why));
    assert!(parse(LEAST, (misspelled, "true")).is_ok(), "a relay to the broker reads none");
    let broker = LEAST.to_owned() + "[server.priority_lanes]\nenabled = true\n";
    assert!(refused(&broker, ("", "")).contains("`server.priority_lanes`: lanes are for the sink `redis`"));
    assert!(parse(LEAST, ("OVERTAKE__SERVER__PRIORITY_LANES__ENABLED", "true")).is_ok());
}

#[test]
fn what_the_page_shows_is_a_configuration() {
    let page = include_str!("../../../../docs/outbox.md");
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        Config::parse(block, "relay.toml").expect(block);
    }
}

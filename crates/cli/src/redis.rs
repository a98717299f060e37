//! Where streams of Redis are, and how categories are parted there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use overtake_streams::{Lanes, LanesTable, Named, RedisServer, Secret, Tls, Vault};

use crate::commands::Session;
use crate::failure::Failure;
use crate::words;

/// The variable with the password.
pub(crate) const PASSWORD: &str = "OVERTAKE_REDIS_PASSWORD";

/// How streams of Redis or Valkey are reached and read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "In Redis or Valkey")]
pub(crate) struct RedisArgs {
    /// A file with the password of the user in the URL, or of the one without a name [else: OVERTAKE_REDIS_PASSWORD].
    #[arg(long, value_name = "FILE")]
    redis_password_file: Option<PathBuf>,
    /// Whether categories have a backfill lane, as whoever writes them has it [else: OVERTAKE__SERVER__PRIORITY_LANES__ENABLED; else both lanes are read].
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    priority_lanes: Option<bool>,
    /// The least priority that is not backfill [else: OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD; else 0].
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = words::whole(i32::MIN..=i32::MAX))]
    priority_lanes_threshold: Option<i32>,
    /// What the backfill lane of `customer` is called behind `customer:` [else: OVERTAKE__SERVER__PRIORITY_LANES__BACKFILL_SUFFIX; else backfill].
    #[arg(long, value_name = "NAME", alias = "backfill-suffix")]
    priority_lanes_suffix: Option<String>,
    /// The same as --priority-lanes=false.
    #[arg(long, conflicts_with = "priority_lanes")]
    one_lane: bool,
}

impl RedisArgs {
    /// The server of a URL.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn server(&self, url: &str, session: &Session) -> Result<RedisServer, Failure> {
        let of_environment = || variable(PASSWORD).map(|_| Secret::Env(PASSWORD.to_owned()));
        let password = self.redis_password_file.clone().map(Secret::File).or_else(of_environment);
        let tls = Tls { ca_file: session.ca_file.clone(), ..Tls::default() };
        let named = Named { url, username: None, password: password.as_ref(), tls: &tls };
        RedisServer::new(Vault::ANY, &named).map_err(|why| {
            let hint = format!("say the password with --redis-password-file or {PASSWORD}");
            if why.contains("password") { Failure::usage(why).hint(hint) } else { Failure::usage(why) }
        })
    }

    /// The lanes of categories.
    ///
    /// # Errors
    /// The suffix or a variable of the environment cannot be; says why.
    pub(crate) fn lanes(&self) -> Result<Lanes, Failure> {
        self.lanes_with(&variables()).map_err(Failure::usage)
    }

    /// Nothing is read of these where messages are the broker's.
    ///
    /// # Errors
    /// The first that is said, and `how` a server of streams is named.
    pub(crate) fn none(&self, how: &str) -> Result<(), Failure> {
        let said = [
            ("--redis-password-file", self.redis_password_file.is_some()),
            ("--priority-lanes", self.priority_lanes.is_some()),
            ("--priority-lanes-threshold", self.priority_lanes_threshold.is_some()),
            ("--priority-lanes-suffix", self.priority_lanes_suffix.is_some()),
            ("--one-lane", self.one_lane),
        ];
        match said.into_iter().find(|(_, is_said)| *is_said) {
            Some((flag, _)) => Err(Failure::usage(format!(
                "{flag} is for streams of Redis or Valkey: {how}, or leave it out"
            ))),
            None => Ok(()),
        }
    }

    fn lanes_with(&self, variables: &BTreeMap<String, String>) -> Result<Lanes, String> {
        let flags = LanesTable {
            enabled: if self.one_lane { Some(false) } else { self.priority_lanes },
            threshold: self.priority_lanes_threshold,
            backfill_suffix: self.priority_lanes_suffix.clone(),
        };
        // A lane that nobody writes costs a reader nothing, and one that nobody reads is never worked.
        let usual = LanesTable { enabled: Some(true), ..LanesTable::default() };
        flags.over(LanesTable::of_environment(variables)?).over(usual).lanes()
    }
}

/// All variables of the environment.
pub(crate) fn variables() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// The value of a variable of the environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};
    use overtake_server::config::{Around, load};
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    /// Numbers, truths and plain texts are the same in JSON and in TOML.
    type Keys = BTreeMap<String, Value>;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Cases {
        case: Vec<Case>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        about: String,
        #[serde(default)]
        table: Keys,
        environment: Option<Keys>,
        #[serde(default)]
        variables: BTreeMap<String, String>,
        lanes: LanesTable,
    }

    impl Case {
        /// The table as people write it, under one of its names.
        fn file(&self, name: &str) -> String {
            let keys = |table: &Keys| {
                table.iter().map(|(key, value)| format!("{key} = {value}\n")).collect::<String>()
            };
            let environment = self
                .environment
                .as_ref()
                .map(|table| format!("[env.production.server.priority_lanes]\n{}", keys(table)));
            format!("[{name}]\n{}{}", keys(&self.table), environment.unwrap_or_default())
        }

        fn of_broker(&self) -> Lanes {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("overtake.toml");
            std::fs::write(&path, self.file("server.priority_lanes")).expect("a file");
            let around =
                Around { variables: self.variables.clone().into_iter().collect(), ..Around::default() };
            let said = load(&around, Some(&path), &[]).expect("a configuration").server.priority_lanes;
            Lanes::new(said.enabled.value, said.threshold.value.0, said.backfill_suffix.value).expect("lanes")
        }

        fn of_relay(&self, name: &str) -> Lanes {
            let rest =
                "[database]\nurl = \"sqlite:shop.sqlite\"\n[sink.redis]\nurl = \"redis://localhost\"\n";
            let text = format!("{rest}{}", self.file(name));
            let config = overtake_outbox::Config::parse_with(&text, "relay.toml", &self.variables);
            config.expect("a configuration").lanes().expect("lanes of streams").clone()
        }

        fn of_flags(&self) -> Lanes {
            let flag = |(key, value): (&String, &Value)| match &**key {
                "enabled" => format!("--priority-lanes={value}"),
                key => {
                    let flag = key.trim_start_matches("backfill_");
                    format!("--priority-lanes-{flag}={}", value.to_string().trim_matches('"'))
                }
            };
            let words = std::iter::once("subscribe".to_owned()).chain(self.table.iter().map(flag));
            let matches = RedisArgs::augment_args(Command::new("subscribe")).try_get_matches_from(words);
            let args = RedisArgs::from_arg_matches(&matches.expect("flags")).expect("arguments");
            args.lanes_with(&self.variables).expect("lanes")
        }
    }

    #[test]
    fn the_broker_the_relay_and_a_subscriber_have_the_same_lanes() {
        let cases: Cases = toml::from_str(include_str!("../../../tests/lanes.toml")).expect("cases");
        assert!(cases.case.len() > 5, "the file is read");
        for case in cases.case {
            let (about, lanes) = (&case.about, case.lanes.clone().lanes().expect("lanes"));
            assert_eq!(case.of_broker(), lanes, "the broker: {about}");
            assert_eq!(case.of_relay("server.priority_lanes"), lanes, "the relay: {about}");
            assert_eq!(case.of_relay("lanes"), lanes, "the relay by the former name: {about}");
            if case.environment.is_some() {
                continue; // The command line reads no file.
            }
            // A reader looks into both lanes where nobody says `enabled`.
            let says = |name: &str| case.variables.contains_key(name);
            let is_said =
                case.table.contains_key("enabled") || says("OVERTAKE__SERVER__PRIORITY_LANES__ENABLED");
            let enabled = !is_said || lanes.is_enabled();
            let lanes = Lanes::new(enabled, lanes.threshold(), lanes.suffix()).expect("lanes");
            assert_eq!(case.of_flags(), lanes, "subscribe: {about}");
        }
    }
}

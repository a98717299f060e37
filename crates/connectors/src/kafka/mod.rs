//! What the receiver and the origin in Kafka have in common: a cluster, and how to show who asks.
//!
//! What is configured is known to every build, so that it can be read and shown; librdkafka, minutes of C, works behind the feature `kafka`
//! only. `brokers` and what follows have keys of ours; whatever else librdkafka can be told goes in `properties`, by its own names. There
//! nothing may stand that has a key of ours, that we decide, or that would be a secret for everyone to read.

#[cfg(feature = "kafka")]
pub(crate) mod client;
#[cfg(feature = "kafka")]
pub(crate) mod trouble;

mod property;

use std::collections::BTreeMap;

use overtake_peer::{Secret, Tls, Vault};
use overtake_redact::{Strict, reason};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// What a build says that has no librdkafka.
#[cfg(not(feature = "kafka"))]
pub(crate) const NOT_BUILT: &str =
    "this build has no Kafka: install the package or the image, or build with `--features kafka`";

/// A Kafka cluster, and how to show who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KafkaCluster {
    /// Brokers to begin with, each `HOST:PORT`; they tell of the others.
    pub brokers: Vec<String>,
    /// What goes over the line.
    pub security_protocol: KafkaSecurity,
    /// How a user shows who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sasl_mechanism: Option<KafkaMechanism>,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The user's password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Under `ssl` and `sasl_ssl`.
    #[serde(skip_serializing_if = "Tls::is_plain")]
    pub tls: Tls,
    /// What else librdkafka is told, by its names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// Reads a cluster whose keys stand among others, with the key in what is wrong with its value: serde forgets it there.
pub(crate) fn named_keys<'de, D: Deserializer<'de>>(among: D) -> Result<KafkaCluster, D::Error> {
    serde_path_to_error::deserialize(Strict(among)).map_err(|error| match error.path().to_string() {
        whole if whole == "." => error.into_inner(),
        key => D::Error::custom(format_args!("`{key}`: {}", reason(&error.inner().to_string()))),
    })
}

/// What goes over the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KafkaSecurity {
    /// Neither TLS nor a user.
    #[default]
    Plaintext,
    /// TLS.
    Ssl,
    /// A user.
    SaslPlaintext,
    /// A user, under TLS.
    SaslSsl,
}

impl KafkaSecurity {
    fn has_user(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslSsl)
    }

    fn has_tls(self) -> bool {
        matches!(self, Self::Ssl | Self::SaslSsl)
    }
}

/// How a user shows who asks, in Kafka's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KafkaMechanism {
    /// The password itself.
    #[serde(rename = "PLAIN")]
    Plain,
    /// A proof that one knows it, by SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// The same by SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

impl KafkaCluster {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn check(&self, vault: Vault) -> Result<(), String> {
        if self.brokers.is_empty() {
            return Err("`brokers` must name one broker at least, as [\"host:9092\"]".to_owned());
        }
        if let Some(broker) = self.brokers.iter().find(|broker| !is_address(broker)) {
            return Err(format!("`brokers`: `{broker}` must be HOST:PORT"));
        }
        for broker in &self.brokers {
            let host = broker.rsplit_once(':').map_or(broker.as_str(), |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            vault.check_host(host).map_err(|why| format!("`brokers`: {why}"))?;
        }
        self.check_user()?;
        if let Some(password) = &self.password {
            vault.check("password", password)?;
        }
        self.check_tls(vault)?;
        self.properties.keys().try_for_each(|name| property::check(vault, name))
    }

    fn check_user(&self) -> Result<(), String> {
        let said = [self.sasl_mechanism.is_some(), self.username.is_some(), self.password.is_some()];
        match self.security_protocol.has_user() {
            true if said.contains(&false) => {
                Err("SASL needs `sasl_mechanism`, `username` and `password`".to_owned())
            }
            false if said.contains(&true) => Err("`sasl_mechanism`, `username` and `password` need \
                                                  `security_protocol = \"sasl_ssl\"`, or `\"sasl_plaintext\"`"
                .to_owned()),
            _ => Ok(()),
        }
    }

    fn check_tls(&self, vault: Vault) -> Result<(), String> {
        if self.tls.is_plain() {
            return Ok(());
        }
        if vault.is_of_api() {
            return Err(
                "`tls` names files of the server: say it in its configuration, not over the API".to_owned()
            );
        }
        if !self.security_protocol.has_tls() {
            return Err("`tls` needs `security_protocol = \"ssl\"`, or `\"sasl_ssl\"`".to_owned());
        }
        if self.tls.cert_file.is_some() != self.tls.key_file.is_some() {
            return Err("`cert_file` and `key_file` go together".to_owned());
        }
        Ok(())
    }
}

/// librdkafka takes them as one text with commas, and knows no URLs but as a way to say `security_protocol` once more.
fn is_address(broker: &str) -> bool {
    let port = broker.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    let is_plain = !broker.contains([',', '/', ' ']);
    is_plain && port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(vault: Vault, json: &str) -> Result<(), String> {
        serde_json::from_str::<KafkaCluster>(json).expect("a cluster").check(vault)
    }

    #[test]
    fn what_cannot_be_is_told_by_the_key_that_says_it() {
        for (json, why) in [
            (r#"{}"#, "brokers"),
            (r#"{"brokers": ["kafka"]}"#, "HOST:PORT"),
            (r#"{"brokers": ["kafka://a:9092"]}"#, "HOST:PORT"),
            (r#"{"brokers": ["a:9092,b:9092"]}"#, "HOST:PORT"),
            (r#"{"brokers": ["a:1"], "username": "u"}"#, "security_protocol"),
            (r#"{"brokers": ["a:1"], "security_protocol": "sasl_ssl", "username": "u"}"#, "SASL needs"),
            (r#"{"brokers": ["a:1"], "tls": {"ca_file": "/ca"}}"#, "`tls` needs"),
            (r#"{"brokers": ["a:1"], "security_protocol": "ssl", "tls": {"cert_file": "/c"}}"#, "together"),
            (r#"{"brokers": ["a:1"], "properties": {"sasl.password": "x"}}"#, "`password`"),
        ] {
            let said = check(Vault::ANY, json);
            assert!(said.as_ref().is_err_and(|said| said.contains(why)), "{json}: {said:?}");
        }
        assert_eq!(check(Vault::ANY, r#"{"brokers": ["[::1]:9092", "b:9093"]}"#), Ok(()));
    }

    #[test]
    fn over_the_api_nothing_is_named_that_the_server_would_read() {
        let cluster = |more: &str| format!(r#"{{"brokers": ["a:1"], {more}}}"#);
        let tls = cluster(r#""security_protocol": "ssl", "tls": {"ca_file": "/ca"}"#);
        let user = |password: &str| {
            cluster(&format!(
                r#""security_protocol": "sasl_ssl", "sasl_mechanism": "PLAIN", "username": "u", "password": {password}"#
            ))
        };
        let plugin = cluster(r#""properties": {"plugin.library.paths": "/tmp/x.so"}"#);
        for json in [tls, user(r#"{"env": "HOME"}"#), user(r#"{"file": "/etc/passwd"}"#), plugin] {
            assert!(check(Vault::OF_API, &json).is_err(), "{json}");
            assert_eq!(check(Vault::ANY, &json), Ok(()), "{json}");
        }
        assert_eq!(check(Vault::OF_API, &user(r#"{"env": "OVERTAKE_SECRET_KAFKA"}"#)), Ok(()));
    }
}

//! librdkafka as it is told what a cluster is.

use std::ops::Deref;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::client::{Client, ClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::RDKafkaErrorCode;

use super::trouble::advice;
use super::{KafkaCluster, KafkaMechanism, KafkaSecurity};

/// So long a broker may take to say what topics there are.
const METADATA: Duration = Duration::from_secs(8);

impl KafkaCluster {
    /// What librdkafka is told, without the password.
    pub(crate) fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.brokers.join(","));
        config.set("security.protocol", protocol(self.security_protocol));
        config.set("client.id", "overtake");
        if let Some(mechanism) = self.sasl_mechanism {
            config.set("sasl.mechanism", name(mechanism));
        }
        if let Some(username) = &self.username {
            config.set("sasl.username", username);
        }
        let tls = &self.tls;
        if self.security_protocol.has_tls() {
            // OpenSSL is built in, and knows nothing of this machine's authorities unless it looks for them.
            config.set("ssl.ca.location", "probe");
        }
        let files = [
            ("ssl.ca.location", &tls.ca_file),
            ("ssl.certificate.location", &tls.cert_file),
            ("ssl.key.location", &tls.key_file),
        ];
        for (property, file) in files {
            if let Some(file) = file {
                config.set(property, file.to_string_lossy());
            }
        }
        config.set_log_level(RDKafkaLogLevel::Info);
        config
    }

    /// Adds what the configuration says by librdkafka's names. Last, so that it wins.
    ///
    /// # Errors
    /// There is no such property, or it cannot have that value, as a phrase.
    pub(crate) fn with_properties(&self, mut config: ClientConfig) -> Result<ClientConfig, String> {
        for (property, value) in &self.properties {
            config.set(property, value);
        }
        config.create_native_config().map_err(|error| format!("`properties`: {error}"))?;
        Ok(config)
    }

    /// Adds the password, which is read for each connection: it may be changed without a restart.
    ///
    /// # Errors
    /// It cannot be read, as a phrase.
    pub(crate) fn with_password(&self, config: &ClientConfig) -> Result<ClientConfig, String> {
        let mut config = config.clone();
        if let Some(password) = &self.password {
            config.set("sasl.password", password.read()?);
        }
        Ok(config)
    }
}

fn protocol(security: KafkaSecurity) -> &'static str {
    match security {
        KafkaSecurity::Plaintext => "plaintext",
        KafkaSecurity::Ssl => "ssl",
        KafkaSecurity::SaslPlaintext => "sasl_plaintext",
        KafkaSecurity::SaslSsl => "sasl_ssl",
    }
}

fn name(mechanism: KafkaMechanism) -> &'static str {
    match mechanism {
        KafkaMechanism::Plain => "PLAIN",
        KafkaMechanism::ScramSha256 => "SCRAM-SHA-256",
        KafkaMechanism::ScramSha512 => "SCRAM-SHA-512",
    }
}

/// Whether a topic is there, or, without one, whether the cluster answers. Blocks.
///
/// # Errors
/// Why not, as a phrase.
pub(crate) fn see<C: ClientContext>(client: &Client<C>, topic: Option<&str>) -> Result<(), String> {
    let Some(topic) = topic else {
        // Cheaper than a list of all topics.
        let id = client.fetch_cluster_id(METADATA);
        return id.map(drop).ok_or_else(|| "no broker says which cluster it is of".to_owned());
    };
    let metadata = client.fetch_metadata(Some(topic), METADATA).map_err(|error| error.to_string())?;
    let error = metadata.topics().iter().find(|found| found.name() == topic).and_then(|found| found.error());
    match error.map(RDKafkaErrorCode::from) {
        None => Ok(()),
        Some(code) => Err(match advice(code) {
            Some(advice) => format!("the topic {topic}: {code}: {advice}"),
            None => format!("the topic {topic}: {code}"),
        }),
    }
}

/// librdkafka's own log, for who looks for details: what matters is told as an error.
pub(crate) fn log(level: RDKafkaLogLevel, facility: &str, text: &str) {
    tracing::debug!(?level, facility, "librdkafka: {text}");
}

/// A client, which is dropped where it may wait for its brokers. A task may not.
pub(crate) struct Aside<T: Send + Sync + 'static>(Option<Arc<T>>);

impl<T: Send + Sync> Aside<T> {
    pub(crate) fn new(client: T) -> Self {
        Self(Some(Arc::new(client)))
    }

    /// For work that blocks, on a thread of its own.
    pub(crate) fn share(&self) -> Arc<T> {
        Arc::clone(self.0.as_ref().expect("it is there until it is dropped"))
    }
}

impl<T: Send + Sync> Deref for Aside<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send + Sync> Drop for Aside<T> {
    fn drop(&mut self) {
        let client = self.0.take();
        // Without a thread it is dropped here, with the closure.
        let _ = thread::Builder::new().name("kafka-close".to_owned()).spawn(move || drop(client));
    }
}

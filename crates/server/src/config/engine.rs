//! Where messages are kept: what the section `engine` means.

use std::fmt;
use std::time::Duration;

use overtake_peer::{Secret, Tls};
use overtake_redact::masked;
use overtake_valkey::cluster::{Durability, Kind, Nodes};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::Engine;
use super::value::{Value, quoted};

/// Where messages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// In a store on this machine's disk, by this process alone.
    Embedded,
    /// On one server of Redis or Valkey, which any number of brokers share.
    Redis,
    /// On a cluster of them.
    Cluster,
}

/// Some servers, as URLs without passwords.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Urls(pub Vec<String>);

/// Where a secret is, or that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace(pub Option<Secret>);

/// How many replicas a confirm waits for, or what suits the kind of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas(pub Option<u32>);

/// Servers that keep messages, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Where they are, who asks, and when a write counts as done.
    pub nodes: Nodes,
    /// How often what ends by itself is looked for, and heads of which no push came.
    pub sweep: Duration,
}

impl Engine {
    /// The servers that keep the messages; `None` where the embedded store does.
    #[must_use]
    pub fn servers(&self) -> Option<Servers> {
        let (kind, suits) = match self.kind.value {
            EngineKind::Embedded => return None,
            EngineKind::Redis => (Kind::Redis, 0),
            EngineKind::Cluster => (Kind::Cluster, 1),
        };
        let named =
            |path: &std::path::PathBuf| Some(path.clone()).filter(|path| !path.as_os_str().is_empty());
        let tls = &self.tls;
        let nodes = Nodes {
            username: Some(self.username.value.clone()).filter(|name| !name.is_empty()),
            password: self.password.value.0.clone(),
            tls: Tls {
                ca_file: named(&tls.ca_file.value),
                cert_file: named(&tls.cert_file.value),
                key_file: named(&tls.key_file.value),
            },
            durability: Durability {
                replicas_acked: self.replicas_acked.value.0.unwrap_or(suits),
                is_fsync_acked: self.fsync_acked.value,
            },
            ..Nodes::new(kind, self.nodes.value.0.clone())
        };
        Some(Servers { nodes, sweep: Duration::from_millis(self.sweep_ms.value.0) })
    }
}

impl Urls {
    /// `HOST:PORT` by itself is a URL without TLS.
    fn of<'a>(all: impl Iterator<Item = &'a str>) -> Self {
        let url = |text: &str| match text.trim() {
            url if url.contains("://") => url.to_owned(),
            address => format!("redis://{address}"),
        };
        Self(all.filter(|text| !text.trim().is_empty()).map(url).collect())
    }
}

/// `{ value = … }`, to read a value that stands by itself.
#[derive(Deserialize)]
struct Alone<T> {
    value: T,
}

pub(super) fn alone<T: for<'de> Deserialize<'de>>(text: &str) -> Option<T> {
    toml::from_str(&format!("value = {text}")).ok().map(|Alone { value }| value)
}

impl Value for Urls {
    const KIND: &'static str = "URL,…";

    fn read(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('[') {
            // What was said is not repeated: a URL may hold a password.
            let wrong =
                || "this is no list of servers: use one such as 10.0.0.1:6379,10.0.0.2:6379".to_owned();
            return alone(text).ok_or_else(wrong);
        }
        Ok(Self::of(text.split(',')))
    }

    fn show(&self) -> String {
        format!("[{}]", self.0.iter().map(|url| quoted(&masked(url))).collect::<Vec<_>>().join(", "))
    }
}

impl<'de> Deserialize<'de> for Urls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Urls;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of servers such as [\"10.0.0.1:6379\", \"10.0.0.2:6379\"]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Urls, A::Error> {
                let mut urls = Vec::<String>::new();
                while let Some(url) = all.next_element()? {
                    urls.push(url);
                }
                Ok(Urls::of(urls.iter().map(String::as_str)))
            }
        }
        deserializer.deserialize_any(List)
    }
}

/// What is right in place of a secret. What was said is not repeated: it may be the secret.
const PLACE: &str =
    "a password is not said itself: say where it is, as { file = \"…\" } or { env = \"…\" }, or off";

impl Value for SecretPlace {
    const KIND: &'static str = "PLACE|off";

    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "off" {
            return Ok(Self(None));
        }
        alone(text).map(|secret| Self(Some(secret))).ok_or_else(|| PLACE.to_owned())
    }

    fn show(&self) -> String {
        match &self.0 {
            None => quoted("off"),
            Some(secret) => shown_place(secret),
        }
    }
}

/// Where a secret is, as it is read again.
pub(super) fn shown_place(secret: &Secret) -> String {
    match secret {
        Secret::Env(name) => format!("{{ env = {} }}", quoted(name)),
        Secret::File(path) => format!("{{ file = {} }}", quoted(&path.to_string_lossy())),
    }
}

impl<'de> Deserialize<'de> for SecretPlace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Place;
        impl<'de> Visitor<'de> for Place {
            type Value = SecretPlace;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("{ file = \"…\" }, { env = \"…\" } or \"off\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SecretPlace, E> {
                SecretPlace::read(text).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SecretPlace, A::Error> {
                Secret::deserialize(MapAccessDeserializer::new(map)).map(|secret| SecretPlace(Some(secret)))
            }
        }
        deserializer.deserialize_any(Place)
    }
}

impl Value for Replicas {
    const KIND: &'static str = "N|auto";

    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "auto" {
            return Ok(Self(None));
        }
        let number = text.trim().parse().map(|number| Self(Some(number)));
        number.map_err(|_| format!("`{text}` is no number of replicas: use one such as 1, or auto"))
    }

    fn show(&self) -> String {
        self.0.map_or_else(|| quoted("auto"), |number| number.to_string())
    }
}

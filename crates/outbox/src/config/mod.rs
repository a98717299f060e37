//! `relay.toml`: which database, which sink, and how. What is wrong with it is said with its line and key.

mod file;
mod lanes;
mod place;
mod time;
mod told;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use overtake_client::ConnectOptions;
use overtake_peer::{Login, MASK, Secret, Tls, Vault, masked};

use self::file::{File, SinkSection};
use self::lanes::LanesSections;
use self::place::Place;
use crate::database::{Address, Database};
use crate::error::Error;
use crate::relay::{Relay, Settings};
use crate::sink::{Answer, BrokerSettings, BrokerSink, Sink};
use crate::table::Table;

/// A configuration that was read and makes sense. Secrets are not read before a connection is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// The outbox.
    pub table: Table,
    /// Whether `relay init` makes the trigger that tells PostgreSQL's listeners.
    pub notify: bool,
    /// How the relay works.
    pub settings: Settings,
    url: Url,
    password: Option<Secret>,
    tls: Tls,
    sink: SinkOf,
}

#[derive(Clone, Debug)]
enum Url {
    Plain(String),
    Secret(Secret),
}

#[derive(Clone, Debug)]
enum SinkOf {
    Broker {
        url: String,
        password: Option<Secret>,
        tls: Tls,
        settings: BrokerSettings,
    },
    #[cfg(feature = "redis")]
    Streams {
        server: file::RedisSection,
        settings: crate::sink::StreamsSettings,
    },
}

/// Why a configuration is refused: where, and what is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file; empty where a variable of the environment is at fault.
    pub path: PathBuf,
    /// From 1; 0: nowhere in particular.
    pub line: usize,
    /// The key, such as `relay.lock`; empty where there is none.
    pub key: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.as_os_str().is_empty() {
            f.write_str("environment: ")?;
        } else {
            write!(f, "{}", self.path.display())?;
            if self.line > 0 {
                write!(f, ":{}", self.line)?;
            }
            f.write_str(": ")?;
        }
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a file's text; its path is for errors. No variable of the environment holds.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::parse_with(text, path, &BTreeMap::new())
    }

    /// The same, with the variables of the environment that say which lanes there are: `OVERTAKE_ENV` names the table `[env.NAME]` that holds, and
    /// `OVERTAKE__SERVER__PRIORITY_LANES__…` go before the file, as for the broker. `variables` are all there are, by name; others count nothing.
    ///
    /// # Errors
    /// The first fault.
    pub fn parse_with(
        text: &str,
        path: impl AsRef<Path>,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        Self::parse_at(Place { text, path: path.as_ref() }, variables)
    }

    // Apart from `parse_with`, whose callers would compile it again.
    fn parse_at(place: Place<'_>, variables: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let text = place.text;
        let file: File = toml::from_str(text).map_err(|error| place.of_parser(&error))?;
        let at = |(key, why): (String, String)| match key.is_empty() {
            true => ConfigError { path: PathBuf::new(), line: 0, key, what: why },
            false => place.of_key(&key, why),
        };
        let database = file.database;
        let (table, notify) = (database.table().map_err(at)?, database.notify);
        table.check().map_err(|(key, why)| place.of_key(&format!("database.{key}"), why))?;
        let lanes = LanesSections { former: file.lanes, server: file.server, environments: file.env };
        let sink = sink(file.sink, lanes, variables).map_err(at)?;
        let settings = file::settings(file.relay, file.retry, file.clean, &table).map_err(at)?;
        if let file::UrlSection::Plain(url) = &database.url
            && !url.starts_with("sqlite:")
            && masked(url).contains(&format!(":{MASK}@"))
        {
            let why = "a file is shown to people: say the password in `password`, or all of it as { env = \"…\" } or { file = \"…\" }";
            return Err(place.of_key("database.url", why.to_owned()));
        }
        let url = match database.url {
            file::UrlSection::Plain(url) => {
                Address::new(&url, None, &database.tls).map_err(|why| place.of_key("database.url", why))?;
                Url::Plain(url)
            }
            file::UrlSection::Secret(secret) => Url::Secret(secret),
        };
        Ok(Self { table, notify, settings, url, password: database.password, tls: database.tls, sink })
    }

    /// Where the database is, with what is secret.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a secret cannot be read, or is no URL.
    pub fn address(&self) -> Result<Address, Error> {
        let url = match &self.url {
            Url::Plain(url) => url.clone(),
            Url::Secret(secret) => secret.read().map_err(Error::Invalid)?,
        };
        let password = self.password.as_ref().map(Secret::read).transpose().map_err(Error::Invalid)?;
        Address::new(url.trim(), password.as_deref(), &self.tls).map_err(Error::Invalid)
    }

    /// Connects to the database, whether the table is there or not.
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub fn database(&self) -> Answer<'_, Result<Database, Error>> {
        // Boxed, as its callers would compile all of the databases' drivers again.
        Box::pin(async {
            let Settings { batch, keeps_key_order, .. } = self.settings;
            Database::connect(&self.address()?, self.table.clone(), batch, keeps_key_order).await
        })
    }

    /// The sink, which is not connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a secret cannot be read, or a certificate.
    pub fn sink(&self) -> Result<Box<dyn Sink>, Error> {
        match &self.sink {
            SinkOf::Broker { url, password, tls, settings } => {
                let password = password.as_ref().map(Secret::read).transpose().map_err(Error::Invalid)?;
                let options = options(url, password.as_deref(), tls).map_err(Error::Invalid)?;
                let options = options.name(format!("relay {}", self.settings.id));
                // Whatever is claimed has room, so that only confirms are waited for.
                let options = options.unconfirmed_max(self.settings.batch.max(1_000));
                Ok(Box::new(BrokerSink::new(options, settings.clone())))
            }
            #[cfg(feature = "redis")]
            SinkOf::Streams { server, settings } => {
                let server = server.server().map_err(Error::Invalid)?;
                Ok(Box::new(crate::sink::StreamsSink::new(server, settings.clone())))
            }
        }
    }

    /// A relay that is ready to run: connected to the database, whose table is looked at.
    ///
    /// # Errors
    /// As [`Database::connect_checked`], and as [`Config::sink`].
    pub fn relay(&self) -> Answer<'_, Result<Relay, Error>> {
        Box::pin(async {
            let sink = self.sink()?;
            let database = self.database().await?;
            let wrong = database.wrong();
            if !wrong.is_empty() {
                return Err(Error::Invalid(wrong.join("; ")));
            }
            for statement in database.lacks(self.notify) {
                tracing::warn!(%statement, "the table lacks something that this would make");
            }
            Ok(Relay::new(database, sink, self.settings.clone()))
        })
    }
}

#[cfg_attr(not(feature = "redis"), expect(unused_variables, reason = "variables say lanes of streams"))]
fn sink(
    section: SinkSection,
    lanes: LanesSections,
    variables: &BTreeMap<String, String>,
) -> Result<SinkOf, file::Wrong> {
    let wrong = |key: &str, why: String| (key.to_owned(), why);
    match (section.overtake, section.redis) {
        (Some(broker), None) => {
            lanes.refuse()?;
            let settings =
                broker.settings().map_err(|(key, why)| wrong(&format!("sink.overtake.{key}"), why))?;
            let url = broker.url.clone();
            options(&url, None, &broker.tls).map_err(|why| wrong("sink.overtake.url", why))?;
            Ok(SinkOf::Broker { url, password: broker.password, tls: broker.tls, settings })
        }
        #[cfg(feature = "redis")]
        (None, Some(server)) => {
            let lanes = lanes.lanes(variables)?;
            server.server().map_err(|why| wrong("sink.redis.url", why))?;
            let layout = overtake_streams::Layout { lanes, is_partitioned: server.partitions };
            let trim_every =
                server.trim_every().map_err(|why| wrong("sink.redis.trim_settled_every", why))?;
            let settings = crate::sink::StreamsSettings { layout, len_max: server.len_max, trim_every };
            Ok(SinkOf::Streams { server, settings })
        }
        #[cfg(not(feature = "redis"))]
        (None, Some(_)) => Err(wrong("sink.redis", "this program was built without it".to_owned())),
        (Some(_), Some(_)) => {
            Err(wrong("sink.redis", "a relay has one sink: run another for the other".to_owned()))
        }
        (None, None) => Err(wrong("sink", "say where rows go: [sink.overtake] or [sink.redis]".to_owned())),
    }
}

/// How to be a client of the broker.
fn options(url: &str, password: Option<&str>, tls: &Tls) -> Result<ConnectOptions, String> {
    let (mut parsed, _) = overtake_peer::parse(
        Vault::ANY,
        url,
        &[("amqp", 5672, false), ("amqps", 5671, true)],
        Login::UserInUrl,
    )?;
    if let Some(password) = password {
        if parsed.username().is_empty() {
            return Err("a password is somebody's: name the user, as amqp://USER@HOST".to_owned());
        }
        parsed.set_password(Some(password)).map_err(|()| format!("`{}` takes no password", masked(url)))?;
    }
    let mut client = overtake_client::Tls::new();
    if let Some(file) = &tls.ca_file {
        client = client.ca_file(file);
    }
    match (&tls.cert_file, &tls.key_file) {
        (Some(cert), Some(key)) => client = client.identity(cert, key),
        (None, None) => (),
        _ => return Err("`cert_file` and `key_file` go together".to_owned()),
    }
    Ok(ConnectOptions::new(parsed.to_string()).tls(client))
}

#[cfg(test)]
mod tests;

//! The file as it is written: every section, every key, what holds where one is missing.

use std::collections::BTreeMap;
use std::time::Duration;

use overtake_lane::Scheme;
use overtake_peer::{Secret, Tls};
use serde::{Deserialize, Deserializer};

use super::lanes::{EnvironmentSection, LanesTable, ServerSection};
use super::time::{Time, TimeOrNever};
use crate::policy::Retry;
use crate::relay::{Cleaning, Settings};
use crate::sink::{Body, BrokerSettings};
use crate::table::{Columns, Only, StreamOf, Table, Words};

/// A key, and what is wrong with it.
pub(super) type Wrong = (String, String);

/// Longest id of a relay: claims are numbered behind it, and columns for it may be short.
const ID_LEN_MAX: usize = 100;
/// Most rows of a claim.
const BATCH_MAX: usize = 10_000;
/// Most groups of a category that are named.
const GROUPS_MAX: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) database: DatabaseSection,
    #[serde(default)]
    pub(super) sink: SinkSection,
    pub(super) lanes: Option<LanesTable>,
    #[serde(default)]
    pub(super) server: ServerSection,
    #[serde(default)]
    pub(super) env: BTreeMap<String, EnvironmentSection>,
    #[serde(default)]
    pub(super) relay: RelaySection,
    #[serde(default)]
    pub(super) retry: RetrySection,
    #[serde(default)]
    pub(super) clean: CleanSection,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a URL, or { env = \"…\" }, or { file = \"…\" }")]
pub(super) enum UrlSection {
    Plain(String),
    Secret(Secret),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatabaseSection {
    pub(super) url: UrlSection,
    pub(super) password: Option<Secret>,
    #[serde(default)]
    pub(super) tls: Tls,
    #[serde(default = "default_table")]
    table: String,
    #[serde(default = "yes")]
    pub(super) notify: bool,
    #[serde(default, deserialize_with = "one_or_more")]
    order: Vec<String>,
    #[serde(default)]
    only: BTreeMap<String, Only>,
    #[serde(default)]
    columns: ColumnsSection,
    #[serde(default)]
    words: Words,
}

fn default_table() -> String {
    overtake_client::outbox::TABLE.to_owned()
}

fn yes() -> bool {
    true
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a column, or a list of columns")]
    enum Said {
        One(String),
        More(Vec<String>),
    }
    Ok(match Said::deserialize(deserializer)? {
        Said::One(one) => vec![one],
        Said::More(more) => more,
    })
}

/// A column's name, or `false` where there is none.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the name of a column, or false where there is none")]
enum Name {
    Text(String),
    Flag(bool),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "the name of a column, { column = \"…\", pointer = \"/…\" }, or { fixed = \"…\" }"
)]
enum StreamSection {
    Column(String),
    Pointer { column: String, pointer: String },
    Fixed { fixed: String },
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ColumnsSection {
    id: Option<Name>,
    message_id: Option<Name>,
    stream: Option<StreamSection>,
    r#type: Option<Name>,
    data: Option<Name>,
    metadata: Option<Name>,
    priority: Option<Name>,
    partition_key: Option<Name>,
    status: Option<Name>,
    attempts: Option<Name>,
    max_attempts: Option<Name>,
    next_attempt_at: Option<Name>,
    locked_by: Option<Name>,
    locked_until: Option<Name>,
    last_error: Option<Name>,
    created_at: Option<Name>,
    published_at: Option<Name>,
    abandoned_at: Option<Name>,
}

impl DatabaseSection {
    pub(super) fn table(&self) -> Result<Table, Wrong> {
        Ok(Table {
            name: self.table.clone(),
            columns: self.columns.columns()?,
            words: self.words.clone(),
            order: self.order.clone(),
            only: self.only.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        })
    }
}

impl ColumnsSection {
    fn columns(&self) -> Result<Columns, Wrong> {
        let own = Columns::default();
        let needed = |key: &str, said: &Option<Name>, default: String| match said {
            None => Ok(default),
            Some(Name::Text(name)) => Ok(name.clone()),
            Some(Name::Flag(_)) => {
                Err((format!("database.columns.{key}"), "the relay cannot do without this column".to_owned()))
            }
        };
        let optional = |key: &str, said: &Option<Name>, default: Option<String>| match said {
            None => Ok(default),
            Some(Name::Text(name)) => Ok(Some(name.clone())),
            Some(Name::Flag(false)) => Ok(None),
            Some(Name::Flag(true)) => {
                Err((format!("database.columns.{key}"), "say what the column is called".to_owned()))
            }
        };
        let stream = match &self.stream {
            None => own.stream,
            Some(StreamSection::Column(name)) => StreamOf::Column(name.clone()),
            Some(StreamSection::Pointer { column, pointer }) => {
                StreamOf::Pointer { column: column.clone(), pointer: pointer.clone() }
            }
            Some(StreamSection::Fixed { fixed }) => StreamOf::Fixed(fixed.clone()),
        };
        Ok(Columns {
            id: needed("id", &self.id, own.id)?,
            message_id: optional("message_id", &self.message_id, own.message_id)?,
            stream,
            kind: optional("type", &self.r#type, own.kind)?,
            data: needed("data", &self.data, own.data)?,
            metadata: optional("metadata", &self.metadata, own.metadata)?,
            priority: optional("priority", &self.priority, own.priority)?,
            partition_key: optional("partition_key", &self.partition_key, own.partition_key)?,
            status: needed("status", &self.status, own.status)?,
            attempts: needed("attempts", &self.attempts, own.attempts)?,
            max_attempts: optional("max_attempts", &self.max_attempts, own.max_attempts)?,
            next_attempt_at: needed("next_attempt_at", &self.next_attempt_at, own.next_attempt_at)?,
            locked_by: needed("locked_by", &self.locked_by, own.locked_by)?,
            locked_until: needed("locked_until", &self.locked_until, own.locked_until)?,
            last_error: optional("last_error", &self.last_error, own.last_error)?,
            created_at: optional("created_at", &self.created_at, own.created_at)?,
            published_at: optional("published_at", &self.published_at, own.published_at)?,
            abandoned_at: optional("abandoned_at", &self.abandoned_at, own.abandoned_at)?,
        })
    }
}

// ---- sinks ----

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SinkSection {
    pub(super) overtake: Option<BrokerSection>,
    pub(super) redis: Option<RedisSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BrokerSection {
    pub(super) url: String,
    pub(super) password: Option<Secret>,
    #[serde(default)]
    pub(super) tls: Tls,
    exchange: Option<String>,
    routing_key: Option<String>,
    queue: Option<String>,
    #[serde(default = "yes")]
    mandatory: bool,
    #[serde(default)]
    body: Body,
    content_type: Option<String>,
    priority_scheme: Option<Scheme>,
}

impl BrokerSection {
    pub(super) fn settings(&self) -> Result<BrokerSettings, Wrong> {
        let own = BrokerSettings::default();
        let (exchange, routing_key) = match (&self.queue, &self.exchange, &self.routing_key) {
            (Some(queue), None, None) => (String::new(), queue.clone()),
            (Some(_), ..) => {
                let why = "a queue is reached by its name alone: say either `queue`, or `exchange` and `routing_key`";
                return Err(("queue".to_owned(), why.to_owned()));
            }
            (None, exchange, routing_key) => {
                (exchange.clone().unwrap_or(own.exchange), routing_key.clone().unwrap_or(own.routing_key))
            }
        };
        for (key, template) in [("exchange", &exchange), ("routing_key", &routing_key)] {
            let filled = template.replace("{stream}", "").replace("{type}", "");
            if filled.contains(['{', '}']) {
                return Err((
                    key.to_owned(),
                    format!("`{template}` may have {{stream}} and {{type}} in it, no other braces"),
                ));
            }
        }
        Ok(BrokerSettings {
            exchange,
            routing_key,
            is_mandatory: self.mandatory,
            body: self.body,
            content_type: self.content_type.clone().unwrap_or(own.content_type),
            priority_scheme: self.priority_scheme.unwrap_or(own.priority_scheme),
        })
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RedisSection {
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "nobody can connect"))]
    pub(super) url: String,
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "nobody can connect"))]
    username: Option<String>,
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "nobody can connect"))]
    password: Option<Secret>,
    #[serde(default)]
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "nobody can connect"))]
    tls: Tls,
    #[serde(default)]
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "nobody can connect"))]
    pub(super) partitions: bool,
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "nobody can connect"))]
    pub(super) len_max: Option<u64>,
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "nobody can connect"))]
    trim_settled_every: Option<Time>,
}

#[cfg(feature = "redis")]
impl RedisSection {
    /// # Errors
    /// The rule that it breaks, as a phrase.
    pub(super) fn trim_every(&self) -> Result<Option<Duration>, String> {
        match self.trim_settled_every {
            Some(Time(Duration::ZERO)) => Err("it must be longer than no time, such as \"1m\"".to_owned()),
            every => Ok(every.map(|Time(every)| every)),
        }
    }

    pub(super) fn server(&self) -> Result<overtake_peer::redis::RedisServer, String> {
        let named = overtake_peer::Named {
            url: &self.url,
            username: self.username.as_deref(),
            password: self.password.as_ref(),
            tls: &self.tls,
        };
        overtake_peer::redis::RedisServer::new(overtake_peer::Vault::ANY, &named)
    }
}

// ---- how ----

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RelaySection {
    id: Option<String>,
    batch: Option<usize>,
    lock: Option<Time>,
    batches_ahead: Option<usize>,
    poll_min: Option<Time>,
    poll_max: Option<Time>,
    keep_key_order: bool,
    lag_every: Option<Time>,
    lag_groups_max: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RetrySection {
    attempts: Option<u32>,
    initial: Option<Time>,
    multiplier: Option<f64>,
    max: Option<Time>,
    jitter: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CleanSection {
    published_after: Option<TimeOrNever>,
    abandoned_after: Option<TimeOrNever>,
    batch: Option<usize>,
    every: Option<Time>,
}

pub(super) fn settings(
    relay: RelaySection,
    retry: RetrySection,
    clean: CleanSection,
    table: &Table,
) -> Result<Settings, Wrong> {
    let own = Settings::default();
    let time = |said: Option<Time>, default: Duration| said.map_or(default, |Time(time)| time);
    let settings = Settings {
        id: relay.id.unwrap_or_else(drawn),
        batch: relay.batch.unwrap_or(own.batch),
        lock: time(relay.lock, own.lock),
        batches_ahead: relay.batches_ahead.unwrap_or(own.batches_ahead),
        poll_min: time(relay.poll_min, own.poll_min),
        poll_max: time(relay.poll_max, own.poll_max),
        keeps_key_order: relay.keep_key_order,
        retry: Retry {
            attempts: retry.attempts.unwrap_or(own.retry.attempts),
            initial: time(retry.initial, own.retry.initial),
            multiplier: retry.multiplier.unwrap_or(own.retry.multiplier),
            max: time(retry.max, own.retry.max),
            jitter: retry.jitter.unwrap_or(own.retry.jitter),
        },
        cleaning: Cleaning {
            published_after: clean
                .published_after
                .map_or(own.cleaning.published_after, |TimeOrNever(time)| time),
            abandoned_after: clean
                .abandoned_after
                .map_or(own.cleaning.abandoned_after, |TimeOrNever(time)| time),
            batch: clean.batch.unwrap_or(own.cleaning.batch),
            every: time(clean.every, own.cleaning.every),
        },
        lag_every: time(relay.lag_every, own.lag_every),
        lag_groups_max: relay.lag_groups_max.unwrap_or(own.lag_groups_max),
    };
    check(&settings, table)?;
    Ok(settings)
}

fn check(settings: &Settings, table: &Table) -> Result<(), Wrong> {
    let millis = Duration::from_millis;
    let Settings {
        id, batch, lock, batches_ahead, poll_min, poll_max, keeps_key_order, retry, cleaning, ..
    } = settings;
    let refuse = [
        (
            id.is_empty() || id.len() > ID_LEN_MAX || id.contains(['/', '\0']),
            "relay.id",
            "1 to 100 bytes, without a slash",
        ),
        (*batch == 0 || *batch > BATCH_MAX, "relay.batch", "1 to 10,000 rows"),
        (*lock < millis(1_000), "relay.lock", "at least \"1s\": all of a claim must be published in it"),
        (*batches_ahead == 0 || *batches_ahead > 16, "relay.batches_ahead", "1 to 16 claims"),
        (*poll_min < millis(1), "relay.poll_min", "at least \"1ms\""),
        (poll_max < poll_min, "relay.poll_max", "at least as long as `poll_min`"),
        (retry.attempts == 0, "retry.attempts", "at least 1"),
        (retry.initial.is_zero(), "retry.initial", "at least \"1ms\""),
        (
            !(1.0..=1_000.0).contains(&retry.multiplier),
            "retry.multiplier",
            "1 to 1,000: waits do not become shorter",
        ),
        (retry.max < retry.initial, "retry.max", "at least as long as `initial`"),
        (!(0.0..=1.0).contains(&retry.jitter), "retry.jitter", "a part, 0 to 1"),
        (cleaning.batch == 0 || cleaning.batch > BATCH_MAX, "clean.batch", "1 to 10,000 rows"),
        (cleaning.every < millis(1_000), "clean.every", "at least \"1s\""),
        (
            !settings.lag_every.is_zero() && settings.lag_every < millis(1_000),
            "relay.lag_every",
            "at least \"1s\", or \"0s\" to count nothing",
        ),
        (settings.lag_groups_max > GROUPS_MAX, "relay.lag_groups_max", "0 to 1,000 groups"),
    ];
    if let Some((_, key, must)) = refuse.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        return Err((key.to_owned(), format!("it must be: {must}")));
    }
    if *keeps_key_order && table.columns.partition_key.is_none() {
        return Err((
            "relay.keep_key_order".to_owned(),
            "there is no column `partition_key` to keep an order by".to_owned(),
        ));
    }
    Ok(())
}

/// A name that no other relay has.
fn drawn() -> String {
    let mut bytes = [0; 6];
    // Without chance the process tells it apart, on this machine.
    let _ = getrandom::fill(&mut bytes);
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let host: String =
        host.trim().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    let host = if host.is_empty() { "relay".to_owned() } else { host };
    let drawn: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{host}:{}:{drawn}", std::process::id())
}

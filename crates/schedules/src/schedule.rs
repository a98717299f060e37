//! What a schedule is, what is published for one occurrence of it, and how it is kept.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use overtake_engine::{Content, NewMessage, Target};
use overtake_lane::{Given, METADATA_VALUE_LEN_MAX, Time};
use overtake_properties::{Limits, Properties};
use serde::{Deserialize, Serialize};

use crate::cron::Cron;

/// Longest name, bytes: with `@` and an instant behind it, it is an id.
pub const NAME_LEN_MAX: usize = overtake_lane::NAME_LEN_MAX - "@2026-11-22T10:00:00Z".len();
/// Longest body of a message, bytes.
pub const BODY_LEN_MAX: usize = 32 << 10;

/// A message to be published to a queue whenever a cron line says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The queue, in the virtual host of the schedule.
    pub queue: Arc<str>,
    /// When.
    pub cron: Cron,
    /// Who made it: with whose rights it is published.
    pub user: Arc<str>,
    /// What.
    pub message: Template,
}

/// What every message of a schedule says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// As the wire said it.
    pub priority: Given,
    /// Its key.
    pub key: Option<String>,
    /// The weight that it gives its key.
    pub key_weight: Option<u32>,
    /// Its time to live, ms, from the moment it is due.
    pub ttl_ms: Option<u64>,
    /// What it says. Whose it is is said by the schedule.
    pub content: Content,
}

/// A schedule that has no room where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unkeepable;

impl fmt::Display for Unkeepable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = METADATA_VALUE_LEN_MAX >> 10;
        write!(
            f,
            "a body of at most {} KiB is kept for a schedule, and {all} KiB of it in all, bodies in base64",
            BODY_LEN_MAX >> 10
        )
    }
}

impl std::error::Error for Unkeepable {}

/// How it is written down.
#[derive(Serialize, Deserialize)]
struct Kept {
    queue: Arc<str>,
    cron: String,
    timezone: String,
    user: Arc<str>,
    priority: Given,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_weight: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    /// As in a content header of AMQP 0-9-1, in base64.
    properties: String,
    /// In base64.
    body: String,
}

impl Schedule {
    /// What is published now for the occurrence of a schedule of this name at an instant. It waits until then.
    #[must_use]
    pub fn occurrence(&self, now: Time, name: &str, at: Time) -> NewMessage {
        let Template { priority, key, key_weight, ttl_ms, content } = self.message.clone();
        let delay_ms = at.since(now);
        NewMessage {
            to: self.target(),
            priority,
            id: Some(occurrence_id(name, at)),
            key,
            key_weight,
            // The time to live begins when a message is published.
            ttl_ms: ttl_ms.map(|ms| ms.saturating_add(delay_ms)),
            delay_ms,
            content: content.with_user_id(&self.user),
            ..NewMessage::default()
        }
    }

    /// Where it publishes.
    #[must_use]
    pub fn target(&self) -> Target {
        Target::Queue(Arc::clone(&self.queue))
    }

    /// As it is kept.
    ///
    /// # Errors
    /// [`Unkeepable`].
    pub fn encode(&self) -> Result<Vec<u8>, Unkeepable> {
        let Template { priority, key, key_weight, ttl_ms, content } = &self.message;
        if content.body.len() > BODY_LEN_MAX {
            return Err(Unkeepable);
        }
        let kept = Kept {
            queue: Arc::clone(&self.queue),
            cron: self.cron.line().to_owned(),
            timezone: self.cron.timezone().to_owned(),
            user: Arc::clone(&self.user),
            priority: priority.clone(),
            key: key.clone(),
            key_weight: *key_weight,
            ttl_ms: *ttl_ms,
            properties: STANDARD.encode(content.properties.as_bytes()),
            body: STANDARD.encode(&content.body),
        };
        let bytes = serde_json::to_vec(&kept).expect("plain data is JSON");
        if bytes.len() > METADATA_VALUE_LEN_MAX { Err(Unkeepable) } else { Ok(bytes) }
    }

    /// Of bytes that were kept; or why not.
    ///
    /// # Errors
    /// In words: it was written by another version, or the time zone is not known on this machine.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let kept: Kept = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let bytes_of = |text: &str| STANDARD.decode(text).map(Bytes::from).map_err(|error| error.to_string());
        let properties = Properties::check(bytes_of(&kept.properties)?, &Limits::default());
        let properties = properties.map_err(|fault| format!("{fault:?}"))?;
        let content = Content { properties, body: bytes_of(&kept.body)?, ..Content::default() };
        Ok(Self {
            queue: kept.queue,
            cron: Cron::parse(&kept.cron, &kept.timezone).map_err(|bad| bad.to_string())?,
            user: kept.user,
            message: Template {
                priority: kept.priority,
                key: kept.key,
                key_weight: kept.key_weight,
                ttl_ms: kept.ttl_ms,
                content,
            },
        })
    }
}

/// The id of an occurrence: `NAME@2026-11-22T10:00:00Z`.
#[must_use]
pub fn occurrence_id(name: &str, at: Time) -> String {
    format!("{name}@{}", rfc3339(at))
}

/// A moment as text, in UTC; without fractions where it has none.
#[must_use]
pub fn rfc3339(time: Time) -> String {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX).to_string()
}

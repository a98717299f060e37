//! A message that was leased, to be worked on.

use std::time::Duration;

use serde_json::{Map, Value};

use super::environment;
use crate::body;
use crate::failure::{Exit, Failure};

/// A message and what the broker says about it.
#[derive(Debug)]
pub(crate) struct Item {
    /// Its id.
    pub(crate) id: String,
    /// What to show when settling or extending.
    pub(crate) receipt: String,
    /// How urgent, as it was given.
    pub(crate) priority: Value,
    /// How often it was leased, this time included.
    pub(crate) attempt: u64,
    /// How long its program may run from now, if that is bounded.
    pub(crate) run_timeout: Option<Duration>,
    /// Its queue notes that it is worked on, so somebody may want to follow it.
    pub(crate) is_followed: bool,
    /// What the program reads.
    pub(crate) body: Vec<u8>,
    /// What the program finds in its environment.
    pub(crate) environment: Vec<(String, String)>,
}

impl Item {
    /// As the API shows it.
    ///
    /// # Errors
    /// When it is no leased message.
    pub(crate) fn of(message: &Value, queue: &str) -> Result<Self, Failure> {
        let text = |name: &str| {
            let text = message.get(name).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| {
                Failure::new(Exit::Error, format!("the broker sent a message without `{name}`"))
            })
        };
        let none = Map::new();
        let properties = message.as_object().unwrap_or(&none);
        Ok(Self {
            id: text("id")?,
            receipt: text("receipt")?,
            priority: message.get("priority").cloned().unwrap_or_default(),
            attempt: message.get("delivery_count").and_then(Value::as_u64).unwrap_or(1),
            run_timeout: message.get("run_timeout_ms").and_then(Value::as_u64).map(Duration::from_millis),
            is_followed: message.get("started").is_some(),
            body: body::of(message)?,
            environment: environment::of(properties, queue).into_iter().collect(),
        })
    }

    /// The priority for people.
    pub(crate) fn urgency(&self) -> String {
        self.priority.as_str().map_or_else(|| self.priority.to_string(), str::to_owned)
    }
}

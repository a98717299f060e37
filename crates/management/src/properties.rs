//! The properties of a message as JSON, and back.

use overtake_properties::{Fields, Properties, PropertiesRef, Short, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::problem::Problem;
use crate::{lenient, tables};

/// What a message says about itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct PropertiesSaid {
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_encoding: Option<String>,
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Map::is_empty")]
    headers: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_mode: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Value>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_id: Option<String>,
}

impl PropertiesSaid {
    /// What came, as JSON has it: bytes that are no text with signs of replacement.
    pub(crate) fn of(properties: PropertiesRef<'_>) -> Self {
        let text = |short: Option<Short<'_>>| {
            short.map(|short| String::from_utf8_lossy(short.as_bytes()).into_owned())
        };
        let fields = Fields::of(properties);
        let headers = fields.headers.map(tables::shown).and_then(|headers| headers.as_object().cloned());
        Self {
            content_type: text(fields.content_type),
            content_encoding: text(fields.content_encoding),
            headers: headers.unwrap_or_default(),
            delivery_mode: fields.delivery_mode.map(Value::from),
            priority: fields.priority.map(Value::from),
            correlation_id: text(fields.correlation_id),
            reply_to: text(fields.reply_to),
            expiration: text(fields.expiration).map(Value::String),
            message_id: text(fields.message_id),
            timestamp: fields.timestamp.map(Value::from),
            kind: text(fields.kind),
            user_id: text(fields.user_id),
            app_id: text(fields.app_id),
            cluster_id: text(fields.cluster_id),
        }
    }

    /// The same as bytes.
    pub(crate) fn encode(&self) -> Result<Properties, Problem> {
        let headers: Option<Table> =
            if self.headers.is_empty() { None } else { Some(tables::table(&self.headers)?) };
        let expiration = match &self.expiration {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(other) => return Err(Problem::bad(format_args!("expiration: {other} is no number"))),
        };
        let fields = Fields {
            content_type: short("content_type", self.content_type.as_deref())?,
            content_encoding: short("content_encoding", self.content_encoding.as_deref())?,
            headers: headers.as_ref().map(Table::view),
            delivery_mode: byte("delivery_mode", self.delivery_mode.as_ref())?,
            priority: byte("priority", self.priority.as_ref())?,
            correlation_id: short("correlation_id", self.correlation_id.as_deref())?,
            reply_to: short("reply_to", self.reply_to.as_deref())?,
            expiration: short("expiration", expiration.as_deref())?,
            message_id: short("message_id", self.message_id.as_deref())?,
            timestamp: number("timestamp", self.timestamp.as_ref(), u64::MAX)?,
            kind: short("type", self.kind.as_deref())?,
            user_id: short("user_id", self.user_id.as_deref())?,
            app_id: short("app_id", self.app_id.as_deref())?,
            cluster_id: short("cluster_id", self.cluster_id.as_deref())?,
        };
        Ok(fields.encode())
    }
}

fn number(name: &str, value: Option<&Value>, most: u64) -> Result<Option<u64>, Problem> {
    value.filter(|value| !value.is_null()).map(|value| lenient::within(name, value, 0..=most)).transpose()
}

fn byte(name: &str, value: Option<&Value>) -> Result<Option<u8>, Problem> {
    let byte = number(name, value, u8::MAX.into())?;
    Ok(byte.and_then(|byte| byte.try_into().ok()))
}

fn short<'a>(name: &str, text: Option<&'a str>) -> Result<Option<Short<'a>>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let too_long = || Problem::bad(format_args!("{name} is longer than 255 bytes"));
    Short::new(text.as_bytes()).map(Some).ok_or_else(too_long)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn properties_read_back_as_they_were_said() {
        let json = json!({
            "content_type": "text/plain", "headers": {"n": 7, "in": {"deep": [true]}}, "delivery_mode": 2,
            "priority": 9, "correlation_id": "c", "expiration": "60000", "timestamp": 1_700_000_000,
            "type": "t", "app_id": "a",
        });
        let said: PropertiesSaid = serde_json::from_value(json.clone()).expect("properties");
        let encoded = said.encode().expect("they fit");
        let back = PropertiesSaid::of(encoded.view());
        assert_eq!(serde_json::to_value(back).expect("JSON"), json);
        let long = PropertiesSaid { app_id: Some("x".repeat(256)), ..PropertiesSaid::default() };
        assert_eq!(long.encode().expect_err("too long").reason, "app_id is longer than 255 bytes");
    }
}

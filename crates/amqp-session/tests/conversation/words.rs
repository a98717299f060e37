//! Methods, tables and messages in words.

use overtake_amqp::Method;
use overtake_properties::{Properties, Short, ShortText, Table, TableBuilder, TableRef, Value};

/// Arguments or headers.
pub(crate) type Args<'a> = &'a [(&'a str, Value<'a>)];

/// Text, as a value.
pub(crate) fn t(text: &str) -> Value<'_> {
    Value::String(text.as_bytes())
}

/// A number, as a value.
pub(crate) const fn n(number: i32) -> Value<'static> {
    Value::I32(number)
}

pub(crate) const YES: Value<'static> = Value::Bool(true);

pub(crate) fn text(text: &str) -> ShortText<'_> {
    ShortText::new(text).expect("it is short")
}

pub(crate) fn short(text: &str) -> Short<'_> {
    Short::new(text.as_bytes()).expect("it is short")
}

pub(crate) fn table(args: Args<'_>) -> Table {
    args.iter().fold(TableBuilder::new(), |table, (name, value)| table.entry(short(name), *value)).finish()
}

/// A table as it is: `{count: 1, queue: "q"}`.
pub(crate) fn shown(table: TableRef<'_>) -> String {
    let entries = table
        .iter()
        .map(|(name, value)| format!("{}: {}", String::from_utf8_lossy(name.as_bytes()), shown_value(value)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
}

pub(crate) fn shown_value(value: Value<'_>) -> String {
    match value {
        Value::String(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        Value::Array(array) => {
            format!("[{}]", array.iter().map(shown_value).collect::<Vec<_>>().join(", "))
        }
        Value::Table(table) => shown(table),
        Value::Bool(value) => value.to_string(),
        Value::Time(seconds) => format!("@{seconds}"),
        value => value.int().map_or_else(|| format!("{value:?}"), |int| int.to_string()),
    }
}

/// What a broker says, short.
pub(crate) fn said(method: &Method<'_>) -> String {
    match method {
        Method::QueueDeclareOk(ok) => {
            format!("{} {} {}", ok.queue.as_str(), ok.message_count, ok.consumer_count)
        }
        Method::QueuePurgeOk(ok) => ok.message_count.to_string(),
        Method::QueueDeleteOk(ok) => ok.message_count.to_string(),
        Method::BasicConsumeOk(ok) => ok.consumer_tag.as_str().to_owned(),
        Method::BasicCancelOk(ok) => ok.consumer_tag.as_str().to_owned(),
        Method::BasicCancel(cancel) => format!("cancelled {}", cancel.consumer_tag.as_str()),
        Method::ConnectionBlocked(blocked) => format!("blocked: {}", blocked.reason.as_str()),
        Method::ChannelClose(close) => format!("{} {}", close.reply_code, close.reply_text.as_str()),
        Method::ConnectionClose(close) => {
            format!("connection {} {}", close.reply_code, close.reply_text.as_str())
        }
        Method::BasicGetEmpty(_) => "empty".to_owned(),
        method => method.name().to_owned(),
    }
}

/// A message as it came.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) channel: u16,
    pub(crate) delivery_tag: u64,
    pub(crate) redelivered: bool,
    pub(crate) exchange: String,
    pub(crate) key: String,
    pub(crate) properties: Properties,
    pub(crate) body: String,
    /// Messages ready behind it, where it was asked for.
    pub(crate) behind: u32,
}

impl Letter {
    /// `a`, or `a!` when it was out before.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.body, if self.redelivered { "!" } else { "" })
    }

    /// Its headers, as they are.
    pub(crate) fn headers(&self) -> String {
        shown(self.properties.view().headers().unwrap_or_default())
    }

    /// One of its headers.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.properties.view().headers()?.get(name).map(shown_value)
    }

    /// `exchange/key`.
    pub(crate) fn route(&self) -> String {
        format!("{}/{}", self.exchange, self.key)
    }
}

//! A message as the engine gives it, as the client gets it.

use crate::message::PRIORITY;
use overtake_amqp::connection::Delivery;
use overtake_engine::{Content, Delivered, LeasedMessage};
use overtake_lane::{Death, DeathReason, Deaths, Receipt, Record, Report, Time};
use overtake_properties::{
    ArrayBuilder, Fields, Properties, Short, ShortText, Table, TableBuilder, TableRef, Value,
};

/// What a message is beside its content.
struct Carried<'a> {
    receipt: Receipt,
    count: u32,
    /// The priority it was given.
    given: Option<i32>,
    /// Its publisher's id.
    id: Option<&'a str>,
    deaths: Option<&'a Deaths>,
    record: Option<&'a Record>,
    content: &'a Content,
}

/// Hands on a message of a consumer.
pub(crate) fn delivered<R>(message: &Delivered, give: impl FnOnce(&Delivery<'_>) -> R) -> R {
    let extras = message.extras.as_deref();
    let carried = Carried {
        receipt: message.receipt,
        count: message.count,
        given: message.given,
        id: extras.and_then(|extras| extras.id.as_deref()),
        deaths: extras.and_then(|extras| extras.deaths.as_deref()),
        record: extras.and_then(|extras| extras.record.as_deref()),
        content: &message.content,
    };
    carried.give(give)
}

/// Hands on a message that was asked for.
pub(crate) fn leased<R>(leased: &LeasedMessage, give: impl FnOnce(&Delivery<'_>) -> R) -> R {
    let LeasedMessage { receipt, message, content, .. } = leased;
    let carried = Carried {
        receipt: *receipt,
        count: message.count,
        given: message.given,
        // Ids that the broker made up begin so, and no others may.
        id: Some(message.id.as_str()).filter(|id| !id.starts_with("seq-")),
        deaths: message.deaths.as_deref(),
        record: message.record.as_deref(),
        content,
    };
    carried.give(give)
}

impl Carried<'_> {
    fn give<R>(&self, give: impl FnOnce(&Delivery<'_>) -> R) -> R {
        let changed = self.changed();
        let properties = changed.as_ref().unwrap_or(&self.content.properties).view();
        let route = self.deaths.map_or(&self.content.route, Deaths::route);
        give(&Delivery {
            receipt: self.receipt,
            redelivered: self.count > 1,
            exchange: route.exchange.as_bytes(),
            routing_key: route.key().as_bytes(),
            properties,
            body: &self.content.body,
        })
    }

    /// What it says about itself now; `None`: what it said as it came.
    fn changed(&self) -> Option<Properties> {
        let said = self.content.properties.view();
        let id = self.id.filter(|_| said.message_id().is_none());
        let priority = self.given.and_then(|given| u8::try_from(given).ok());
        let is_other = self.given.is_some() && (priority.is_none() || priority != said.priority());
        if self.is_new() && !is_other && id.is_none() {
            return None;
        }
        let headers = self.headers(said.headers());
        let fields = Fields::of(said);
        let message_id = fields.message_id.or(id.map(|id| ShortText::cut(id).into()));
        let fields = Fields {
            headers: headers.as_ref().map(Table::view),
            priority: priority.or(fields.priority.filter(|_| self.given.is_none())),
            // A death takes it away.
            expiration: fields.expiration.filter(|_| self.deaths.is_none()),
            message_id,
            ..fields
        };
        Some(fields.encode())
    }

    /// Whether nothing has happened to it yet.
    fn is_new(&self) -> bool {
        self.deaths.is_none() && self.record.is_none() && self.count <= 1
    }

    fn headers(&self, said: Option<TableRef<'_>>) -> Option<Table> {
        let without_room = self.given.filter(|given| u8::try_from(*given).is_err());
        if self.is_new() && without_room.is_none() {
            return said.map(TableRef::to_table);
        }
        let mut headers = said.unwrap_or(TableRef::EMPTY).to_table();
        if let Some(given) = without_room {
            headers = headers.view().with(Short::literal(PRIORITY), Value::I32(given));
        }
        if self.count > 1 {
            // As quorum queues: how often it came back.
            let back = Value::I64(i64::from(self.count - 1));
            headers = headers.view().with(Short::literal("x-delivery-count"), back);
        }
        if let Some(deaths) = self.deaths {
            if deaths.route().keys.len() == 1 {
                // The message went on by a dead-letter routing key: the keys of `CC` were not used, and RabbitMQ takes the header away.
                headers = headers.view().without("CC");
            }
            let list = with_earlier(deaths.iter().map(of_death).collect(), said);
            let list =
                list.iter().fold(ArrayBuilder::new(), |list, entry| list.item(Value::Table(entry.view())));
            headers = headers.view().with(Short::literal("x-death"), Value::Array(list.view()));
            // A message that was published again with the headers of a dead letter died first where these say.
            let died_before = said.is_some_and(|said| said.get("x-first-death-reason").is_some());
            let first = ("first", deaths.first());
            for (name, death) in [first, ("last", deaths.last())].into_iter().skip(usize::from(died_before)) {
                let about = [
                    ("reason", reason(death.reason)),
                    ("queue", &*death.queue),
                    ("exchange", &*death.route.exchange),
                ];
                for (what, value) in about {
                    let name = format!("x-{name}-death-{what}");
                    headers = headers.view().with(ShortText::cut(&name).into(), text(value));
                }
            }
        }
        if let Some(record) = self.record {
            let about = of_record(record);
            headers = headers.view().with(Short::literal("x-overtake-record"), Value::Table(about.view()));
        }
        Some(headers)
    }
}

fn text(text: &str) -> Value<'_> {
    Value::String(text.as_bytes())
}

/// Entries of `x-death` and those that the publisher's own header `x-death` has: a dead letter that is published again keeps its history,
/// as in RabbitMQ. An entry of the same queue and reason adds its `count`, which is 1 where it is missing: RabbitMQ before 3.6 wrote none.
fn with_earlier(mut entries: Vec<Table>, said: Option<TableRef<'_>>) -> Vec<Table> {
    let Some(Value::Array(earlier)) = said.and_then(|said| said.get("x-death")) else { return entries };
    let of = |entry: TableRef<'_>, name: &str| entry.get(name).and_then(Value::text).map(str::to_owned);
    for item in earlier.iter() {
        let Value::Table(entry) = item else { continue };
        let key = (of(entry, "queue"), of(entry, "reason"));
        let count = |entry: TableRef<'_>| entry.get("count").and_then(Value::int).unwrap_or(1);
        let there =
            entries.iter_mut().find(|there| (of(there.view(), "queue"), of(there.view(), "reason")) == key);
        match there {
            Some(there) => {
                let sum = count(there.view()).saturating_add(count(entry));
                *there = there.view().with(Short::literal("count"), Value::I64(sum));
            }
            None => entries.push(entry.with(Short::literal("count"), Value::I64(count(entry)))),
        }
    }
    entries
}

/// An entry of `x-death`, as RabbitMQ writes it.
fn of_death(death: &Death) -> Table {
    let keys = death.route.keys.iter().fold(ArrayBuilder::new(), |keys, key| keys.item(text(key)));
    let ttl = death.ttl_ms.map(|ttl_ms| ttl_ms.to_string());
    let table = TableBuilder::new()
        .entry(Short::literal("count"), Value::I64(death.times.into()))
        .entry(Short::literal("exchange"), text(&death.route.exchange))
        .entry(Short::literal("queue"), text(&death.queue))
        .entry(Short::literal("reason"), text(reason(death.reason)))
        .entry(Short::literal("routing-keys"), Value::Array(keys.view()))
        .entry(Short::literal("time"), Value::Time(death.first_at.0 / 1_000));
    match &ttl {
        Some(ttl) => table.entry(Short::literal("original-expiration"), text(ttl)).finish(),
        None => table.finish(),
    }
}

/// How the work on a message went, with the names that HTTP has for it; times in milliseconds.
fn of_record(record: &Record) -> Table {
    let Report { exit_code, error, output } = &record.report;
    let ms = |time: Time| Value::I64(i64::try_from(time.0).unwrap_or(i64::MAX));
    let mut table = TableBuilder::new()
        .entry(Short::literal("ending"), text(record.ending.word()))
        .entry(Short::literal("queue"), text(&record.queue))
        .entry(Short::literal("lane"), text(&record.lane))
        .entry(Short::literal("queued"), ms(record.queued))
        .entry(Short::literal("finished"), ms(record.finished))
        .entry(Short::literal("attempts"), Value::I64(record.attempts.into()));
    if let Some(started) = record.started {
        table = table.entry(Short::literal("started"), ms(started));
    }
    if let Some(code) = exit_code {
        table = table.entry(Short::literal("exit_code"), Value::I64((*code).into()));
    }
    for (name, said) in [(Short::literal("error"), error), (Short::literal("output"), output)] {
        if let Some(said) = said {
            table = table.entry(name, text(said));
        }
    }
    table.finish()
}

fn reason(reason: DeathReason) -> &'static str {
    match reason {
        DeathReason::Rejected => "rejected",
        DeathReason::DeliveryLimit => "delivery_limit",
        DeathReason::Expired => "expired",
        DeathReason::Maxlen => "maxlen",
        DeathReason::Timeout => "timeout",
    }
}

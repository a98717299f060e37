//! Headers, as values and as an AMQP field table.

use overtake_lane::{HeaderValue, Headers};
use overtake_properties::{ArrayBuilder, Short, ShortText, Table, TableBuilder, TableRef, Value};

/// The table that says the same. Names are cut at 255 bytes.
pub(crate) fn table_of(headers: &Headers) -> Table {
    let mut table = Some(TableBuilder::new());
    for (name, value) in headers {
        let name = Short::from(ShortText::cut(name));
        with_value(value, &mut |value| table = table.take().map(|table| table.entry(name, value)));
    }
    table.unwrap_or_default().finish()
}

/// Hands on a value as a table has it. Lists and tables within are as deep as a header may be.
fn with_value(value: &HeaderValue, take: &mut dyn FnMut(Value<'_>)) {
    match value {
        HeaderValue::Void => take(Value::Void),
        HeaderValue::Bool(value) => take(Value::Bool(*value)),
        HeaderValue::Int(value) => take(Value::I64(*value)),
        HeaderValue::Text(text) => take(Value::String(text.as_bytes())),
        HeaderValue::Float(bits) => take(Value::F64(f64::from_bits(*bits))),
        HeaderValue::Decimal { scale, value } => take(Value::Decimal { scale: *scale, value: *value }),
        HeaderValue::Time(seconds) => take(Value::Time(*seconds)),
        HeaderValue::Bytes(bytes) => take(Value::Bytes(bytes)),
        HeaderValue::List(list) => take(Value::Array(array_of(list).view())),
        HeaderValue::Table(headers) => take(Value::Table(table_of(headers).view())),
    }
}

fn array_of(list: &[HeaderValue]) -> ArrayBuilder {
    let mut array = Some(ArrayBuilder::new());
    for value in list {
        with_value(value, &mut |value| array = array.take().map(|array| array.item(value)));
    }
    array.unwrap_or_default()
}

/// The headers of a table: of entries of one name the first.
#[must_use]
pub fn headers_of(table: TableRef<'_>) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in table.iter() {
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        headers.entry(name).or_insert_with(|| header_of(value));
    }
    headers
}

/// A value, of whole numbers and floats only the value.
#[must_use]
pub fn header_of(value: Value<'_>) -> HeaderValue {
    match value {
        Value::Void => HeaderValue::Void,
        Value::Bool(value) => HeaderValue::Bool(value),
        Value::F32(value) => HeaderValue::Float(f64::from(value).to_bits()),
        Value::F64(value) => HeaderValue::Float(value.to_bits()),
        Value::Decimal { scale, value } => HeaderValue::Decimal { scale, value },
        Value::Time(seconds) => HeaderValue::Time(seconds),
        Value::String(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => HeaderValue::Text(text.to_owned()),
            Err(_) => HeaderValue::Bytes(bytes.to_vec()),
        },
        Value::Bytes(bytes) => HeaderValue::Bytes(bytes.to_vec()),
        Value::Array(array) => HeaderValue::List(array.iter().map(header_of).collect()),
        Value::Table(table) => HeaderValue::Table(headers_of(table)),
        whole => HeaderValue::Int(whole.int().expect("what is left are whole numbers")),
    }
}

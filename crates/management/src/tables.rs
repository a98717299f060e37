//! AMQP's field tables as JSON, and back: arguments and headers.

use overtake_engine::header_of;
use overtake_properties::{
    ArrayBuilder, DEPTH_MAX, Limits, Short, Table, TableBuilder, TableRef, Value as Field,
};
use serde_json::{Map, Value, json};

use crate::problem::Problem;

/// A table as an object.
pub(crate) fn shown(table: TableRef<'_>) -> Value {
    let entries = table.iter().map(|(name, value)| {
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        (name, serde_json::to_value(header_of(value)).unwrap_or_default())
    });
    Value::Object(entries.collect())
}

/// Arguments as they are remembered. What cannot be read is shown as none.
pub(crate) fn remembered(bytes: &[u8]) -> Value {
    TableRef::check(bytes, &Limits::default()).map_or_else(|_| json!({}), shown)
}

/// An object as a table: whole numbers as 64 bits, the rest as it is.
///
/// # Errors
/// 400 for a name that is too long, a number that no table holds, or what is nested too deep.
pub(crate) fn table(object: &Map<String, Value>) -> Result<Table, Problem> {
    let mut fault = None;
    let table = table_at(object, 1, &mut fault);
    fault.map_or(Ok(table), |why| Err(Problem::bad(why)))
}

fn table_at(object: &Map<String, Value>, depth: usize, fault: &mut Option<String>) -> Table {
    let mut table = Some(TableBuilder::new());
    for (name, value) in object {
        let Some(short) = Short::new(name.as_bytes()) else {
            *fault = Some(format!("the name `{name}` is longer than 255 bytes"));
            continue;
        };
        with_field(value, depth, fault, &mut |field| {
            table = table.take().map(|table| table.entry(short, field));
        });
    }
    table.unwrap_or_default().finish()
}

/// Hands on a value as a table has it.
fn with_field(value: &Value, depth: usize, fault: &mut Option<String>, take: &mut dyn FnMut(Field<'_>)) {
    if depth >= DEPTH_MAX as usize {
        *fault = Some(format!("lists and objects are nested deeper than {DEPTH_MAX}"));
        return take(Field::Void);
    }
    match value {
        Value::Null => take(Field::Void),
        Value::Bool(is) => take(Field::Bool(*is)),
        Value::String(text) => take(Field::String(text.as_bytes())),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => take(Field::I64(whole)),
            (None, Some(float)) if !number.is_u64() => take(Field::F64(float)),
            _ => {
                *fault = Some(format!("the number {number} does not fit 64 bits with a sign"));
                take(Field::Void);
            }
        },
        Value::Object(object) => take(Field::Table(table_at(object, depth + 1, fault).view())),
        Value::Array(items) => {
            let mut array = Some(ArrayBuilder::new());
            for item in items {
                with_field(item, depth + 1, fault, &mut |field| {
                    array = array.take().map(|array| array.item(field));
                });
            }
            take(Field::Array(array.unwrap_or_default().view()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &Value) -> &Map<String, Value> {
        json.as_object().expect("an object")
    }

    #[test]
    fn a_table_reads_back_as_the_object_it_was() {
        let json = json!({
            "x-max-priority": 10, "negative": -1, "float": 1.5, "text": "ü", "no": null, "is": true,
            "list": [1, "two", [3]], "table": {"in": {"deeper": false}},
        });
        let table = table(object(&json)).expect("it is a table");
        assert_eq!(shown(table.view()), json);
        assert_eq!(remembered(table.as_bytes()), json);
        assert_eq!(remembered(b"rubbish"), json!({}));
    }

    #[test]
    fn what_no_table_holds_is_refused() {
        let reason = |json: Value| table(object(&json)).expect_err("no table").reason;
        assert!(reason(json!({ "x".repeat(256): 1 })).contains("longer than 255 bytes"));
        assert!(reason(json!({"x": u64::MAX})).contains("does not fit"));
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(reason(json!({ "x": deep })).contains("nested deeper"));
    }
}

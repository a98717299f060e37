//! Any table and any properties come back as they were, and any change changes one thing.

use overtake_properties::{
    ArrayBuilder, Fields, Limits, PropertiesRef, Property, Short, Table, TableBuilder, TableRef, Value,
};
use proptest::array::uniform10;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A value that owns what it holds.
#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Plain(Value<'static>),
    String(Vec<u8>),
    Bytes(Vec<u8>),
    Array(Vec<Owned>),
    Table(Vec<(Vec<u8>, Owned)>),
}

fn plain() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<u8>().prop_map(Value::U8),
        any::<i16>().prop_map(Value::I16),
        any::<u16>().prop_map(Value::U16),
        any::<i32>().prop_map(Value::I32),
        any::<u32>().prop_map(Value::U32),
        any::<i64>().prop_map(Value::I64),
        any::<f32>().prop_map(Value::F32),
        any::<f64>().prop_map(Value::F64),
        any::<(u8, u32)>().prop_map(|(scale, value)| Value::Decimal { scale, value }),
        any::<u64>().prop_map(Value::Time),
        Just(Value::Void),
    ]
}

fn value() -> impl Strategy<Value = Owned> {
    let leaf = prop_oneof![
        plain().prop_map(Owned::Plain),
        vec(any::<u8>(), 0..20).prop_map(Owned::String),
        vec(any::<u8>(), 0..20).prop_map(Owned::Bytes),
    ];
    leaf.prop_recursive(6, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Owned::Array),
            vec((vec(any::<u8>(), 0..9), inner), 0..5).prop_map(Owned::Table),
        ]
    })
}

fn entries() -> impl Strategy<Value = Vec<(Vec<u8>, Owned)>> {
    vec((vec(any::<u8>(), 0..9), value()), 0..8)
}

fn table(entries: &[(Vec<u8>, Owned)]) -> TableBuilder {
    let mut table = TableBuilder::new();
    for (name, value) in entries {
        let name = Short::new(name).expect("short");
        write(value, &mut |value| table = std::mem::take(&mut table).entry(name, value));
    }
    table
}

fn array(items: &[Owned]) -> ArrayBuilder {
    let mut array = ArrayBuilder::new();
    for item in items {
        write(item, &mut |value| array = std::mem::take(&mut array).item(value));
    }
    array
}

fn write(value: &Owned, to: &mut dyn FnMut(Value<'_>)) {
    match value {
        Owned::Plain(value) => to(*value),
        Owned::String(bytes) => to(Value::String(bytes)),
        Owned::Bytes(bytes) => to(Value::Bytes(bytes)),
        Owned::Array(items) => to(Value::Array(array(items).view())),
        Owned::Table(entries) => to(Value::Table(table(entries).view())),
    }
}

fn is(owned: &Owned, value: Value<'_>) -> bool {
    match (owned, value) {
        (Owned::Plain(plain), value) => *plain == value,
        (Owned::String(bytes), Value::String(there)) | (Owned::Bytes(bytes), Value::Bytes(there)) => {
            bytes == there
        }
        (Owned::Array(items), Value::Array(array)) => {
            items.len() == array.iter().count()
                && items.iter().zip(array).all(|(item, value)| is(item, value))
        }
        (Owned::Table(entries), Value::Table(table)) => is_table(entries, table),
        _ => false,
    }
}

fn is_table(entries: &[(Vec<u8>, Owned)], table: TableRef<'_>) -> bool {
    let same = |(entry, (name, value)): (&(Vec<u8>, Owned), (Short<'_>, Value<'_>))| {
        entry.0 == name.as_bytes() && is(&entry.1, value)
    };
    entries.len() == table.iter().count() && entries.iter().zip(table).all(same)
}

fn properties() -> impl Strategy<Value = Vec<u8>> {
    let texts = uniform10(option::of(vec(any::<u8>(), 0..30)));
    let numbers = any::<(Option<u8>, Option<u8>, Option<u64>)>();
    (texts, option::of(entries()), numbers).prop_map(
        |(texts, headers, (delivery_mode, priority, timestamp))| {
            let [
                content_type,
                content_encoding,
                correlation_id,
                reply_to,
                expiration,
                message_id,
                kind,
                user_id,
                app_id,
                cluster_id,
            ] = texts.each_ref().map(|text| text.as_deref().and_then(Short::new));
            let headers = headers.as_deref().map(table);
            let headers = headers.as_ref().map(TableBuilder::view);
            let fields = Fields {
                content_type,
                content_encoding,
                headers,
                delivery_mode,
                priority,
                correlation_id,
                reply_to,
                expiration,
                message_id,
                timestamp,
                kind,
                user_id,
                app_id,
                cluster_id,
            };
            fields.encode().as_bytes().to_vec()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_table_that_is_written_is_read_as_it_was(entries in entries()) {
        let written = table(&entries).finish();
        let checked = Table::check(written.as_bytes().clone(), &Limits::default()).expect("a table");
        prop_assert!(is_table(&entries, checked.view()), "{:?}", checked);
    }

    #[test]
    fn a_part_of_a_table_is_a_table_only_where_an_entry_ends(entries in entries()) {
        let written = table(&entries).finish();
        let bytes = written.as_bytes();
        let mut ends = vec![0];
        for at in 1..=entries.len() {
            ends.push(table(&entries[..at]).view().as_bytes().len());
        }
        for len in 0..=bytes.len() {
            let is_table = TableRef::check(&bytes[..len], &Limits::default()).is_ok();
            prop_assert_eq!(is_table, ends.contains(&len), "{} bytes", len);
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(table) = TableRef::check(&bytes, &Limits::default()) {
            let seen = format!("{table:?}");
            prop_assert!(seen.len() >= 2, "braces at the least");
        }
        if let Ok(properties) = PropertiesRef::check(&bytes, &Limits::default()) {
            let seen = format!("{properties:?}");
            prop_assert!(seen.starts_with("Fields"));
        }
    }

    #[test]
    fn properties_come_back_as_they_were(bytes in properties()) {
        let properties = PropertiesRef::check(&bytes, &Limits::default()).expect("properties");
        let encoded = Fields::of(properties).encode();
        prop_assert_eq!(encoded.as_bytes().as_ref(), &bytes[..]);
    }

    #[test]
    fn a_changed_property_is_the_only_change(bytes in properties(), property in 0..14_usize) {
        let properties = PropertiesRef::check(&bytes, &Limits::default()).expect("properties");
        let property = Property::ALL[property];
        let without = properties.without(property);
        for other in Property::ALL {
            let stays = other != property && properties.has(other);
            prop_assert_eq!(without.view().has(other), stays);
        }
        let fields = Fields::of(properties);
        let priority = properties.with_priority(Some(5));
        prop_assert_eq!(Fields::of(priority.view()), Fields { priority: Some(5), ..fields });
        let none = properties.with_expiration(None);
        prop_assert_eq!(Fields::of(none.view()), Fields { expiration: None, ..fields });
        let headers = properties.with_headers(None);
        prop_assert_eq!(Fields::of(headers.view()), Fields { headers: None, ..fields });
    }
}

//! Arbitrary bytes as a table and as properties, for fuzz targets: whatever comes, there is an answer and no panic, and what
//! is taken goes out again as it came.

use crate::{
    Fields, Limits, Properties, PropertiesRef, Property, Short, Table, TableBuilder, TableRef, Value,
};

const LIMITS: Limits = Limits { bytes: 1 << 16, entries: 1 << 10, depth: 16 };

/// Reads the bytes as a table and as the properties of a message.
///
/// # Panics
/// When something was taken that cannot be read, or does not come back as it was.
pub fn properties(bytes: &[u8]) {
    if let Ok(table) = TableRef::check(bytes, &LIMITS) {
        read_table(table);
    }
    if let Ok(properties) = PropertiesRef::check(bytes, &LIMITS) {
        read_properties(properties);
    }
}

fn read_table(table: TableRef<'_>) {
    let entries = count(Value::Table(table), 0);
    assert!(entries <= LIMITS.entries as usize + 1, "{entries} entries, all together");
    let mut builder = TableBuilder::new();
    for (name, value) in table {
        builder = builder.entry(name, value);
        assert!(name.text().is_none_or(|name| table.get(name).is_some()), "{name:?} is there");
    }
    let copy = builder.finish();
    assert_eq!(copy.as_bytes().len(), table.as_bytes().len(), "written anew it is as long");
    let copy = Table::check(copy.as_bytes().clone(), &LIMITS).expect("it is a table");
    for ((name, value), (copied, copy)) in table.iter().zip(copy.view()) {
        assert!(name == copied && same(value, copy), "{name:?} is as it was");
    }
    replaces_one_entry(table);
}

fn replaces_one_entry(table: TableRef<'_>) {
    const NAME: Short<'_> = Short::literal("x");
    let with = table.with(NAME, Value::U8(1));
    assert_eq!(with.get("x"), Some(Value::U8(1)));
    assert_eq!(with.view().without("x"), table.without("x"), "the others are as they were");
    Table::check(with.as_bytes().clone(), &Limits { entries: 1 << 11, bytes: 1 << 17, ..LIMITS })
        .expect("it is a table still");
}

/// All values beneath this one, and itself.
fn count(value: Value<'_>, depth: u32) -> usize {
    assert!(depth <= LIMITS.depth, "no deeper than is allowed");
    match value {
        Value::Table(table) => 1 + table.iter().map(|(_, value)| count(value, depth + 1)).sum::<usize>(),
        Value::Array(array) => 1 + array.iter().map(|value| count(value, depth + 1)).sum::<usize>(),
        _ => 1,
    }
}

/// Equal, but for floats that are no number: those are the same when their bits are.
fn same(one: Value<'_>, other: Value<'_>) -> bool {
    match (one, other) {
        (Value::F32(one), Value::F32(other)) => one.to_bits() == other.to_bits(),
        (Value::F64(one), Value::F64(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

fn read_properties(properties: PropertiesRef<'_>) {
    let fields = Fields::of(properties);
    let encoded = fields.encode();
    assert_eq!(Fields::of(encoded.view()), fields);
    // The flag above the lowest means nothing, and is not written anew.
    assert_eq!(encoded.as_bytes()[2..], properties.as_bytes()[2..]);
    for property in Property::ALL {
        let without = properties.without(property);
        assert!(!without.view().has(property));
        Properties::check(without.as_bytes().clone(), &LIMITS).expect("they are properties still");
    }
    let limits = Limits { bytes: LIMITS.bytes + 8, ..LIMITS };
    for with in [
        properties.with_headers(Some(properties.headers().unwrap_or_default())),
        properties.with_delivery_mode(Some(properties.delivery_mode().unwrap_or(2))),
        properties.with_priority(Some(properties.priority().unwrap_or(9))),
        properties.with_expiration(Some(properties.expiration().unwrap_or_default())),
        properties.with_timestamp(Some(properties.timestamp().unwrap_or(1))),
    ] {
        let with = PropertiesRef::check(with.as_bytes(), &limits).expect("they are properties still");
        let changed =
            Property::ALL.iter().filter(|property| with.has(**property) != properties.has(**property));
        assert!(changed.count() <= 1, "no other comes or goes");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_input_panics() {
        overtake_corpus::check("properties", super::properties);
    }
}

//! Tables and properties, byte by byte.

use bytes::Bytes;
use overtake_properties::{
    ArrayBuilder, Fault, Fields, Limits, Properties, PropertiesRef, Property, Short, Table, TableBuilder,
    TableRef, Value,
};

fn short(text: &str) -> Short<'_> {
    Short::new(text.as_bytes()).expect("short")
}

/// The value is written as these bytes, type first, and read from them.
fn check(value: Value<'_>, bytes: &[u8]) {
    let table = TableBuilder::new().entry(short("k"), value).finish();
    assert_eq!(table.as_bytes()[..2], *b"\x01k");
    assert_eq!(table.as_bytes()[2..], *bytes, "{value:?}");
    let back = TableRef::check(table.as_bytes(), &Limits::default()).expect("a table");
    assert_eq!(back.get("k"), Some(value));
}

#[test]
fn every_type_has_its_bytes() {
    check(Value::Bool(true), b"t\x01");
    check(Value::I8(-2), b"b\xfe");
    check(Value::U8(254), b"B\xfe");
    check(Value::I16(-2), b"s\xff\xfe");
    check(Value::U16(0xfffe), b"u\xff\xfe");
    check(Value::I32(-2), b"I\xff\xff\xff\xfe");
    check(Value::U32(0xffff_fffe), b"i\xff\xff\xff\xfe");
    check(Value::I64(-2), b"l\xff\xff\xff\xff\xff\xff\xff\xfe");
    check(Value::F32(1.5), b"f\x3f\xc0\0\0");
    check(Value::F64(1.5), b"d\x3f\xf8\0\0\0\0\0\0");
    check(Value::Decimal { scale: 2, value: 314 }, b"D\x02\0\0\x01\x3a");
    check(Value::Time(1_793_500_000), b"T\0\0\0\0\x6a\xe6\xa3\x60");
    check(Value::String(b"text"), b"S\0\0\0\x04text");
    check(Value::Bytes(b"\xff\0"), b"x\0\0\0\x02\xff\0");
    check(Value::Void, b"V");
    let array = ArrayBuilder::new().item(Value::Void).item(Value::U8(7));
    check(Value::Array(array.view()), b"A\0\0\0\x03VB\x07");
    let table = TableBuilder::new().entry(short("n"), Value::Bool(false));
    check(Value::Table(table.view()), b"F\0\0\0\x04\x01nt\0");
}

#[test]
fn a_large_l_is_read_as_a_small_one_and_keeps_its_bytes() {
    let bytes = b"\x01kL\xff\xff\xff\xff\xff\xff\xff\xfe";
    let table = Table::check(Bytes::from_static(bytes), &Limits::default()).expect("a table");
    assert_eq!(table.get("k"), Some(Value::I64(-2)));
    assert_eq!(table.as_bytes().as_ref(), bytes);
}

#[test]
fn order_and_duplicates_stay() {
    let bytes = b"\x01bB\x01\x01aB\x02\x01bB\x03\x01\xfft\x05";
    let table = Table::check(Bytes::from_static(bytes), &Limits::default()).expect("a table");
    let names: Vec<&[u8]> = table.view().iter().map(|(name, _)| name.as_bytes()).collect();
    assert_eq!(names, [&b"b"[..], b"a", b"b", b"\xff"]);
    assert_eq!(table.get("b"), Some(Value::U8(1)), "the first of that name");
    let last = table.view().iter().last().map(|(_, value)| value);
    assert_eq!(last, Some(Value::Bool(true)), "any byte but 0 is true");
}

#[test]
fn a_changed_entry_leaves_the_bytes_of_the_others() {
    let bytes = b"\x01aL\0\0\0\0\0\0\0\x01\x01bB\x01\x01ct\x05\x01bB\x02";
    let table = TableRef::check(bytes, &Limits::default()).expect("a table");
    let with = table.with(short("b"), Value::Void);
    assert_eq!(with.as_bytes().as_ref(), b"\x01aL\0\0\0\0\0\0\0\x01\x01bV\x01ct\x05");
    assert_eq!(table.without("b").as_bytes().as_ref(), b"\x01aL\0\0\0\0\0\0\0\x01\x01ct\x05");
    assert_eq!(table.with(short("d"), Value::Void).as_bytes()[bytes.len()..], *b"\x01dV");
}

#[test]
fn a_number_of_any_width_is_a_number() {
    for value in [
        Value::I8(5),
        Value::U8(5),
        Value::I16(5),
        Value::U16(5),
        Value::I32(5),
        Value::U32(5),
        Value::I64(5),
    ] {
        assert_eq!(value.int(), Some(5), "{value:?}");
    }
    assert_eq!(Value::String(b"5").int(), None);
    assert_eq!(Value::String(b"\xff").text(), None);
}

/// As in a message that was published with every property.
const FULL: &[u8] = b"\xff\xfc\x0atext/plain\x04gzip\0\0\0\x04\x01nt\x01\x02\x09\x02c1\x02r1\x0560000\x02m1\
    \0\0\0\0\x6a\xe6\xa3\x60\x03job\x05guest\x02a1\x02k1";

#[test]
fn properties_stand_in_the_order_of_their_flags() {
    let headers = TableBuilder::new().entry(short("n"), Value::Bool(true));
    let fields = Fields {
        content_type: Some(short("text/plain")),
        content_encoding: Some(short("gzip")),
        headers: Some(headers.view()),
        delivery_mode: Some(2),
        priority: Some(9),
        correlation_id: Some(short("c1")),
        reply_to: Some(short("r1")),
        expiration: Some(short("60000")),
        message_id: Some(short("m1")),
        timestamp: Some(1_793_500_000),
        kind: Some(short("job")),
        user_id: Some(short("guest")),
        app_id: Some(short("a1")),
        cluster_id: Some(short("k1")),
    };
    assert_eq!(fields.encode().as_bytes().as_ref(), FULL);
    let properties = PropertiesRef::check(FULL, &Limits::default()).expect("properties");
    assert_eq!(Fields::of(properties), fields);
}

#[test]
fn a_changed_property_leaves_the_bytes_of_the_others() {
    let full = PropertiesRef::check(FULL, &Limits::default()).expect("properties");
    let fields = Fields::of(full);
    let check = |changed: Properties, expect: Fields<'_>| {
        assert_eq!(changed.as_bytes(), expect.encode().as_bytes());
        assert_eq!(Fields::of(changed.view()), expect);
    };
    check(full.with_priority(Some(3)), Fields { priority: Some(3), ..fields });
    check(full.with_delivery_mode(None), Fields { delivery_mode: None, ..fields });
    check(full.with_expiration(None), Fields { expiration: None, ..fields });
    check(full.with_timestamp(Some(1)), Fields { timestamp: Some(1), ..fields });
    check(full.with_headers(Some(TableRef::EMPTY)), Fields { headers: Some(TableRef::EMPTY), ..fields });
    check(full.without(Property::ContentType), Fields { content_type: None, ..fields });
    check(full.without(Property::ClusterId), Fields { cluster_id: None, ..fields });
}

#[test]
fn a_property_that_was_not_there_goes_into_its_place() {
    let properties = Properties::EMPTY;
    let properties = properties.view().with_expiration(Some(short("5")));
    let properties = properties.view().with_headers(Some(TableRef::EMPTY));
    let properties = properties.view().with_timestamp(Some(1));
    let properties = properties.view().with_priority(Some(9));
    assert_eq!(properties.as_bytes().as_ref(), b"\x29\x40\0\0\0\0\x09\x015\0\0\0\0\0\0\0\x01");
}

#[test]
fn what_is_no_properties_is_refused() {
    let check = |bytes: &[u8], fault| {
        assert_eq!(PropertiesRef::check(bytes, &Limits::default()).err(), Some(fault), "{bytes:?}");
    };
    check(b"", Fault::Truncated);
    check(b"\x80\0", Fault::Truncated);
    check(b"\x80\0\x02a", Fault::Truncated);
    check(b"\0\0\0", Fault::Trailing);
    check(b"\0\x01\0\0", Fault::MoreFlags);
    check(b"\x20\0\0\0\0\x03\x01aZ", Fault::UnknownType(b'Z'));
    check(b"\0\x40\0\0\0\0\0\0\0", Fault::Truncated);
    for len in 0..FULL.len() {
        assert!(PropertiesRef::check(&FULL[..len], &Limits::default()).is_err(), "{len} bytes of it");
    }
    let limits = Limits { bytes: FULL.len() as u32 - 1, ..Limits::default() };
    assert_eq!(PropertiesRef::check(FULL, &limits).err(), Some(Fault::TooLong));
}

#[test]
fn the_flag_that_means_nothing_is_kept() {
    let bytes = b"\x08\x02\x05";
    let properties = PropertiesRef::check(bytes, &Limits::default()).expect("as RabbitMQ");
    assert_eq!(properties.priority(), Some(5));
    assert_eq!(properties.with_priority(Some(6)).as_bytes().as_ref(), b"\x08\x02\x06");
}

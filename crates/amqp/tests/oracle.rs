//! Our codec and `amq-protocol`, the codec of the Rust client `lapin`, understand the same.
//!
//! It sorts tables, drops duplicates and wants UTF-8, so only what survives that is compared.

mod support;

use amq_protocol::frame::{AMQPFrame, WriteContext, gen_frame, parse_frame};
use amq_protocol::types::{AMQPValue, FieldTable};
use overtake_amqp::method::Signature;
use overtake_amqp::{ContentHeader, Frame, FrameWriter, Method};
use overtake_properties::{ArrayBuilder, Fields, Limits, Short, TableBuilder, TableRef, Value};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use support::Given;

/// Fields that 0-9-1 reserves. They leave them out, and write the default.
const RESERVED: [&str; 8] = [
    "ticket",
    "capabilities",
    "insist",
    "known_hosts",
    "out_of_band",
    "channel_id",
    "prefetch_size",
    "cluster_id",
];

/// The payload of a method whose reserved fields have their default: nothing, but for the ticket that is given out.
fn payload(signature: Signature, mut given: Vec<Given>) -> Vec<u8> {
    for ((name, _), given) in signature.fields.iter().zip(&mut given) {
        if RESERVED.contains(name) {
            *given = Given { number: u64::from(signature.name == "access.request-ok"), ..Given::default() };
        }
    }
    support::payload(signature, &given)
}

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let [c0, c1] = channel.to_be_bytes();
    let len = (payload.len() as u32).to_be_bytes();
    [&[kind, c0, c1][..], &len, payload, &[0xCE]].concat()
}

fn theirs(bytes: &[u8]) -> AMQPFrame {
    let (rest, frame) = parse_frame(bytes).expect("they take it");
    assert!(rest.is_empty());
    frame
}

fn written_by_them(frame: &AMQPFrame) -> Vec<u8> {
    gen_frame(frame)(WriteContext::from(Vec::new())).expect("they write it").into_inner().0
}

/// Fields and their values, in one notation. What they reserve is left out.
fn fields_of(seen: &str) -> Vec<String> {
    let Some((_, fields)) = seen.split_once('{') else { return Vec::new() };
    let plain = ["ShortString", "LongString", "FieldTable", "(", ")", "}", " "]
        .iter()
        .fold(fields.to_owned(), |text, word| text.replace(word, ""));
    let fields = plain.replace("nowait", "no_wait").replace(",", "\n");
    let is_kept = |line: &&str| !line.is_empty() && !RESERVED.iter().any(|name| line.starts_with(name));
    fields.lines().filter(is_kept).map(str::to_owned).collect()
}

/// Whether a value means the same to both.
fn is_same(ours: Value<'_>, theirs: &AMQPValue) -> bool {
    match (ours, theirs) {
        (Value::Bool(ours), AMQPValue::Boolean(theirs)) => ours == *theirs,
        (Value::I8(ours), AMQPValue::ShortShortInt(theirs)) => ours == *theirs,
        (Value::U8(ours), AMQPValue::ShortShortUInt(theirs)) => ours == *theirs,
        (Value::I16(ours), AMQPValue::ShortInt(theirs)) => ours == *theirs,
        (Value::U16(ours), AMQPValue::ShortUInt(theirs)) => ours == *theirs,
        (Value::I32(ours), AMQPValue::LongInt(theirs)) => ours == *theirs,
        (Value::U32(ours), AMQPValue::LongUInt(theirs)) => ours == *theirs,
        (Value::I64(ours), AMQPValue::LongLongInt(theirs)) => ours == *theirs,
        (Value::F32(ours), AMQPValue::Float(theirs)) => ours.to_bits() == theirs.to_bits(),
        (Value::F64(ours), AMQPValue::Double(theirs)) => ours.to_bits() == theirs.to_bits(),
        (Value::Decimal { scale, value }, AMQPValue::DecimalValue(theirs)) => {
            (scale, value) == (theirs.scale, theirs.value)
        }
        (Value::Time(ours), AMQPValue::Timestamp(theirs)) => ours == *theirs,
        (Value::String(ours), AMQPValue::LongString(theirs)) => ours == theirs.as_bytes(),
        (Value::Bytes(ours), AMQPValue::ByteArray(theirs)) => ours == theirs.as_slice(),
        (Value::Array(ours), AMQPValue::FieldArray(theirs)) => {
            let theirs = theirs.as_slice();
            ours.iter().count() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| is_same(ours, theirs))
        }
        (Value::Table(ours), AMQPValue::FieldTable(theirs)) => is_same_table(ours, theirs),
        (Value::Void, AMQPValue::Void) => true,
        _ => false,
    }
}

fn is_same_table(ours: TableRef<'_>, theirs: &FieldTable) -> bool {
    let same = |((name, ours), (theirs_name, theirs)): ((Short<'_>, Value<'_>), _)| {
        let theirs_name: &amq_protocol::types::ShortString = theirs_name;
        name.text() == Some(theirs_name.as_str()) && is_same(ours, theirs)
    };
    ours.iter().count() == theirs.into_iter().count() && ours.iter().zip(theirs).all(same)
}

fn number() -> impl Strategy<Value = Value<'static>> {
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

/// A table in which names ascend, as bytes.
fn table() -> impl Strategy<Value = Vec<u8>> {
    let names = || btree_map("[a-z]{1,6}", number(), 0..6);
    (names(), names(), vec(number(), 0..6), vec(any::<u8>(), 0..20)).prop_map(
        |(outer, inner, items, bytes)| {
            let entries = |names: &std::collections::BTreeMap<String, Value<'static>>| {
                names.iter().fold(TableBuilder::new(), |table, (name, value)| {
                    table.entry(Short::new(name.as_bytes()).expect("short"), *value)
                })
            };
            let array = items.iter().fold(ArrayBuilder::new(), |array, item| array.item(*item));
            let inner = entries(&inner);
            entries(&outer)
                .entry(Short::literal("~array"), Value::Array(array.view()))
                .entry(Short::literal("~bytes"), Value::Bytes(&bytes))
                .entry(Short::literal("~string"), Value::String(&bytes))
                .entry(Short::literal("~table"), Value::Table(inner.view()))
                .view()
                .as_bytes()
                .to_vec()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_method_means_the_same_to_both((signature, given) in support::method(), channel in any::<u16>()) {
        let bytes = frame(1, channel, &payload(signature, given));
        let theirs = theirs(&bytes);
        prop_assert_eq!(&written_by_them(&theirs), &bytes, "what they write is what we read");
        let frame = Frame::parse(&bytes, 0).expect("a frame").expect("a whole one");
        let method = Method::decode(frame.payload, &Limits::default()).expect("a method");
        let mut ours = Vec::new();
        FrameWriter::new(&mut ours, 0).method(channel, method);
        prop_assert_eq!(&ours, &bytes, "what we write is what they read");
    }

    #[test]
    fn a_field_has_the_same_place_for_both((signature, mut given) in support::method()) {
        // Strings and tables are printed differently when they hold anything but letters.
        for given in &mut given {
            given.table.clear();
            given.text.retain(|c| c.is_ascii_lowercase());
        }
        let payload = payload(signature, given);
        let method = Method::decode(&payload, &Limits::default()).expect("a method");
        let AMQPFrame::Method(_, class) = theirs(&frame(1, 1, &payload)) else {
            panic!("they take a method for something else");
        };
        prop_assert_eq!(fields_of(&format!("{method:?}")), fields_of(&format!("{class:?}")));
    }

    #[test]
    fn a_content_header_means_the_same_to_both(
        headers in option::of(table()),
        texts in proptest::array::uniform5(option::of("[a-zä]{0,20}")),
        octets in any::<(Option<u8>, Option<u8>)>(),
        timestamp in any::<Option<u64>>(),
        body_len in any::<u64>(),
    ) {
        let [content_type, correlation_id, expiration, kind, cluster_id] =
            texts.each_ref().map(|text| text.as_deref().and_then(|text| Short::new(text.as_bytes())));
        let headers = headers.as_deref().map(|bytes| TableRef::check(bytes, &Limits::default()).expect("a table"));
        let fields = Fields {
            content_type,
            headers,
            delivery_mode: octets.0,
            priority: octets.1,
            correlation_id,
            expiration,
            timestamp,
            kind,
            cluster_id,
            ..Fields::default()
        };
        let properties = fields.encode();
        let mut payload = Vec::new();
        ContentHeader { body_len, properties: properties.view() }.encode(&mut payload);
        let bytes = frame(2, 9, &payload);
        let seen = theirs(&bytes);
        prop_assert_eq!(&written_by_them(&seen), &bytes);
        let AMQPFrame::Header(9, header) = seen else { panic!("they take a header for something else") };
        let their = &header.properties;
        prop_assert_eq!(header.body_size, body_len);
        prop_assert_eq!((*their.priority(), *their.delivery_mode()), (fields.priority, fields.delivery_mode));
        prop_assert_eq!(*their.timestamp(), fields.timestamp);
        for (ours, theirs) in [
            (content_type, their.content_type()),
            (correlation_id, their.correlation_id()),
            (expiration, their.expiration()),
            (kind, their.kind()),
            (cluster_id, their.cluster_id()),
        ] {
            prop_assert_eq!(ours.and_then(Short::text), theirs.as_ref().map(|text| text.as_str()));
        }
        match (headers, their.headers()) {
            (Some(ours), Some(theirs)) => prop_assert!(is_same_table(ours, theirs), "{ours:?} {theirs:?}"),
            (ours, theirs) => prop_assert!(ours.is_none() && theirs.is_none()),
        }
    }

    #[test]
    fn a_delivery_is_the_same_frames_for_both(body in vec(any::<u8>(), 0..10_000), tag in any::<u64>()) {
        let deliver = overtake_amqp::method::basic::Deliver {
            consumer_tag: Short::literal("c"),
            delivery_tag: tag,
            ..Default::default()
        };
        let mut ours = Vec::new();
        FrameWriter::new(&mut ours, 4096).content(1, deliver, Default::default(), &body).expect("it fits");
        let (mut rest, mut together, mut anew) = (&ours[..], Vec::new(), Vec::new());
        while !rest.is_empty() {
            let (after, frame) = parse_frame(rest).expect("they take it");
            rest = after;
            anew.extend_from_slice(&written_by_them(&frame));
            if let AMQPFrame::Body(1, piece) = frame {
                together.extend_from_slice(&piece);
            }
        }
        prop_assert_eq!(together, body);
        prop_assert_eq!(anew, ours);
    }
}

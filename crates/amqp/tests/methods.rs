//! Methods, byte by byte, and every one of the grammar with anything in its fields.

mod support;

use std::collections::BTreeSet;

use overtake_amqp::method::{GRAMMAR, basic, connection, queue};
use overtake_amqp::{Method, MethodId, ReplyCode, WireError};
use overtake_properties::{Fault, Limits, Short, ShortText, TableRef};
use proptest::prelude::*;

fn check<'a>(method: impl Into<Method<'a>>, bytes: &'a [u8]) {
    let method = method.into();
    let mut out = Vec::new();
    method.encode(&mut out);
    assert_eq!(out, bytes, "{}", method.name());
    assert_eq!(Method::decode(bytes, &Limits::default()), Ok(method));
}

fn refused(bytes: &[u8], error: WireError, reply: ReplyCode) {
    assert_eq!(Method::decode(bytes, &Limits::default()), Err(error));
    assert_eq!(error.reply(), reply);
}

#[test]
fn methods_have_their_bytes() {
    let publish = basic::Publish {
        exchange: Short::literal("x"),
        routing_key: Short::new(b"\xff").expect("short"),
        immediate: true,
        ..basic::Publish::default()
    };
    check(publish, b"\x00\x3c\x00\x28\x00\x00\x01x\x01\xff\x02");
    check(
        basic::Nack { delivery_tag: 3, multiple: true, requeue: true },
        b"\x00\x3c\x00\x78\0\0\0\0\0\0\0\x03\x03",
    );
    check(
        connection::Tune { channel_max: 2047, frame_max: 131_072, heartbeat: 60 },
        b"\x00\x0a\x00\x1e\x07\xff\0\x02\0\0\0\x3c",
    );
    let arguments = TableRef::check(b"\x0ex-max-priorityI\0\0\0\x0a", &Limits::default()).expect("a table");
    let declare = queue::Declare {
        queue: ShortText::literal("jobs"),
        durable: true,
        no_wait: true,
        arguments,
        ..queue::Declare::default()
    };
    check(declare, b"\x00\x32\x00\x0a\x00\x00\x04jobs\x12\0\0\0\x14\x0ex-max-priorityI\0\0\0\x0a");
    check(connection::CloseOk {}, b"\x00\x0a\x00\x33");
}

#[test]
fn what_is_no_method_is_refused_with_its_code() {
    let unknown = |class, method| WireError::UnknownMethod(MethodId { class, method });
    refused(b"\x00\x3c\x00\x29", unknown(60, 41), ReplyCode::NotImplemented);
    refused(b"\x00\x46\x00\x0a", unknown(70, 10), ReplyCode::NotImplemented);
    refused(b"\x00\x3c\x00", WireError::Truncated, ReplyCode::SyntaxError);
    refused(b"\x00\x0a\x00\x33\x00", WireError::Trailing, ReplyCode::SyntaxError);
    // A queue's name that is no text, and a table that is none.
    refused(b"\x00\x3c\x00\x46\x00\x00\x01\xff\x00", WireError::NotText, ReplyCode::FrameError);
    let broken = b"\x00\x0a\x00\x0b\x00\x00\x00\x03\x01aZ\x05PLAIN\x00\x00\x00\x00\x05en_US";
    refused(broken, WireError::Table(Fault::UnknownType(b'Z')), ReplyCode::SyntaxError);
}

#[test]
fn a_table_before_login_is_not_walked_too_deep() {
    let mut table = Vec::new();
    for _ in 0..5_000 {
        table = [&b"\x00F"[..], &(table.len() as u32).to_be_bytes(), &table].concat();
    }
    let start_ok = connection::StartOk::default();
    let mut bytes = Vec::new();
    Method::from(start_ok).encode(&mut bytes);
    let bytes = [&bytes[..4], &(table.len() as u32).to_be_bytes(), &table, &bytes[8..]].concat();
    refused(&bytes, WireError::Table(Fault::TooDeep), ReplyCode::SyntaxError);
}

#[test]
fn names_and_numbers_are_each_there_once() {
    let names: BTreeSet<_> = GRAMMAR.iter().map(|method| method.name).collect();
    let ids: BTreeSet<_> = GRAMMAR.iter().map(|method| method.id).collect();
    assert_eq!((names.len(), ids.len()), (GRAMMAR.len(), GRAMMAR.len()));
    assert_eq!(GRAMMAR.len(), 66);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_method_comes_back_as_it_was((signature, given) in support::method()) {
        let payload = support::payload(signature, &given);
        let method = Method::decode(&payload, &Limits::default()).expect("a method of the grammar");
        prop_assert_eq!((method.id(), method.name()), (signature.id, signature.name));
        let mut out = Vec::new();
        method.encode(&mut out);
        prop_assert_eq!(&out, &payload);
        out.push(0);
        prop_assert_eq!(Method::decode(&out, &Limits::default()), Err(WireError::Trailing));
        for len in 0..payload.len() {
            let error = Method::decode(&payload[..len], &Limits::default()).expect_err("a part is no method");
            prop_assert_eq!(error, WireError::Truncated);
        }
    }
}

//! Methods made from the grammar and not by the encoder, so that the two can be compared.

use overtake_amqp::method::{Domain, GRAMMAR, Signature};
use overtake_properties::{Short, TableBuilder, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// What stands in a field: as many of these bytes as its domain wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) number: u64,
    pub(crate) text: String,
    pub(crate) table: Vec<u8>,
}

/// A method and what stands in its fields.
pub(crate) fn method() -> impl Strategy<Value = (Signature, Vec<Given>)> {
    select(GRAMMAR).prop_flat_map(|signature| (Just(signature), vec(given(), signature.fields.len())))
}

fn given() -> impl Strategy<Value = Given> {
    let names = proptest::collection::btree_map("[a-z]{1,5}", (0..6_u8, any::<u32>()), 0..4);
    (any::<u64>(), "[a-zä]{0,12}", names).prop_map(|(number, text, names)| {
        let table = names.iter().fold(TableBuilder::new(), |table, (name, (form, number))| {
            table.entry(Short::new(name.as_bytes()).expect("short"), value(*form, *number, name))
        });
        Given { number, text, table: table.view().as_bytes().to_vec() }
    })
}

fn value(form: u8, number: u32, text: &str) -> Value<'_> {
    match form {
        0 => Value::Bool(number.is_multiple_of(2)),
        1 => Value::I32(number as i32),
        2 => Value::I64(i64::from(number)),
        3 => Value::String(text.as_bytes()),
        4 => Value::U8(number as u8),
        _ => Value::Void,
    }
}

/// The payload of a method frame: numbers, then the fields by their domains (4.2.5).
pub(crate) fn payload(signature: Signature, given: &[Given]) -> Vec<u8> {
    let mut out = [signature.id.class.to_be_bytes(), signature.id.method.to_be_bytes()].concat();
    let mut bits = 0;
    for ((_, domain), given) in signature.fields.iter().zip(given) {
        if *domain == Domain::Bit {
            if bits % 8 == 0 {
                out.push(0);
            }
            *out.last_mut().expect("an octet of bits") |= u8::from(given.number % 2 == 1) << (bits % 8);
            bits += 1;
            continue;
        }
        bits = 0;
        match domain {
            Domain::Bit => {}
            Domain::Octet => out.push(given.number as u8),
            Domain::Short => out.extend_from_slice(&(given.number as u16).to_be_bytes()),
            Domain::Long => out.extend_from_slice(&(given.number as u32).to_be_bytes()),
            Domain::LongLong => out.extend_from_slice(&given.number.to_be_bytes()),
            Domain::ShortString => {
                out.push(given.text.len() as u8);
                out.extend_from_slice(given.text.as_bytes());
            }
            Domain::LongString => long(&mut out, given.text.as_bytes()),
            Domain::Table => long(&mut out, &given.table),
        }
    }
    out
}

fn long(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

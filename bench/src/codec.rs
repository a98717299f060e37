//! The AMQP codec: from bytes to a method with its content and back, on one core, the same message again and again.
//!
//! Built with the feature `references`, the codec of the client lapin (`amq-protocol`) does the same beside ours.

#[cfg(feature = "references")]
mod lapin;

use std::hint::black_box;
use std::time::Duration;

use overtake_amqp::method::basic::{Ack, Deliver, Publish};
use overtake_amqp::{ContentHeader, Frame, FrameWriter, Method};
use overtake_properties::{Fields, Limits, Properties, Short, Table, TableBuilder, Value};

use crate::Plan;
use crate::reference;
use crate::report::{Row, time};

const FRAME_MAX: u32 = 131_072;
const BODY_LEN: usize = 128;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let count = plan.times(2_000_000);
    let mut rows = Vec::new();
    let mut row = |what: String, work: &dyn Fn() -> Duration| {
        if plan.wants(&what) {
            rows.push(Row::new(what, "messages", count, work()));
        }
    };
    for (name, message) in [("3 properties", Message::plain()), ("16 headers", Message::with_headers())] {
        row(format!("read publish, {name}"), &|| message.read(count));
        #[cfg(feature = "references")]
        row(format!("read publish, {name}: amq-protocol"), &|| lapin::read(&message.publish(), count));
        row(format!("write deliver, {name}"), &|| message.write(count));
        #[cfg(feature = "references")]
        row(format!("write deliver, {name}: amq-protocol"), &|| lapin::write(&message.deliver(), count));
    }
    row("read ack".to_owned(), &|| read_acks(count));
    #[cfg(feature = "references")]
    row("read ack: amq-protocol".to_owned(), &|| lapin::read(&ack(), count));
    if plan.wants("reference") {
        rows.push(reference::memory_copy());
    }
    rows
}

/// A message of 128 bytes.
struct Message {
    properties: Properties,
    body: Vec<u8>,
}

impl Message {
    fn new(headers: Option<&Table>) -> Self {
        let fields = Fields {
            content_type: Some(Short::literal("application/json")),
            headers: headers.map(Table::view),
            delivery_mode: Some(2),
            priority: Some(5),
            ..Fields::default()
        };
        Self { properties: fields.encode(), body: vec![b'x'; BODY_LEN] }
    }

    fn plain() -> Self {
        Self::new(None)
    }

    /// Headers as task queues send them: mostly text, some numbers, some of nothing.
    fn with_headers() -> Self {
        let texts = ["lang", "task", "id", "group", "argsrepr", "kwargsrepr", "origin", "root_id"];
        let text =
            |table: TableBuilder, name| table.entry(Short::literal(name), Value::String(b"app.tasks.resize"));
        let table = texts.into_iter().fold(TableBuilder::new(), text);
        let table = ["shadow", "eta", "expires", "parent_id"]
            .into_iter()
            .fold(table, |table, name| table.entry(Short::literal(name), Value::Void));
        let table = ["retries", "stamps", "ignore_result", "timelimit"]
            .into_iter()
            .fold(table, |table, name| table.entry(Short::literal(name), Value::I64(3)));
        Self::new(Some(&table.finish()))
    }

    fn publish(&self) -> Vec<u8> {
        let publish = Publish { routing_key: Short::literal("jobs"), ..Publish::default() };
        let mut out = Vec::new();
        let mut frames = FrameWriter::new(&mut out, FRAME_MAX);
        frames.content(1, publish, self.properties.view(), &self.body).expect("it fits");
        out
    }

    #[cfg(feature = "references")]
    fn deliver(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_once(7, &mut out);
        out
    }

    fn write_once(&self, delivery_tag: u64, out: &mut Vec<u8>) {
        let deliver = Deliver {
            consumer_tag: Short::literal("ctag1.5d0b"),
            delivery_tag,
            redelivered: false,
            exchange: Short::literal(""),
            routing_key: Short::literal("jobs"),
        };
        let mut frames = FrameWriter::new(out, FRAME_MAX);
        frames.content(1, deliver, self.properties.view(), &self.body).expect("it fits");
    }

    fn read(&self, count: usize) -> Duration {
        let bytes = self.publish();
        time(|| {
            for _ in 0..count {
                read_publish(black_box(&bytes));
            }
        })
    }

    /// Into one buffer, sent off after 64 KiB.
    fn write(&self, count: usize) -> Duration {
        let mut out = Vec::with_capacity(128 << 10);
        time(|| {
            for tag in 0..count {
                self.write_once(tag as u64, &mut out);
                if out.len() > 64 << 10 {
                    black_box(&mut out).clear();
                }
            }
        })
    }
}

/// As a broker does: three frames, their fields, and of the properties what decides where the message goes.
fn read_publish(mut bytes: &[u8]) {
    let limits = Limits::default();
    let mut frame = || {
        let frame = Frame::parse(bytes, FRAME_MAX).expect("a frame").expect("a whole one");
        bytes = &bytes[frame.len()..];
        frame
    };
    let method = Method::decode(frame().payload, &limits).expect("a method");
    let header = ContentHeader::decode(frame().payload, &limits).expect("a header");
    let properties = header.properties;
    black_box((properties.priority(), properties.expiration(), properties.delivery_mode()));
    black_box((method, header.body_len, frame().payload));
}

fn ack() -> Vec<u8> {
    let mut out = Vec::new();
    FrameWriter::new(&mut out, FRAME_MAX).method(1, Ack { delivery_tag: 7, multiple: false });
    out
}

fn read_acks(count: usize) -> Duration {
    let (bytes, limits) = (ack(), Limits::default());
    time(|| {
        for _ in 0..count {
            let frame = Frame::parse(black_box(&bytes), FRAME_MAX).expect("a frame").expect("a whole one");
            black_box(Method::decode(frame.payload, &limits).expect("a method"));
        }
    })
}

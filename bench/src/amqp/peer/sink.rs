//! A broker that does as good as nothing, to know how fast the generator alone is: what is published is counted and
//! confirmed, and as many messages are made up when somebody consumes.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use overtake_amqp::method::{basic, channel, confirm, connection, queue};
use overtake_amqp::{Frame, FrameKind, FrameWriter, Method, PROTOCOL_HEADER};
use overtake_properties::{Fields, Limits, Properties, Short};

use super::{Broker, Dial};
use crate::amqp::LEVELS;
use crate::amqp::letter::Post;
use crate::amqp::wire::amqp::Address;
use crate::amqp::wire::input::Input;

const FRAME_MAX: u32 = 131_072;

pub(super) fn start() -> Result<Broker> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let socket = listener.local_addr()?;
    let waiting = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let waiting = Arc::clone(&waiting);
            std::thread::spawn(move || Serving::new(socket, waiting).run());
        }
    });
    let version = "this program".to_owned();
    Ok(Broker { dial: Dial::Amqp(Address::guest(socket)), http: None, version, process: None, _dir: None })
}

/// One connection.
struct Serving {
    socket: TcpStream,
    out: Vec<u8>,
    /// How many were published and not consumed, by anybody.
    waiting: Arc<AtomicU64>,
    published: u64,
    /// What there is for the consumer of this connection.
    stock: Option<Stock>,
    /// How many messages it may still get before it acknowledges any.
    free: u64,
}

impl Serving {
    fn new(socket: TcpStream, waiting: Arc<AtomicU64>) -> Self {
        Self { socket, out: Vec::new(), waiting, published: 0, stock: None, free: 0 }
    }

    /// Until whoever is there hangs up.
    fn run(mut self) {
        let mut input = Input::new();
        let mut greeted = false;
        while input.fill(&mut self.socket).is_ok() {
            if !greeted && input.unread().len() >= PROTOCOL_HEADER.len() {
                input.consume(PROTOCOL_HEADER.len());
                self.say(0, connection::Start { version_minor: 9, ..connection::Start::default() });
                greeted = true;
            }
            let before = self.published;
            while let Some(frame) = Frame::parse(input.unread(), FRAME_MAX).expect("frames of our own") {
                match frame.kind {
                    FrameKind::Method => self.hear(frame),
                    FrameKind::Body => self.published += 1,
                    _ => {}
                }
                let len = frame.len();
                input.consume(len);
            }
            if self.published > before {
                self.waiting.fetch_add(self.published - before, Ordering::Relaxed);
                self.say(1, basic::Ack { delivery_tag: self.published, multiple: true });
            }
            self.deliver();
            if self.socket.write_all(&self.out).is_err() {
                return;
            }
            self.out.clear();
        }
    }

    fn say<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        FrameWriter::new(&mut self.out, FRAME_MAX).method(channel, method);
    }

    fn hear(&mut self, frame: Frame<'_>) {
        match Method::decode(frame.payload, &Limits::default()).expect("a method of our own") {
            Method::BasicPublish(_) => {}
            Method::BasicAck(_) => self.free += 1,
            Method::ConnectionStartOk(_) => {
                self.say(0, connection::Tune { channel_max: 1, frame_max: FRAME_MAX, heartbeat: 0 });
            }
            Method::ConnectionOpen(_) => self.say(0, connection::OpenOk::default()),
            Method::ConnectionClose(_) => self.say(0, connection::CloseOk {}),
            Method::ChannelOpen(_) => self.say(frame.channel, channel::OpenOk::default()),
            Method::ConfirmSelect(_) => self.say(frame.channel, confirm::SelectOk {}),
            Method::QueueDeclare(declare) => {
                self.say(frame.channel, queue::DeclareOk { queue: declare.queue, ..Default::default() });
            }
            Method::BasicQos(qos) => {
                self.free = qos.prefetch_count.into();
                self.say(frame.channel, basic::QosOk {});
            }
            Method::BasicConsume(_) => {
                self.say(frame.channel, basic::ConsumeOk::default());
                self.stock = Some(Stock::new(self.waiting.swap(0, Ordering::Relaxed)));
            }
            _ => {}
        }
    }

    fn deliver(&mut self) {
        let Some(stock) = &mut self.stock else { return };
        while self.free > 0 && stock.write_next(&mut self.out) {
            self.free -= 1;
        }
    }
}

/// Messages in the order in which a priority queue would have them.
struct Stock {
    post: Post,
    delivered: u64,
    count: u64,
    properties: Vec<Properties>,
}

impl Stock {
    fn new(count: u64) -> Self {
        let of_level =
            |level| Fields { delivery_mode: Some(2), priority: Some(level), ..Fields::default() }.encode();
        Self { post: Post::new(0), delivered: 0, count, properties: (0..LEVELS).map(of_level).collect() }
    }

    /// Whether there was another.
    fn write_next(&mut self, out: &mut Vec<u8>) -> bool {
        if self.delivered == self.count {
            return false;
        }
        let level = LEVELS - 1 - (self.delivered * u64::from(LEVELS) / self.count) as u8;
        self.delivered += 1;
        let deliver = basic::Deliver {
            consumer_tag: Short::literal("c"),
            delivery_tag: self.delivered,
            redelivered: false,
            exchange: Short::literal(""),
            routing_key: Short::literal("bench"),
        };
        let properties = self.properties[usize::from(level)].view();
        let body = self.post.write(level);
        FrameWriter::new(out, FRAME_MAX).content(1, deliver, properties, body).expect("it fits");
        true
    }
}

//! What a client says, a line each. What is asked so must be done; [`Client::refused`] is for what must not.

use overtake_amqp::FrameWriter;
use overtake_amqp::method::{basic, confirm, exchange, queue, tx};
use overtake_properties::Fields;

use crate::client::{Client, TAG};
use crate::words::{Args, short, table, text};

/// A body, and its priority if it has one: `a:5`.
fn parts(message: &str) -> (&str, Option<u8>) {
    match message.split_once(':') {
        Some((body, priority)) => (body, Some(priority.parse().expect("a priority"))),
        None => (message, None),
    }
}

impl Client {
    // ---- exchanges and queues ----

    /// A durable queue.
    pub(crate) fn declare(&mut self, queue: &str, arguments: Args<'_>) -> String {
        self.declare_as(queue, "durable", arguments)
    }

    /// With `durable`, `exclusive`, `auto-delete`, `passive` as they are wanted.
    pub(crate) fn declare_as(&mut self, queue: &str, flags: &str, arguments: Args<'_>) -> String {
        self.ask(queue::Declare {
            ticket: 0,
            queue: text(queue),
            passive: flags.contains("passive"),
            durable: flags.contains("durable"),
            exclusive: flags.contains("exclusive"),
            auto_delete: flags.contains("auto-delete"),
            no_wait: false,
            arguments: table(arguments).view(),
        })
    }

    /// A durable exchange.
    pub(crate) fn exchange(&mut self, name: &str, kind: &str, arguments: Args<'_>) {
        self.exchange_as(name, kind, "durable", arguments);
    }

    /// With `durable`, `auto-delete`, `internal`, `passive` as they are wanted.
    pub(crate) fn exchange_as(&mut self, name: &str, kind: &str, flags: &str, arguments: Args<'_>) {
        self.ask(exchange::Declare {
            ticket: 0,
            exchange: text(name),
            kind: text(kind),
            passive: flags.contains("passive"),
            durable: flags.contains("durable"),
            auto_delete: flags.contains("auto-delete"),
            internal: flags.contains("internal"),
            no_wait: false,
            arguments: table(arguments).view(),
        });
    }

    pub(crate) fn bind(&mut self, queue: &str, exchange: &str, key: &str, arguments: Args<'_>) {
        self.ask(queue::Bind {
            ticket: 0,
            queue: text(queue),
            exchange: text(exchange),
            routing_key: text(key),
            no_wait: false,
            arguments: table(arguments).view(),
        });
    }

    pub(crate) fn unbind(&mut self, queue: &str, exchange: &str, key: &str, arguments: Args<'_>) {
        self.ask(queue::Unbind {
            ticket: 0,
            queue: text(queue),
            exchange: text(exchange),
            routing_key: text(key),
            arguments: table(arguments).view(),
        });
    }

    pub(crate) fn bind_exchange(&mut self, to: &str, from: &str, key: &str) {
        self.ask(exchange::Bind {
            ticket: 0,
            destination: text(to),
            source: text(from),
            routing_key: text(key),
            no_wait: false,
            arguments: table(&[]).view(),
        });
    }

    pub(crate) fn unbind_exchange(&mut self, to: &str, from: &str, key: &str) {
        self.ask(exchange::Unbind {
            ticket: 0,
            destination: text(to),
            source: text(from),
            routing_key: text(key),
            no_wait: false,
            arguments: table(&[]).view(),
        });
    }

    /// With `if-unused` as it is wanted.
    pub(crate) fn delete_exchange(&mut self, name: &str, flags: &str) {
        let if_unused = flags.contains("if-unused");
        self.ask(exchange::Delete { ticket: 0, exchange: text(name), if_unused, no_wait: false });
    }

    /// With `if-unused`, `if-empty` as they are wanted. Answers how many messages go with it.
    pub(crate) fn delete(&mut self, queue: &str, flags: &str) -> String {
        self.ask(queue::Delete {
            ticket: 0,
            queue: text(queue),
            if_unused: flags.contains("if-unused"),
            if_empty: flags.contains("if-empty"),
            no_wait: false,
        })
    }

    /// Answers how many messages are gone.
    pub(crate) fn purge(&mut self, queue: &str) -> String {
        self.ask(queue::Purge { ticket: 0, queue: text(queue), no_wait: false })
    }

    // ---- messages in ----

    /// Publishes to a queue by its name, one by one: `a:5 b:9 c`.
    pub(crate) fn publish(&mut self, queue: &str, messages: &str) {
        for message in messages.split_whitespace() {
            let (body, priority) = parts(message);
            self.send("", queue, Fields { priority, ..Fields::default() }, body);
        }
    }

    /// Publishes to an exchange by a key.
    pub(crate) fn route(&mut self, exchange: &str, key: &str, body: &str) {
        self.send(exchange, key, Fields::default(), body);
    }

    /// With these headers.
    pub(crate) fn send_with(&mut self, exchange: &str, key: &str, headers: Args<'_>, body: &str) {
        let headers = table(headers);
        self.send(exchange, key, Fields { headers: Some(headers.view()), ..Fields::default() }, body);
    }

    /// With these properties.
    pub(crate) fn send(&mut self, exchange: &str, key: &str, fields: Fields<'_>, body: &str) {
        self.send_as(exchange, key, "", fields, body);
    }

    /// With `mandatory` and `immediate` as they are wanted.
    pub(crate) fn send_as(&mut self, exchange: &str, key: &str, flags: &str, fields: Fields<'_>, body: &str) {
        let publish = basic::Publish {
            ticket: 0,
            exchange: short(exchange),
            routing_key: short(key),
            mandatory: flags.contains("mandatory"),
            immediate: flags.contains("immediate"),
        };
        self.content(publish, fields, body);
    }

    pub(crate) fn content(&mut self, publish: basic::Publish<'_>, fields: Fields<'_>, body: &str) {
        let mut frames = Vec::new();
        FrameWriter::new(&mut frames, 131_072)
            .content(self.channel, publish, fields.encode().view(), body.as_bytes())
            .expect("the properties fit");
        self.bytes(&frames);
    }

    pub(crate) fn confirm(&mut self) {
        assert_eq!(self.ask(confirm::Select { no_wait: false }), "confirm.select-ok");
    }

    // ---- messages out ----

    pub(crate) fn prefetch(&mut self, prefetch_count: u16) {
        self.ask(basic::Qos { prefetch_size: 0, prefetch_count, global: false });
    }

    /// A consumer.
    pub(crate) fn consume(&mut self, queue: &str) {
        self.consume_as(TAG, queue, "", &[]);
    }

    /// With `no-ack`, `exclusive` as they are wanted. Answers its tag.
    pub(crate) fn consume_as(&mut self, tag: &str, queue: &str, flags: &str, arguments: Args<'_>) -> String {
        self.ask(basic::Consume {
            ticket: 0,
            queue: text(queue),
            consumer_tag: text(tag),
            no_local: false,
            no_ack: flags.contains("no-ack"),
            exclusive: flags.contains("exclusive"),
            no_wait: false,
            arguments: table(arguments).view(),
        })
    }

    pub(crate) fn cancel(&mut self, tag: &str) {
        self.ask(basic::Cancel { consumer_tag: text(tag), no_wait: false });
    }

    /// The message that goes next, or `empty`.
    pub(crate) fn get(&mut self, queue: &str) -> String {
        self.ask(basic::Get { ticket: 0, queue: text(queue), no_ack: false })
    }

    /// All that is there, settled as it comes: `b a`.
    pub(crate) fn take_all(&mut self, queue: &str) -> String {
        let mut all = Vec::new();
        loop {
            match self.ask(basic::Get { ticket: 0, queue: text(queue), no_ack: true }) {
                message if message == "empty" => return all.join(" "),
                message => all.push(message),
            }
        }
    }

    /// Settles what came last with this body, on the channel on which it came.
    pub(crate) fn ack(&mut self, body: &str) {
        let (channel, delivery_tag) = self.place(body);
        self.tell_on(channel, basic::Ack { delivery_tag, multiple: false });
    }

    /// Puts it back.
    pub(crate) fn put_back(&mut self, body: &str) {
        let (channel, delivery_tag) = self.place(body);
        self.tell_on(channel, basic::Nack { delivery_tag, multiple: false, requeue: true });
    }

    /// Lets it die.
    pub(crate) fn reject(&mut self, body: &str) {
        let (channel, delivery_tag) = self.place(body);
        self.tell_on(channel, basic::Reject { delivery_tag, requeue: false });
    }

    fn place(&self, body: &str) -> (u16, u64) {
        let letter = self.letter(body);
        (letter.channel, letter.delivery_tag)
    }

    // ---- transactions ----

    pub(crate) fn begin(&mut self) {
        assert_eq!(self.ask(tx::Select {}), "tx.select-ok");
    }

    pub(crate) fn commit(&mut self) {
        self.ask(tx::Commit {});
    }

    pub(crate) fn roll_back(&mut self) {
        self.ask(tx::Rollback {});
    }
}

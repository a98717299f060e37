//! Queues of clients that speak AMQP: what of one name is nearly always declared the same.

use overtake_amqp::method::{basic, queue};
use overtake_lane::VhostId;
use overtake_properties::{Short, ShortText, Table, TableBuilder, Value};

use super::channel::{Expect, Queue, Taking};
use super::wire::Wire;
use crate::rng::Rng;
use crate::world::World;

/// What their names begin with.
const PREFIX: char = 'a';
/// So many there are.
const QUEUES: u64 = 3;

/// What a queue is declared with.
struct Declared {
    durable: bool,
    exclusive: bool,
    auto_delete: bool,
    arguments: Table,
}

impl Declared {
    fn of(seed: u64, name: &str) -> Self {
        let rng = &mut Rng::new(seed, name);
        let number = |value: u64| Value::I64(value as i64);
        let mut table = TableBuilder::new();
        let mut entry = |name: &'static str, value: Value<'_>| {
            table = std::mem::take(&mut table).entry(Short::literal(name), value);
        };
        match rng.below(6) {
            0 => {}
            1 => entry("x-max-priority", number(3)),
            2 => entry("x-max-priority", number(255)),
            3 => entry("x-scheme", Value::String(b"ten-level")),
            _ => entry("x-max-priority", number(9)),
        }
        for (one_in, name, values) in [
            (4, "x-consumer-timeout", &[15, 60, 400][..]),
            (6, "x-max-length", &[1, 5, 20]),
            (5, "x-delivery-limit", &[0, 1, 3]),
            (6, "x-message-ttl", &[0, 20, 500]),
            (8, "x-expires", &[30, 400, 3_000]),
            (6, "x-max-active", &[1, 3]),
        ] {
            if rng.once_in(one_in) {
                entry(name, number(rng.one_of(values)));
            }
        }
        if rng.once_in(5) {
            entry("x-single-active-consumer", Value::Bool(true));
        }
        if rng.once_in(4) {
            entry("x-overflow", Value::String(rng.one_of(&[&b"reject-publish"[..], b"drop-head"])));
        }
        if rng.once_in(4) {
            let to = format!("{PREFIX}{}", rng.below(QUEUES));
            entry("x-dead-letter-exchange", Value::String(b""));
            entry("x-dead-letter-routing-key", Value::String(to.as_bytes()));
        }
        if rng.once_in(8) {
            entry("x-last-value", Value::String(b"key"));
        }
        Self {
            durable: !rng.once_in(4),
            exclusive: rng.once_in(5),
            auto_delete: rng.once_in(4),
            arguments: table.finish(),
        }
    }
}

impl Queue {
    /// Whether only those who speak AMQP know of it.
    pub(super) fn is_ours(&self) -> bool {
        self.name.starts_with(PREFIX)
    }
}

impl World {
    /// A queue of their own, mostly.
    pub(super) fn some_amqp_queue(&mut self) -> String {
        let rng = &mut self.chance.amqp;
        if rng.once_in(6) {
            return rng.one_of(&self.names.queues).to_string();
        }
        own(rng)
    }

    fn known(&self, name: String) -> Queue {
        let id = self.audit.named(VhostId::DEFAULT, &name).map(|(id, _)| id);
        Queue { name, id }
    }

    pub(super) fn declare(&mut self, wire: &mut Wire, number: u16) {
        let name = own(&mut self.chance.amqp);
        let other = if self.chance.amqp.once_in(40) { 1 } else { 0 };
        let Declared { durable, exclusive, auto_delete, arguments } =
            Declared::of(self.options.seed ^ other, &name);
        let passive = self.chance.amqp.once_in(10);
        wire.say(
            number,
            queue::Declare {
                ticket: 0,
                queue: ShortText::cut(&name),
                passive,
                durable,
                exclusive,
                auto_delete,
                no_wait: false,
                arguments: arguments.view(),
            },
        );
        wire.side.channels.get_mut(&number).expect("it is open").expect(Expect::Declare);
    }

    /// Ties a queue to an exchange of other clients, empties one, or deletes one.
    pub(super) fn arranges(&mut self, wire: &mut Wire, number: u16) {
        let name = own(&mut self.chance.amqp);
        let queue = ShortText::cut(&name);
        let rng = &mut self.chance.amqp;
        let expect = match rng.below(6) {
            0..=2 => {
                let exchanges = &self.names.exchanges;
                let exchange = if exchanges.is_empty() { "amq.topic".into() } else { rng.one_of(exchanges) };
                let (exchange, key) = (ShortText::cut(&exchange), crate::draw::pattern(rng));
                let routing_key = ShortText::cut(&key);
                let arguments = overtake_properties::TableRef::EMPTY;
                wire.say(
                    number,
                    queue::Bind { ticket: 0, queue, exchange, routing_key, no_wait: false, arguments },
                );
                Expect::Bind
            }
            3 | 4 => {
                wire.say(number, queue::Purge { ticket: 0, queue, no_wait: false });
                Expect::Purge
            }
            _ => {
                let (if_unused, if_empty) = (rng.once_in(2), rng.once_in(3));
                wire.say(number, queue::Delete { ticket: 0, queue, if_unused, if_empty, no_wait: false });
                Expect::Delete
            }
        };
        wire.side.channels.get_mut(&number).expect("it is open").expect(expect);
    }

    // ---- taking ----

    pub(super) fn consume(&mut self, wire: &mut Wire, number: u16) {
        let name = self.some_amqp_queue();
        let queue = self.known(name);
        let rng = &mut self.chance.amqp;
        let channel = wire.side.channels.get_mut(&number).expect("it is open");
        let tag = format!("t{}", channel.next_tag);
        channel.next_tag += 1;
        let (no_ack, exclusive) = (rng.once_in(5), rng.once_in(15));
        let is_shared = channel.shared.is_some();
        let mut arguments = TableBuilder::new();
        if rng.once_in(4) {
            let priority = rng.one_of(&[-1, 1, 5]);
            arguments = arguments.entry(Short::literal("x-priority"), Value::I32(priority));
        }
        let has_urgent = !is_shared && !no_ack && channel.prefetch > 0 && rng.once_in(5);
        let extra = if has_urgent { rng.within(1, 2) as u16 } else { 0 };
        if has_urgent {
            let urgent = TableBuilder::new()
                .entry(Short::literal("from"), Value::I32(rng.below(4) as i32))
                .entry(Short::literal("messages"), Value::I32(extra.into()));
            arguments = arguments.entry(Short::literal("x-urgent-credit"), Value::Table(urgent.view()));
        }
        let prefetch = channel.prefetch;
        let taking = Taking { queue: queue.clone(), no_ack, prefetch, extra, is_shared, is_leaving: false };
        channel.takers.insert(tag.clone(), taking);
        channel.expect(Expect::Consume(tag.clone()));
        wire.say(
            number,
            basic::Consume {
                ticket: 0,
                queue: ShortText::cut(&queue.name),
                consumer_tag: ShortText::cut(&tag),
                no_local: false,
                no_ack,
                exclusive,
                no_wait: false,
                arguments: arguments.view(),
            },
        );
    }

    pub(super) fn cancel(&mut self, wire: &mut Wire, number: u16) {
        let channel = wire.side.channels.get_mut(&number).expect("it is open");
        let tags: Vec<String> = channel
            .takers
            .iter()
            .filter(|(_, taking)| !taking.is_leaving)
            .map(|(tag, _)| tag.clone())
            .collect();
        if tags.is_empty() {
            return;
        }
        let tag = self.chance.amqp.one_of(&tags);
        channel.leaves(&tag);
        channel.expect(Expect::Cancel(tag.clone()));
        wire.say(number, basic::Cancel { consumer_tag: ShortText::cut(&tag), no_wait: false });
    }

    pub(super) fn get(&mut self, wire: &mut Wire, number: u16) {
        let name = self.some_amqp_queue();
        let queue = self.known(name);
        let no_ack = self.chance.amqp.once_in(4);
        let name = queue.name.clone();
        let channel = wire.side.channels.get_mut(&number).expect("it is open");
        channel.expect(Expect::Get { no_ack, queue });
        wire.say(number, basic::Get { ticket: 0, queue: ShortText::cut(&name), no_ack });
    }

    pub(super) fn limit(&mut self, wire: &mut Wire, number: u16) {
        let rng = &mut self.chance.amqp;
        let channel = wire.side.channels.get_mut(&number).expect("it is open");
        let (prefetch_count, global) = (rng.one_of(&[0, 1, 1, 2, 5, 30]), rng.once_in(4));
        if global {
            let most = channel.shared.map_or(prefetch_count, |before| match (before, prefetch_count) {
                (0, _) | (_, 0) => 0,
                (before, now) => before.max(now),
            });
            channel.shared = Some(most);
        } else {
            channel.prefetch = prefetch_count;
        }
        channel.expect(Expect::Qos);
        wire.say(number, basic::Qos { prefetch_size: 0, prefetch_count, global });
    }
}

fn own(rng: &mut Rng) -> String {
    format!("{PREFIX}{}", rng.below(QUEUES))
}

//! What a client that speaks AMQP does when it acts: mostly several things at once, without waiting for the answers.

use overtake_amqp::FrameWriter;
use overtake_amqp::method::{basic, channel as wire_channel, confirm, connection, tx};
use overtake_engine::NewMessage;
use overtake_lane::VhostId;
use overtake_properties::{Fields, Short, ShortText};

use super::channel::{Channel, Expect, Mode, Queue, Sent};
use super::letters;
use super::side::Stage;
use super::wire::Wire;
use crate::book::Letter;
use crate::failure::Checked;
use crate::life::Life;
use crate::world::{Event, World};

/// Channels that a client has open at most.
const CHANNELS: u16 = 2;
/// Publishes that are not confirmed, at most.
const UNCONFIRMED_MAX: usize = 12;
/// Consumers of a channel, at most.
const TAKERS_MAX: usize = 2;

impl World {
    /// A client does something, and will again.
    pub(crate) fn speak(&mut self, at: usize) -> Checked {
        if self.is_calm {
            return Ok(());
        }
        self.acts += 1;
        let after = self.chance.amqp.heavy(self.plan.pace_us);
        self.at(after, Event::Speak(at));
        let Some(session) = self.peers.all[at].wire else {
            if self.life.is_some() {
                self.connect(at);
            }
            return Ok(());
        };
        let mut wire = self.peers.wires.remove(&session).expect("a peer's wire is there");
        if wire.side.stage == Stage::Running {
            for _ in 0..self.chance.amqp.within(1, 4) {
                self.says_something(&mut wire, at);
            }
            self.beats(&mut wire);
        }
        let lag_us = wire.habits.lag_us;
        self.peers.wires.insert(session, wire);
        self.wake(session, lag_us);
        Ok(())
    }

    /// A sign of life, when nothing was said for long.
    fn beats(&mut self, wire: &mut Wire) {
        let interval_us = u64::from(wire.habits.heartbeat_s) * 500_000;
        if !wire.up.is_empty() {
            wire.side.said_at = self.now_us;
        } else if interval_us > 0 && self.now_us - wire.side.said_at >= interval_us {
            let frame_max = wire.side.frame_max;
            FrameWriter::new(&mut wire.up, frame_max).heartbeat();
            wire.side.said_at = self.now_us;
        }
    }

    fn says_something(&mut self, wire: &mut Wire, at: usize) {
        if wire.side.stage != Stage::Running {
            return;
        }
        let number = 1 + self.chance.amqp.below(CHANNELS.into()) as u16;
        match wire.side.channels.get(&number) {
            None => return self.open(wire, number),
            Some(channel) if channel.is_closing => return,
            Some(_) => {}
        }
        let channel = &wire.side.channels[&number];
        let (mode, takers) = (channel.mode, channel.takers.len());
        match self.chance.amqp.below(48) {
            0..=16 => self.publishes(wire, number, at),
            17..=28 => self.settle(wire, number),
            29..=32 if takers < TAKERS_MAX => self.consume(wire, number),
            29..=36 => self.get(wire, number),
            37 | 38 => self.declare(wire, number),
            39 => self.cancel(wire, number),
            40 => self.limit(wire, number),
            41 if self.chance.amqp.once_in(3) => self.arranges(wire, number),
            42 if self.chance.amqp.once_in(3) && mode != Mode::Transacts => Self::recover(wire, number),
            43 if self.chance.amqp.once_in(3) => self.closes(wire, number),
            44 if mode == Mode::Confirms && self.chance.amqp.once_in(2) => self.orders(wire, number),
            _ if mode == Mode::Transacts => self.end_transaction(wire, number),
            _ => self.settle(wire, number),
        }
    }

    // ---- channels ----

    fn open(&mut self, wire: &mut Wire, number: u16) {
        let mut channel = Channel::default();
        channel.expect(Expect::ChannelOpen);
        wire.say(number, wire_channel::Open { out_of_band: ShortText::literal("") });
        match self.chance.amqp.below(8) {
            0 => {}
            1 => {
                channel.mode = Mode::Transacts;
                channel.expect(Expect::TxSelect);
                wire.say(number, tx::Select {});
            }
            _ => {
                channel.mode = Mode::Confirms;
                channel.expect(Expect::ConfirmSelect);
                wire.say(number, confirm::Select { no_wait: false });
            }
        }
        wire.side.channels.insert(number, channel);
        if self.chance.amqp.once_in(2) {
            self.limit(wire, number);
        }
        self.declare(wire, number);
    }

    fn closes(&mut self, wire: &mut Wire, number: u16) {
        if self.chance.amqp.once_in(4) {
            return Self::says_goodbye(wire);
        }
        wire.side.channels.get_mut(&number).expect("it is open").is_closing = true;
        let close = wire_channel::Close {
            reply_code: 200,
            reply_text: ShortText::literal("bye"),
            class_id: 0,
            method_id: 0,
        };
        wire.say(number, close);
    }

    /// The client has had enough of this connection.
    pub(super) fn says_goodbye(wire: &mut Wire) {
        wire.side.stage = Stage::Closing;
        let close = connection::Close {
            reply_code: 200,
            reply_text: ShortText::literal("bye"),
            class_id: 0,
            method_id: 0,
        };
        wire.say(0, close);
    }

    // ---- publishing ----

    fn publishes(&mut self, wire: &mut Wire, number: u16, at: usize) {
        for _ in 0..self.chance.amqp.one_of(&[1, 1, 2, 5]) {
            let channel = &wire.side.channels[&number];
            if channel.unconfirmed.len() >= UNCONFIRMED_MAX
                || channel.transaction.marks.len() >= UNCONFIRMED_MAX
            {
                return;
            }
            let doubts = &mut self.peers.all[at].doubts;
            let message = match doubts.is_empty() || self.chance.amqp.once_in(3) {
                true => self.new_amqp_message(),
                // Where it has an id, it may be found to have arrived; where it has none, it may come twice.
                false => {
                    self.tally.resends += 1;
                    doubts.remove(0)
                }
            };
            self.publish(wire, number, &message);
        }
    }

    fn new_amqp_message(&mut self) -> NewMessage {
        let body_max = self.plan.body_max;
        if self.plan.has_routes && self.chance.routes.once_in(4) {
            let rng = &mut self.chance.routes;
            let path = crate::client::router::path(rng);
            return letters::draw(rng, overtake_engine::ROUTES_EXCHANGE, &path, body_max);
        }
        if !self.names.exchanges.is_empty() && self.chance.amqp.once_in(8) {
            let exchange = self.chance.amqp.one_of(&self.names.exchanges);
            let here = |life: &Life| {
                life.core.broker().topology(VhostId::DEFAULT).map(|all| all.exchange(&exchange).is_some())
            };
            let is_there = |life: &Life| here(life) == Ok(true);
            // One that is not there costs the channel.
            if !self.life.as_ref().is_some_and(is_there) && !self.chance.amqp.once_in(10) {
                return letters::draw(&mut self.chance.amqp, "", "a0", body_max);
            }
            let key = crate::draw::routing_key(&mut self.chance.amqp);
            return letters::draw(&mut self.chance.amqp, &exchange, &key, body_max);
        }
        let queue = self.some_amqp_queue();
        letters::draw(&mut self.chance.amqp, "", &queue, body_max)
    }

    fn publish(&mut self, wire: &mut Wire, number: u16, message: &NewMessage) {
        let mark = self.book.letters.len() as u64;
        let message = letters::stamped(message, mark);
        self.book.letters.push(Letter { message: message.clone() });
        let (exchange, key) = letters::to(&message);
        self.tell(|| {
            let len = message.content.body.len();
            format!("{:?} on {number} publishes m/{mark} to {exchange}/{key}, {len} bytes", wire.session)
        });
        let method = basic::Publish {
            ticket: 0,
            exchange: Short::new(exchange.as_bytes()).expect("names are short"),
            routing_key: Short::new(key.as_bytes()).expect("keys are short"),
            mandatory: self.chance.amqp.once_in(6),
            immediate: false,
        };
        let frame_max = wire.side.frame_max;
        let content = &message.content;
        let mut writer = FrameWriter::new(&mut wire.up, frame_max);
        writer
            .content(number, method, content.properties.view(), &content.body)
            .expect("properties are short");
        wire.note_letter(mark);
        let channel = wire.side.channels.get_mut(&number).expect("it is open");
        match channel.mode {
            Mode::Plain => {}
            Mode::Confirms => channel.sent(Some(message)),
            Mode::Transacts => channel.transaction.marks.push(mark),
        }
        channel.said += 1;
    }

    /// An order about messages that wait.
    fn orders(&mut self, wire: &mut Wire, number: u16) {
        let queue = Queue { name: self.some_amqp_queue(), id: None };
        let rng = &mut self.chance.amqp;
        let id = rng.below(10);
        let (key, body) = match rng.below(3) {
            // Who holds it is not told: so only of queues of which nobody counts what is held.
            0 if !queue.is_ours() => ("remove", format!(r#"{{"queue": "{}", "id": "a{id}"}}"#, queue.name)),
            0 | 1 => {
                ("reprioritise", format!(r#"{{"queue": "{}", "id": "a{id}", "priority": 3}}"#, queue.name))
            }
            _ => {
                let name = &queue.name;
                (
                    "reprioritise",
                    format!(r#"{{"queue": "{name}", "filter": {{"key": "k1"}}, "priority": 2}}"#),
                )
            }
        };
        let method = basic::Publish {
            ticket: 0,
            exchange: Short::literal(overtake_amqp_session::CONTROL_EXCHANGE),
            routing_key: Short::literal(key),
            mandatory: false,
            immediate: false,
        };
        let properties = Fields::default().encode();
        let frame_max = wire.side.frame_max;
        let mut writer = FrameWriter::new(&mut wire.up, frame_max);
        writer.content(number, method, properties.view(), body.as_bytes()).expect("it has no properties");
        let channel = wire.side.channels.get_mut(&number).expect("it is open");
        channel.sent(None);
        channel.said += 1;
    }
}

impl Channel {
    fn sent(&mut self, message: Option<NewMessage>) {
        self.published += 1;
        let said = self.said;
        self.unconfirmed.insert(self.published, Sent { said, message });
    }
}

//! In some worlds exchanges are bound to exchanges, have alternates, delay, and come and go: whoever acts sometimes does that.

use std::sync::Arc;

use overtake_engine::core::Request;
use overtake_engine::{Content, Target};
use overtake_lane::{
    Binding, Command, Destination, ExchangeKind, ExchangeSettings, HashOn, HeaderValue, HeadersMatch,
};

use crate::draw;
use crate::rng::Rng;
use crate::world::World;

impl World {
    /// False: not now, or never in this world.
    pub(super) fn wires(&mut self, at: usize) -> bool {
        if self.plan.wired == 0 || !self.chance.wiring.once_in(4) {
            return false;
        }
        let name = self.some_wired();
        let request = match self.chance.wiring.below(16) {
            0..=2 => self.declares(name),
            3 => {
                let if_unused = self.chance.wiring.once_in(2);
                Request::Do(Command::DeleteExchange { name, if_unused })
            }
            4..=7 => Request::Do(Command::Bind(Box::new(self.some_binding(name)))),
            8 => match self.bound(&name) {
                Some(binding) => Request::Do(Command::Unbind(Box::new(binding))),
                None => return false,
            },
            _ => self.publishes_to(name),
        };
        self.asks(at, request);
        true
    }

    fn some_wired(&mut self) -> Arc<str> {
        format!("w{}", self.chance.wiring.below(self.plan.wired)).into()
    }

    fn declares(&mut self, name: Arc<str>) -> Request {
        let alternate = self.chance.wiring.once_in(3).then(|| self.some_wired());
        // Of one name mostly the same, so that it is found and not refused.
        let rng = &mut Rng::new(self.options.seed, &name);
        let kind = rng.one_of(&[
            ExchangeKind::Direct,
            ExchangeKind::Fanout,
            ExchangeKind::Topic,
            ExchangeKind::Headers,
            ExchangeKind::ConsistentHash,
        ]);
        let settings = ExchangeSettings {
            durable: !rng.once_in(3),
            auto_delete: rng.once_in(3),
            internal: rng.once_in(4),
            delayed: rng.once_in(3),
            alternate: if rng.once_in(2) { alternate } else { None },
            hash_on: if rng.once_in(2) { HashOn::RoutingKey } else { HashOn::Header("n".to_owned()) },
            arguments: vec![7; rng.below(20) as usize],
            kind,
        };
        Request::Do(Command::DeclareExchange { name, settings: Box::new(settings) })
    }

    fn some_binding(&mut self, exchange: Arc<str>) -> Binding {
        let next = self.some_wired();
        let rng = &mut self.chance.wiring;
        let to = if rng.once_in(2) {
            Destination::Queue(rng.one_of(&self.names.queues))
        } else {
            Destination::Exchange(next)
        };
        let key = if rng.once_in(3) { rng.within(1, 3).to_string() } else { draw::pattern(rng) };
        let (name, value) = ("n".to_owned(), HeaderValue::Int(rng.below(3) as i64));
        Binding {
            headers: vec![(name, if rng.once_in(4) { HeaderValue::Void } else { value })],
            matching: rng.one_of(&[HeadersMatch::All, HeadersMatch::AnyWithX]),
            arguments: vec![9; rng.below(2) as usize],
            ..Binding::new(&exchange, to, &key)
        }
    }

    fn bound(&mut self, exchange: &str) -> Option<Binding> {
        let broker = self.life.as_ref()?.core.broker();
        let there = broker.topology(self.here).ok()?.exchange(exchange)?;
        let bindings: Vec<Binding> = there.bindings().cloned().collect();
        (!bindings.is_empty()).then(|| self.chance.wiring.one_of(&bindings))
    }

    fn publishes_to(&mut self, name: Arc<str>) -> Request {
        let rng = &mut self.chance.wiring;
        let mut key = || Arc::from(draw::routing_key(rng));
        let (routing_key, second) = (key(), key());
        let more_keys = if rng.once_in(3) { vec![second] } else { Vec::new() };
        let delay = rng.once_in(2).then(|| rng.one_of(&[-5, 0, 1, 80, 900]));
        let mut message =
            self.new_message(Target::Exchange { name, routing_key, more_keys, mandatory: false });
        if let Some(ms) = delay {
            let content = &message.content;
            let mut headers = content.headers();
            headers.insert("x-delay".to_owned(), HeaderValue::Int(ms));
            message.content = Content::new(content.content_type(), &headers, content.body.clone());
            self.remember(&message);
        }
        Request::Publish { messages: vec![message], settlements: Vec::new() }
    }
}

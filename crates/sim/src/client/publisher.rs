//! Publishers: new messages, and the old ones again when it is in doubt whether they arrived.

use std::sync::Arc;

use bytes::Bytes;
use overtake_engine::core::Request;
use overtake_engine::{Content, NewMessage, Target};
use overtake_lane::{HeaderValue, KEY_WEIGHT_MAX};

use crate::book::Letter;
use crate::draw;
use crate::world::World;

impl World {
    pub(super) fn publisher(&mut self, at: usize) {
        if self.clients[at].open > 8 {
            return;
        }
        if !self.clients[at].doubts.is_empty() && self.rng().below(3) < 2 {
            let message = self.clients[at].doubts.remove(0);
            let messages = vec![self.stamp(message)];
            self.asks(at, Request::Publish { messages, settlements: Vec::new() });
            return;
        }
        let mut messages = self.new_messages();
        let request = match self.goes_untold(&messages) {
            true => Request::PublishOne(Box::new(messages.remove(0))),
            false => Request::Publish { messages, settlements: Vec::new() },
        };
        self.asks(at, request);
    }

    pub(super) fn new_messages(&mut self) -> Vec<NewMessage> {
        if let Some(messages) = self.routed_messages() {
            return messages;
        }
        if let Some(queue) = self.some_forwarded(2) {
            return self.forwarded_messages(&queue);
        }
        if self.plan.large_batches > 0 && self.chance.batches.once_in(self.plan.large_batches) {
            return self.large_batch();
        }
        let exchanges = self.names.exchanges.clone();
        if !exchanges.is_empty() && self.rng().once_in(5) {
            let name = self.rng().one_of(&exchanges);
            let routing_key = draw::routing_key(self.rng()).into();
            let mandatory = self.rng().once_in(2);
            let more_keys = Vec::new();
            return vec![self.new_message(Target::Exchange { name, routing_key, more_keys, mandatory })];
        }
        let count = if self.rng().once_in(4) { self.rng().within(2, 6) } else { 1 };
        (0..count)
            .map(|_| {
                let queue = self.some_queue();
                self.new_message(Target::Queue(queue))
            })
            .collect()
    }

    /// Messages of one size that together take up to as much as a publish may, and now and then a little more.
    fn large_batch(&mut self) -> Vec<NewMessage> {
        let most = self.plan.segment_bytes / 2 + 1_000;
        let bytes = self.chance.batches.below(most);
        let each = self.chance.batches.one_of(&[0, 40, 300, 2_000, 20_000]);
        let count = (bytes / (each + 170)).clamp(1, self.plan.segment_bytes / 1_024);
        let one = |_| {
            let queue = self.some_queue();
            let mut message = self.new_message(Target::Queue(queue));
            message.content.body.truncate(each as usize);
            self.remember(&message);
            message
        };
        (0..count).map(one).collect()
    }

    /// Several at once for an endpoint, some of them soon over: so that its batches are long and something happens behind their first.
    fn forwarded_messages(&mut self, queue: &Arc<str>) -> Vec<NewMessage> {
        let count = self.chance.endpoints.within(1, 8);
        let one = |_| {
            let mut message = self.new_message(Target::Queue(Arc::clone(queue)));
            if self.chance.endpoints.once_in(2) {
                message.ttl_ms = Some(self.chance.endpoints.one_of(&[3, 10, 25, 60]));
                self.remember(&message);
            }
            message
        };
        (0..count).map(one).collect()
    }

    pub(super) fn new_message(&mut self, to: Target) -> NewMessage {
        let scheme = match &to {
            Target::Queue(name) => self.settings_of(name).map(|settings| settings.scheme).unwrap_or_default(),
            Target::Exchange { .. } => overtake_lane::Scheme::TenLevel,
        };
        let body_max = self.plan.body_max;
        let rng = self.rng();
        let priority = if rng.once_in(40) { draw::wrong_priority(rng) } else { draw::priority(rng, scheme) };
        let id = match rng.below(5) {
            0 => Some(format!("id{}", rng.below(12))),
            1 => Some(format!("u{}", rng.next())),
            _ => None,
        };
        let key = (!rng.once_in(3)).then(|| format!("k{}", rng.below(4)));
        let len = match rng.below(60) {
            0 => 15_000,
            1 => 40_000,
            2..=9 => 0,
            _ => rng.below(body_max),
        };
        let fill = rng.next() as u8;
        let headers = [("n".to_owned(), HeaderValue::Int(rng.below(3) as i64))].into();
        // Two thirds of the keys have a weight, one of them as large as may be.
        let weights = [None, Some(1 + u32::from(fill)), Some(KEY_WEIGHT_MAX)];
        let key_weight = key.as_ref().and(weights[usize::from(fill % 3)]);
        let message = NewMessage {
            to,
            priority,
            id,
            key,
            key_weight,
            ttl_ms: rng.once_in(6).then(|| rng.one_of(&[1, 30, 200, 2_000])),
            delay_ms: if rng.once_in(6) { rng.one_of(&[1, 10, 100, 1_500]) } else { 0 },
            content: Content::new(None, &headers, Bytes::from(vec![fill; len as usize])),
            ..NewMessage::default()
        };
        let is_at_once = self.plan.is_deadly && self.chance.deaths.once_in(12);
        self.stamp(NewMessage { ttl_ms: if is_at_once { Some(0) } else { message.ttl_ms }, ..message })
    }

    /// The letter of the last mark says this.
    pub(super) fn remember(&mut self, message: &NewMessage) {
        let letter = self.book.letters.last_mut().expect("a stamped message has a letter");
        letter.message = message.clone();
    }

    /// Gives a message a mark of its own.
    fn stamp(&mut self, mut message: NewMessage) -> NewMessage {
        let mark = self.book.letters.len();
        let Content { ref body, .. } = message.content;
        let mark = format!("m/{mark}");
        message.content = Content::new(Some(&mark), &message.content.headers(), body.clone());
        self.book.letters.push(Letter { message: message.clone() });
        message
    }
}

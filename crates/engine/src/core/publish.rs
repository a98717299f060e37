//! Publishing: content in, copies out.

use std::sync::Arc;

use overtake_lane::{
    Address, Command, Fact, ORIGIN_LEN_MAX, Outcome, Part, Place, Publish, Published, Receipt, Refusal,
    Reply, Time, public_id,
};
use overtake_store::record::{self, Content as Recorded};
use overtake_store::{Lsn, StoreError, Writer};

use super::room::Cost;
use super::{Answer, Core, may_follow};
use crate::api::{Content, NewMessage, PublishedCopy, Refused, Target};
use crate::place::Where;
use crate::routes::ROUTES_EXCHANGE;

/// Bytes of a record beside the content of a message, at most, without its id and key.
pub(super) const MESSAGE_OVERHEAD: usize = 128;
/// Bytes of a record that a settlement takes when its message becomes a dead letter, at most.
const SETTLEMENT_LEN: usize = 1_280;

impl<T> Core<T> {
    pub(super) fn publish(
        &mut self,
        now: Time,
        messages: Vec<NewMessage>,
        settlements: Vec<(Receipt, Outcome)>,
    ) -> Result<Answer, Refused> {
        self.check_size(&messages, settlements.len())?;
        let ids: Vec<Option<String>> = messages.iter().map(|message| message.id.clone()).collect();
        let mut publishes: Vec<Publish> =
            messages.into_iter().map(|message| self.place(now, message)).collect();
        let places: Vec<Place> = publishes.iter().map(|publish| publish.place).collect();
        let is_one = settlements.is_empty() && publishes.len() == 1;
        let command = match publishes.pop() {
            Some(only) if is_one => Command::Publish(only),
            last => {
                publishes.extend(last);
                Command::Transact { publishes, settlements }
            }
        };
        if let Some(tracer) = &mut self.tracer {
            tracer.is_asked(&command);
        }
        let result = self.broker.apply_by(now, self.asking, command, &mut self.step);
        let part = if is_one { Some(Part::Publish(0)) } else { self.step.at_fault };
        self.kept_or_not(&places, result.is_ok());
        match result {
            Ok(Reply::Published(copies)) => {
                Ok(Answer::Copies(copies.iter().map(|copy| self.describe(copy, &ids)).collect()))
            }
            Ok(_) => unreachable!("a publish answers with its copies"),
            Err(refusal) => Err(Refused { refusal, part }),
        }
    }

    /// Records what came of a publish; the contents of one that was refused go.
    fn kept_or_not(&mut self, places: &[Place], is_taken: bool) {
        self.keep(true);
        if !is_taken {
            places.iter().for_each(|place| self.release(*place));
        }
        self.hold_or_go();
    }

    /// One message of which nothing is told but whether it is taken.
    pub(super) fn publish_one(&mut self, now: Time, message: NewMessage) -> Result<Answer, Refused> {
        self.check_size(std::slice::from_ref(&message), 0)?;
        let publish = self.place(now, message);
        let place = publish.place;
        let command = Command::PublishUntold(publish);
        let result = self.broker.apply_by(now, self.asking, command, &mut self.step);
        self.kept_or_not(&[place], result.is_ok());
        match result? {
            Reply::Count(copies) => Ok(Answer::Count(copies)),
            _ => unreachable!("a publish of which nothing is told answers a count"),
        }
    }

    /// Whether these may be published together, and with so many settlements, as far as size and room go.
    fn check_size(&self, messages: &[NewMessage], settlements: usize) -> Result<(), Refused> {
        let Some(cost) = self.cost_of_publish(messages, settlements)? else { return Ok(()) };
        self.check_memory()?;
        Ok(self.check_room_for(cost)?)
    }

    /// How much of the journal a publish takes; `None` when it only settles.
    pub(super) fn cost_of_publish(
        &self,
        messages: &[NewMessage],
        settlements: usize,
    ) -> Result<Option<Cost>, Refused> {
        let texts = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let size = |message: &NewMessage| {
            let Content { route, .. } = &message.content;
            let to = match &message.to {
                Target::Queue(name) => name.len(),
                Target::Exchange { name, routing_key, .. } => name.len() + routing_key.len(),
            };
            let way = to + route.size() + 2 * route.keys.len();
            let numbered = if message.origin.is_some() { ORIGIN_LEN_MAX } else { 0 };
            message.content.size()
                + way
                + texts(&message.id)
                + texts(&message.key)
                + numbered
                + MESSAGE_OVERHEAD
        };
        let len = messages.iter().map(size).sum::<usize>() + settlements * SETTLEMENT_LEN;
        // Half of what fits: copies for several queues, and leases that follow at once, stand in the same record.
        let most = self.writer.record_len_max() / 2;
        if len > most {
            let alone = messages.iter().position(|message| size(message) > most);
            return Err(Refused { refusal: Refusal::TooLargeAtOnce, part: alone.map(Part::Publish) });
        }
        let cost = Cost { bytes: Writer::cost(len), messages: messages.len() as u64 };
        Ok((!messages.is_empty()).then_some(cost))
    }

    /// Keeps the content of a message, and says the rest of it in the words of the model.
    fn place(&mut self, now: Time, message: NewMessage) -> Publish {
        let NewMessage { to, sender, priority, id, origin, key, key_weight, ttl_ms, delay_ms, mut content } =
            message;
        content.ttl_ms = ttl_ms;
        if content.route.keys.is_empty() {
            content.route = to.route();
        }
        let bytes = u32::try_from(content.size()).unwrap_or(u32::MAX);
        let content = Arc::new(content);
        let to = match to {
            Target::Queue(name) => Address::Queue(name),
            Target::Exchange { name, routing_key, more_keys, mandatory } if *name == *ROUTES_EXCHANGE => {
                let paths = [&routing_key].into_iter().chain(&more_keys).map(|path| &**path);
                let copies = self.routes.copies(self.asking.vhost, paths, (&content, &sender, now));
                Address::Copies { copies, mandatory }
            }
            Target::Exchange { name, routing_key, more_keys, mandatory } => {
                let marks = Arc::<Content>::clone(&content);
                Address::Exchange { name, routing_key, more_keys, marks, mandatory }
            }
        };
        let place = self.contents.insert(content, self.chunk());
        let (id, origin, key) = (id.map(Into::into), origin.map(Box::new), key.map(Into::into));
        Publish {
            to,
            priority,
            id,
            origin,
            key,
            key_weight,
            ttl_ms,
            base_ttl_ms: None,
            delay_ms,
            bytes,
            place,
        }
    }

    fn describe(&self, copy: &Published, ids: &[Option<String>]) -> PublishedCopy {
        let queue = self.broker.name(copy.queue).expect("a copy is in a queue");
        let id = public_id(ids[copy.publish].as_deref(), copy.seq);
        let settings = self.broker.settings(self.asking.vhost, queue).expect("a named queue has settings");
        let shown = self.broker.message_at(copy.queue, copy.seq).map(|message| message.priority);
        let unseen = || settings.scheme.show(overtake_lane::Original::Missing, copy.priority);
        PublishedCopy {
            publish: copy.publish,
            queue: Arc::clone(queue),
            id,
            seq: copy.seq,
            priority: shown.unwrap_or_else(unseen),
            duplicate: copy.duplicate,
            position: copy.position,
            position_in_priority: copy.position_in_priority,
        }
    }

    // ---- records ----

    /// Appends facts to the journal: those of a publish or transaction in one record, others in as many as it takes.
    pub(super) fn record(&mut self, facts: &[Fact], atomic: bool) {
        let soft_max = self.writer.record_len_max() / 2;
        let mut last_content: Option<Place> = None;
        let mut record = std::mem::take(&mut self.record);
        let mut must_stay = if atomic { facts.iter().filter(|fact| !may_follow(fact)).count() } else { 0 };
        for fact in facts {
            // Beyond what admission foresees nothing is left but to split.
            if record.len() > if must_stay == 0 { soft_max } else { soft_max / 2 * 3 } {
                self.append(&mut record);
                last_content = None;
            }
            must_stay = must_stay.saturating_sub(usize::from(!may_follow(fact)));
            match fact {
                Fact::Stored { message, .. } if last_content == Some(message.place) => {
                    record::encode(fact, Recorded::Same, &mut record);
                }
                Fact::Stored { message, .. } => {
                    let bytes = self.content_bytes(message.place);
                    record::encode(fact, Recorded::Bytes(&bytes), &mut record);
                    self.scratch = bytes;
                    last_content = Some(message.place);
                }
                _ => record::encode(fact, Recorded::None, &mut record),
            }
        }
        self.append(&mut record);
        self.record = record;
    }

    fn content_bytes(&mut self, place: Place) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        match Where::of(place) {
            Where::Here { slot, .. } => self.contents.encode(slot, &mut bytes),
            Where::Shelf { run, ordinal } => match self.shelf.content(run, ordinal) {
                Some(content) => content.encode(&mut bytes),
                // Rather none at all than another content than was published.
                None => self.shelf.give_up(&format!("message {ordinal} of segment {} cannot be read", run.0)),
            },
        }
        bytes
    }

    fn append(&mut self, record: &mut Vec<u8>) {
        if record.is_empty() {
            return;
        }
        // What was admitted has its room: publishes are checked, settlements reserved, and leases held back before. What
        // time brings about, all of it at once after a long stop, may have to wait for files.
        if self.overdue.is_empty() && self.write(record) {
            record.clear();
        } else {
            self.overdue.push_back(std::mem::take(record));
        }
    }

    /// False when there is no room.
    fn write(&mut self, record: &[u8]) -> bool {
        self.house.room.set(None);
        match self.writer.append(&[record]) {
            Ok(_) => true,
            Err(StoreError::Full) => false,
            Err(error) => panic!("every record is as short as the journal allows: {error}"),
        }
    }

    /// Appends what waited for room.
    pub(super) fn catch_up(&mut self) {
        while let Some(record) = self.overdue.pop_front() {
            if !self.write(&record) {
                return self.overdue.push_front(record);
            }
        }
    }

    /// The chunk at or before the one that the next record is in.
    pub(super) fn chunk(&self) -> u32 {
        self.chunk_of(self.writer.tail())
    }

    pub(super) fn chunk_of(&self, lsn: Lsn) -> u32 {
        u32::try_from(lsn.0 / self.options.segment_bytes).expect("a journal has fewer than 2^31 chunks")
    }

    /// Writes a message once more at the tail, as it is now, so that its old record is no longer needed.
    pub(super) fn carry(&mut self, queue: overtake_lane::QueueId, seq: overtake_lane::Seq) {
        let Some(Fact::Stored { queue, mut message }) = self.broker.stored_fact(queue, seq) else { return };
        let Some(content) = self.find_content(message.place) else { return self.lost.push((queue, seq)) };
        let place = self.contents.insert(content, self.chunk());
        message.place = place;
        let before = self.broker.relocate(queue, seq, place).expect("a message that is stored has a place");
        self.record(&[Fact::Stored { queue, message }], false);
        self.release(before);
        self.house.carried += 1;
    }
}

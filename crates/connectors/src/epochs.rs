//! Under which names receivers know the messages of a queue, so that what comes there again is known, however long ago it came.
//!
//! A message is known by a producer and a sequence ([`Origin`]). The sequence is that of its queue; but sequences are used again where a queue is made
//! anew, or a store is put back from a copy, and then they are those of other messages, which must not be taken for the old ones. So each life of the
//! broker has a name, drawn at random, and begins an **epoch**: what is published from then on is known by that name and the queue's number, which no
//! other queue has in that life. What waited before keeps the name of its own epoch. Invariant: nothing is numbered until the epochs are durable.

use overtake_engine::{Connection, Failure};
use overtake_lane::{MetadataEntry, Origin, QueueId, QueueView, Seq};
use serde::{Deserialize, Serialize};

/// More lives than this begin no epochs while a message of the first waits.
const EPOCHS_MAX: usize = 1_000;

/// What is published from a sequence on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Epoch {
    /// The number of the queue.
    queue: u32,
    /// The first sequence.
    from: u64,
    /// The life of the broker.
    life: String,
}

/// What is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// Nothing below is ever sent again.
    floor: u64,
    /// In order.
    epochs: Vec<Epoch>,
}

/// The epochs of a queue that is sent.
#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    key: String,
    life: String,
    now: Kept,
    durable: Kept,
}

impl Epochs {
    /// Those of a queue as it is now, or is not, in this life of the broker, by what was kept before.
    pub(crate) fn new(key: String, life: &str, kept: Option<&[u8]>, queue: Option<&QueueView>) -> Self {
        let kept: Option<Kept> = kept.and_then(|bytes| serde_json::from_slice(bytes).ok());
        let durable = kept.unwrap_or_default();
        let mut this = Self { key, life: life.to_owned(), now: durable.clone(), durable };
        match queue {
            None => this.now = Kept::default(),
            Some(view) => this.begin(view.queue, view.next_seq),
        }
        this
    }

    fn begin(&mut self, queue: QueueId, next: Seq) {
        self.is_of(queue);
        let all = &mut self.now.epochs;
        // A store that was put back is behind what it was.
        all.retain(|epoch| epoch.from <= next.0);
        self.now.floor = self.now.floor.min(next.0);
        if all.last().is_none_or(|last| last.life != self.life) && all.len() < EPOCHS_MAX {
            all.push(Epoch { queue: queue.0, from: next.0, life: self.life.clone() });
        }
    }

    /// The messages are of this queue. If it is another one than before, its sequences are others.
    pub(crate) fn is_of(&mut self, queue: QueueId) {
        if self.now.epochs.last().is_none_or(|last| last.queue != queue.0) {
            let first = Epoch { queue: queue.0, from: 0, life: self.life.clone() };
            self.now = Kept { floor: 0, epochs: vec![first] };
        }
    }

    /// No message of the queue has a lesser sequence.
    pub(crate) fn raise(&mut self, view: &QueueView) {
        self.is_of(view.queue);
        let (first, all) = (view.first_seq.0, &mut self.now.epochs);
        self.now.floor = self.now.floor.max(first);
        let over = all.iter().skip(1).take_while(|next| next.from <= first).count();
        all.drain(..over);
    }

    /// Makes durable what is not yet.
    ///
    /// # Errors
    /// The engine does not; then nothing is numbered.
    pub(crate) async fn keep(&mut self, engine: &Connection) -> Result<(), Failure> {
        if self.now == self.durable {
            return Ok(());
        }
        let value = serde_json::to_vec(&self.now).expect("numbers and names can be written");
        // It is durable after whatever came before: also that what is below the floor is gone.
        engine.set_metadata(vec![MetadataEntry::set(&self.key, &value)]).await?;
        self.durable = self.now.clone();
        Ok(())
    }

    /// By what a receiver knows a message; `None`: that is not durable yet.
    pub(crate) fn origin(&self, queue: QueueId, seq: Seq) -> Option<Origin> {
        let Kept { floor, epochs } = &self.durable;
        let epoch = epochs.iter().rev().find(|epoch| epoch.from <= seq.0)?;
        let is_known = epochs == &self.now.epochs && epoch.queue == queue.0;
        Origin::new(&format!("{}.{}", epoch.life, epoch.queue), seq.0, *floor).filter(|_| is_known)
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::{Broker, Command, Options, Outcome, Pull, Step, Time, VhostId};

    use super::*;

    /// A queue of so many messages, of which the first are acknowledged.
    fn queue(name: &str, messages: u64, acknowledged: u32, queues_before: u32) -> QueueView {
        let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
        let mut ask = |command| broker.apply(Time(1), command, &mut step).expect("it is taken");
        for before in 0..queues_before {
            ask(Command::declare(format!("before{before}").into(), Box::default()));
        }
        ask(Command::declare(name.into(), Box::default()));
        for _ in 0..messages {
            let to = overtake_lane::Address::Queue(name.into());
            let publish = overtake_lane::Publish {
                to,
                priority: overtake_lane::Given::Missing,
                id: None,
                origin: None,
                key: None,
                key_weight: None,
                ttl_ms: None,
                base_ttl_ms: None,
                delay_ms: 0,
                bytes: 0,
                place: overtake_lane::Place(0),
            };
            ask(Command::Publish(publish));
        }
        if acknowledged > 0 {
            ask(Command::Pull(Pull {
                consumer: overtake_lane::ConsumerId(1),
                queue: name.into(),
                max: acknowledged,
                max_bytes: 0,
                term: overtake_lane::LeaseTerm::OfQueue,
                lanes: overtake_lane::LaneChoice::default(),
                until: Time(1),
            }));
            let receipt = |effect: &overtake_lane::Effect| match effect {
                overtake_lane::Effect::Deliver(delivery) => Some(delivery.receipt),
                _ => None,
            };
            let receipts = step.effects.iter().filter_map(receipt).collect();
            let settle = Command::Settle { receipts, outcome: Outcome::Ack };
            broker.apply(Time(1), settle, &mut step).expect("it is taken");
        }
        broker.view(Time(1), VhostId::DEFAULT, name).expect("it is there")
    }

    impl Epochs {
        /// As it is in the next life of the broker, or another one.
        fn again(&self, life: &str, queue: Option<&QueueView>) -> Self {
            let kept = serde_json::to_vec(&self.durable).expect("written");
            Self::new(self.key.clone(), life, Some(&kept), queue)
        }

        fn made_durable(mut self) -> Self {
            self.durable = self.now.clone();
            self
        }

        fn name(&self, queue: u32, seq: u64) -> String {
            let origin = self.origin(QueueId(queue), Seq(seq));
            origin
                .map_or_else(String::new, |it| format!("{} {} {}", it.producer(), it.sequence(), it.floor()))
        }
    }

    fn first(view: &QueueView) -> Epochs {
        Epochs::new("key".into(), "a", None, Some(view)).made_durable()
    }

    #[test]
    fn what_waited_keeps_its_name_over_a_restart_and_what_comes_gets_another() {
        let view = queue("q", 3, 0, 0);
        let epochs = first(&view).again("b", Some(&view)).made_durable();
        assert_eq!([epochs.name(0, 3), epochs.name(0, 4)], ["a.0 3 0", "b.0 4 0"]);
        let epochs = epochs.again("c", Some(&queue("q", 4, 0, 0))).made_durable();
        assert_eq!([3, 4, 5].map(|seq| epochs.name(0, seq)), ["a.0 3 0", "b.0 4 0", "c.0 5 0"]);
    }

    #[test]
    fn nothing_is_numbered_until_it_is_durable() {
        let view = queue("q", 3, 0, 0);
        let mut epochs = Epochs::new("key".into(), "a", None, Some(&view));
        assert_eq!(epochs.name(0, 1), "");
        epochs = epochs.made_durable();
        assert_eq!(epochs.name(0, 1), "a.0 1 0");
        epochs.is_of(QueueId(1));
        assert_eq!([epochs.name(0, 1), epochs.name(1, 1)], ["", ""]);
        assert_eq!(epochs.made_durable().name(1, 1), "a.1 1 0");
    }

    #[test]
    fn the_floor_rises_with_the_first_that_waits_and_epochs_before_it_are_over() {
        let mut epochs = first(&queue("q", 3, 0, 0)).again("b", Some(&queue("q", 3, 0, 0))).made_durable();
        epochs.raise(&queue("q", 6, 2, 0));
        assert_eq!(epochs.name(0, 3), "a.0 3 0", "as it is durable");
        epochs = epochs.made_durable();
        assert_eq!([epochs.name(0, 3), epochs.name(0, 5)], ["a.0 3 3", "b.0 5 3"]);
        epochs.raise(&queue("q", 6, 3, 0));
        epochs = epochs.made_durable();
        assert_eq!([epochs.name(0, 3), epochs.name(0, 5)], ["", "b.0 5 4"]);
    }

    #[test]
    fn a_store_that_was_put_back_gives_its_numbers_new_names() {
        let before = first(&queue("q", 3, 0, 0)).again("b", Some(&queue("q", 9, 0, 0))).made_durable();
        let back = before.again("c", Some(&queue("q", 5, 0, 0))).made_durable();
        assert_eq!([3, 5, 6, 12].map(|seq| back.name(0, seq)), ["a.0 3 0", "a.0 5 0", "c.0 6 0", "c.0 12 0"]);
    }

    #[test]
    fn a_queue_that_is_made_anew_has_names_of_its_own() {
        let epochs = first(&queue("q", 3, 0, 0));
        let anew = epochs.again("b", Some(&queue("q", 1, 0, 1))).made_durable();
        assert_eq!([anew.name(1, 1), anew.name(0, 1)], ["b.1 1 0", ""]);
        let gone = anew.again("c", None).made_durable();
        assert_eq!(gone.name(1, 1), "");
    }
}

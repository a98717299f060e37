//! What must hold after every step of any broker, whatever it was asked: places balance, facts folded anew give the same
//! broker, nothing is delivered at or after its expiry, lanes conserve messages, and no deadline is slept past.

pub(crate) mod post;
pub(crate) mod shelf;
mod walks;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use overtake_lane::{
    Backlog, Broker, BrowseOrder, Command, ConsumerId, Cursor, Destination, Effect, Fact, Look, Message,
    MessageView, Options, Place, Query, QueueId, QueueView, Refusal, Reply, RunId, RunView, Seq, SpillBounds,
    SpillPlan, State, Status, Step, Time, VhostId,
};
use post::Post;
use shelf::{Shelf, run_of};
use walks::Walks;

/// A broker under watch: every step goes through here.
pub(crate) struct Watch {
    pub(crate) broker: Broker,
    pub(crate) now: Time,
    /// The broker that the facts so far make, without waking it.
    folded: Broker,
    facts: Vec<Fact>,
    /// How many messages hold the content at each place, as effects say.
    holds: BTreeMap<Place, i64>,
    pulls: BTreeMap<ConsumerId, Time>,
    expires: BTreeMap<(QueueId, Seq), Time>,
    options: Options,
    shelf: Arc<Shelf>,
    post: Arc<Post>,
    walks: Walks,
    /// Messages of a lane that are never spilled; `None`: all stay in memory.
    keep: Option<usize>,
    /// A run that is being written.
    plan: Option<(QueueId, RunId)>,
    /// Runs that are being rewritten, each into which and from which.
    rewrites: Vec<(QueueId, RunId, Vec<RunId>)>,
    /// Runs begun.
    runs: u64,
    steps: u64,
    /// How many messages hold the content in each run.
    shelved: BTreeMap<RunId, i64>,
}

impl Watch {
    pub(crate) fn new(options: Options, now: Time) -> Self {
        let shelf = Arc::new(Shelf::default());
        let post = Arc::new(Post::new(shelf.clone()));
        let broker = Broker::with_backlog(options, shelf.clone()).with_letters(post.clone());
        Self {
            folded: broker.clone(),
            broker,
            now,
            shelf,
            post,
            walks: Walks::default(),
            keep: None,
            plan: None,
            rewrites: Vec::new(),
            runs: 0,
            steps: 0,
            shelved: BTreeMap::new(),
            facts: Vec::new(),
            holds: BTreeMap::new(),
            pulls: BTreeMap::new(),
            expires: BTreeMap::new(),
            options,
        }
    }

    /// From now on spills whatever it can, but for so many of each lane.
    pub(crate) fn spill(&mut self, keep: usize) {
        self.keep = Some(keep);
    }

    /// The place that content had when it was published.
    pub(crate) fn first_place(&self, place: Place) -> Place {
        self.shelf.first_place(place)
    }

    /// A run that was begun before the last step is done, and another one is begun. Some come to nothing.
    fn shelve(&mut self) {
        let Some(keep) = self.keep else { return };
        let mut step = Step::default();
        if let Some((queue, run)) = self.plan.take() {
            if run.0 % 5 == 0 {
                self.broker.unspilled(queue, run);
            } else {
                self.broker.spilled(queue, run, &mut step);
                // Said twice it means the same.
                step.facts.extend(self.broker.run_fact(queue, run).filter(|_| run.0 % 3 == 0));
            }
            self.watch_step(&step);
        }
        self.steps += 1;
        let nth = self.steps as usize;
        self.rewrite_some(nth);
        if !nth.is_multiple_of(4) {
            // A few gather, so that a run is of more than one.
            return;
        }
        self.runs += 1;
        let run = RunId(self.runs);
        let bounds = SpillBounds {
            keep,
            keep_bytes: 10 * (nth as u64 % 8),
            most: 3 + nth % 6,
            most_bytes: 90,
            looks: 5,
        };
        if let SpillPlan::Run(queue, messages) = self.broker.plan_spill(run, bounds) {
            self.shelf.put(run, messages);
            self.plan = Some((queue, run));
        }
    }

    /// Every few steps a rewrite is begun, one is ended, and the record of a run is written again.
    fn rewrite_some(&mut self, nth: usize) {
        if nth.is_multiple_of(3) {
            self.plan_rewrite(nth / 3, 1 + nth % 4);
        }
        if nth % 5 == 4 {
            self.end_rewrite(nth, !nth.is_multiple_of(4));
        }
        if nth.is_multiple_of(7) {
            self.say_again(nth);
        }
    }

    /// Begins to rewrite at most so many runs of a lane, from this one of all on.
    pub(crate) fn plan_rewrite(&mut self, at: usize, many: usize) {
        let runs: Vec<RunView> = self.broker.runs().collect();
        let Some(RunView { queue, lane, .. }) = runs.get(at % runs.len().max(1)).copied() else { return };
        let row = runs[at % runs.len()..].iter().take_while(|run| (run.queue, run.lane) == (queue, lane));
        let mut row: Vec<RunView> = row.take(many).copied().collect();
        let apart = row.iter().position(|run| !run.is_before_next).unwrap_or(row.len());
        row.truncate(apart + 1);
        let of: Vec<RunId> = row.iter().map(|run| run.run).collect();
        self.runs += 1;
        let run = RunId(self.runs);
        let pieces = self.broker.plan_rewrite(queue, run, &of);
        let is_begun =
            self.rewrites.iter().any(|(_, _, others)| others.iter().any(|other| of.contains(other)));
        let moves = row.iter().any(|run| run.is_mixed);
        // What is being written may lie between them.
        let is_written = pieces.is_none() && self.plan.is_some();
        assert_eq!(
            pieces.is_none(),
            is_begun || moves || is_written,
            "what is a row of runs can be rewritten, once at a time"
        );
        let Some(pieces) = pieces else { return };
        let read = |(run, range): (RunId, Range<u32>)| self.shelf.read(run, range.start, range.len());
        let messages: Vec<Message> = pieces.into_iter().flat_map(read).collect();
        assert_eq!(messages.len() as u64, row.iter().map(|run| run.waiting).sum::<u64>(), "all that waits");
        assert!(messages.is_sorted_by(|a, b| a.seq < b.seq), "in the order of sequences");
        self.shelf.put(run, messages);
        self.rewrites.push((queue, run, of));
    }

    /// Ends a rewrite that was begun: its segment is written, or could not be.
    pub(crate) fn end_rewrite(&mut self, nth: usize, is_written: bool) {
        if self.rewrites.is_empty() {
            return;
        }
        let (queue, run, of) = self.rewrites.remove(nth % self.rewrites.len());
        let mut step = Step::default();
        let waiting = |broker: &Broker| of.iter().map(|run| broker.run_waiting(queue, *run)).sum::<u64>();
        let before = (waiting(&self.broker), self.broker.runs().map(|run| run.waiting).sum::<u64>());
        if is_written {
            self.broker.rewritten(queue, run, &mut step);
            assert_eq!(before.0, self.broker.run_waiting(queue, run), "all that still waits went into it");
            assert_eq!(waiting(&self.broker), 0, "the old ones are over");
        } else {
            self.broker.unspilled(queue, run);
        }
        assert_eq!(before.1, self.broker.runs().map(|run| run.waiting).sum::<u64>());
        self.watch_step(&step);
    }

    /// Says of a run what is true now, which changes nothing.
    fn say_again(&mut self, at: usize) {
        let runs: Vec<RunView> = self.broker.runs().collect();
        let Some(run) = runs.get(at % runs.len().max(1)) else { return };
        let fact = self.broker.run_fact(run.queue, run.run).expect("it is there");
        let mut step = Step::default();
        step.facts.push(fact);
        self.watch_step(&step);
    }

    /// Lets time pass up to `now`, then does one thing.
    pub(crate) fn apply(&mut self, command: Command) -> (Result<Reply, Refusal>, Step) {
        let given = places(&command);
        let inner = if let Command::By { command, .. } = &command { command } else { &command };
        let pull = match inner {
            Command::Pull(pull) => Some((pull.consumer, pull.until)),
            _ => None,
        };
        self.post.keep(&command);
        let mut step = Step::default();
        let reply = self.broker.apply(self.now, command, &mut step);
        for place in &given {
            *self.holds.entry(*place).or_default() += 1;
        }
        let mut seen = step.clone();
        if reply.is_ok() {
            self.pulls.extend(pull);
        } else {
            seen.effects.extend(given.into_iter().map(Effect::Released));
        }
        self.see(&seen);
        (reply, step)
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, ms: u64) -> Step {
        self.now = self.now.after(ms);
        let mut step = Step::default();
        self.broker.tick(self.now, &mut step);
        self.see(&step);
        step
    }

    pub(crate) fn hold(&mut self, held: bool) -> Step {
        let mut step = Step::default();
        self.broker.hold(held, &mut step);
        self.see(&step);
        step
    }

    /// The consumers are gone and the broker is made anew from its facts, as after a crash.
    pub(crate) fn restart(&mut self) -> Step {
        self.options.life += 1;
        let broker = Broker::with_backlog(self.options, self.shelf.clone());
        let mut broker = broker.with_letters(self.post.clone());
        let mut step = Step::default();
        self.plan = None;
        self.rewrites.clear();
        for fact in self.facts.clone() {
            broker.fold(fact, &mut step).expect("every fact is founded");
        }
        step.clear();
        broker.wake(self.now, &mut step);
        // What was left of messages that were gone went with the memory it was in.
        let mut left = Step::default();
        self.broker.clear_remains(usize::MAX, &mut left);
        self.see_effects(&left);
        self.broker = broker;
        self.pulls.clear();
        self.walks.forget();
        self.see(&step);
        step
    }

    /// The consumer was cancelled.
    pub(crate) fn forget(&mut self, consumer: ConsumerId) {
        self.pulls.remove(&consumer);
    }

    /// Checks what a step of the broker brought about.
    pub(crate) fn see(&mut self, step: &Step) {
        self.watch_step(step);
        self.shelve();
        self.clear();
    }

    /// Some of what is left of messages that are gone is cleared, which nobody sees.
    fn clear(&mut self) {
        if !self.broker.has_remains() {
            return;
        }
        let most = self.facts.len() % 4;
        let (before, mut step) = (self.broker.remains().count(), Step::default());
        self.broker.clear_remains(most, &mut step);
        assert!(step.facts.is_empty() && step.effects.len() <= most, "{most} were asked for: {step:?}");
        assert_eq!(before - step.effects.len(), self.broker.remains().count(), "each is released as it goes");
        self.watch_step(&step);
    }

    fn watch_step(&mut self, step: &Step) {
        self.see_effects(step);
        self.see_facts(step);
        self.check_places();
        self.check_refold();
        self.check_awake();
        self.check_ids();
        check_lanes(&self.broker, &self.shelf, self.now);
        self.walks.go_on(&self.broker, &self.shelf, self.now);
        let outstanding = self
            .broker
            .all_views(self.now)
            .flat_map(|view| view.lanes)
            .map(|lane| lane.leased + lane.delayed);
        assert_eq!(self.broker.outstanding(), outstanding.sum::<u64>(), "leased and delayed in all queues");
    }

    fn see_effects(&mut self, step: &Step) {
        for fact in &step.facts {
            match fact {
                Fact::Stored { queue, message } => {
                    self.expires.insert((*queue, message.seq), message.expires);
                }
                Fact::Moved { to, .. } => {
                    self.expires.extend(to.iter().map(|to| ((to.queue, to.message.seq), to.message.expires)));
                }
                Fact::Replayed { queue, seq, expires, .. } => {
                    self.expires.insert((*queue, *seq), *expires);
                }
                Fact::RunStored { run, .. } => {
                    assert!(run.makes_sense(), "{run:?}");
                    self.shelved.entry(run.run).or_insert(run.waiting() as i64);
                }
                Fact::RunsRewritten { run, .. } => {
                    assert!(run.makes_sense(), "{run:?}");
                    self.shelved.insert(run.run, run.waiting() as i64);
                }
                _ => {}
            }
        }
        for effect in &step.effects {
            match effect {
                Effect::Deliver(delivery) => {
                    let expires = self.expires[&(delivery.receipt.queue, delivery.receipt.seq)];
                    let is_new = expires == self.now
                        && comes_at_once(step, delivery.receipt.queue, delivery.receipt.seq);
                    assert!(expires > self.now || is_new, "delivered at or after its expiry: {delivery:?}");
                    assert!(delivery.deadline > self.now, "a lease that was over when it was given");
                }
                Effect::Forgotten { run, messages } => {
                    *self.shelved.entry(*run).or_default() -= *messages as i64;
                }
                Effect::Released(place) if run_of(*place).is_some() => {
                    *self.shelved.get_mut(&run_of(*place).expect("it was asked")).expect("stored") -= 1;
                }
                Effect::Shared(place) if run_of(*place).is_some() => {
                    *self.shelved.get_mut(&run_of(*place).expect("it was asked")).expect("stored") += 1;
                }
                Effect::Released(place) => {
                    let holds = self.holds.get_mut(place).expect("a place that was given");
                    *holds -= 1;
                    assert!(*holds >= 0, "{place:?} is released more often than it was given");
                }
                Effect::Shared(place) => {
                    let holds = self.holds.get_mut(place).expect("a place that was given");
                    assert!(*holds > 0, "{place:?} is shared after it was released");
                    *holds += 1;
                }
                Effect::Served { consumer } | Effect::Cancelled { consumer } => {
                    self.pulls.remove(consumer);
                }
                Effect::TimedOut { .. } => {}
                Effect::Returned { .. } => unreachable!("all messages are kept here"),
            }
        }
    }

    fn see_facts(&mut self, step: &Step) {
        let mut effects = Step::default();
        for fact in &step.facts {
            self.folded.fold(fact.clone(), &mut effects).expect("every fact is founded");
        }
        self.facts.extend(step.facts.iter().cloned());
    }

    /// Each place has as many holds as messages, and none is left when no copy is left.
    fn check_places(&mut self) {
        let mut copies: BTreeMap<Place, i64> = BTreeMap::new();
        let mut shelved: BTreeMap<RunId, i64> = BTreeMap::new();
        let gone = self.broker.remains().cloned();
        for message in stored(&self.broker).into_values().chain(gone) {
            match run_of(message.place) {
                Some(run) => *shelved.entry(run).or_default() += 1,
                None => *copies.entry(message.place).or_default() += 1,
            }
        }
        self.shelved.retain(|_, holds| *holds != 0);
        assert_eq!(self.shelved, shelved, "messages that need each segment");
        self.holds.retain(|_, holds| *holds > 0);
        assert_eq!(self.holds, copies, "places held, places in use");
    }

    /// The facts so far make the same broker; one that slept through nothing has nothing to do when it wakes.
    fn check_refold(&self) {
        assert_eq!(self.folded.topology_facts(), self.broker.topology_facts());
        let (live, folded) = (stored(&self.broker), stored(&self.folded));
        assert_eq!(
            live.keys().collect::<Vec<_>>(),
            folded.keys().collect::<Vec<_>>(),
            "live and folded messages"
        );
        let mut may_change = false;
        for (at, message) in &live {
            let mut again = folded[at].clone();
            let view = self.broker.message_at(at.0, at.1).expect("a stored message is there");
            if view.status == Status::Leased && message.state == State::Ready {
                assert!(again.count <= message.count, "a fold counts leases that were not given");
                again.count = message.count;
                let (vhost, name) = whereabouts(&self.broker, at.0);
                let settings = self.broker.settings(vhost, name).expect("its queue is there");
                may_change |= message.expires <= self.now || settings.last_value.is_some();
            }
            assert_eq!(&again, message, "live and folded");
        }
        if may_change {
            return;
        }
        let mut step = Step::default();
        self.folded.clone().wake(self.now, &mut step);
        // But what only a restart ends.
        let is_passing = |vhost: VhostId, to: &Destination| match to {
            Destination::Queue(name) => {
                self.broker.view(self.now, vhost, name).is_ok_and(|view| !view.identity.is_lasting())
            }
            Destination::Exchange(_) => false,
        };
        step.facts.retain(|fact| match fact {
            Fact::ExchangeDeleted { .. } => false,
            Fact::Unbound { vhost, binding } => !is_passing(*vhost, &binding.to),
            _ => true,
        });
        let passing = self.broker.all_views(self.now).filter(|view| !view.identity.is_lasting());
        let mut passing: Vec<Fact> = passing.map(|view| Fact::QueueDeleted { queue: view.queue }).collect();
        passing.sort_by_key(|fact| match fact {
            Fact::QueueDeleted { queue } => *queue,
            other => panic!("{other:?} deletes nothing"),
        });
        assert_eq!(
            step.facts, passing,
            "a broker made anew finds nothing to do that the live one has not done, but for what a restart ends"
        );
    }

    /// An id is that of one pending message at most, and leads to it.
    fn check_ids(&self) {
        for ((queue, seq), message) in stored(&self.broker) {
            let Some(id) = message.id().filter(|_| message.state != State::Dead) else { continue };
            let (vhost, name) = whereabouts(&self.broker, queue);
            let (found, _, _) = self.broker.message(vhost, name, id).expect("a pending id is found");
            assert_eq!(found.seq, seq, "the pending message of {id}");
        }
    }

    fn check_awake(&self) {
        let mut first = self.pulls.values().copied().min().unwrap_or(Time::NEVER);
        for (at, message) in stored(&self.broker) {
            let view = self.broker.message_at(at.0, at.1).expect("a stored message is there");
            let pushed = view.status == Status::Leased && message.state == State::Ready;
            first = first.min(match message.state {
                State::Ready if pushed => Time::NEVER,
                State::Ready => message.expires,
                State::Delayed { due } => due.min(message.expires),
                State::Leased { deadline, .. } => deadline,
                State::Dead => Time::NEVER,
            });
        }
        assert!(first > self.now, "something is overdue since {first:?}");
        let next = self.broker.next_deadline().unwrap_or(Time::NEVER);
        assert!(next <= first, "asleep until {next:?}, but something happens at {first:?}");
    }
}

/// Whether a message comes in this step and is over unless it is taken in it.
fn comes_at_once(step: &Step, queue: QueueId, seq: Seq) -> bool {
    step.facts.iter().any(|fact| match fact {
        Fact::Stored { queue: id, message } => (*id, message.seq) == (queue, seq) && message.is_at_once(),
        Fact::Moved { to, .. } => {
            to.iter().any(|to| (to.queue, to.message.seq) == (queue, seq) && to.message.is_at_once())
        }
        _ => false,
    })
}

/// Every message as a recovery would find it.
pub(crate) fn stored(broker: &Broker) -> BTreeMap<(QueueId, Seq), Message> {
    let facts = broker.message_facts().map(|fact| match fact {
        Fact::Stored { queue, message } => ((queue, message.seq), message),
        other => panic!("{other:?} stores nothing"),
    });
    facts.collect()
}

/// In which virtual host a queue is, and by which name.
fn whereabouts(broker: &Broker, queue: QueueId) -> (VhostId, &str) {
    let vhost = broker.vhost_of(queue).expect("its queue is there");
    (vhost, broker.name(queue).expect("its queue is there"))
}

/// Every message of a queue, in an order.
pub(crate) fn browse(broker: &Broker, vhost: VhostId, queue: &str, order: BrowseOrder) -> Vec<MessageView> {
    let query = Query { order, limit: usize::MAX, ..Query::default() };
    broker
        .browse(vhost, queue, &query, &mut |_| true)
        .expect("the queue is there")
        .messages
        .into_iter()
        .map(|(_, view)| view)
        .collect()
}

/// Gauges are what can be counted, and per lane nothing comes from nowhere or goes unaccounted.
fn check_lanes(broker: &Broker, shelf: &Shelf, now: Time) {
    for view in broker.all_views(now) {
        let published = browse(broker, view.vhost, &view.name, BrowseOrder::Published);
        let dispatch: BTreeSet<Seq> = browse(broker, view.vhost, &view.name, BrowseOrder::Dispatch)
            .iter()
            .map(|message| message.seq)
            .collect();
        assert_eq!(dispatch, published.iter().map(|message| message.seq).collect(), "both orders show all");
        check_newest(broker, shelf, &view, &published);
        for lane in &view.lanes {
            let count = |status| {
                let here = published.iter().filter(|m| m.lane == lane.lane && m.status == status);
                here.count() as u64
            };
            let stand = [lane.ready, lane.delayed, lane.leased, lane.dead];
            let counted = [Status::Ready, Status::Delayed, Status::Leased, Status::Dead].map(count);
            assert_eq!(stand, counted, "gauges of lane {} of {}", lane.lane, view.name);
            let alive = published.iter().filter(|m| m.lane == lane.lane && m.status != Status::Dead);
            assert_eq!(lane.bytes, alive.map(|m| u64::from(m.bytes)).sum::<u64>());
            let gone = lane.settled + lane.expired + lane.evicted + lane.removed + lane.moved;
            let here: u64 = stand.iter().sum();
            assert_eq!(
                lane.published,
                here + gone,
                "lane {} of {} conserves: {lane:?}",
                lane.lane,
                view.name
            );
        }
    }
}

/// The newest first is the order of publishing, read backwards, of whatever is asked for; how much that is, is known.
fn check_newest(broker: &Broker, shelf: &Shelf, view: &QueueView, published: &[MessageView]) {
    let nth = view.next_seq.0 as usize + published.len();
    let statuses =
        [None, Some(Status::Ready), Some(Status::Delayed), Some(Status::Leased), Some(Status::Dead)];
    let some = published.get(nth % published.len().max(1));
    let query = Query {
        status: statuses[nth % 5],
        priority: some.filter(|_| nth.is_multiple_of(3)).map(|message| message.level),
        order: BrowseOrder::Newest,
        cursor: some.filter(|_| nth.is_multiple_of(2)).map(|message| Cursor(message.seq.0)),
        skip: nth as u64 % 4,
        limit: usize::MAX,
        ..Query::default()
    };
    let matches = |message: &&MessageView| {
        query.status.is_none_or(|status| message.status == status)
            && query.priority.is_none_or(|priority| message.level == priority)
    };
    let all: Vec<Seq> = published.iter().rev().filter(matches).map(|message| message.seq).collect();
    let before = |seq: &&Seq| query.cursor.is_none_or(|cursor| seq.0 < cursor.0);
    let expect: Vec<Seq> = all.iter().filter(before).skip(query.skip as usize).copied().collect();
    let look = |query: &Query| {
        broker.browse(view.vhost, &view.name, query, &mut |place| shelf.takes(place)).expect("it is there")
    };
    let seqs = |look: &Look| look.messages.iter().map(|(_, message)| message.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&look(&query)), expect, "{query:?}");
    let count = |query: &Query| broker.count(view.vhost, &view.name, query, None).expect("it is there");
    assert_eq!(count(&Query { cursor: None, ..query.clone() }).count, all.len() as u64, "{query:?}");

    // The same in steps of a few looks each.
    let mut steps = Query { looks: Some(1 + nth % 5), ..query.clone() };
    let (mut stepped, mut counted, mut read) = (Vec::new(), 0, BTreeSet::new());
    loop {
        let step = shelf.step_of_look(&mut read, || look(&steps));
        stepped.extend(seqs(&step));
        steps.skip -= step.skipped;
        steps.cursor = step.next;
        if steps.cursor.is_none() {
            break;
        }
    }
    assert_eq!(stepped, expect, "{steps:?}");
    let narrow = Query { without_priority: true, cursor: None, ..steps.clone() };
    let expect = count(&Query { looks: None, ..narrow.clone() }).count;
    let mut steps = narrow;
    loop {
        let step = shelf.step_of_look(&mut read, || count(&steps));
        counted += step.count;
        steps.cursor = step.next;
        if step.next.is_none() {
            break;
        }
    }
    assert_eq!(counted, expect, "{steps:?}");
}

fn places(command: &Command) -> Vec<Place> {
    match command {
        Command::Publish(publish) => vec![publish.place],
        Command::By { command, .. } => places(command),
        Command::Transact { publishes, .. } => publishes.iter().map(|publish| publish.place).collect(),
        _ => Vec::new(),
    }
}

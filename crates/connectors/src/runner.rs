//! One endpoint at work: carries out what its forwarder decides.
//!
//! The runner is one task. Leases that wait, and lines, are tasks of their own that tell it what came of them; each says of which life of its line it
//! is, so that what comes of a line that was given up is known for what it is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use overtake_engine::{Clock, Connection, Failure, LeaseRequest, LeasedMessage};
use overtake_forward::{Action, Answer, Ask, End, Forwarder, ForwarderView, Terms};
use overtake_lane::{LeaseTerm, MetadataEntry, Outcome, Receipt, Report, Scheme, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::connector::Control;
use crate::epochs::Epochs;
use crate::outbox::Outbox;
use crate::outgoing::Outgoing;
use crate::priority::PriorityTo;
use crate::sink::{Link, LinkError, Sink};
use crate::timer::sleep;

/// A lease that waits is asked for anew after so long, ms.
const WAIT_MS: u64 = 3_600_000;
/// Of each line so many words besides answers may wait to be heard.
const WORDS: usize = 16;
/// Most names in one notice of headers that were left out of a message.
const NAMES_MAX: usize = 5;
/// Most different notices of that kind that are logged.
const SAID_MAX: usize = 100;
/// What a day has used is written down so often at most.
const REMEMBER: Duration = Duration::from_secs(60);

/// What a runner is for.
pub(crate) struct Post {
    pub(crate) name: Arc<str>,
    pub(crate) queue: Arc<str>,
    /// How the receiver says how urgent a message is, where it is told.
    pub(crate) priority: Option<Arc<PriorityTo>>,
    pub(crate) terms: Terms,
    pub(crate) sink: Arc<dyn Sink>,
    /// The receiver starts work with a message, which is settled by somebody else within so long, ms.
    pub(crate) deadline_ms: Option<u64>,
    /// Of a session of its own, in the virtual host.
    pub(crate) engine: Connection,
    pub(crate) clock: Arc<dyn Clock>,
    /// By which the receiver may know messages that come again.
    pub(crate) epochs: Option<Epochs>,
    /// Where its use of a day is remembered.
    pub(crate) budget_key: String,
    pub(crate) seed: u64,
    /// Nothing is sent before somebody resumes it.
    pub(crate) is_paused: bool,
}

/// What came of something.
struct Told {
    line: usize,
    life: u64,
    what: What,
}

enum What {
    Connected,
    NotConnected(String),
    /// What was leased; whoever asks next waits until the other is dropped.
    Leased(Result<Vec<LeasedMessage>, Failure>, oneshot::Sender<()>),
    /// How a message fared, and what the receiver was not told of it.
    Answered(Receipt, Answer, Vec<String>),
    Finished(End),
}

/// A line as the runner has it.
#[derive(Default)]
struct Line {
    /// Counts connections, so that late words of an earlier one are known.
    life: u64,
    task: Option<AbortHandle>,
    batches: Option<mpsc::Sender<Vec<Outgoing>>>,
    halt: Arc<AtomicBool>,
    /// Counts leases that were asked for.
    asked: u64,
    lease: Option<Waiting>,
    /// Ends when what was on its way to a lease that was given up is put back.
    giving_up: Option<oneshot::Receiver<()>>,
}

/// A lease that waits.
struct Waiting {
    task: AbortHandle,
    /// Given up by it.
    stop: oneshot::Sender<()>,
    /// Ends with it.
    over: oneshot::Receiver<()>,
}

pub(crate) struct Runner {
    post: Post,
    forwarder: Forwarder,
    lines: Vec<Line>,
    /// What is leased and not settled.
    held: HashMap<Receipt, Outgoing>,
    tell: mpsc::Sender<Told>,
    told: mpsc::Receiver<Told>,
    acks: mpsc::Sender<Receipt>,
    acking: tokio::task::JoinHandle<()>,
    remembered: (u64, u64),
    /// The notices about left out headers that were logged.
    left_out: HashSet<String>,
    /// The scheme of the queue for which the table of priorities was checked.
    checked: Option<Scheme>,
}

impl Runner {
    pub(crate) fn new(post: Post, budget: Option<(u64, u64)>) -> Self {
        let mut forwarder = Forwarder::new(post.terms.clone(), post.seed);
        if let Some((day, used)) = budget {
            forwarder.restore_budget(day, used);
        }
        if post.is_paused {
            forwarder.pause();
        }
        let all = usize::from(post.terms.fan_out) * (post.terms.batch() as usize + WORDS);
        let (tell, told) = mpsc::channel(all);
        let (acks, to_ack) = mpsc::channel(all);
        let acking = tokio::spawn(acknowledge(post.engine.clone(), to_ack));
        let lines = (0..post.terms.fan_out).map(|_| Line::default()).collect();
        let remembered = budget.unwrap_or_default();
        Self {
            post,
            forwarder,
            lines,
            held: HashMap::new(),
            tell,
            told,
            acks,
            acking,
            remembered,
            left_out: HashSet::new(),
            checked: None,
        }
    }

    /// Sends until whoever controls it is gone; then it finishes what is under way.
    pub(crate) async fn run(mut self, mut control: mpsc::Receiver<Control<ForwarderView>>) {
        let mut remember = tokio::time::interval(REMEMBER);
        remember.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_stopping = false;
        loop {
            self.act().await;
            // After what is to be done: to give up a lease that waits brings nothing to be told.
            if is_stopping && self.forwarder.is_at_rest() {
                break;
            }
            let wakes = self.forwarder.wakes_at(self.post.clock.now()).some();
            let asleep = wakes.and_then(|at| self.post.clock.until(at));
            tokio::select! {
                told = self.told.recv() => self.hear(told.expect("the runner holds a sender itself")),
                asked = control.recv(), if !is_stopping => match asked {
                    Some(asked) => self.obey(asked),
                    None => {
                        self.forwarder.stop();
                        is_stopping = true;
                    }
                },
                _ = remember.tick() => {
                    self.remember().await;
                    self.raise().await;
                }
                () = sleep(asleep) => {}
            }
        }
        self.remember().await;
        let Self { acks, acking, .. } = self;
        drop(acks);
        // What was accepted is settled before this ends.
        let _ = acking.await;
    }

    fn obey(&mut self, asked: Control<ForwarderView>) {
        match asked {
            Control::Pause => self.forwarder.pause(),
            Control::Resume => self.forwarder.resume(self.post.clock.now()),
            Control::View(caller) => {
                let _ = caller.send(self.forwarder.view(self.post.clock.now()));
            }
        }
    }

    /// What is left of a day outlives a restart.
    async fn remember(&mut self) {
        let (day, used) = self.forwarder.budget();
        if self.post.terms.daily_bytes == 0 || self.remembered == (day, used) {
            return;
        }
        let entry = MetadataEntry::set(&self.post.budget_key, format!("{day} {used}").as_bytes());
        if self.post.engine.set_metadata(vec![entry]).await.is_ok() {
            self.remembered = (day, used);
        }
    }

    /// What is behind the endpoint for good, receivers need not know any more.
    async fn raise(&mut self) {
        let Self { post: Post { engine, queue, epochs: Some(epochs), .. }, .. } = self else { return };
        if let Ok(view) = engine.queue(queue).await {
            epochs.raise(&view);
            // If not now, then the next time.
            let _ = epochs.keep(engine).await;
        }
    }

    /// The receiver of this queue may know messages by numbers from now on, if it can be.
    async fn number(&mut self, batch: &[Receipt]) {
        let Self { post: Post { engine, name, epochs: Some(epochs), .. }, .. } = self else { return };
        let Some(first) = batch.first() else { return };
        epochs.is_of(first.queue);
        if let Err(failure) = epochs.keep(engine).await {
            tracing::debug!(endpoint = &**name, "sent without numbers: {failure}");
        }
    }

    // ---- what is to be done ----

    async fn act(&mut self) {
        while let Some(action) = self.forwarder.poll(self.post.clock.now()) {
            match action {
                Action::Connect { line } => self.connect(line),
                Action::Disconnect { line } => self.disconnect(line),
                Action::Lease { line, ask } => self.lease(line, ask),
                Action::GiveUp { line } => self.give_up(line),
                Action::Send { line, batch } => {
                    self.number(&batch).await;
                    self.send(line, &batch);
                }
                Action::Halt { line } => self.lines[line].halt.store(true, Ordering::Release),
                Action::Settle { receipt, outcome, why } => self.settle(receipt, outcome, why).await,
            }
        }
    }

    fn connect(&mut self, at: usize) {
        self.disconnect(at);
        let (batches, to_send) = mpsc::channel(1);
        let line = &mut self.lines[at];
        line.halt = Arc::default();
        let work = LineWork {
            sink: Arc::clone(&self.post.sink),
            clock: Arc::clone(&self.post.clock),
            halt: Arc::clone(&line.halt),
            tell: self.tell.clone(),
            line: at,
            life: line.life,
        };
        line.batches = Some(batches);
        line.task = Some(tokio::spawn(work.run(to_send)).abort_handle());
    }

    fn disconnect(&mut self, at: usize) {
        let line = &mut self.lines[at];
        line.life += 1;
        line.batches = None;
        if let Some(task) = line.task.take() {
            task.abort();
        }
    }

    fn lease(&mut self, at: usize, ask: Ask) {
        let line = &mut self.lines[at];
        line.asked += 1;
        let request = LeaseRequest {
            max_bytes: ask.max_bytes,
            wait_ms: WAIT_MS,
            term: self.post.deadline_ms.map_or(LeaseTerm::Session, LeaseTerm::Ms),
            lanes: ask.lanes,
            ..LeaseRequest::new(Arc::clone(&self.post.queue), ask.max)
        };
        let (stop, stopped) = oneshot::channel();
        let (ended, over) = oneshot::channel();
        let (engine, tell, life) = (self.post.engine.clone(), self.tell.clone(), line.asked);
        let before = line.giving_up.take();
        let task = tokio::spawn(async move {
            // What was given up may go first.
            if let Some(before) = before {
                let _ = before.await;
            }
            let mut leasing = engine.lease(request);
            let leased = tokio::select! {
                biased;
                leased = &mut leasing => leased,
                _ = stopped => {
                    drop(leasing);
                    // Once something that was asked later is answered, what was on its way is put back.
                    let _ = engine.vhosts().await;
                    return drop(ended);
                }
            };
            let _ = tell.send(Told { line: at, life, what: What::Leased(leased, ended) }).await;
        });
        line.lease = Some(Waiting { task: task.abort_handle(), stop, over });
    }

    /// Says what receivers were not told of a message that they got; in the log once for the same names.
    fn note_left_out(&mut self, now: Time, mut names: Vec<String>) {
        names.sort();
        names.truncate(NAMES_MAX);
        let names: Vec<_> = names.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
        let why = format!(
            "a message was sent without {}: a header there is text, and this name or value has control characters, or the value is no text",
            names.join(", ")
        );
        if self.left_out.len() < SAID_MAX && self.left_out.insert(why.clone()) {
            tracing::warn!(endpoint = &*self.post.name, "{why}");
        }
        self.forwarder.note(now, why.into());
    }

    /// A queue that was declared later, or anew, may have a scheme that does not know what the table of priorities names: then the endpoint says so.
    fn check_table(&mut self, now: Time, message: Option<&LeasedMessage>) {
        let Some(scheme) = message.and_then(|message| message.message.scheme) else { return };
        if self.checked.replace(scheme) == Some(scheme) {
            return;
        }
        let flaw = self.post.priority.as_ref().and_then(|priority| priority.check_with(scheme).err());
        if let Some(flaw) = flaw {
            tracing::warn!(endpoint = &*self.post.name, "{flaw}");
            self.forwarder.note(now, flaw.to_string().into());
        }
    }

    /// Dropping the answer gives up the wait, and puts back what is on its way.
    fn give_up(&mut self, at: usize) {
        let line = &mut self.lines[at];
        line.asked += 1;
        if let Some(Waiting { stop, over, .. }) = line.lease.take() {
            let _ = stop.send(());
            line.giving_up = Some(over);
        }
    }

    fn send(&mut self, at: usize, batch: &[Receipt]) {
        let of = |receipt: &Receipt| {
            let held = self.held.get(receipt).expect("what is sent is held").clone();
            let epochs = self.post.epochs.as_ref();
            let origin = epochs.and_then(|epochs| epochs.origin(receipt.queue, receipt.seq));
            held.said(self.post.priority.clone()).numbered(origin)
        };
        let batch: Vec<Outgoing> = batch.iter().map(of).collect();
        let line = &self.lines[at];
        line.halt.store(false, Ordering::Release);
        if let Some(batches) = &line.batches {
            // A line that has ended says so itself.
            let _ = batches.try_send(batch);
        }
    }

    async fn settle(&mut self, receipt: Receipt, outcome: Outcome, why: Option<Arc<str>>) {
        let held = self.held.remove(&receipt);
        // A message that may have started work keeps its lease, and so its slot, until an event or its deadline.
        let may_have_started = self.post.deadline_ms.is_some() && held.is_some_and(|held| held.is_out());
        if may_have_started && outcome != Outcome::Reject {
            return;
        }
        if outcome == Outcome::Ack {
            let _ = self.acks.send(receipt).await;
            return;
        }
        // Waited for, since what is leased next depends on it; a lease that is gone already needs no end.
        let engine = &self.post.engine;
        let ended = match why {
            // With the receiver's words, which go with a message to the dead letters.
            Some(why) => engine.finish(receipt, outcome, Report::of_error(&why)).await.map(drop),
            None => engine.settle(vec![receipt], outcome).await.map(drop),
        };
        if let Err(failure) = ended {
            tracing::debug!(endpoint = &*self.post.name, "not put back: {failure}");
        }
    }

    // ---- what came of it ----

    fn hear(&mut self, told: Told) {
        let (now, Told { line: at, life, what }) = (self.post.clock.now(), told);
        let line = &mut self.lines[at];
        let is_late = match what {
            What::Leased(..) => life != line.asked,
            _ => life != line.life,
        };
        match what {
            What::Leased(Ok(messages), ended) if is_late => {
                let receipts = messages.iter().map(|message| message.receipt).collect();
                let settled = self.post.engine.settle(receipts, Outcome::Release);
                tokio::spawn(async move {
                    let _ = settled.await;
                    drop(ended);
                });
            }
            _ if is_late => {}
            What::Leased(Ok(messages), _) => {
                line.lease = None;
                self.check_table(now, messages.first());
                let queue = &self.post.queue;
                let messages = messages.into_iter().map(|one| Outgoing::new(one, Arc::clone(queue)));
                let messages: Vec<Outgoing> = messages.collect();
                let items = messages.iter().map(Outgoing::item).collect();
                self.held.extend(messages.into_iter().map(|one| (one.receipt(), one)));
                self.forwarder.leased(now, at, items);
            }
            What::Leased(Err(failure), _) => {
                line.lease = None;
                let why = format!("the queue {}: {failure}", self.post.queue);
                self.forwarder.not_leased(now, at, why.into());
            }
            What::Connected => self.forwarder.connected(at),
            What::NotConnected(why) => {
                tracing::debug!(endpoint = &*self.post.name, "not connected: {why}");
                self.forwarder.not_connected(now, at, why.into());
            }
            What::Answered(receipt, answer, left_out) => {
                self.forwarder.answered(now, at, &receipt, &answer);
                if !left_out.is_empty() {
                    self.note_left_out(now, left_out);
                }
            }
            What::Finished(end) => {
                match &end {
                    End::Gone { why } => {
                        tracing::warn!(
                            endpoint = &*self.post.name,
                            "paused, until somebody resumes it: {why}"
                        );
                    }
                    End::Lost { why, .. } => {
                        tracing::info!(endpoint = &*self.post.name, "the connection is lost: {why}")
                    }
                    End::Done => {}
                }
                self.forwarder.finished(now, at, end);
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let waiting = self.lease.as_ref().map(|waiting| &waiting.task);
        for task in self.task.iter().chain(waiting) {
            task.abort();
        }
    }
}

/// Settles what was accepted, as much at once as there is.
async fn acknowledge(engine: Connection, mut acks: mpsc::Receiver<Receipt>) {
    let mut all = Vec::new();
    while acks.recv_many(&mut all, 1_000).await > 0 {
        if let Err(failure) = engine.settle(std::mem::take(&mut all), Outcome::Ack).await {
            tracing::debug!("not settled, and sent once more after a restart: {failure}");
        }
    }
}

/// One life of a line.
struct LineWork {
    sink: Arc<dyn Sink>,
    clock: Arc<dyn Clock>,
    halt: Arc<AtomicBool>,
    tell: mpsc::Sender<Told>,
    line: usize,
    life: u64,
}

impl LineWork {
    async fn tell(&self, what: What) {
        let _ = self.tell.send(self.told(what)).await;
    }

    fn told(&self, what: What) -> Told {
        Told { line: self.line, life: self.life, what }
    }

    async fn run(self, mut batches: mpsc::Receiver<Vec<Outgoing>>) {
        let mut link = match self.sink.connect().await {
            Ok(link) => link,
            Err(error) => return self.tell(What::NotConnected(error.to_string())).await,
        };
        self.tell(What::Connected).await;
        loop {
            let batch = tokio::select! {
                biased;
                batch = batches.recv() => batch,
                why = link.lost() => return self.tell(What::Finished(end_of(why, 0))).await,
            };
            let Some(batch) = batch else { return };
            match self.send(&mut *link, batch).await {
                Ok(()) => self.tell(What::Finished(End::Done)).await,
                Err((error, on_their_way)) => {
                    return self.tell(What::Finished(end_of(error, on_their_way))).await;
                }
            }
        }
    }

    /// # Errors
    /// Why the connection is lost, and how many messages were on their way.
    async fn send(&self, link: &mut dyn Link, batch: Vec<Outgoing>) -> Result<(), (LinkError, usize)> {
        let tell = |message: &Outgoing, answer| {
            let left_out = match answer {
                Answer::Accepted { .. } => self.sink.left_out(message),
                _ => Vec::new(),
            };
            // There is room for each message of each batch that is under way.
            let _ = self.tell.try_send(self.told(What::Answered(message.receipt(), answer, left_out)));
        };
        let mut outbox = Outbox::new(batch, &self.halt, &self.clock, &tell);
        let sent = link.send(&mut outbox).await;
        sent.map_err(|error| (error, outbox.on_their_way()))
    }
}

fn end_of(error: LinkError, on_their_way: usize) -> End {
    match error {
        LinkError::Lost(why) => End::Lost { why: why.into(), on_their_way },
        LinkError::Gone(why) => End::Gone { why: why.into() },
    }
}

//! One source at work: takes messages in, and lets the other system forget them when they are durable here.
//!
//! ```text
//!   connect ──▶ receive ──▶ publish all ── durable ──▶ settle ──┐
//!      ▲           ▲           │ no room: waits                 │
//!      └── lost ───┴───────────┴────────────────────────────────┘
//! ```
//!
//! A connection is closed, not dropped, when the source is paused or ends: so the other system has seen every acknowledgement.
//!
//! What came in and was not settled comes again, with the same id: so a crash between the two makes no second message while the first one is
//! pending.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use overtake_engine::{Failure, NewMessage, Refused, Target};
use overtake_lane::{Backoff, Part, Refusal, Time};
use tokio::sync::mpsc;

use crate::connector::{Control, Site};
use crate::inlet::{Fate, Incoming, Inlet, Origin};
use crate::settling::Settles;
use crate::sink::LinkError;
use crate::source::{Destination, Source};

/// Connecting is given up after so long.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// The end of a connection is waited for so long.
const CLOSE: Duration = Duration::from_secs(2);
/// From so many topics, streams or routing keys it is told that an event could not be read.
const UNREAD_MAX: usize = 1_000;
/// How long it waits after so many failures in a row.
const PAUSES: Backoff = Backoff { initial_ms: 200, multiplier: 2, max_ms: 10_000 };

/// What a source does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntakeState {
    /// It tries to connect.
    Connecting,
    /// It is connected, and takes in what comes.
    Running,
    /// What came cannot be stored for now: it is tried again, and nothing more is taken meanwhile.
    Blocked,
    /// It is not connected, and waits for the next attempt.
    Down,
    /// It takes nothing until it is resumed.
    Paused,
}

/// A source as it stands.
#[derive(Clone, Debug)]
pub struct IntakeView {
    /// What it does.
    pub state: IntakeState,
    /// Messages that were taken in, since it is there.
    pub taken: u64,
    /// Bytes of their content.
    pub taken_bytes: u64,
    /// Messages that can never be taken.
    pub refused: u64,
    /// When the last one was taken in.
    pub last_taken: Option<Time>,
    /// What went wrong last, and when.
    pub last_error: Option<(Time, Arc<str>)>,
}

impl IntakeView {
    /// Of a source that has taken in nothing yet.
    pub(crate) fn of_nothing(state: IntakeState, last_error: Option<(Time, Arc<str>)>) -> Self {
        Self { state, taken: 0, taken_bytes: 0, refused: 0, last_taken: None, last_error }
    }
}

pub(crate) struct Intake {
    site: Site,
    source: Arc<Source>,
    origin: Arc<dyn Origin>,
    view: IntakeView,
    is_paused: bool,
    /// Faults of events, each with the topic: logged once for each.
    unread: BTreeSet<String>,
}

type Controlled = mpsc::Receiver<Control<IntakeView>>;

/// Nobody controls it any more.
struct Ended;

impl Intake {
    pub(crate) fn new(site: Site, source: Arc<Source>, origin: Arc<dyn Origin>) -> Self {
        let view = IntakeView::of_nothing(IntakeState::Connecting, None);
        let is_paused = site.is_paused;
        Self { site, source, origin, view, is_paused, unread: BTreeSet::new() }
    }

    /// Takes messages in until whoever controls it is gone.
    pub(crate) async fn run(mut self, mut control: Controlled) {
        let mut failures = 0;
        while let Ok(progressed) = self.connect_once(&mut control).await {
            failures = if progressed { 0 } else { failures + 1 };
            self.view.state = IntakeState::Down;
            let pause = Duration::from_millis(PAUSES.wait_ms(failures));
            if self.until(&mut control, tokio::time::sleep(pause)).await.is_err() {
                return;
            }
        }
    }

    /// One life of a connection. Answers whether something was taken in by it.
    async fn connect_once(&mut self, control: &mut Controlled) -> Result<bool, Ended> {
        while self.is_paused {
            self.view.state = IntakeState::Paused;
            self.until(control, std::future::pending::<()>()).await?;
        }
        self.view.state = IntakeState::Connecting;
        let origin = Arc::clone(&self.origin);
        let connected = self.until(control, tokio::time::timeout(CONNECT, origin.connect())).await?;
        let mut inlet = match connected {
            Some(Ok(Ok(inlet))) => inlet,
            Some(Ok(Err(error))) => return Ok(self.failed(&error)),
            Some(Err(_)) => {
                return Ok(self.failed(&LinkError::Lost(format!("no connection within {CONNECT:?}"))));
            }
            None => return Ok(false),
        };
        let before = self.view.taken;
        let ended = self.receive_all(control, &mut *inlet).await;
        // Whoever waits for the end of it waits for this, too; a server that does not answer is not waited for long.
        if tokio::time::timeout(CLOSE, inlet.close()).await.is_err() {
            tracing::debug!(
                source = &*self.site.place.name,
                "its connection was not closed within {CLOSE:?}"
            );
        }
        ended.map(|()| self.view.taken > before)
    }

    /// Takes in what the connection brings until it fails, the source is paused, or nobody controls it any more.
    async fn receive_all(&mut self, control: &mut Controlled, inlet: &mut dyn Inlet) -> Result<(), Ended> {
        while !self.is_paused {
            self.view.state = IntakeState::Running;
            if let Some(why) = inlet.fault() {
                self.failed(&LinkError::Lost(why));
            }
            let max = self.source.batch as usize;
            let received = self.until(control, inlet.receive(max)).await?;
            let done = match received {
                Some(Ok(incoming)) => self.take_in(control, inlet, incoming).await?,
                Some(Err(error)) => Err(error),
                // Somebody said something; what is on its way is not lost by that.
                None => Ok(()),
            };
            if let Err(error) = done {
                self.failed(&error);
                break;
            }
        }
        Ok(())
    }

    fn failed(&mut self, error: &LinkError) -> bool {
        let why = error.to_string();
        tracing::info!(source = &*self.site.place.name, "{why}");
        self.note(why);
        false
    }

    fn note(&mut self, why: String) {
        self.view.last_error = Some((self.site.place.clock.now(), why.into()));
    }

    /// Waits for something, and does what it is told meanwhile. `None`: it was told something that may change what it waits for.
    async fn until<T>(
        &mut self,
        control: &mut Controlled,
        what: impl Future<Output = T>,
    ) -> Result<Option<T>, Ended> {
        tokio::pin!(what);
        loop {
            tokio::select! {
                biased;
                asked = control.recv() => match asked.ok_or(Ended)? {
                    Control::View(caller) => drop(caller.send(self.view.clone())),
                    Control::Pause => {
                        self.is_paused = true;
                        return Ok(None);
                    }
                    Control::Resume => {
                        self.is_paused = false;
                        return Ok(None);
                    }
                },
                done = &mut what => return Ok(Some(done)),
            }
        }
    }

    /// Has all of it durable here, or set aside, and says so.
    async fn take_in(
        &mut self,
        control: &mut Controlled,
        inlet: &mut dyn Inlet,
        incoming: Vec<Incoming>,
    ) -> Result<Result<(), LinkError>, Ended> {
        let mut fates = vec![Fate::Taken; incoming.len()];
        let source = Arc::clone(&self.source);
        let mut left = match &source.to {
            Destination::Settle(settles) => {
                match self.settle_all(control, inlet, settles, incoming, &mut fates).await? {
                    Ok(left) => left,
                    Err(lost) => return Ok(Err(lost)),
                }
            }
            _ => {
                let mut left = Vec::with_capacity(incoming.len());
                for (nth, one) in incoming.into_iter().enumerate() {
                    match source.message(one) {
                        (message, Ok(())) => left.push((nth, message)),
                        (message, Err(why)) => {
                            fates[nth] = Fate::Refused;
                            self.refuse(&message, why, &mut left, nth);
                        }
                    }
                }
                left
            }
        };
        let (mut failures, mut at_once) = (0, usize::MAX);
        while !left.is_empty() {
            at_once = at_once.min(left.len());
            let batch: Vec<NewMessage> = left[..at_once].iter().map(|(_, message)| message.clone()).collect();
            let bytes: u64 = batch.iter().map(|message| message.content.size() as u64).sum();
            match self.site.engine.publish(batch).await {
                Ok(_) => {
                    self.view.taken += at_once as u64;
                    self.view.taken_bytes += bytes;
                    self.view.last_taken = Some(self.site.place.clock.now());
                    left.drain(..at_once);
                }
                Err(Failure::Refused(refused)) if is_too_much(&refused) && at_once > 1 => at_once /= 2,
                Err(Failure::Refused(refused)) if is_for_good(refused.refusal) => {
                    let at = match refused.part {
                        Some(Part::Publish(at)) => at,
                        _ => 0,
                    };
                    let (nth, message) = left.remove(at);
                    // Twice in one batch: the first of the two is enough.
                    if fates[nth] == Fate::Refused {
                        // So does the queue for what is refused.
                        self.note(format!(
                            "{}: {}",
                            self.source.refused_to.as_deref().unwrap_or_default(),
                            refused.refusal
                        ));
                    } else if refused.refusal != Refusal::IdPending {
                        fates[nth] = Fate::Refused;
                        self.refuse(&message, refused.refusal.to_string(), &mut left, nth);
                    }
                }
                Err(failure) => {
                    failures += 1;
                    let why = self.named(&failure, &left);
                    if let Err(lost) = self.blocked(control, inlet, why, failures).await? {
                        return Ok(Err(lost));
                    }
                }
            }
        }
        Ok(inlet.settle(fates).await)
    }

    /// Waits before the next attempt at what could not be done; within: the connection was lost meanwhile, or the source is paused.
    async fn blocked(
        &mut self,
        control: &mut Controlled,
        inlet: &mut dyn Inlet,
        why: String,
        failures: u32,
    ) -> Result<Result<(), LinkError>, Ended> {
        self.view.state = IntakeState::Blocked;
        self.note(why);
        let pause = Duration::from_millis(PAUSES.wait_ms(failures));
        let waited = self.until(control, tokio::time::timeout(pause, inlet.lost())).await?;
        if let Some(Ok(lost)) = waited {
            return Ok(Err(lost));
        }
        if self.is_paused {
            return Ok(Err(LinkError::Lost("paused".to_owned())));
        }
        Ok(Ok(()))
    }

    /// Does what these events say, in their order. Answers those that say nothing that could be done, for the queue that is named for them.
    async fn settle_all(
        &mut self,
        control: &mut Controlled,
        inlet: &mut dyn Inlet,
        settles: &Settles,
        incoming: Vec<Incoming>,
        fates: &mut [Fate],
    ) -> Result<Result<Vec<(usize, NewMessage)>, LinkError>, Ended> {
        let source = Arc::clone(&self.source);
        let id = source.id.as_ref().expect("a source that settles was checked to say where");
        let mut left = Vec::new();
        for (nth, one) in incoming.into_iter().enumerate() {
            let event = match settles.event(id, &one) {
                Ok(event) => event,
                Err(why) => {
                    fates[nth] = Fate::Refused;
                    let why = self.unreadable(&one, &why, "an event is refused");
                    self.set_aside(&source.message(one).0, why, &mut left, nth);
                    continue;
                }
            };
            let mut failures = 0;
            while let Some(event) = &event
                && let Err(failure) = settles.settle(&self.site.engine, event).await
            {
                failures += 1;
                let why = format!("{}: {failure}", settles.queue);
                if let Err(lost) = self.blocked(control, inlet, why, failures).await? {
                    return Ok(Err(lost));
                }
            }
            if let Some(why) = event.and_then(|event| event.left_out) {
                let why = self.unreadable(&one, &why, "a part of an event counts nothing");
                self.note(why);
            }
            self.view.taken += 1;
            self.view.taken_bytes += one.body.len() as u64;
            self.view.last_taken = Some(self.site.place.clock.now());
        }
        Ok(Ok(left))
    }

    /// Why a batch was not published, with the queue or the exchange that it is about.
    fn named(&self, failure: &Failure, batch: &[(usize, NewMessage)]) -> String {
        let Failure::Refused(refused) = failure else { return failure.to_string() };
        let at = if let Some(Part::Publish(at)) = refused.part { at } else { 0 };
        let name = match batch.get(at).map(|(_, message)| &message.to) {
            Some(Target::Queue(name) | Target::Exchange { name, .. }) => name,
            _ => self.source.destination(),
        };
        format!("{name}: {failure}")
    }

    /// A message that can never be taken goes where such messages go, with the next attempt; or it is counted only.
    fn refuse(&mut self, message: &NewMessage, why: String, left: &mut Vec<(usize, NewMessage)>, nth: usize) {
        tracing::warn!(source = &*self.site.place.name, id = message.id.as_deref(), "refused: {why}");
        self.set_aside(message, why, left, nth);
    }

    /// Logs once for each topic what is wrong with an event of it. Answers why, with where the event stood.
    fn unreadable(&mut self, event: &Incoming, why: &str, what: &str) -> String {
        let Incoming { path, place, .. } = event;
        let comma = if path.is_empty() || place.is_empty() { "" } else { ", " };
        let why = format!("{path}{comma}{place}: {why}");
        if self.unread.len() < UNREAD_MAX && self.unread.insert(format!("{what} {path}")) {
            tracing::warn!(
                source = &*self.site.place.name,
                "{what}: {why}; further ones from there are not logged"
            );
        }
        why
    }

    fn set_aside(
        &mut self,
        message: &NewMessage,
        why: String,
        left: &mut Vec<(usize, NewMessage)>,
        nth: usize,
    ) {
        self.view.refused += 1;
        if let Some(queue) = &self.source.refused_to {
            left.push((nth, Source::set_aside(queue, message, &why)));
        }
        self.note(why);
    }
}

/// Whether fewer messages may be taken.
fn is_too_much(refused: &Refused) -> bool {
    refused.part.is_none() && matches!(refused.refusal, Refusal::TooLargeAtOnce | Refusal::TooManyCopies)
}

/// Whether the same message would be refused again.
fn is_for_good(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::MessageTooLarge
            | Refusal::TooLargeAtOnce
            | Refusal::KeyMissing
            | Refusal::KeyInvalid
            | Refusal::KeyWeightInvalid
            | Refusal::KeyWeightAlone
            | Refusal::IdInvalid
            | Refusal::IdPending
            | Refusal::PriorityOutOfRange
            | Refusal::PriorityUnknown
            | Refusal::Unroutable
    )
}

#[cfg(test)]
mod tests;

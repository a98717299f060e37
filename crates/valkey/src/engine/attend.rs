//! Who consumes from a queue, over all processes: each says in the first place how many consumers it has, again and again, and hears how many others have.
//!
//! By that an exclusive consumer is alone, a single active consumer is one of the process that came first, and a queue goes with the last consumer of all. A process that says nothing more
//! for 15 seconds is struck off there; when it comes back and may not consume any more, its consumers are cancelled.

use std::sync::atomic::{AtomicU64, Ordering};

use overtake_engine::core::Answer;
use overtake_engine::{ConsumeRequest, Failure};
use overtake_lane::{Asker, Consume, ConsumerId, QueueId, Refusal, SessionId, Time, WindowId};
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

use super::House;
use super::hosted::Hosted;
use super::signs::{ALIVE, ALIVE_MS};
use crate::functions::{Attend, Attended, Process, View};

/// What a process said last of its consumers.
#[derive(Debug, Default)]
pub(super) struct Attendance {
    /// When it asked last and was answered. Whoever comes or goes does so alone.
    asked: Turn<Option<Instant>>,
    /// How many it has there, as far as others know: not fewer.
    said: AtomicU64,
}

impl Attendance {
    /// Whether others may have struck this process off since.
    async fn is_over(&self) -> bool {
        self.asked.lock().await.is_none_or(|asked| asked.elapsed() >= ALIVE)
    }

    /// Whether others believe that there are consumers here.
    pub(super) fn is_said(&self) -> bool {
        self.said.load(Ordering::Relaxed) > 0
    }
}

impl House {
    /// Starts a consumer that stays; the session is told whether it may.
    pub(super) async fn consume(
        &self,
        number: SessionId,
        asker: Asker,
        (consumer, consume): (ConsumerId, ConsumeRequest),
        token: Option<u64>,
    ) {
        let ConsumeRequest { queue, window, urgent, priority, shared, exclusive, no_ack, holder } = consume;
        let hosted = self.hosted_by_name(asker, &queue).await;
        let hosted = match hosted {
            Ok(hosted) => hosted,
            Err(why) => {
                return self.on_floor(|floor, _, after| floor.tell_answer(number, token, Err(why), after));
            }
        };
        hosted.settled_down().await;
        let shared = shared.zip(asker.session).map(|(number, session)| WindowId { session, number });
        let consume =
            Consume { consumer, queue, window, shared, urgent, priority, feed: None, exclusive, no_ack };
        let mut is_refused = false;
        let come = || {
            self.on_floor(|floor, now, after| {
                let consumed = floor.consume(now, (asker, number), (hosted.queue, consume), holder, after);
                is_refused = consumed.is_err();
                let result = consumed.map(|()| Answer::Done).map_err(Failure::from);
                floor.tell_answer(number, token, result, after);
            });
        };
        if let Err(why) = self.attend(&hosted, Some(exclusive), come).await {
            return self.on_floor(|floor, _, after| floor.tell_answer(number, token, Err(why), after));
        }
        if is_refused {
            // One fewer than was said.
            drop(self.attend_again(&hosted).await);
        }
        hosted.places().show_again();
        self.dispatched(&hosted);
    }

    /// Says how many consumers this process has of a queue, and serves them as what is heard lets it. With one that is to come: whether it is to be the only one; it comes while nobody else
    /// of this process comes or goes there.
    async fn attend(
        &self,
        hosted: &Hosted,
        coming: Option<bool>,
        come: impl FnOnce(),
    ) -> Result<Attended, Failure> {
        if self.is_down() {
            return Err(self.unavailable());
        }
        let attendance = &hosted.attendance;
        let mut last = attendance.asked.lock().await;
        let asked = Instant::now();
        let (consumers, has_exclusive) = self.floor().consumers(hosted.queue);
        let consumers = consumers + u64::from(coming.is_some());
        let is_exclusive = has_exclusive || coming == Some(true);
        let attend = Attend { process: self.caller.clone(), ms: ALIVE_MS, consumers, is_exclusive };
        // If the answer is lost this may be what others know.
        attendance.said.fetch_max(consumers, Ordering::Relaxed);
        let attended = hosted.ask(0, &attend).await?.map_err(|declined| Failure::from(declined.0))?;
        attendance.said.store(consumers, Ordering::Relaxed);
        *last = Some(asked);
        let is_elsewhere = consumers > 0 && !attended.is_first;
        self.on_floor(|floor, now, after| floor.set_active_elsewhere(now, hosted.queue, is_elsewhere, after));
        come();
        Ok(attended)
    }

    /// Says it again, where somebody consumes or has. Those that may not any more are cancelled; a queue goes that goes with its last consumer.
    pub(super) async fn attend_again(&self, hosted: &Hosted) -> Result<(), Failure> {
        if hosted.is_gone() || !hosted.attendance.is_said() {
            return Ok(());
        }
        match self.attend(hosted, None, || ()).await {
            Err(Failure::Refused(refused)) if refused.refusal == Refusal::ConsumerExclusive => {
                tracing::warn!(queue = %hosted.name, "its consumers here are cancelled: this broker was not to be reached, and another has an exclusive one");
                self.on_floor(|floor, now, after| floor.cancel_consumers(now, hosted.queue, after));
                Ok(())
            }
            attended => {
                let is_last = attended?.others == 0 && !hosted.attendance.is_said();
                if is_last && self.goes_with_consumers(hosted.queue) {
                    self.delete(hosted.queue).await;
                }
                Ok(())
            }
        }
    }

    /// Before a single active consumer is served: that it is still the one.
    pub(super) async fn be_sure_of_attendance(&self, hosted: &Hosted) -> Result<(), Failure> {
        if hosted.settings().single_active_consumer && hosted.attendance.is_over().await {
            self.attend_again(hosted).await?;
        }
        Ok(())
    }

    /// Consumers of other processes, and of this one; and pulls that wait here.
    pub(super) async fn all_takers(&self, hosted: &Hosted) -> Result<(u64, u64), Failure> {
        let others = hosted.ask(0, &View).await?.consumers_of_others;
        let (consumers, waiting) = self.takers(hosted.queue);
        Ok((others + consumers, waiting))
    }

    /// A process is gone without a word: its consumers have left, and queues go that go with their last one.
    pub(super) async fn have_left(&self, process: &Process) -> Result<(), Failure> {
        for queue in self.auto_deleted() {
            let gone = Attend { process: process.caller(), ms: 0, consumers: 0, is_exclusive: false };
            let left = async {
                let hosted = self.hosted(queue).await?;
                let attended = hosted.ask(0, &gone).await?.map_err(|declined| Failure::from(declined.0))?;
                Ok::<_, Failure>(attended.has_begun && self.all_takers(&hosted).await?.0 == 0)
            };
            match left.await {
                Ok(true) => self.delete(queue).await,
                Err(why) if why != Failure::from(Refusal::NoSuchQueue) => return Err(why),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a queue goes with its last consumer.
    fn goes_with_consumers(&self, queue: QueueId) -> bool {
        let identity = self.definitions.with(|broker| {
            let (vhost, name) = (broker.vhost_of(queue)?, broker.name(queue)?);
            broker.view(Time(0), vhost, name).ok().map(|view| view.identity)
        });
        identity.is_some_and(|identity| identity.auto_delete)
    }

    /// All queues that do.
    fn auto_deleted(&self) -> Vec<QueueId> {
        self.definitions.with(|broker| {
            let all = broker.all_views(Time(0)).filter(|view| view.identity.auto_delete);
            all.map(|view| view.queue).collect()
        })
    }
}

//! Looking at all queues, again and again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overtake_engine::{Clock, Engine, Failure, every_queue_everywhere};
use overtake_lane::{QueueId, QueueView, VhostView};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use crate::history::{History, LaneSeries, SAMPLE_MS, Totals};
use crate::look::{Look, QueueLook};
use crate::trouble;

/// From one look to the next while somebody watches.
const WATCHED: Duration = Duration::from_secs(1);

/// How all queues stand and have stood.
pub struct Overview {
    engine: Arc<dyn Engine>,
    clock: Arc<dyn Clock>,
    looks: watch::Sender<Arc<Look>>,
    history: Mutex<History>,
    /// Somebody has begun to watch.
    watched: Notify,
}

impl Overview {
    /// Of the queues of this engine. Nothing is looked at before [`Overview::run`].
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Self {
        let looks = watch::Sender::default();
        Self { engine, clock, looks, history: Mutex::default(), watched: Notify::new() }
    }

    /// Looks, until it is dropped: every ten seconds, and every second while somebody watches. Unless somebody does, the first look is a second from now: who waits for a broker that begins
    /// goes first.
    pub async fn run(&self) {
        if self.looks.receiver_count() == 0 {
            drop(timeout(WATCHED, self.watched.notified()).await);
        }
        let mut last: Option<(Arc<Look>, Instant)> = None;
        let mut sampled: Option<(Arc<Look>, Instant)> = None;
        loop {
            let now = Instant::now();
            match self.look(last.as_ref().map(|(look, at)| (&**look, now - *at))).await {
                Ok(look) => {
                    let due = sampled.as_ref().is_none_or(|(_, at)| now - *at + WATCHED / 2 >= SAMPLE);
                    if due {
                        // What moved since the sample before, not only since the last look.
                        let queues =
                            look.queues.iter().map(|queue| (Arc::clone(&queue.vhost), queue.view.clone()));
                        let before = sampled.as_ref().map(|(look, at)| (&**look, now - *at));
                        let sample = Arc::new(Look::after(before, look.at, queues.collect()));
                        self.history().take(&sample);
                        sampled = Some((sample, now));
                    }
                    let look = Arc::new(look);
                    self.looks.send_replace(Arc::clone(&look));
                    last = Some((look, now));
                }
                Err(failure) => tracing::debug!("not looked: {failure}"),
            }
            let next = sampled.as_ref().map_or(now + WATCHED, |(_, at)| *at + SAMPLE);
            let soon = now + WATCHED;
            if self.looks.receiver_count() == 0 {
                tokio::select! {
                    () = tokio::time::sleep_until(next.max(soon)) => continue,
                    () = self.watched.notified() => {}
                }
            }
            tokio::time::sleep_until(soon).await;
        }
    }

    async fn look(&self, before: Option<(&Look, Duration)>) -> Result<Look, Failure> {
        let mut queues: Vec<(Arc<str>, QueueView)> = Vec::new();
        let show = |vhost: &VhostView, queue| queues.push((Arc::clone(&vhost.name), queue));
        every_queue_everywhere(&*self.engine, show).await?;
        let mut look = Look::after(before, self.clock.now(), queues);
        let history = self.history();
        for queue in &mut look.queues {
            queue.troubles = trouble::of(queue, &history);
        }
        Ok(look)
    }

    /// The last look, and all that come, as long as this is kept. The first may be of up to ten seconds ago.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Look>> {
        let looks = self.looks.subscribe();
        self.watched.notify_one();
        looks
    }

    /// A look that is not older than a second: the next one where the last is.
    pub async fn now(&self) -> Arc<Look> {
        let mut looks = self.watch();
        let age = self.clock.now().0.saturating_sub(looks.borrow_and_update().at.0);
        if u128::from(age) > WATCHED.as_millis() {
            // It ends only with the broker.
            _ = looks.changed().await;
        }
        Arc::clone(&looks.borrow())
    }

    /// How those of all queues have stood together that somebody sees.
    #[must_use]
    pub fn totals(&self, sees: impl Fn(QueueId) -> bool) -> Totals {
        self.history().totals(sees)
    }

    /// How the lanes of a queue have stood, up to the same time as [`Overview::totals`].
    #[must_use]
    pub fn lanes(&self, queue: &QueueView) -> Vec<LaneSeries> {
        let history = self.history();
        queue.lanes.iter().map(|lane| history.lane(queue.queue, lane)).collect()
    }

    /// Lanes with something to tell of which no samples are kept, because there are too many.
    #[must_use]
    pub fn lanes_without_samples(&self) -> usize {
        self.history().untold()
    }

    /// When the last sample was taken, Unix ms.
    #[must_use]
    pub fn until(&self) -> u64 {
        self.history().until().0
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const SAMPLE: Duration = Duration::from_millis(SAMPLE_MS);

/// The queue to look at first comes first.
impl Look {
    /// How much a queue wants to be looked at: larger is more.
    #[must_use]
    pub fn rank(queue: &QueueLook) -> (u8, u64, u64) {
        trouble::rank(queue)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use overtake_lane::{LaneView, Seq, Settings, VhostId};

    use super::*;

    /// A queue with these lanes: name, published in all, ready.
    pub(crate) fn queue(number: u32, lanes: &[(&str, u64, u64)]) -> QueueView {
        let count = i32::try_from(lanes.len()).expect("few");
        let lanes = lanes.iter().zip(0..).map(|((lane, published, ready), at)| LaneView {
            lane: Arc::from(*lane),
            level: count - at,
            published: *published,
            ready: *ready,
            ..LaneView::default()
        });
        QueueView {
            queue: QueueId(number),
            vhost: VhostId::DEFAULT,
            name: format!("queue-{number}").into(),
            settings: Settings::default(),
            ruled: None,
            policy: None,
            operator_policy: None,
            without_effect: Vec::new(),
            identity: overtake_lane::Identity::default(),
            owner: None,
            consumers: 0,
            waiting: 0,
            active_at: overtake_lane::Time(0),
            first_seq: overtake_lane::Seq(1),
            next_seq: Seq(1),
            quarantined: 0,
            lanes: lanes.collect(),
            keys: Vec::new(),
        }
    }
}

//! The queues that this process serves: which they are, and how it begins with one.

use std::sync::{Arc, Weak};

use overtake_engine::{Failure, Held};
use overtake_lane::{Asker, QueueId, Receipt, Refusal, Time};

use super::hosted::{Common, Hosted};
use super::{House, carry};

impl House {
    pub(super) fn known(&self, queue: QueueId) -> Option<Arc<Hosted>> {
        self.hosted.lock().expect("nobody panics with it").get(&queue).cloned()
    }

    pub(super) fn all_hosted(&self) -> Vec<Arc<Hosted>> {
        self.hosted.lock().expect("nobody panics with it").values().cloned().collect()
    }

    /// A queue that is defined, served here from now on.
    pub(super) async fn hosted(&self, queue: QueueId) -> Result<Arc<Hosted>, Failure> {
        if self.is_down() {
            return Err(self.unavailable());
        }
        if let Some(hosted) = self.known(queue) {
            return Ok(hosted);
        }
        // Whoever wants it meanwhile waits: else all its places would be asked everything twice.
        let beginning = || self.beginning.lock().expect("nobody panics with it");
        let turn = Arc::clone(beginning().entry(queue).or_default());
        let _turn = turn.lock().await;
        let hosted = match self.known(queue) {
            Some(hosted) => Ok(hosted),
            None => self.host(queue).await,
        };
        beginning().remove(&queue);
        hosted
    }

    /// Begins to serve a queue here.
    async fn host(&self, queue: QueueId) -> Result<Arc<Hosted>, Failure> {
        let defined = self.definitions.with(|broker| {
            let name = broker.name(queue)?.clone();
            let vhost = broker.vhost_of(queue)?;
            let settings = broker.settings(vhost, &name).ok()?.clone();
            Some((name, vhost, settings))
        });
        let (name, vhost, settings) = defined.ok_or(Refusal::NoSuchQueue)?;
        let of = self.definitions.of(queue).ok_or(Refusal::NoSuchQueue)?;
        let common = Common {
            default_ttl_ms: self.options.default_ttl_ms,
            max_message_bytes: self.options.max_message_bytes,
            sweep: self.options.sweep,
        };
        let known = (Arc::clone(&self.cluster), Arc::clone(&self.definitions));
        let caller = (self.caller.clone(), Arc::clone(&self.tally));
        let common = (common, self.came_as);
        let hosted = Hosted::new(known, (queue, vhost, name), of, &settings, caller, common);
        // What is defined while places are told what holds reaches only what is served: then they are told again.
        loop {
            self.renew(&hosted).await?;
            if hosted.is_gone() {
                return Err(Refusal::NoSuchQueue.into());
            }
            if let Some(served) = self.take_in(&hosted) {
                return Ok(served);
            }
        }
    }

    /// Serves a queue from now on, unless something else holds for it by now, or it is gone.
    fn take_in(&self, hosted: &Arc<Hosted>) -> Option<Arc<Hosted>> {
        self.definitions.with(|broker| {
            broker.name(hosted.queue)?;
            let settings = broker.settings(hosted.vhost, &hosted.name).ok()?;
            hosted.is_ruled_by(settings).then(|| {
                let mut all = self.hosted.lock().expect("nobody panics with it");
                let served = all.entry(hosted.queue).or_insert_with(|| {
                    let carrying = carry::keep_carrying(self.me.clone(), Arc::downgrade(hosted));
                    self.runtime.spawn(carrying);
                    Arc::clone(hosted)
                });
                Arc::clone(served)
            })
        })
    }

    /// The queue of this name, where somebody may use it.
    pub(super) async fn hosted_by_name(&self, asker: Asker, name: &str) -> Result<Arc<Hosted>, Failure> {
        let queue = self.definitions.with(|broker| broker.usable_by(asker, name))?;
        self.hosted(queue).await
    }

    /// The queue of a receipt, if it is where somebody asks.
    pub(super) async fn hosted_in(
        &self,
        asker: Asker,
        queue: QueueId,
    ) -> Result<Option<Arc<Hosted>>, Failure> {
        if self.definitions.with(|broker| broker.vhost_of(queue)) != Some(asker.vhost) {
            return Ok(None);
        }
        self.hosted(queue).await.map(Some)
    }

    /// Consumers that stay, and pulls that wait, of this process.
    pub(super) fn takers(&self, queue: QueueId) -> (u64, u64) {
        self.known(queue).map_or((0, 0), |hosted| self.floor().takers(hosted.vhost, &hosted.name))
    }

    /// What is known of the lease of a message.
    pub(super) fn held(&self, receipt: &Receipt) -> Option<Held> {
        self.floor().held(receipt)
    }
}

/// Begins to serve queues of several places before anybody asks for them: that takes as long as all their places need to answer.
pub(super) async fn serve_from_the_start(house: Weak<House>) {
    let Some(at_work) = house.upgrade() else { return };
    let several = at_work.definitions.with(|broker| {
        let all = broker.all_views(Time(0));
        all.filter(|view| view.effective_settings().partitions.places() > 1)
            .map(|view| view.queue)
            .collect::<Vec<_>>()
    });
    drop(at_work);
    for queue in several {
        let Some(at_work) = house.upgrade() else { return };
        // Whoever asks for it tries again, and is told.
        if let Err(why) = at_work.hosted(queue).await {
            tracing::debug!(queue = queue.0, %why, "it is not served yet");
        }
    }
}

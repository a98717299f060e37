//! Changing what is defined, and following what others change.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use overtake_engine::core::{Answer, answer_of};
use overtake_engine::routing::{entries_of, metadata_of_routes, missing_endpoints};
use overtake_engine::{Declared, Failure, RouteSet};
use overtake_lane::{
    Asker, Broker, Command, Existing, Fact, MetadataEntry, QueueId, Refusal, RemoteQueue, Reply, SessionId,
    Settings, Step, Time,
};

use super::House;
use super::hosted::{Hosted, deadline};
use super::signs::ALIVE_MS;
use crate::functions::{Enrol, Enrolled, Process};
use crate::places::Places;

impl House {
    /// Does a command that changes what is defined.
    pub(super) async fn define(&self, asker: Asker, command: Command) -> Result<Answer, Failure> {
        match command {
            Command::DeclareQueue { name, settings, identity, existing } => {
                if existing != Existing::Same {
                    self.check_fixed(asker, &name, &settings).await?;
                }
                let command = Command::DeclareQueue { name, settings, identity, existing };
                let reply = self.definitions.apply(asker, command).await?;
                let Reply::Declared { queue, made, .. } = reply else {
                    unreachable!("a declaration is answered as one")
                };
                self.declared(queue, made).await
            }
            Command::CheckQueue { name } => {
                let queue = self.definitions.with(|broker| broker.usable_by(asker, &name))?;
                self.declared(queue, false).await
            }
            Command::DeleteQueue { name, if_empty, if_unused } => {
                let hosted = self.hosted_by_name(asker, &name).await?;
                hosted.settled_down().await;
                if if_empty && self.depth(&hosted).await? > 0 {
                    return Err(Refusal::NotEmpty.into());
                }
                if if_unused && self.all_takers(&hosted).await? != (0, 0) {
                    return Err(Refusal::InUse.into());
                }
                let ready = self.ready(&hosted).await?;
                let command = Command::DeleteQueue { name, if_empty: false, if_unused: false };
                self.end_queues(asker, |broker, step| {
                    broker.apply_by(Time(0), asker, command.clone(), step).map(drop)
                })
                .await?;
                Ok(Answer::Count(ready))
            }
            Command::DeleteVhost { name } => {
                self.end_queues(asker, |broker, step| {
                    let vhost = broker.vhost(&name)?.vhost;
                    let command = Command::DeleteVhost { name: Arc::clone(&name) };
                    broker.apply_by(Time(0), asker, command, step)?;
                    let gone = metadata_of_routes(broker, vhost);
                    let entries: Vec<_> = gone.iter().map(|key| MetadataEntry::remove(key)).collect();
                    if !entries.is_empty() {
                        broker.apply_by(Time(0), asker, Command::SetMetadata { entries }, step)?;
                    }
                    Ok(())
                })
                .await?;
                Ok(Answer::Done)
            }
            command => {
                let may_touch_queues =
                    matches!(command, Command::SetPolicy { .. } | Command::RemovePolicy { .. });
                let reply = self.definitions.apply(asker, command).await?;
                if may_touch_queues {
                    self.reconcile().await;
                }
                Ok(answer_of(reply))
            }
        }
    }

    /// What stays as it is while messages are there.
    async fn check_fixed(&self, asker: Asker, name: &str, settings: &Settings) -> Result<(), Failure> {
        let before = self.definitions.with(|broker| {
            broker.usable_by(asker, name).ok()?;
            broker.own_settings(asker.vhost, name).ok().cloned()
        });
        let Some(before) = before else { return Ok(()) };
        // Others publish to the places that are there.
        if before.partitions != settings.partitions {
            return Err(Refusal::SettingFixed("partitions").into());
        }
        let Some(fixed) = before.fixed_change(settings) else { return Ok(()) };
        let hosted = self.hosted_by_name(asker, name).await?;
        if self.depth(&hosted).await? > 0 { Err(Refusal::SettingFixed(fixed).into()) } else { Ok(()) }
    }

    async fn declared(&self, queue: QueueId, made: bool) -> Result<Answer, Failure> {
        let hosted = self.hosted(queue).await?;
        self.renew(&hosted).await?;
        hosted.unused_in(true).await?;
        if made {
            return Ok(Answer::Declared(Declared { made, ready: 0, consumers: 0 }));
        }
        let (ready, (consumers, _)) = (self.ready(&hosted).await?, self.all_takers(&hosted).await?);
        Ok(Answer::Declared(Declared { made, ready, consumers }))
    }

    /// Sets the routes of a virtual host; queues of endpoints that are not there are made.
    pub(super) async fn set_routes(&self, asker: Asker, set: Arc<RouteSet>) -> Result<Answer, Failure> {
        self.definitions
            .change(asker, |broker, step| {
                broker.vhost_name(asker.vhost).ok_or(Refusal::NoSuchVhost)?;
                for (name, settings) in missing_endpoints(broker, asker.vhost, &set) {
                    broker.apply_by(Time(0), asker, Command::declare(name, Box::new(settings)), step)?;
                }
                let entries = entries_of(broker, asker.vhost, set.manifest());
                if !entries.is_empty() {
                    broker.apply_by(Time(0), asker, Command::SetMetadata { entries }, step)?;
                }
                Ok(())
            })
            .await?;
        self.routes().set(asker.vhost, set);
        Ok(Answer::Done)
    }

    /// A session is over: the queues that were its own are gone.
    pub(super) async fn session_ended(&self, session: SessionId) {
        let owns = self.definitions.with(|broker| broker.owned().any(|(_, owner)| owner == session));
        if !owns || self.is_down() {
            return;
        }
        let ended = self.end_queues(Asker::default(), |broker, step| {
            broker.apply_by(Time(0), Asker::default(), Command::EndSession { session }, step).map(drop)
        });
        if let Err(why) = ended.await {
            tracing::warn!(%why, "queues of a session that is over are not deleted yet");
        }
    }

    /// Consumers have left these queues: those go that go with their last one.
    pub(super) async fn end_left(&self, left: BTreeSet<QueueId>) {
        for queue in left {
            let Some(hosted) = self.known(queue) else { continue };
            // It counts as unused from now on; if that cannot be said, from the last time on that it could.
            let _ = hosted.unused_in(true).await;
            if let Err(why) = self.attend_again(&hosted).await {
                tracing::debug!(queue = %hosted.name, %why, "others do not know yet that a consumer has left");
            }
        }
    }

    /// Ends a queue that nobody has used for too long. Answers in how many ms that is to be looked at again; `None`: not at all.
    pub(super) async fn expire_unused(&self, hosted: &Hosted) -> Option<u64> {
        let is_used = self.takers(hosted.queue) != (0, 0);
        match hosted.unused_in(is_used).await {
            Ok(Some(0)) => {
                self.delete(hosted.queue).await;
                None
            }
            Ok(wait) => wait,
            Err(why) => {
                tracing::debug!(queue = %hosted.name, %why, "it is not known whether it is used");
                Some(UNUSED_LOOK_MS)
            }
        }
    }

    /// Deletes a queue, whoever's it is.
    pub(super) async fn delete(&self, queue: QueueId) {
        let deleted = self.end_queues(Asker::default(), |broker, step| {
            let Some(vhost) = broker.vhost_of(queue) else { return Ok(()) };
            let owner = broker.owned().find(|(owned, _)| *owned == queue).map(|(_, session)| session);
            let name = Arc::clone(broker.name(queue).ok_or(Refusal::NoSuchQueue)?);
            let command = Command::DeleteQueue { name, if_empty: false, if_unused: false };
            broker.apply_by(Time(0), Asker { session: owner, vhost }, command, step).map(drop)
        });
        if let Err(why) = deleted.await {
            tracing::warn!(queue = queue.0, %why, "a queue that is over is not deleted yet");
        }
    }

    /// Queues and exchanges go that do not outlive their broker: this process is the first.
    pub(super) async fn drop_passing(&self) -> Result<(), Failure> {
        self.end_queues(Asker::default(), |broker, step| {
            broker.wake(Time(0), step);
            Ok(())
        })
        .await
    }

    /// Does a change by which queues may go, and leaves nothing of those at their places. Nobody else ever does: what is not seen defined may only be unseen.
    async fn end_queues(
        &self,
        asker: Asker,
        mut change: impl FnMut(&mut Broker, &mut Step) -> Result<(), Refusal>,
    ) -> Result<(), Failure> {
        let gone = self
            .definitions
            .change(asker, |broker, step| {
                let places: BTreeMap<QueueId, u16> = broker.partitioned().collect();
                change(broker, step)?;
                let places = |queue: &QueueId| places.get(queue).copied().unwrap_or(1);
                let whose = |queue| Some((queue, self.definitions.of(queue)?, places(&queue)));
                Ok(deleted(step).into_iter().filter_map(whose).collect::<Vec<_>>())
            })
            .await?;
        let version = *self.definitions.versions().borrow();
        for (queue, of, places) in gone {
            if let Some(hosted) = self.known(queue) {
                self.end_hosted(&hosted);
            }
            let forgotten =
                Places::forget(&self.cluster, (queue.0, &of), places.into(), version, deadline()).await;
            if let Err(why) = forgotten {
                tracing::warn!(queue = queue.0, %why, "what is left of a queue that was deleted is not gone yet");
            }
        }
        self.reconcile().await;
        Ok(())
    }

    /// Says that this process is there. Answers the processes that are gone without a word.
    pub(super) async fn enrol(&self) -> Vec<Process> {
        let call = self.enrolment(&self.process, ALIVE_MS).call();
        let Ok(value) = self.cluster.call(deadline(), call).await else { return Vec::new() };
        let Ok(Enrolled { was_known, gone, .. }) = Enrol::read(&value) else { return Vec::new() };
        if !was_known {
            self.was_forgotten().await;
        }
        gone
    }

    /// That a process is there for so long from now, ms; 0: it is gone.
    pub(super) fn enrolment(&self, process: &Process, ms: u64) -> Enrol {
        Enrol { process: process.clone(), ms, incarnation: self.definitions.incarnation() }
    }

    /// Ends what processes had that are gone without a word.
    pub(super) async fn strike_off_the_gone(&self) {
        for process in self.enrol().await {
            self.end_owners(&process).await;
            if let Err(why) = self.have_left(&process).await {
                tracing::debug!(%process, %why, "what goes with its consumers is not deleted yet");
                continue;
            }
            let call = self.enrolment(&process, 0).call();
            drop(self.cluster.call(deadline(), call).await);
        }
    }

    /// Ends the sessions of a process that have queues of their own, which go with them.
    async fn end_owners(&self, process: &Process) {
        let its = |session: &SessionId| session.0 >> 32 == u64::from(process.number());
        let sessions: Vec<SessionId> =
            self.definitions.with(|broker| broker.owned().map(|(_, session)| session).filter(its).collect());
        for session in sessions {
            self.session_ended(session).await;
        }
    }

    /// The servers no longer know this process: others took it for gone, or the servers lost what they had written. Queues that its sessions had made for themselves may be gone, so the
    /// sessions end, and definitions are read anew.
    async fn was_forgotten(&self) {
        if let Err(why) = self.definitions.follow().await {
            tracing::warn!(%why, "definitions cannot be read");
        }
        tracing::warn!(
            "the servers no longer know this broker: it was not to be reached for {} s, or they have lost what was written; it joins again",
            ALIVE_MS / 1_000
        );
        self.begin_again().await;
    }

    /// Ends all sessions, and the queues that were theirs.
    pub(super) async fn begin_again(&self) {
        let sessions = self.floor().sessions();
        tracing::warn!(
            sessions = sessions.len(),
            "the sessions of this broker end, and their clients connect again"
        );
        for session in sessions {
            self.on_floor(|floor, now, after| floor.end(now, session, Some(session), after));
        }
        self.end_owners(&self.process).await;
        self.reconcile().await;
    }

    // ---- what is served here ----

    /// Has everything that is served here be as it is defined.
    pub(super) async fn reconcile(&self) {
        for hosted in self.all_hosted() {
            if let Err(why) = self.renew(&hosted).await {
                tracing::warn!(queue = %hosted.name, %why, "its settings do not hold everywhere yet");
            }
        }
    }

    /// Serves a queue no more, which is gone.
    fn end_hosted(&self, hosted: &Hosted) {
        self.hosted.lock().expect("nobody panics with it").remove(&hosted.queue);
        hosted.end();
        self.on_floor(|floor, now, after| floor.end_queue(now, hosted.queue, after));
    }

    /// Has a queue be as it is defined at its places, and on the floor: there before anybody finds it served. One that is gone is ended.
    pub(super) async fn renew(&self, hosted: &Arc<Hosted>) -> Result<(), Failure> {
        if !self.definitions.has(hosted.queue) {
            self.end_hosted(hosted);
            return Ok(());
        }
        let defined = self.definitions.since(hosted.queue, |broker, version| {
            let settings = broker.settings(hosted.vhost, &hosted.name).ok()?;
            let own = broker.own_settings(hosted.vhost, &hosted.name).ok()?;
            (!hosted.is_ruled_by(settings)).then(|| (settings.clone(), own.clone(), version))
        });
        let Some((settings, own, version)) = defined else { return Ok(()) };
        hosted.configure(&settings, &own, version).await?;
        self.seat(hosted);
        hosted.places().show_again();
        Ok(())
    }

    /// Has a queue be on the floor, as it is defined.
    fn seat(&self, hosted: &Arc<Hosted>) {
        let remote = self.definitions.with(|broker| {
            let view = broker.view(Time(0), hosted.vhost, &hosted.name).ok()?;
            let settings = Box::new(view.effective_settings().clone());
            let (queue, vhost, name) = (hosted.queue, hosted.vhost, Arc::clone(&hosted.name));
            Some(RemoteQueue { queue, vhost, name, settings, identity: view.identity, owner: view.owner })
        });
        if hosted.settings().expires_ms > 0 && hosted.watch() {
            self.runtime.spawn(keep_used(self.me.clone(), Arc::downgrade(hosted)));
        }
        if let Some(remote) = remote {
            self.on_floor(|floor, now, after| floor.store(now, remote, after));
        }
    }
}

/// Longest that nobody looks whether a queue is used, ms: as long as it has consumers it is said to be.
const UNUSED_LOOK_MS: u64 = 1_000;

/// Ends a queue when nobody has used it for too long, as long as it is hosted. (Boxed, since others may be hosted meanwhile.)
pub(super) fn keep_used(
    house: Weak<House>,
    hosted: Weak<Hosted>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        loop {
            let (Some(here), Some(at_work)) = (hosted.upgrade(), house.upgrade()) else { return };
            let Some(wait) = at_work.expire_unused(&here).await else { return here.is_watched(false) };
            drop(at_work);
            let mut ended = here.ended();
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(wait.min(UNUSED_LOOK_MS))) => {}
                () = ended.wait() => return,
            }
        }
    })
}

/// Queues that are gone by these facts.
fn deleted(step: &Step) -> Vec<QueueId> {
    let gone = |fact: &Fact| if let Fact::QueueDeleted { queue } = fact { Some(*queue) } else { None };
    step.facts.iter().filter_map(gone).collect()
}

/// Has whoever connected here begin again where other definitions hold than they knew: virtual hosts and queues are not the same.
pub(super) async fn begin_with_others(house: Weak<House>) {
    let Some(mut replaced) = house.upgrade().map(|house| house.definitions.replaced()) else { return };
    while replaced.changed().await.is_ok() {
        let Some(house) = house.upgrade() else { return };
        house.begin_again().await;
    }
}

/// Follows what others define.
pub(super) async fn follow(house: Weak<House>) {
    let Some(mut versions) = house.upgrade().map(|house| house.definitions.versions()) else { return };
    while versions.changed().await.is_ok() {
        let Some(house) = house.upgrade() else { return };
        house.definitions.with(|broker| house.routes().recover_again(broker));
        house.reconcile().await;
    }
}

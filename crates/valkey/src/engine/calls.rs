//! What is asked, and what answers it.

use std::sync::Arc;

use overtake_engine::core::{Answer, Request};
use overtake_engine::{Change, Failure, Select};
use overtake_lane::{
    Asker, Binding, Command, Given, LaneView, Original, Outcome, Priority, QueueView, Receipt, Refusal,
    Report, Status, WindowId,
};

use tokio::time::sleep;

use super::House;
use super::hosted::{Hosted, within_one_deadline};
use super::serve::REST;
use crate::functions::{
    Asked, Cancel, Declined, Extend, Extended, Finish, FinishLate, How, Purge, Remove, Replay, Reprioritise,
    SendHome, Which,
};
use crate::places::together;

/// Most messages that are purged with one call.
const PURGE_MAX: u32 = 128;
/// Most messages that an administrator's request touches with one call.
const TOUCH_MAX: usize = 128;

impl House {
    /// Answers a request; but for a lease and a consumer, of which a session is told.
    pub(super) async fn respond(self: &Arc<Self>, asker: Asker, request: Request) -> Result<Answer, Failure> {
        if self.is_down() {
            return Err(self.unavailable());
        }
        let (withdraws, is_long) = (request.withdraws(), is_long(&request));
        let answered = async {
            let answer = self.answer(asker, request).await;
            if withdraws {
                self.withdrawals.send_modify(|count| *count += 1);
            }
            // Whoever asked finds where it is what left its queue with it.
            self.carry_all().await;
            answer
        };
        if is_long { answered.await } else { within_one_deadline(answered).await }
    }

    async fn answer(self: &Arc<Self>, asker: Asker, request: Request) -> Result<Answer, Failure> {
        match request {
            Request::By { asker, request } => Box::pin(self.answer(asker, *request)).await,
            Request::Do(command) => self.command(asker, command).await,
            Request::Publish { messages, settlements } => self.transact(asker, messages, settlements).await,
            Request::PublishOne(message) => {
                let mut answers = self.publish_each(asker, vec![*message]).await;
                answers.pop().expect("each message has an answer")
            }
            Request::Lease { .. } | Request::Consume { .. } => {
                unreachable!("a lease is lent, and a consumer is of a session")
            }
            Request::Get { get, holder } => self.get(asker, get, holder).await,
            Request::Progress { receipt, visibility_ms, output } => {
                if output.len() > overtake_lane::REPORT_BYTES_MAX {
                    return Err(Refusal::ReportTooLarge.into());
                }
                let reported = Some(Arc::clone(&output));
                let extended = self.extend(asker, vec![receipt], visibility_ms, reported).await?;
                if extended[..] == [Ok(())] {
                    self.floor().progress(receipt, self.now(), output);
                }
                Ok(Answer::Each(extended))
            }
            Request::GiveUp { consumer } => {
                self.on_floor(|floor, now, after| floor.give_up(now, consumer, after));
                Ok(Answer::Done)
            }
            Request::SetWindow { number, size, joining } => {
                let session = asker.session.expect("a window is shared within a session");
                let window = WindowId { session, number };
                self.on_floor(|floor, now, after| floor.set_window(now, window, size, joining, after));
                Ok(Answer::Done)
            }
            Request::Change { queue, select, change, .. } => self.change(asker, &queue, select, change).await,
            // What is changed is changed before it is answered.
            Request::Jobs => Ok(Answer::Jobs(Vec::new())),
            Request::Job { .. } | Request::CancelJob { .. } => Ok(Answer::Job(None)),
            Request::SetRoutes(set) => self.set_routes(asker, set).await,
            look => self.look(asker, look).await,
        }
    }

    async fn change(
        self: &Arc<Self>,
        asker: Asker,
        queue: &str,
        select: Select,
        change: Change,
    ) -> Result<Answer, Failure> {
        let priority = match &change {
            Change::Reprioritise(priority) => Some(priority.clone()),
            Change::Replay(promote) => promote.clone(),
            Change::Remove | Change::Purge | Change::Cancel => None,
        };
        let promoted = self.promoted(asker, queue, priority)?;
        let (hosted, which) = self.choose(asker, queue, select).await?;
        match (change, promoted) {
            (Change::Reprioritise(_), Some((priority, original))) => {
                self.touch(&hosted, which, |which| Reprioritise { priority, original, which }).await
            }
            (Change::Reprioritise(_), None) => unreachable!("it names a priority"),
            (Change::Remove | Change::Purge, _) => self.touch(&hosted, which, Remove).await,
            (Change::Cancel, _) => self.touch(&hosted, which, Cancel).await,
            (Change::Replay(_), promote) => self.replay(&hosted, which, promote).await,
        }
    }

    fn promoted(
        &self,
        asker: Asker,
        queue: &str,
        promote: Option<Given>,
    ) -> Result<Option<(overtake_lane::Priority, overtake_lane::Original)>, Failure> {
        let Some(given) = promote else { return Ok(None) };
        Ok(Some(self.definitions.with(|broker| broker.map_priority(asker.vhost, queue, &given))?))
    }

    async fn command(&self, asker: Asker, command: Command) -> Result<Answer, Failure> {
        match command {
            Command::By { asker, command } => Box::pin(self.command(asker, *command)).await,
            Command::Settle { receipts, outcome } => {
                self.settle(asker, receipts, outcome).await.map(Answer::Each)
            }
            Command::Finish { receipt, outcome, report } => {
                self.finish(asker, receipt, outcome, *report).await
            }
            Command::FinishLate { queue, id, attempt, outcome, report } => {
                report.check()?;
                let (hosted, which) = self.choose(asker, &queue, Select::Id(id.into())).await?;
                let late = |which| FinishLate { attempt, outcome, report: Report::clone(&report), which };
                self.touch(&hosted, which, late).await.map(|_| Answer::Done)
            }
            Command::Extend { receipts, visibility_ms } => {
                self.extend(asker, receipts, visibility_ms, None).await.map(Answer::Each)
            }
            Command::Purge { queue, status, expect } => {
                if let Some(expect) = expect {
                    let count = purgeable_count(&self.queue_view(asker, &queue).await?, status);
                    if count != expect {
                        return Err(Refusal::CountDiffers { count }.into());
                    }
                }
                self.purge(asker, &queue, status).await
            }
            Command::Cancel { .. } | Command::Leave { .. } | Command::Took { .. } => {
                Ok(self.on_floor(|floor, now, after| floor.apply(now, asker, command, after))?)
            }
            Command::EndSession { session } => {
                let command = Command::EndSession { session };
                self.on_floor(|floor, now, after| floor.apply(now, asker, command, after))?;
                self.session_ended(session).await;
                Ok(Answer::Done)
            }
            command => self.define(asker, command).await,
        }
    }

    async fn look(&self, asker: Asker, request: Request) -> Result<Answer, Failure> {
        let topology = |exchange: &str| {
            self.definitions.with(|broker| {
                let exchange =
                    broker.topology(asker.vhost)?.exchange(exchange).ok_or(Refusal::NoSuchExchange)?;
                Ok::<Vec<Binding>, Refusal>(exchange.bindings().cloned().collect())
            })
        };
        Ok(match request {
            Request::Queues { after, limit } => {
                Answer::Queues(self.queue_views(asker, after.as_deref(), limit).await?)
            }
            Request::Queue(name) => Answer::Queue(Box::new(self.queue_view(asker, &name).await?)),
            Request::Browse { queue, browse } => Answer::Page(self.browse(asker, &queue, &browse).await?),
            Request::Message { queue, id } => self.message(asker, &queue, &id).await?,
            Request::StillThere(receipts) => {
                let mut results = Vec::with_capacity(receipts.len());
                for receipt in receipts {
                    let there = match self.here(asker, receipt.queue).await? {
                        Some(hosted) => self.view_at(&hosted, receipt.seq).await?,
                        None => None,
                    };
                    let goes_on = there.is_some_and(|message| message.status != Status::Dead);
                    results.push(goes_on.then_some(()).ok_or(Refusal::NoSuchMessage));
                }
                Answer::Each(results)
            }
            Request::Bindings(exchange) => Answer::Bindings(topology(&exchange)?),
            Request::Routes => {
                self.definitions
                    .with(|broker| broker.vhost_name(asker.vhost).map(drop))
                    .ok_or(Refusal::NoSuchVhost)?;
                Answer::Routes(Box::new(self.routes().view(asker.vhost)))
            }
            request => self.definitions.with(|broker| {
                Ok::<Answer, Refusal>(match request {
                    Request::QueueNames(queues) => Answer::QueueNames(
                        queues
                            .into_iter()
                            .map(|id| {
                                broker.name(id).filter(|_| broker.vhost_of(id) == Some(asker.vhost)).cloned()
                            })
                            .collect(),
                    ),
                    Request::Exchanges => Answer::Exchanges(broker.topology(asker.vhost)?.views().collect()),
                    Request::Exchange(name) => {
                        Answer::Exchange(Box::new(broker.topology(asker.vhost)?.view(&name)?))
                    }
                    Request::Vhosts => Answer::Vhosts(broker.vhosts().collect()),
                    Request::Vhost(name) => Answer::Vhost(Box::new(broker.vhost(&name)?)),
                    Request::Metadata => Answer::Metadata(
                        broker.metadata().map(|(key, value)| (Arc::clone(key), Arc::clone(value))).collect(),
                    ),
                    Request::Policies(kind) => Answer::Policies(
                        broker
                            .policies(asker.vhost, kind)?
                            .map(|(name, policy)| (Arc::clone(name), policy.clone()))
                            .collect(),
                    ),
                    _ => unreachable!("everything else changes something"),
                })
            })?,
        })
    }

    // ---- leases ----

    /// Ends leases, each for itself.
    pub(super) async fn settle(
        &self,
        asker: Asker,
        receipts: Vec<Receipt>,
        outcome: Outcome,
    ) -> Result<Vec<Result<(), Refusal>>, Failure> {
        let mut results = vec![Err(Refusal::StaleReceipt); receipts.len()];
        let how = How::By(outcome);
        let mut failed = None;
        for (queue, at) in by_queue(&receipts) {
            let hosted = match self.here(asker, queue).await {
                Ok(Some(hosted)) => hosted,
                Ok(None) => continue,
                Err(why) => {
                    failed = Some(why);
                    continue;
                }
            };
            let leases: Vec<_> = at.iter().map(|at| (receipts[*at].seq, receipts[*at].lease)).collect();
            match hosted.settle(how, &leases).await {
                Ok(held) => {
                    self.is_settled(at.iter().map(|at| receipts[*at]));
                    for (at, _) in at.into_iter().zip(held).filter(|(_, held)| *held) {
                        results[at] = Ok(());
                    }
                }
                Err(why) => {
                    self.settle_later(&hosted, how, at.iter().map(|at| receipts[*at]).collect());
                    failed = Some(why);
                }
            }
        }
        failed.map_or(Ok(results), Err)
    }

    /// Ends leases once servers answer again, as long as they are held here: whoever acknowledges over AMQP is told nothing, and does not say it twice.
    fn settle_later(&self, hosted: &Arc<Hosted>, how: How, mut receipts: Vec<Receipt>) {
        let (me, hosted) = (self.me.clone(), Arc::clone(hosted));
        self.runtime.spawn(async move {
            while let Some(house) = me.upgrade().filter(|_| !hosted.is_gone()) {
                receipts.retain(|receipt| house.floor().is_held(receipt));
                let leases: Vec<_> = receipts.iter().map(|receipt| (receipt.seq, receipt.lease)).collect();
                if leases.is_empty() {
                    return;
                }
                if hosted.settle(how, &leases).await.is_ok() {
                    return house.is_settled(receipts);
                }
                drop(house);
                sleep(REST).await;
            }
        });
    }

    /// These leases are over, and there may be room.
    pub(super) fn is_settled(&self, receipts: impl IntoIterator<Item = Receipt>) {
        self.on_floor(|floor, now, after| {
            receipts.into_iter().for_each(|receipt| floor.settled(now, &receipt, after));
        });
    }

    /// The queue of a receipt; one that is gone holds none.
    pub(super) async fn here(
        &self,
        asker: Asker,
        queue: overtake_lane::QueueId,
    ) -> Result<Option<Arc<Hosted>>, Failure> {
        match self.hosted_in(asker, queue).await {
            Err(Failure::Refused(refused)) if refused.refusal == Refusal::NoSuchQueue => Ok(None),
            other => other,
        }
    }

    async fn finish(
        &self,
        asker: Asker,
        receipt: Receipt,
        outcome: Outcome,
        report: Report,
    ) -> Result<Answer, Failure> {
        report.check()?;
        let stale = Ok(Answer::Each(vec![Err(Refusal::StaleReceipt)]));
        let Some(hosted) = self.here(asker, receipt.queue).await? else { return stale };
        let Some((place, seq)) = hosted.find(receipt.seq) else { return stale };
        let finish = Finish { outcome, lease: (seq, receipt.lease), report };
        let held = hosted.ask(place, &finish).await?;
        self.is_settled([receipt]);
        Ok(Answer::Each(vec![held.then_some(()).ok_or(Refusal::StaleReceipt)]))
    }

    async fn extend(
        &self,
        asker: Asker,
        receipts: Vec<Receipt>,
        visibility_ms: u64,
        output: Option<Arc<str>>,
    ) -> Result<Vec<Result<(), Refusal>>, Failure> {
        let mut results = Vec::with_capacity(receipts.len());
        for receipt in receipts {
            let Some(hosted) = self.here(asker, receipt.queue).await? else {
                results.push(Err(Refusal::StaleReceipt));
                continue;
            };
            let Some((place, seq)) = hosted.find(receipt.seq) else {
                results.push(Err(Refusal::StaleReceipt));
                continue;
            };
            if output.is_none() && self.floor().is_held(&receipt) {
                results.push(Ok(()));
                continue;
            }
            let output = output.clone();
            let extend = Extend { term_ms: visibility_ms, output, leases: vec![(seq, receipt.lease)] };
            let extended = hosted.ask(place, &extend).await?;
            results.push(match extended.first() {
                Some(Extended::Longer) => Ok(()),
                Some(Extended::WantedBack) => Err(Refusal::CancelAsked),
                _ => Err(Refusal::StaleReceipt),
            });
        }
        Ok(results)
    }

    // ---- administration ----

    /// Does something to messages at their places. Answers to how many.
    async fn touch<A, F>(
        &self,
        hosted: &Arc<Hosted>,
        which: Vec<(u32, Which)>,
        ask: F,
    ) -> Result<Answer, Failure>
    where
        A: Asked<Answer = Result<u64, Declined>>,
        F: Fn(Which) -> A,
    {
        let mut touched = 0;
        let is_by_id = matches!(which.first(), Some((_, Which::Id(_))));
        let mut missing = None;
        for (place, which) in which {
            for which in pieces(which) {
                match hosted.ask(place, &ask(which)).await? {
                    Ok(count) => touched += count,
                    // Where it is says more than where it is not.
                    Err(declined) if missing.is_none() || declined.0 != Refusal::NoSuchMessage => {
                        missing = Some(declined.0);
                    }
                    Err(_) => {}
                }
            }
        }
        match missing {
            Some(refusal) if is_by_id && touched == 0 => Err(refusal.into()),
            _ => Ok(Answer::Count(touched)),
        }
    }

    /// Puts dead letters back into their lanes here, and sends what came from elsewhere back there.
    async fn replay(
        &self,
        hosted: &Arc<Hosted>,
        which: Vec<(u32, Which)>,
        promote: Option<(Priority, Original)>,
    ) -> Result<Answer, Failure> {
        let here = self.touch(hosted, which.clone(), |which| Replay { promote, which }).await;
        let is_by_id = matches!(which.first(), Some((_, Which::Id(_))));
        let here = match here {
            Ok(Answer::Count(count)) if !is_by_id || count > 0 => count,
            Err(Failure::Refused(refused)) if refused.refusal == Refusal::NotDead => 0,
            other => return other,
        };
        if is_by_id && here > 0 {
            return Ok(Answer::Count(here));
        }
        let home = self.touch(hosted, which, |which| SendHome { promote, which }).await?;
        let Answer::Count(sent) = home else { return Ok(home) };
        let stayed = self.carry_from(hosted).await?;
        if is_by_id && stayed > 0 {
            return Err(Refusal::IdPending.into());
        }
        Ok(Answer::Count(here + sent.saturating_sub(stayed)))
    }

    async fn purge(&self, asker: Asker, queue: &str, status: Option<Status>) -> Result<Answer, Failure> {
        let hosted = self.hosted_by_name(asker, queue).await?;
        hosted.settled_down().await;
        let purge = Purge { status, limit: PURGE_MAX };
        let of = |place| {
            let hosted = &hosted;
            async move {
                let mut purged = 0;
                loop {
                    let (touched, more) = hosted.ask(place, &purge).await?;
                    purged += touched;
                    if !more {
                        return Ok::<u64, Failure>(purged);
                    }
                }
            }
        };
        let all = together((0..hosted.places().count()).map(of)).await;
        let all: Vec<u64> = all.into_iter().collect::<Result<_, _>>()?;
        Ok(Answer::Count(all.iter().sum()))
    }
}

/// Whether a request goes through all messages of a queue, by as many calls as that takes: then each call is waited for by itself.
fn is_long(request: &Request) -> bool {
    match request {
        Request::By { request, .. } => is_long(request),
        Request::Do(Command::By { command, .. }) => matches!(**command, Command::Purge { .. }),
        Request::Do(command) => matches!(command, Command::Purge { .. } | Command::FinishLate { .. }),
        Request::Change { .. } | Request::Browse { .. } | Request::Message { .. } => true,
        _ => false,
    }
}

/// How many messages a purge takes.
fn purgeable_count(queue: &QueueView, status: Option<Status>) -> u64 {
    let of = |lane: &LaneView| match status {
        None => lane.ready + lane.delayed,
        Some(Status::Ready) => lane.ready,
        Some(Status::Delayed) => lane.delayed,
        Some(Status::Dead) => lane.dead,
        Some(Status::Leased) => 0,
    };
    queue.lanes.iter().map(of).sum()
}

/// Where receipts are of each queue.
fn by_queue(receipts: &[Receipt]) -> std::collections::BTreeMap<overtake_lane::QueueId, Vec<usize>> {
    let mut all: std::collections::BTreeMap<_, Vec<usize>> = std::collections::BTreeMap::new();
    for (at, receipt) in receipts.iter().enumerate() {
        all.entry(receipt.queue).or_default().push(at);
    }
    all
}

fn pieces(which: Which) -> Vec<Which> {
    match which {
        Which::Seqs(seqs) => seqs.chunks(TOUCH_MAX).map(|seqs| Which::Seqs(seqs.to_vec())).collect(),
        one => vec![one],
    }
}

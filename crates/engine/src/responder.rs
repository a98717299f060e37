//! An engine that answers requests: each call of [`Engine`] is one [`Request`], and what it answers one kind of [`Answer`].

use std::sync::Arc;

use overtake_lane::{
    Asker, Binding, Command, ConsumerId, ExchangeSettings, ExchangeView, Get, MetadataEntry, Outcome, Policy,
    PolicyKind, QueueId, QueueView, Receipt, Refusal, Report, Status, VhostId, VhostSettings, VhostView,
};
use tokio::sync::watch;

use crate::api::{
    Browse, BrowsedMessage, Connection, DeclareQueue, Declared, DeleteOnly, Engine, Got, Health,
    LeaseRequest, LeasedMessage, Metadata, NamedPolicies, NewMessage, Page, Pending, PublishedCopy,
    QueuePage, Select,
};
use crate::core::{Answer, Request};
use crate::jobs::{Change, JobView, Started};
use crate::leadership::Leadership;
use crate::nodes::ClusterView;
use crate::orphans::Orphan;
use crate::routes::{RouteSet, RoutesView};
use crate::session::Session;
use crate::snapshot::{NoSnapshot, Snapshot};

/// What answers requests, in the order in which they are asked; every one is an [`Engine`].
///
/// `Lease` is asked by [`Responder::lend`], since whoever waits may give up; `Consume` and what follows from it only in a [`Session`].
pub trait Responder: Send + Sync + 'static {
    /// Who asks here, and where.
    fn asker(&self) -> Asker;
    /// A number for a get that nobody else has.
    fn next_consumer(&self) -> ConsumerId;
    /// Answers a request as [`Responder::asker`] asks it, with the kind of answer that it has.
    fn respond(&self, request: Request) -> Pending<Answer>;
    /// [`Engine::lease`].
    fn lend(&self, lease: LeaseRequest) -> Pending<Vec<LeasedMessage>>;
    /// [`Engine::session`].
    fn begin(&self) -> Session;
    /// [`Engine::connect`].
    fn connected(&self) -> Connection;
    /// [`Engine::in_vhost`].
    fn moved(&self, vhost: VhostId) -> Connection;
    /// [`Engine::metadata_versions`].
    fn versions_of_metadata(&self) -> Option<watch::Receiver<u64>> {
        None
    }
    /// [`Engine::lead`].
    fn leadership(&self, _work: &str) -> Leadership {
        Leadership::undisputed()
    }
    /// [`Engine::withdrawals`].
    fn withdrawn(&self) -> watch::Receiver<u64>;
    /// [`Engine::health`].
    fn is_well(&self) -> Health;
    /// [`Engine::cluster`].
    fn cluster_view(&self) -> Option<ClusterView> {
        None
    }
    /// [`Engine::snapshot`].
    ///
    /// # Errors
    /// As there.
    fn copy(&self) -> Result<Snapshot, NoSnapshot> {
        Err(NoSnapshot::Unsupported)
    }
    /// [`Engine::orphans`].
    fn orphaned(&self) -> Pending<Vec<Orphan>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    /// [`Engine::adopt_orphan`].
    fn adopt(&self, _queue: QueueId, _name: Option<&str>) -> Pending<Orphan> {
        Box::pin(async { Err(Refusal::NoSuchOrphan.into()) })
    }
    /// [`Engine::remove_orphan`].
    fn abandon(&self, _queue: QueueId) -> Pending<u64> {
        Box::pin(async { Err(Refusal::NoSuchOrphan.into()) })
    }
}

fn ask<A: 'static>(to: &impl Responder, request: Request, open: fn(Answer) -> Option<A>) -> Pending<A> {
    let answer = to.respond(request);
    Box::pin(async move { Ok(open(answer.await?).expect("each request has its kind of answer")) })
}

fn do_it(to: &impl Responder, command: Command) -> Pending<()> {
    ask(to, Request::Do(command), |answer| matches!(answer, Answer::Done).then_some(()))
}

fn count(to: &impl Responder, request: Request) -> Pending<u64> {
    ask(to, request, |answer| if let Answer::Count(count) = answer { Some(count) } else { None })
}

fn job(to: &impl Responder, request: Request) -> Pending<Option<JobView>> {
    ask(to, request, |answer| if let Answer::Job(job) = answer { Some(job.map(|job| *job)) } else { None })
}

fn declared(to: &impl Responder, command: Command) -> Pending<Declared> {
    ask(
        to,
        Request::Do(command),
        |answer| {
            if let Answer::Declared(declared) = answer { Some(declared) } else { None }
        },
    )
}

fn each(to: &impl Responder, command: Command) -> Pending<Vec<Result<(), Refusal>>> {
    ask(
        to,
        Request::Do(command),
        |answer| if let Answer::Each(results) = answer { Some(results) } else { None },
    )
}

impl<R: Responder> Engine for R {
    fn connect(&self) -> Connection {
        self.connected()
    }

    fn in_vhost(&self, vhost: VhostId) -> Connection {
        self.moved(vhost)
    }

    fn declare_vhost(&self, name: &str, settings: VhostSettings) -> Pending<VhostId> {
        let command = Command::DeclareVhost { name: name.into(), settings: Box::new(settings) };
        ask(self, Request::Do(command), |answer| {
            if let Answer::VhostDeclared(vhost) = answer { Some(vhost) } else { None }
        })
    }

    fn delete_vhost(&self, name: &str) -> Pending<()> {
        do_it(self, Command::DeleteVhost { name: name.into() })
    }

    fn vhosts(&self) -> Pending<Vec<VhostView>> {
        ask(
            self,
            Request::Vhosts,
            |answer| {
                if let Answer::Vhosts(vhosts) = answer { Some(vhosts) } else { None }
            },
        )
    }

    fn vhost(&self, name: &str) -> Pending<VhostView> {
        ask(self, Request::Vhost(name.into()), |answer| {
            if let Answer::Vhost(vhost) = answer { Some(*vhost) } else { None }
        })
    }

    fn declare(&self, name: &str, declare: DeclareQueue) -> Pending<Declared> {
        let DeclareQueue { settings, identity, existing } = declare;
        let (name, settings) = (name.into(), Box::new(settings));
        declared(self, Command::DeclareQueue { name, settings, identity, existing })
    }

    fn check_queue(&self, name: &str) -> Pending<Declared> {
        declared(self, Command::CheckQueue { name: name.into() })
    }

    fn delete_queue(&self, name: &str, only: DeleteOnly) -> Pending<u64> {
        let DeleteOnly { if_empty, if_unused } = only;
        count(self, Request::Do(Command::DeleteQueue { name: name.into(), if_empty, if_unused }))
    }

    fn queues(&self, after: Option<&str>, limit: usize) -> Pending<QueuePage> {
        ask(self, Request::Queues { after: after.map(Into::into), limit }, |answer| {
            if let Answer::Queues(page) = answer { Some(page) } else { None }
        })
    }

    fn queue(&self, name: &str) -> Pending<QueueView> {
        ask(self, Request::Queue(name.into()), |answer| {
            if let Answer::Queue(queue) = answer { Some(*queue) } else { None }
        })
    }

    fn queue_names(&self, queues: Vec<QueueId>) -> Pending<Vec<Option<Arc<str>>>> {
        ask(self, Request::QueueNames(queues), |answer| {
            if let Answer::QueueNames(names) = answer { Some(names) } else { None }
        })
    }

    fn orphans(&self) -> Pending<Vec<Orphan>> {
        self.orphaned()
    }

    fn adopt_orphan(&self, queue: QueueId, name: Option<&str>) -> Pending<Orphan> {
        self.adopt(queue, name)
    }

    fn remove_orphan(&self, queue: QueueId) -> Pending<u64> {
        self.abandon(queue)
    }

    fn declare_exchange(&self, name: &str, settings: ExchangeSettings) -> Pending<()> {
        do_it(self, Command::DeclareExchange { name: name.into(), settings: Box::new(settings) })
    }

    fn delete_exchange(&self, name: &str, if_unused: bool) -> Pending<()> {
        do_it(self, Command::DeleteExchange { name: name.into(), if_unused })
    }

    fn exchanges(&self) -> Pending<Vec<ExchangeView>> {
        ask(self, Request::Exchanges, |answer| {
            if let Answer::Exchanges(exchanges) = answer { Some(exchanges) } else { None }
        })
    }

    fn exchange(&self, name: &str) -> Pending<ExchangeView> {
        ask(self, Request::Exchange(name.into()), |answer| {
            if let Answer::Exchange(exchange) = answer { Some(*exchange) } else { None }
        })
    }

    fn bindings(&self, exchange: &str) -> Pending<Vec<Binding>> {
        ask(self, Request::Bindings(exchange.into()), |answer| {
            if let Answer::Bindings(bindings) = answer { Some(bindings) } else { None }
        })
    }

    fn bind(&self, binding: Binding) -> Pending<()> {
        do_it(self, Command::Bind(Box::new(binding)))
    }

    fn unbind(&self, binding: Binding) -> Pending<()> {
        do_it(self, Command::Unbind(Box::new(binding)))
    }

    fn set_metadata(&self, entries: Vec<MetadataEntry>) -> Pending<()> {
        do_it(self, Command::SetMetadata { entries })
    }

    fn metadata_versions(&self) -> Option<watch::Receiver<u64>> {
        self.versions_of_metadata()
    }

    fn lead(&self, work: &str) -> Leadership {
        self.leadership(work)
    }

    fn withdrawals(&self) -> watch::Receiver<u64> {
        self.withdrawn()
    }

    fn metadata(&self) -> Pending<Metadata> {
        ask(
            self,
            Request::Metadata,
            |answer| {
                if let Answer::Metadata(values) = answer { Some(values) } else { None }
            },
        )
    }

    fn set_policy(&self, kind: PolicyKind, name: &str, policy: Policy) -> Pending<()> {
        do_it(self, Command::SetPolicy { kind, name: name.into(), policy: Box::new(policy) })
    }

    fn remove_policy(&self, kind: PolicyKind, name: &str) -> Pending<()> {
        do_it(self, Command::RemovePolicy { kind, name: name.into() })
    }

    fn policies(&self, kind: PolicyKind) -> Pending<NamedPolicies> {
        ask(self, Request::Policies(kind), |answer| {
            if let Answer::Policies(policies) = answer { Some(policies) } else { None }
        })
    }

    fn set_routes(&self, routes: Arc<RouteSet>) -> Pending<()> {
        ask(self, Request::SetRoutes(routes), |answer| matches!(answer, Answer::Done).then_some(()))
    }

    fn routes(&self) -> Pending<RoutesView> {
        ask(
            self,
            Request::Routes,
            |answer| if let Answer::Routes(view) = answer { Some(*view) } else { None },
        )
    }

    fn publish(&self, messages: Vec<NewMessage>) -> Pending<Vec<PublishedCopy>> {
        self.transact(messages, Vec::new())
    }

    fn transact(
        &self,
        messages: Vec<NewMessage>,
        settlements: Vec<(Receipt, Outcome)>,
    ) -> Pending<Vec<PublishedCopy>> {
        ask(self, Request::Publish { messages, settlements }, |answer| {
            if let Answer::Copies(copies) = answer { Some(copies) } else { None }
        })
    }

    fn lease(&self, lease: LeaseRequest) -> Pending<Vec<LeasedMessage>> {
        self.lend(lease)
    }

    fn session(&self) -> Session {
        self.begin()
    }

    fn get(&self, queue: &str, no_ack: bool) -> Pending<Option<Got>> {
        let consumer = self.next_consumer();
        ask(
            self,
            Request::Get { get: Get { consumer, queue: queue.into(), no_ack }, holder: None },
            |answer| {
                if let Answer::Got(got) = answer { Some(got.map(|got| *got)) } else { None }
            },
        )
    }

    fn set_window(&self, number: u32, size: u32) -> Pending<()> {
        assert!(self.asker().session.is_some(), "a window is shared within a session");
        let request = Request::SetWindow { number, size, joining: Vec::new() };
        ask(self, request, |answer| matches!(answer, Answer::Done).then_some(()))
    }

    fn settle(&self, receipts: Vec<Receipt>, outcome: Outcome) -> Pending<Vec<Result<(), Refusal>>> {
        each(self, Command::Settle { receipts, outcome })
    }

    fn finish(&self, receipt: Receipt, outcome: Outcome, report: Report) -> Pending<Result<(), Refusal>> {
        let finish = Command::Finish { receipt, outcome, report: Box::new(report) };
        ask(self, Request::Do(finish), |answer| {
            if let Answer::Each(results) = answer { results.into_iter().next() } else { None }
        })
    }

    fn finish_late(
        &self,
        queue: &str,
        id: &str,
        attempt: u32,
        outcome: Outcome,
        report: Report,
    ) -> Pending<()> {
        let (queue, id, report) = (queue.into(), id.into(), Box::new(report));
        let finish = Command::FinishLate { queue, id, attempt, outcome, report };
        ask(self, Request::Do(finish), |answer| matches!(answer, Answer::Done).then_some(()))
    }

    fn extend(&self, receipts: Vec<Receipt>, visibility_ms: u64) -> Pending<Vec<Result<(), Refusal>>> {
        each(self, Command::Extend { receipts, visibility_ms })
    }

    fn progress(
        &self,
        receipt: Receipt,
        visibility_ms: u64,
        output: Arc<str>,
    ) -> Pending<Result<(), Refusal>> {
        ask(self, Request::Progress { receipt, visibility_ms, output }, |answer| {
            if let Answer::Each(results) = answer { results.into_iter().next() } else { None }
        })
    }

    fn browse(&self, queue: &str, browse: Browse) -> Pending<Page> {
        ask(self, Request::Browse { queue: queue.into(), browse }, |answer| {
            if let Answer::Page(page) = answer { Some(page) } else { None }
        })
    }

    fn message(&self, queue: &str, id: &str) -> Pending<BrowsedMessage> {
        ask(self, Request::Message { queue: queue.into(), id: id.to_owned() }, |answer| {
            if let Answer::Message(message) = answer { Some(*message) } else { None }
        })
    }

    fn change(&self, queue: &str, select: Select, change: Change) -> Pending<u64> {
        count(self, Request::Change { queue: queue.into(), select, change, only_start: false })
    }

    fn start_change(&self, queue: &str, select: Select, change: Change) -> Pending<Started> {
        let request = Request::Change { queue: queue.into(), select, change, only_start: true };
        ask(self, request, |answer| match answer {
            Answer::Started(started) => Some(started),
            Answer::Count(count) => Some(Started::Done(count)),
            _ => None,
        })
    }

    fn jobs(&self) -> Pending<Vec<JobView>> {
        ask(self, Request::Jobs, |answer| if let Answer::Jobs(jobs) = answer { Some(jobs) } else { None })
    }

    fn job(&self, id: u64, waits: bool) -> Pending<Option<JobView>> {
        job(self, Request::Job { id, waits })
    }

    fn cancel_job(&self, id: u64) -> Pending<Option<JobView>> {
        job(self, Request::CancelJob { id })
    }

    fn purge(&self, queue: &str, status: Option<Status>) -> Pending<u64> {
        count(self, Request::Do(Command::Purge { queue: queue.into(), status, expect: None }))
    }

    fn purge_counted(&self, queue: &str, status: Option<Status>, expect: u64) -> Pending<u64> {
        count(self, Request::Do(Command::Purge { queue: queue.into(), status, expect: Some(expect) }))
    }

    fn health(&self) -> Health {
        self.is_well()
    }

    fn cluster(&self) -> Option<ClusterView> {
        self.cluster_view()
    }

    fn snapshot(&self) -> Result<Snapshot, NoSnapshot> {
        self.copy()
    }
}

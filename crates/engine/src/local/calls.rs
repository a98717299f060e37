//! [`Engine`] for [`LocalEngine`]: each call is one request.

use std::sync::Arc;

use overtake_lane::{
    Asker, Binding, Command, ConsumerId, ExchangeSettings, ExchangeView, Get, Given, MetadataEntry, Outcome,
    Policy, PolicyKind, QueueId, QueueView, Receipt, Refusal, Report, Status, VhostId, VhostSettings,
    VhostView,
};
use tokio::sync::oneshot;

use super::{Door, LocalEngine, line};
use crate::api::{
    Browse, BrowsedMessage, Connection, DeclareQueue, Declared, DeleteOnly, Engine, Failure, Got, Health,
    LeaseRequest, LeasedMessage, Metadata, NamedPolicies, NewMessage, Page, Pending, PublishedCopy,
    QueuePage, Select,
};
use crate::core::{Answer, Request};
use crate::routes::{RouteSet, RoutesView};
use crate::session::Session;
use crate::snapshot::{NoSnapshot, Snapshot};

impl LocalEngine {
    /// A request as whoever asks.
    fn by(&self, request: Request) -> Request {
        by(self.asker(), request)
    }

    fn ask<A: 'static>(&self, request: Request, open: fn(Answer) -> Option<A>) -> Pending<A> {
        let (door, request) = (self.door.clone(), self.by(request));
        Box::pin(async move {
            let answer = door.ask(request).await?;
            Ok(open(answer).expect("each request has its kind of answer"))
        })
    }

    fn do_it(&self, command: Command) -> Pending<()> {
        self.ask(Request::Do(command), |answer| matches!(answer, Answer::Done).then_some(()))
    }

    fn count(&self, request: Request) -> Pending<u64> {
        self.ask(request, |answer| if let Answer::Count(count) = answer { Some(count) } else { None })
    }

    fn declared(&self, command: Command) -> Pending<Declared> {
        self.ask(Request::Do(command), |answer| {
            if let Answer::Declared(declared) = answer { Some(declared) } else { None }
        })
    }

    fn each(&self, command: Command) -> Pending<Vec<Result<(), Refusal>>> {
        self.ask(
            Request::Do(command),
            |answer| {
                if let Answer::Each(results) = answer { Some(results) } else { None }
            },
        )
    }
}

fn by(asker: Asker, request: Request) -> Request {
    if asker == Asker::default() {
        return request;
    }
    Request::By { asker, request: Box::new(request) }
}

impl Engine for LocalEngine {
    fn connect(&self) -> Connection {
        Arc::new(self.of_session())
    }

    fn in_vhost(&self, vhost: VhostId) -> Connection {
        Arc::new(self.of_vhost(vhost))
    }

    fn declare_vhost(&self, name: &str, settings: VhostSettings) -> Pending<VhostId> {
        let command = Command::DeclareVhost { name: name.into(), settings: Box::new(settings) };
        self.ask(Request::Do(command), |answer| {
            if let Answer::VhostDeclared(vhost) = answer { Some(vhost) } else { None }
        })
    }

    fn delete_vhost(&self, name: &str) -> Pending<()> {
        self.do_it(Command::DeleteVhost { name: name.into() })
    }

    fn vhosts(&self) -> Pending<Vec<VhostView>> {
        self.ask(
            Request::Vhosts,
            |answer| {
                if let Answer::Vhosts(vhosts) = answer { Some(vhosts) } else { None }
            },
        )
    }

    fn vhost(&self, name: &str) -> Pending<VhostView> {
        self.ask(Request::Vhost(name.into()), |answer| {
            if let Answer::Vhost(vhost) = answer { Some(*vhost) } else { None }
        })
    }

    fn declare(&self, name: &str, declare: DeclareQueue) -> Pending<Declared> {
        let DeclareQueue { settings, identity, existing } = declare;
        let (name, settings) = (name.into(), Box::new(settings));
        self.declared(Command::DeclareQueue { name, settings, identity, existing })
    }

    fn check_queue(&self, name: &str) -> Pending<Declared> {
        self.declared(Command::CheckQueue { name: name.into() })
    }

    fn delete_queue(&self, name: &str, only: DeleteOnly) -> Pending<u64> {
        let DeleteOnly { if_empty, if_unused } = only;
        self.count(Request::Do(Command::DeleteQueue { name: name.into(), if_empty, if_unused }))
    }

    fn queues(&self, after: Option<&str>, limit: usize) -> Pending<QueuePage> {
        self.ask(Request::Queues { after: after.map(Into::into), limit }, |answer| {
            if let Answer::Queues(page) = answer { Some(page) } else { None }
        })
    }

    fn queue(&self, name: &str) -> Pending<QueueView> {
        self.ask(Request::Queue(name.into()), |answer| {
            if let Answer::Queue(queue) = answer { Some(*queue) } else { None }
        })
    }

    fn queue_names(&self, queues: Vec<QueueId>) -> Pending<Vec<Option<Arc<str>>>> {
        self.ask(Request::QueueNames(queues), |answer| {
            if let Answer::QueueNames(names) = answer { Some(names) } else { None }
        })
    }

    fn declare_exchange(&self, name: &str, settings: ExchangeSettings) -> Pending<()> {
        self.do_it(Command::DeclareExchange { name: name.into(), settings: Box::new(settings) })
    }

    fn delete_exchange(&self, name: &str, if_unused: bool) -> Pending<()> {
        self.do_it(Command::DeleteExchange { name: name.into(), if_unused })
    }

    fn exchanges(&self) -> Pending<Vec<ExchangeView>> {
        self.ask(Request::Exchanges, |answer| {
            if let Answer::Exchanges(exchanges) = answer { Some(exchanges) } else { None }
        })
    }

    fn exchange(&self, name: &str) -> Pending<ExchangeView> {
        self.ask(Request::Exchange(name.into()), |answer| {
            if let Answer::Exchange(exchange) = answer { Some(*exchange) } else { None }
        })
    }

    fn bindings(&self, exchange: &str) -> Pending<Vec<Binding>> {
        self.ask(Request::Bindings(exchange.into()), |answer| {
            if let Answer::Bindings(bindings) = answer { Some(bindings) } else { None }
        })
    }

    fn bind(&self, binding: Binding) -> Pending<()> {
        self.do_it(Command::Bind(Box::new(binding)))
    }

    fn unbind(&self, binding: Binding) -> Pending<()> {
        self.do_it(Command::Unbind(Box::new(binding)))
    }

    fn set_metadata(&self, entries: Vec<MetadataEntry>) -> Pending<()> {
        self.do_it(Command::SetMetadata { entries })
    }

    fn metadata(&self) -> Pending<Metadata> {
        self.ask(
            Request::Metadata,
            |answer| {
                if let Answer::Metadata(values) = answer { Some(values) } else { None }
            },
        )
    }

    fn set_policy(&self, kind: PolicyKind, name: &str, policy: Policy) -> Pending<()> {
        self.do_it(Command::SetPolicy { kind, name: name.into(), policy: Box::new(policy) })
    }

    fn remove_policy(&self, kind: PolicyKind, name: &str) -> Pending<()> {
        self.do_it(Command::RemovePolicy { kind, name: name.into() })
    }

    fn policies(&self, kind: PolicyKind) -> Pending<NamedPolicies> {
        self.ask(Request::Policies(kind), |answer| {
            if let Answer::Policies(policies) = answer { Some(policies) } else { None }
        })
    }

    fn set_routes(&self, routes: Arc<RouteSet>) -> Pending<()> {
        self.ask(Request::SetRoutes(routes), |answer| matches!(answer, Answer::Done).then_some(()))
    }

    fn routes(&self) -> Pending<RoutesView> {
        self.ask(Request::Routes, |answer| if let Answer::Routes(view) = answer { Some(*view) } else { None })
    }

    fn publish(&self, messages: Vec<NewMessage>) -> Pending<Vec<PublishedCopy>> {
        self.transact(messages, Vec::new())
    }

    fn transact(
        &self,
        messages: Vec<NewMessage>,
        settlements: Vec<(Receipt, Outcome)>,
    ) -> Pending<Vec<PublishedCopy>> {
        self.ask(Request::Publish { messages, settlements }, |answer| {
            if let Answer::Copies(copies) = answer { Some(copies) } else { None }
        })
    }

    fn lease(&self, lease: LeaseRequest) -> Pending<Vec<LeasedMessage>> {
        let door = self.door.clone();
        let consumer = door.next_consumer();
        let asker = self.asker();
        let request = by(asker, Request::Lease { consumer, lease });
        Box::pin(async move {
            let (caller, answer) = oneshot::channel();
            door.send(request, caller).await?;
            let mut open = OpenLease { door: &door, asker, consumer, answer: Some(answer) };
            let answer = open.answer.as_mut().expect("nobody has waited yet").await;
            open.answer = None;
            match answer {
                Ok(answer) => answer.map(leased),
                Err(_) => Err(door.unavailable()),
            }
        })
    }

    fn session(&self) -> Session {
        line::open(&self.door, self.asker())
    }

    fn get(&self, queue: &str, no_ack: bool) -> Pending<Option<Got>> {
        let consumer = self.door.next_consumer();
        self.ask(
            Request::Get { get: Get { consumer, queue: queue.into(), no_ack }, holder: None },
            |answer| {
                if let Answer::Got(got) = answer { Some(got.map(|got| *got)) } else { None }
            },
        )
    }

    fn set_window(&self, number: u32, size: u32) -> Pending<()> {
        assert!(self.asker().session.is_some(), "a window is shared within a session");
        self.ask(Request::SetWindow { number, size }, |answer| matches!(answer, Answer::Done).then_some(()))
    }

    fn settle(&self, receipts: Vec<Receipt>, outcome: Outcome) -> Pending<Vec<Result<(), Refusal>>> {
        self.each(Command::Settle { receipts, outcome })
    }

    fn finish(&self, receipt: Receipt, outcome: Outcome, report: Report) -> Pending<Result<(), Refusal>> {
        let finish = Command::Finish { receipt, outcome, report: Box::new(report) };
        self.ask(Request::Do(finish), |answer| {
            if let Answer::Each(results) = answer { results.into_iter().next() } else { None }
        })
    }

    fn extend(&self, receipts: Vec<Receipt>, visibility_ms: u64) -> Pending<Vec<Result<(), Refusal>>> {
        self.each(Command::Extend { receipts, visibility_ms })
    }

    fn progress(
        &self,
        receipt: Receipt,
        visibility_ms: u64,
        output: Arc<str>,
    ) -> Pending<Result<(), Refusal>> {
        self.ask(Request::Progress { receipt, visibility_ms, output }, |answer| {
            if let Answer::Each(results) = answer { results.into_iter().next() } else { None }
        })
    }

    fn browse(&self, queue: &str, browse: Browse) -> Pending<Page> {
        self.ask(Request::Browse { queue: queue.into(), browse }, |answer| {
            if let Answer::Page(page) = answer { Some(page) } else { None }
        })
    }

    fn message(&self, queue: &str, id: &str) -> Pending<BrowsedMessage> {
        self.ask(Request::Message { queue: queue.into(), id: id.to_owned() }, |answer| {
            if let Answer::Message(message) = answer { Some(*message) } else { None }
        })
    }

    fn reprioritise(&self, queue: &str, select: Select, priority: Given) -> Pending<u64> {
        self.count(Request::Reprioritise { queue: queue.into(), select, priority })
    }

    fn remove(&self, queue: &str, select: Select) -> Pending<u64> {
        self.count(Request::Remove { queue: queue.into(), select })
    }

    fn cancel_messages(&self, queue: &str, select: Select) -> Pending<u64> {
        self.count(Request::CancelMessages { queue: queue.into(), select })
    }

    fn purge(&self, queue: &str, status: Option<Status>) -> Pending<u64> {
        self.count(Request::Do(Command::Purge { queue: queue.into(), status }))
    }

    fn replay(&self, queue: &str, select: Select, promote: Option<Given>) -> Pending<u64> {
        self.count(Request::Replay { queue: queue.into(), select, promote })
    }

    fn health(&self) -> Health {
        self.door.health()
    }

    fn snapshot(&self) -> Result<Snapshot, NoSnapshot> {
        if let Some(why) = self.door.down.borrow().clone() {
            return Err(NoSnapshot::Unavailable(why));
        }
        self.snapshots.take(&self.door.inbox)
    }
}

fn leased(answer: Answer) -> Vec<LeasedMessage> {
    if let Answer::Leased(messages) = answer {
        messages
    } else {
        unreachable!("a lease answers with messages")
    }
}

/// A lease that is being waited for. Dropped before its end, it gives back what was on its way.
struct OpenLease<'a> {
    door: &'a Door,
    asker: Asker,
    consumer: ConsumerId,
    answer: Option<oneshot::Receiver<Result<Answer, Failure>>>,
}

impl Drop for OpenLease<'_> {
    fn drop(&mut self) {
        let Some(mut answer) = self.answer.take() else { return };
        answer.close();
        match answer.try_recv() {
            Ok(Ok(answer)) => {
                let receipts = leased(answer).iter().map(|message| message.receipt).collect();
                let release = Request::Do(Command::Settle { receipts, outcome: Outcome::Release });
                self.door.post(by(self.asker, release));
            }
            Ok(Err(_)) => {}
            Err(_) => self.door.post(Request::GiveUp { consumer: self.consumer }),
        }
    }
}

//! The engine as one user may use it, in one virtual host: each request is judged before it is asked.
//!
//! Front ends of requests (HTTP, the page) have this and no engine, so none of their routes can forget to ask. What changes what
//! there is, and not only messages on their way, is written down.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use overtake_engine::rights::{Named, Need, Right, Takes};
use overtake_engine::{
    Browse, BrowsedMessage, Connection, DeclareQueue, Declared, DeleteOnly, Failure, Health, Holder,
    LeaseRequest, LeasedMessage, NamedPolicies, NewMessage, NoSnapshot, Page, PublishedCopy, QUEUES_AT_ONCE,
    QueuePage, ROUTES_EXCHANGE, Refused, RouteSet, RoutesView, Sender, Snapshot, Target, leads_nowhere,
};
use overtake_lane::{
    Binding, Destination, ExchangeSettings, ExchangeView, Existing, Given, Outcome, Part, Policy, PolicyKind,
    QueueView, Receipt, Refusal, Report, Settings, Status,
};
use overtake_routes::{Manifest, NamedRoute, diff};
use serde_json::{Value, json};

use crate::audit::Deed;
use crate::gate::Gate;
use crate::identity::{Denied, Identity};
use crate::import::checked_import;
use crate::right::Tag;

/// The engine as one user may use it, in one virtual host.
#[derive(Clone)]
pub struct Desk {
    pub(crate) engine: Connection,
    vhost: Arc<str>,
    who: Identity,
    gate: Arc<Gate>,
}

/// How often a change of settings is tried while others change settings of the same queue: each time one of them got through.
const CHANGE_TRIES: usize = 100;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// The user may not.
    Denied(Denied),
    /// The engine does not.
    Failed(Failure),
}

impl NotDone {
    /// Whether the engine declined for this reason.
    #[must_use]
    pub fn is(&self, refusal: Refusal) -> bool {
        matches!(self, Self::Failed(Failure::Refused(refused)) if refused.refusal == refusal)
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denied) => denied.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for NotDone {}

impl From<Denied> for NotDone {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<Failure> for NotDone {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

pub(crate) type Done<T> = Result<T, NotDone>;

impl Desk {
    /// For somebody who logged in, in a virtual host that this engine is asked in.
    #[must_use]
    pub fn new(engine: Connection, vhost: Arc<str>, who: Identity, gate: Arc<Gate>) -> Self {
        Self { engine, vhost, who, gate }
    }

    /// Who asks.
    #[must_use]
    pub fn who(&self) -> &Identity {
        &self.who
    }

    /// The virtual host.
    #[must_use]
    pub fn vhost(&self) -> &Arc<str> {
        &self.vhost
    }

    /// Whether one has all rights that something takes.
    pub(crate) fn must(&self, what: &impl Takes) -> Result<(), Denied> {
        what.takes(&mut |need| self.who.must(&self.vhost, need))
    }

    pub(crate) fn must_have(&self, right: Right, to: Named<'_>) -> Result<(), Denied> {
        self.who.must(&self.vhost, Need { right, to })
    }

    pub(crate) fn record(&self, action: &'static str, object: &str, before: Value, after: Value) {
        let deed = Deed::of(Some(&self.who), action, object).within(&self.vhost).from_to(before, after);
        self.gate.record(deed);
    }

    /// Whether one may see it: with any right to it, or a tag.
    fn must_see(&self, what: Named<'_>) -> Result<(), Denied> {
        self.must_look()?;
        if self.who.sees(&self.vhost, what.name()) { Ok(()) } else { self.must_have(Right::Read, what) }
    }

    /// Whether one may publish there: for what is published later. Write.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn must_publish(&self, to: &Target) -> Result<(), Denied> {
        self.must(to)
    }

    /// Whether one may see what the messages of a queue say. Read.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn must_read(&self, queue: &str) -> Result<(), Denied> {
        self.must_have(Right::Read, Named::Queue(queue))
    }

    /// Whether one may look around here.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn must_look(&self) -> Result<(), Denied> {
        let entered = self.who.must_enter(&self.vhost);
        entered.or_else(|denied| self.who.must_have(Tag::Monitoring).map_err(|_| denied))
    }

    // ---- queues ----

    /// Makes a queue or changes its settings. Configure; with a place for dead letters also read it and write that. Messages without a
    /// priority get `import_priority` ([`MOST_URGENT`](crate::MOST_URGENT) or one of the scheme) where priorities begin to decide what
    /// goes next: read and write.
    ///
    /// # Errors
    /// [`NotDone`]; the same holds below.
    pub async fn declare_queue(
        &self,
        name: &str,
        settings: Settings,
        import_priority: Option<&Given>,
    ) -> Done<Declared> {
        self.must(&(name, &settings))?;
        let import = checked_import(import_priority, &settings)?;
        let there = self.engine.queue(name).await.ok();
        if let Some(there) = &there {
            self.import(name, &there.settings, &settings, import).await?;
        }
        let before = there.map(|queue| json!(queue.settings));
        let after = json!(settings);
        let declared = self.engine.declare_queue(name, settings).await?;
        if before.as_ref() != Some(&after) {
            self.record("queue.declare", name, before.unwrap_or_default(), after);
        }
        Ok(declared)
    }

    /// Changes the settings of a queue that is there: `change` gets the queue's own settings and returns those that the queue is to have.
    /// Where somebody else has changed them meanwhile, `change` is asked again, a hundred times in all, so that neither change
    /// undoes the other. Configure; with a place for dead letters also read the queue and write that. `import_priority` is as in
    /// [`declare_queue`](Self::declare_queue).
    pub async fn change_queue<E: From<NotDone>>(
        &self,
        name: &str,
        import_priority: Option<&Given>,
        mut change: impl FnMut(&Settings) -> Result<Settings, E>,
    ) -> Result<(), E> {
        self.must_have(Right::Configure, Named::Queue(name)).map_err(NotDone::from)?;
        for _ in 0..CHANGE_TRIES {
            let there = self.engine.queue(name).await.map_err(NotDone::from)?;
            let settings = change(&there.settings)?;
            self.must(&(name, &settings)).map_err(NotDone::from)?;
            let import = checked_import(import_priority, &settings).map_err(NotDone::from)?;
            if settings == there.settings {
                return Ok(());
            }
            self.import(name, &there.settings, &settings, import).await?;
            let (before, after) = (json!(there.settings), json!(settings));
            let existing = Existing::From(Box::new(there.settings));
            let declare = DeclareQueue { settings, identity: there.identity, existing };
            match self.engine.declare(name, declare).await {
                Ok(_) => {
                    self.record("queue.declare", name, before, after);
                    return Ok(());
                }
                Err(failure) => {
                    let not = NotDone::from(failure);
                    if !not.is(Refusal::QueueDiffers) {
                        return Err(not.into());
                    }
                }
            }
        }
        Err(NotDone::from(Failure::from(Refusal::QueueDiffers)).into())
    }

    /// Makes a queue that is more than settings, or finds the one that is the same.
    pub async fn declare(&self, name: &str, declare: DeclareQueue) -> Done<Declared> {
        self.must(&(name, &declare.settings))?;
        let after = json!(declare.settings);
        let declared = self.engine.declare(name, declare).await?;
        if declared.made {
            self.record("queue.declare", name, Value::Null, after);
        }
        Ok(declared)
    }

    /// Deletes a queue. Configure.
    pub async fn delete_queue(&self, name: &str, only: DeleteOnly) -> Done<u64> {
        self.must_have(Right::Configure, Named::Queue(name))?;
        let before = self.engine.queue(name).await.ok().map(|queue| json!(queue.settings));
        let ready = self.engine.delete_queue(name, only).await?;
        self.record("queue.delete", name, before.unwrap_or_default(), Value::Null);
        Ok(ready)
    }

    /// The queues one may see, of at most so many, 1 or more, that come after a name. The engine is asked for a few at a time.
    pub async fn queues(&self, after: Option<&str>, limit: usize) -> Done<QueuePage> {
        self.must_look()?;
        let (mut queues, mut left, mut next) = (Vec::new(), limit, after.map(Arc::from));
        loop {
            let page = self.engine.queues(next.as_deref(), left.min(QUEUES_AT_ONCE)).await?;
            left -= page.queues.len();
            queues.extend(page.queues.into_iter().filter(|queue| self.who.sees(&self.vhost, &queue.name)));
            next = page.next;
            if left == 0 || next.is_none() {
                return Ok(QueuePage { queues, next });
            }
        }
    }

    /// A queue. Any right to it.
    pub async fn queue(&self, name: &str) -> Done<QueueView> {
        self.must_see(Named::Queue(name))?;
        Ok(self.engine.queue(name).await?)
    }

    // ---- exchanges ----

    /// Makes an exchange. Configure; with an alternate also read it and write that.
    pub async fn declare_exchange(&self, name: &str, settings: ExchangeSettings) -> Done<()> {
        self.must(&(name, &settings))?;
        let is_new = self.engine.exchange(name).await.is_err();
        let after = json!(settings);
        self.engine.declare_exchange(name, settings).await?;
        if is_new {
            self.record("exchange.declare", name, Value::Null, after);
        }
        Ok(())
    }

    /// Deletes an exchange. Configure.
    pub async fn delete_exchange(&self, name: &str, if_unused: bool) -> Done<()> {
        self.must_have(Right::Configure, Named::Exchange(name))?;
        self.engine.delete_exchange(name, if_unused).await?;
        self.record("exchange.delete", name, json!({}), Value::Null);
        Ok(())
    }

    /// The exchanges one may see.
    pub async fn exchanges(&self) -> Done<Vec<ExchangeView>> {
        self.must_look()?;
        let mut all = self.engine.exchanges().await?;
        all.retain(|exchange| self.who.sees(&self.vhost, &exchange.name));
        Ok(all)
    }

    /// An exchange. Any right to it.
    pub async fn exchange(&self, name: &str) -> Done<ExchangeView> {
        self.must_see(Named::Exchange(name))?;
        Ok(self.engine.exchange(name).await?)
    }

    /// The bindings of an exchange. Any right to it.
    pub async fn bindings(&self, exchange: &str) -> Done<Vec<Binding>> {
        self.must_see(Named::Exchange(exchange))?;
        Ok(self.engine.bindings(exchange).await?)
    }

    /// Binds. Write what is led to, read what leads there.
    pub async fn bind(&self, binding: Binding) -> Done<()> {
        self.must(&binding)?;
        let (object, after) = told(&binding);
        self.engine.bind(binding).await?;
        self.record("binding.put", &object, Value::Null, after);
        Ok(())
    }

    /// Takes a binding away. As to bind.
    pub async fn unbind(&self, binding: Binding) -> Done<()> {
        self.must(&binding)?;
        let (object, before) = told(&binding);
        self.engine.unbind(binding).await?;
        self.record("binding.delete", &object, before, Value::Null);
        Ok(())
    }

    // ---- policies ----

    /// The policies of a kind, by name. Everybody who may look around here.
    pub async fn policies(&self, kind: PolicyKind) -> Done<NamedPolicies> {
        self.must_look()?;
        Ok(self.engine.policies(kind).await?)
    }

    /// Sets a policy. Policymakers; an operator's administrators. One that leads messages elsewhere takes what a declaration takes that
    /// does: read everything that it is for, and write where it leads. Administrators, who give these rights, need not have them.
    pub async fn set_policy(&self, kind: PolicyKind, name: &str, policy: Policy) -> Done<()> {
        let before = self.must_rule(kind, name).await?;
        if self.who.must_have(Tag::Administrator).is_err() {
            self.must_lead_elsewhere(&policy)?;
        }
        let after = json!(policy);
        self.engine.set_policy(kind, name, policy).await?;
        self.record(by_kind(kind, "policy.set", "operator_policy.set"), name, before, after);
        Ok(())
    }

    /// Removes a policy. As to set one.
    pub async fn remove_policy(&self, kind: PolicyKind, name: &str) -> Done<()> {
        let before = self.must_rule(kind, name).await?;
        self.engine.remove_policy(kind, name).await?;
        self.record(by_kind(kind, "policy.remove", "operator_policy.remove"), name, before, Value::Null);
        Ok(())
    }

    fn must_lead_elsewhere(&self, policy: &Policy) -> Result<(), Denied> {
        let says = &policy.definition;
        let (queues, exchanges) = (policy.apply_to.queues(), policy.apply_to.exchanges());
        let ways = [
            ("dead-letter-exchange", queues, says.dead_letter_exchange.as_deref().map(Some)),
            ("dead-letter-routing-key", queues, says.dead_letter_routing_key.as_deref().map(|_| None)),
            ("alternate-exchange", exchanges, says.alternate_exchange.as_deref().map(Some)),
        ];
        for (key, counts, to) in ways {
            let Some(to) = to.filter(|_| counts) else { continue };
            if !self.who.has_for_all(&self.vhost, Right::Read, &policy.pattern) {
                let (user, vhost) = (Arc::clone(self.who.user()), Arc::clone(&self.vhost));
                return Err(Denied::Pattern { user, vhost, pattern: policy.pattern.as_str().into(), key });
            }
            to.map_or(Ok(()), |to| self.must_have(Right::Write, Named::Exchange(to)))?;
        }
        Ok(())
    }

    /// Whether one may set policies of this kind here. Answers how the one of that name is now.
    async fn must_rule(&self, kind: PolicyKind, name: &str) -> Done<Value> {
        self.who.must_have(by_kind(kind, Tag::Policymaker, Tag::Administrator))?;
        self.who.must_enter(&self.vhost)?;
        let before = self.engine.policies(kind).await?.into_iter().find(|(there, _)| **there == *name);
        Ok(before.map(|(_, policy)| json!(policy)).unwrap_or_default())
    }

    // ---- routes ----

    /// The routes of the virtual host, and what they did. Everybody who may look around here.
    pub async fn routes(&self) -> Done<RoutesView> {
        self.must_look()?;
        Ok(self.engine.routes().await?)
    }

    /// The first route of a manifest, by name, into a queue that somebody must declare before. Everybody who may look around here.
    pub async fn leads_nowhere<'m>(&self, manifest: &'m Manifest) -> Done<Option<&'m NamedRoute>> {
        self.must_look()?;
        Ok(leads_nowhere(&*self.engine, manifest).await?)
    }

    /// Sets the routes of the virtual host. Policymakers; each route that is another one than before takes what a binding takes: read the
    /// exchange of routes, and write the queue that it leads into. Administrators, who give these rights, need not have them.
    pub async fn set_routes(&self, routes: RouteSet) -> Done<()> {
        self.who.must_have(Tag::Policymaker)?;
        self.who.must_enter(&self.vhost)?;
        let before = self.engine.routes().await?;
        if self.who.must_have(Tag::Administrator).is_err() {
            let there = &before.set.manifest().routes;
            for route in routes.manifest().routes.iter().filter(|route| !there.contains(route)) {
                self.must_have(Right::Read, Named::Exchange(ROUTES_EXCHANGE))?;
                self.must_have(Right::Write, Named::Queue(route.route.sink.name()))?;
            }
        }
        let changes = diff(before.set.manifest(), routes.manifest());
        self.engine.set_routes(Arc::new(routes)).await?;
        if !changes.is_empty() {
            let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
            self.record("routes.set", "", Value::Null, json!(changes));
        }
        Ok(())
    }

    // ---- messages on their way ----

    /// Publishes all or none. Write each exchange and queue; whoever a message says it is of is who asks, but for administrators.
    pub async fn publish(&self, messages: Vec<NewMessage>) -> Done<Vec<PublishedCopy>> {
        self.transact(messages, Vec::new()).await
    }

    /// Publishes and settles, all or none. Write what is published to, read what is settled.
    pub async fn transact(
        &self,
        mut messages: Vec<NewMessage>,
        settlements: Vec<(Receipt, Outcome)>,
    ) -> Done<Vec<PublishedCopy>> {
        for message in &mut messages {
            self.must(&message.to)?;
            message.sender = self.sender(message)?;
        }
        self.must_settle(&settlements).await?;
        Ok(self.engine.transact(messages, settlements).await?)
    }

    /// The sender of a message, as the conditions of routes see it.
    ///
    /// # Errors
    /// The message says that it is of somebody else.
    pub fn sender(&self, message: &NewMessage) -> Result<Sender, Denied> {
        let said = message.content.user_id();
        said.map_or(Ok(()), |said| self.who.must_be(said))?;
        Ok(self.who.sender(said))
    }

    /// Whether one may settle these: a receipt names its queue by a number, which anybody could make up.
    async fn must_settle(&self, settlements: &[(Receipt, Outcome)]) -> Done<()> {
        let queues: BTreeSet<_> = settlements.iter().map(|(receipt, _)| receipt.queue).collect();
        if queues.is_empty() {
            return Ok(());
        }
        let numbers: Vec<_> = queues.into_iter().collect();
        let names = self.engine.queue_names(numbers.clone()).await?;
        for (number, name) in numbers.into_iter().zip(names) {
            let Some(name) = name else {
                let at = settlements.iter().position(|(receipt, _)| receipt.queue == number);
                let part = at.map(Part::Settlement);
                return Err(Failure::Refused(Refused { refusal: Refusal::StaleReceipt, part }).into());
            };
            self.must_have(Right::Read, Named::Queue(&name))?;
        }
        Ok(())
    }

    /// Leases, for somebody who calls itself so; whose and from where it is seen in the lease is said here. Read.
    pub async fn lease(&self, lease: LeaseRequest, worker: Option<Arc<str>>) -> Done<Vec<LeasedMessage>> {
        self.must_have(Right::Read, Named::Queue(&lease.queue))?;
        let (queue, holder) = (Arc::clone(&lease.queue), Some(Arc::new(self.holder(worker))));
        let lease = self.engine.lease(LeaseRequest { holder, ..lease });
        let leased = tokio::select! {
            biased;
            leased = lease => leased?,
            denied = self.denied(Right::Read, Named::Queue(&queue)) => return Err(denied.into()),
        };
        // The right may have been taken away during the wait: then the leased messages go back untouched.
        if let Err(denied) = self.must_have(Right::Read, Named::Queue(&queue)) {
            let receipts: Vec<Receipt> = leased.iter().map(|message| message.receipt).collect();
            if !receipts.is_empty() {
                self.engine.settle(receipts, Outcome::Release).await?;
            }
            return Err(denied.into());
        }
        Ok(leased)
    }

    /// Waits until one has a right no more. Where that is because the virtual host is deleted, the engine says so.
    async fn denied(&self, right: Right, to: Named<'_>) -> Denied {
        let (mut changes, version) = (self.gate.roll().changes(), self.who.version());
        loop {
            if let Err(denied) = self.must_have(right, to)
                && !self.who.is_vhost_deleted(&self.vhost, version)
            {
                return denied;
            }
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    fn holder(&self, worker: Option<Arc<str>>) -> Holder {
        let address = self.who.from().map(|address| address.to_string().into());
        Holder { user: Some(Arc::clone(self.who.user())), address, worker, ..Holder::default() }
    }

    /// Settles leases of a queue; that they are of it was seen before. Read.
    pub async fn settle(
        &self,
        queue: &str,
        receipts: Vec<Receipt>,
        outcome: Outcome,
    ) -> Done<Vec<Result<(), Refusal>>> {
        self.must_have(Right::Read, Named::Queue(queue))?;
        Ok(self.engine.settle(receipts, outcome).await?)
    }

    /// Settles one lease of a queue and says how the work went; that it is of it was seen before. Read.
    pub async fn finish(
        &self,
        queue: &str,
        receipt: Receipt,
        outcome: Outcome,
        report: Report,
    ) -> Done<Result<(), Refusal>> {
        self.must_have(Right::Read, Named::Queue(queue))?;
        Ok(self.engine.finish(receipt, outcome, report).await?)
    }

    /// Lengthens leases of a queue; that they are of it was seen before. Read.
    pub async fn extend(
        &self,
        queue: &str,
        receipts: Vec<Receipt>,
        visibility_ms: u64,
    ) -> Done<Vec<Result<(), Refusal>>> {
        self.must_have(Right::Read, Named::Queue(queue))?;
        Ok(self.engine.extend(receipts, visibility_ms).await?)
    }

    /// Lengthens one lease of a queue and says how far the work is; that it is of it was seen before. Read.
    pub async fn progress(
        &self,
        queue: &str,
        receipt: Receipt,
        visibility_ms: u64,
        output: Arc<str>,
    ) -> Done<Result<(), Refusal>> {
        self.must_have(Right::Read, Named::Queue(queue))?;
        Ok(self.engine.progress(receipt, visibility_ms, output).await?)
    }

    /// [`Engine::withdrawals`](overtake_engine::Engine::withdrawals). Everybody may ask.
    #[must_use]
    pub fn withdrawals(&self) -> tokio::sync::watch::Receiver<u64> {
        self.engine.withdrawals()
    }

    // ---- messages that wait ----

    /// A page of messages. Read.
    pub async fn browse(&self, queue: &str, browse: Browse) -> Done<Page> {
        self.must_have(Right::Read, Named::Queue(queue))?;
        Ok(self.engine.browse(queue, browse).await?)
    }

    /// A message. Read.
    pub async fn message(&self, queue: &str, id: &str) -> Done<BrowsedMessage> {
        self.must_have(Right::Read, Named::Queue(queue))?;
        Ok(self.engine.message(queue, id).await?)
    }

    /// Removes all that stands so. Read.
    pub async fn purge(&self, queue: &str, status: Option<Status>, expect: Option<u64>) -> Done<u64> {
        self.must_have(Right::Read, Named::Queue(queue))?;
        let count = match expect {
            None => self.engine.purge(queue, status).await?,
            Some(expect) => self.engine.purge_counted(queue, status, expect).await?,
        };
        self.record("queue.purge", queue, json!({"status": status}), json!({"count": count}));
        Ok(count)
    }

    // ---- the broker ----

    /// Whether it can serve. Everybody may ask.
    #[must_use]
    pub fn health(&self) -> Health {
        self.engine.health()
    }

    /// A copy of the store. Administrators.
    ///
    /// # Errors
    /// [`Denied`]; inside, why there is none.
    pub fn snapshot(&self) -> Result<Result<Snapshot, NoSnapshot>, Denied> {
        self.who.must_have(Tag::Administrator)?;
        let taken = self.engine.snapshot();
        if taken.is_ok() {
            self.gate.record(Deed::of(Some(&self.who), "store.snapshot", ""));
        }
        Ok(taken)
    }
}

/// For a user's policy one, for an operator's another.
fn by_kind<T>(kind: PolicyKind, user: T, operator: T) -> T {
    match kind {
        PolicyKind::User => user,
        PolicyKind::Operator => operator,
    }
}

/// A binding as it is written down: what it is called, and what it says.
fn told(binding: &Binding) -> (String, Value) {
    let (kind, to) = match &binding.to {
        Destination::Queue(to) => ("queue", to),
        Destination::Exchange(to) => ("exchange", to),
    };
    let object = format!("{} → {kind} {to}", binding.exchange);
    (object, json!({"routing_key": binding.routing_key}))
}

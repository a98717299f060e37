//! What importing a file would change, found out before anything is: each declaration against what is there, and against
//! what the file declares before it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use overtake_access::{Account, Change, Desks, Directory, Identity, Tag};
use overtake_amqp_session::{arguments, differs};
use overtake_engine::{DeclareQueue, Engine, every_queue};
use overtake_lane::{
    Binding, Destination, ExchangeSettings, ExchangeView, MetadataEntry, Policy, PolicyKind, QueueView,
    VhostId, VhostSettings, check_name, check_queue_name,
};
use overtake_redact::Strict;
use serde_json::Value;

use super::file::{BindingDefined, Definitions, DestinationType, Placed};
use crate::ask::with_place;
use crate::exchanges::ExchangePut;
use crate::parameters;
use crate::policies::PolicyPut;
use crate::problem::Problem;
use crate::queues::QueuePut;

/// As what RabbitMQ writes operators' policies down.
pub(super) const OPERATOR_POLICY: &str = "operator_policy";

/// What importing a file would change.
#[derive(Debug, Default)]
pub struct Plan {
    pub(super) vhosts: Vec<(String, VhostSettings)>,
    pub(super) people: Vec<Change>,
    pub(super) parameters: Vec<MetadataEntry>,
    pub(super) policies: Vec<(String, PolicyKind, String, Policy)>,
    pub(super) exchanges: Vec<(String, String, ExchangeSettings)>,
    pub(super) queues: Vec<(String, String, DeclareQueue)>,
    pub(super) bindings: Vec<(String, Binding)>,
    changes: Vec<String>,
}

impl Plan {
    /// What would be changed, a line each; none: all is as the file says.
    #[must_use]
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    fn changes_to(&mut self, what: impl Display) {
        self.changes.push(what.to_string());
    }

    /// Of definitions, all of them `into` one virtual host or each into its own.
    pub(crate) async fn of(
        desks: &Desks,
        who: &Identity,
        definitions: &Definitions,
        into: Option<&str>,
    ) -> Result<Self, Problem> {
        let engine = desks.engine(who, Tag::Administrator)?;
        let mut there = There::look(engine, desks).await?;
        let mut plan = Self::default();
        let none = "there are no rights to topics here, and without them more would be allowed than before";
        refuse(&definitions.topic_permissions, "topic_permissions", none)?;
        plan.vhosts(definitions, &mut there)?;
        plan.users(definitions, &there)?;
        plan.permissions(definitions, &there)?;
        plan.parameters(definitions, &there, into)?;
        for (at, policy) in definitions.policies.iter().enumerate() {
            let planned = plan.policy(
                PolicyKind::User,
                &policy.name,
                vhost_of(policy.vhost.as_deref(), into),
                &policy.what,
                &there,
            );
            placed("policies", at, planned)?;
        }
        for (at, exchange) in definitions.exchanges.iter().enumerate() {
            placed("exchanges", at, plan.exchange(exchange, &mut there, into))?;
        }
        for (at, queue) in definitions.queues.iter().enumerate() {
            placed("queues", at, plan.queue(queue, &mut there, into))?;
        }
        for (at, binding) in definitions.bindings.iter().enumerate() {
            placed("bindings", at, plan.binding(binding, &mut there, into))?;
        }
        Ok(plan)
    }

    fn vhosts(&mut self, definitions: &Definitions, there: &mut There) -> Result<(), Problem> {
        for (at, vhost) in definitions.vhosts.iter().enumerate() {
            placed("vhosts", at, check_name(&vhost.name).map_err(Problem::bad))?;
            let before = there.vhosts.get(&*vhost.name).map(|here| here.settings.clone());
            let settings = vhost.what.over(&before.clone().unwrap_or_default());
            if before.as_ref() != Some(&settings) {
                self.changes_to(format_args!("vhost {}", vhost.name));
                self.vhosts.push((vhost.name.clone(), settings.clone()));
            }
            there.vhosts.entry(vhost.name.clone()).or_insert_with(Here::to_be).settings = settings;
        }
        Ok(())
    }

    fn users(&mut self, definitions: &Definitions, there: &There) -> Result<(), Problem> {
        for (at, user) in definitions.users.iter().enumerate() {
            placed("users", at, check_name(&user.name).map_err(Problem::bad))?;
            if user.what.password.is_some() {
                return placed(
                    "users",
                    at,
                    Err(Problem::bad("a file holds hashes of passwords, not passwords")),
                );
            }
            let password = placed("users", at, user.what.imported())?;
            let before = there.directory.user(&user.name).map(|user| &user.account);
            let limits = user.what.limits.or_else(|| Some(before?.limits)).unwrap_or_default();
            let account = Account { password, tags: user.what.tags.iter().collect(), limits };
            if before != Some(&account) {
                self.changes_to(format_args!("user {}", user.name));
                self.people.push(Change::PutUser { name: user.name.as_str().into(), account });
            }
        }
        Ok(())
    }

    fn permissions(&mut self, definitions: &Definitions, there: &There) -> Result<(), Problem> {
        let made: BTreeSet<&str> = definitions.users.iter().map(|user| &*user.name).collect();
        for (at, defined) in definitions.permissions.iter().enumerate() {
            let (user, vhost) = (&*defined.user, &*defined.vhost);
            let before = there.directory.user(user);
            if before.is_none() && !made.contains(user) {
                return placed(
                    "permissions",
                    at,
                    Err(Problem::bad(format_args!("there is no user `{user}`"))),
                );
            }
            placed("permissions", at, there.vhost(vhost))?;
            let permission = placed("permissions", at, defined.patterns.permission())?;
            if before.and_then(|user| user.permissions.get(vhost)) != Some(&permission) {
                self.changes_to(format_args!("permission of {user} in {vhost}"));
                let (user, vhost) = (user.into(), vhost.into());
                self.people.push(Change::SetPermission { user, vhost, permission });
            }
        }
        Ok(())
    }

    fn parameters(
        &mut self,
        definitions: &Definitions,
        there: &There,
        into: Option<&str>,
    ) -> Result<(), Problem> {
        for defined in &definitions.global_parameters {
            self.parameter(parameters::global_entry(&defined.name, &defined.value), there, &defined.name);
        }
        for (at, defined) in definitions.parameters.iter().enumerate() {
            let vhost = placed("parameters", at, vhost_of(defined.vhost.as_deref(), into))?;
            placed("parameters", at, there.vhost(vhost))?;
            if defined.component == OPERATOR_POLICY {
                let said = serde_path_to_error::deserialize(Strict(defined.value.clone()));
                let said = said.map_err(|error| Problem::bad(with_place(error.path(), error.inner())));
                let said: PolicyPut = placed("parameters", at, said)?;
                let planned = self.policy(PolicyKind::Operator, &defined.name, Ok(vhost), &said, there);
                placed("parameters", at, planned)?;
                continue;
            }
            let entry = parameters::entry(&defined.component, vhost, &defined.name, &defined.value);
            self.parameter(entry, there, &defined.name);
        }
        Ok(())
    }

    fn parameter(&mut self, entry: MetadataEntry, there: &There, name: &str) {
        if there.metadata.get(&entry.key) != entry.value.as_ref() {
            self.changes_to(format_args!("parameter {name}"));
            self.parameters.push(entry);
        }
    }

    fn policy(
        &mut self,
        kind: PolicyKind,
        name: &str,
        vhost: Result<&str, Problem>,
        said: &PolicyPut,
        there: &There,
    ) -> Result<(), Problem> {
        let vhost = vhost?;
        check_name(name).map_err(Problem::bad)?;
        let policy = said.policy(kind)?;
        if there.vhost(vhost)?.policies.get(&(kind, name.to_owned())) != Some(&policy) {
            self.changes_to(format_args!("policy {name} in {vhost}"));
            self.policies.push((vhost.to_owned(), kind, name.to_owned(), policy));
        }
        Ok(())
    }

    fn exchange(
        &mut self,
        defined: &Placed<ExchangePut>,
        there: &mut There,
        into: Option<&str>,
    ) -> Result<(), Problem> {
        let (name, vhost) = (&*defined.name, vhost_of(defined.vhost.as_deref(), into)?);
        if name.is_empty() {
            return Ok(());
        }
        let wanted = defined.what.wanted(name)?;
        let settings = arguments::exchange(&wanted, vhost)?;
        let here = there.vhost_mut(vhost)?;
        if let Some(is) = here.exchanges.get(name) {
            let other = is.settings.difference(&settings);
            return other.map_or(Ok(()), |key| Err(differs::exchange(key, &wanted, is, vhost).into()));
        }
        if name.starts_with("amq.") {
            return Err(Problem::bad(format_args!(
                "exchange name '{name}' contains reserved prefix 'amq.*'"
            )));
        }
        check_queue_name(name).map_err(Problem::bad)?;
        let alternate = settings.alternate.clone();
        let (name_of, of) = (name.into(), settings.clone());
        let view = ExchangeView {
            name: name_of,
            settings: of,
            bindings: 0,
            policy: None,
            alternate,
            published: 0,
            routed: 0,
        };
        here.exchanges.insert(name.to_owned(), view);
        self.changes_to(format_args!("exchange {name} in {vhost}"));
        self.exchanges.push((vhost.to_owned(), name.to_owned(), settings));
        Ok(())
    }

    fn queue(
        &mut self,
        defined: &Placed<QueuePut>,
        there: &mut There,
        into: Option<&str>,
    ) -> Result<(), Problem> {
        let (name, vhost) = (&*defined.name, vhost_of(defined.vhost.as_deref(), into)?);
        let wanted = defined.what.wanted(name)?;
        let queue = defined.what.queue(&wanted, vhost)?;
        let here = there.vhost_mut(vhost)?;
        match here.queues.get(name) {
            Some(Some(is))
                if is.identity.is_same(&queue.identity)
                    && (is.identity.arguments == queue.identity.arguments
                        || is.settings.is_declared_as(&queue.settings)) =>
            {
                Ok(())
            }
            Some(Some(is)) => Err(differs::queue(&wanted, is, vhost).into()),
            Some(None) => Err(Problem::bad(format_args!("queue '{name}' in vhost '{vhost}' is there twice"))),
            None => {
                check_queue_name(name).map_err(Problem::bad)?;
                here.queues.insert(name.to_owned(), None);
                self.changes_to(format_args!("queue {name} in {vhost}"));
                self.queues.push((vhost.to_owned(), name.to_owned(), queue));
                Ok(())
            }
        }
    }

    fn binding(
        &mut self,
        defined: &BindingDefined,
        there: &mut There,
        into: Option<&str>,
    ) -> Result<(), Problem> {
        let vhost = vhost_of(defined.vhost.as_deref(), into)?;
        if defined.source.is_empty() {
            return Ok(());
        }
        let (here, name) = (there.vhost_mut(vhost)?, &*defined.destination);
        let missing =
            |kind, name| Problem::bad(format_args!("there is no {kind} '{name}' in vhost '{vhost}'"));
        if !here.exchanges.contains_key(&*defined.source) {
            return Err(missing("exchange", &*defined.source));
        }
        let to = match defined.destination_type {
            DestinationType::Queue if here.queues.contains_key(name) => Destination::Queue(name.into()),
            DestinationType::Exchange if here.exchanges.contains_key(name) => {
                Destination::Exchange(name.into())
            }
            DestinationType::Queue => return Err(missing("queue", name)),
            DestinationType::Exchange => return Err(missing("exchange", name)),
        };
        let binding = defined.what.binding(&defined.source, &to, vhost)?;
        if here.bindings.insert(binding.clone()) {
            self.changes_to(format_args!("binding of {} to {name} in {vhost}", defined.source));
            self.bindings.push((vhost.to_owned(), binding));
        }
        Ok(())
    }
}

/// The same, with the place in the file in front of the reason.
fn placed<T>(list: &str, at: usize, result: Result<T, Problem>) -> Result<T, Problem> {
    result.map_err(|problem| Problem::bad(format_args!("{list}[{at}]: {}", problem.reason)))
}

fn refuse(list: &[Value], name: &str, why: &str) -> Result<(), Problem> {
    if list.is_empty() { Ok(()) } else { placed(name, 0, Err(Problem::bad(why))) }
}

fn vhost_of<'a>(said: Option<&'a str>, into: Option<&'a str>) -> Result<&'a str, Problem> {
    into.or(said).ok_or_else(|| Problem::bad("vhost is missing"))
}

/// What is there, and what the file has declared so far.
struct There {
    directory: Arc<Directory>,
    metadata: BTreeMap<Arc<str>, Arc<[u8]>>,
    vhosts: BTreeMap<String, Here>,
}

/// What is in one virtual host. A queue that the file declares is there without a view.
#[derive(Default)]
struct Here {
    settings: VhostSettings,
    policies: BTreeMap<(PolicyKind, String), Policy>,
    exchanges: BTreeMap<String, ExchangeView>,
    queues: BTreeMap<String, Option<QueueView>>,
    bindings: BTreeSet<Binding>,
}

impl There {
    async fn look(engine: &Arc<dyn Engine>, desks: &Desks) -> Result<Self, Problem> {
        let mut vhosts = BTreeMap::new();
        for vhost in engine.vhosts().await? {
            let here = Here::look(engine, vhost.vhost, vhost.settings).await?;
            vhosts.insert(vhost.name.to_string(), here);
        }
        let metadata = engine.metadata().await?.into_iter().collect();
        Ok(Self { directory: desks.gate().roll().now(), metadata, vhosts })
    }

    fn vhost(&self, name: &str) -> Result<&Here, Problem> {
        self.vhosts.get(name).ok_or_else(|| no_vhost(name))
    }

    fn vhost_mut(&mut self, name: &str) -> Result<&mut Here, Problem> {
        self.vhosts.get_mut(name).ok_or_else(|| no_vhost(name))
    }
}

fn no_vhost(name: &str) -> Problem {
    Problem::bad(format_args!("there is no vhost '{name}'"))
}

impl Here {
    /// One that is to be made: with the exchanges that are in every one.
    fn to_be() -> Self {
        let exchange = |view: ExchangeView| (view.name.to_string(), view);
        let exchanges = overtake_lane::Topology::default().views().map(exchange).collect();
        Self { exchanges, ..Self::default() }
    }

    async fn look(
        engine: &Arc<dyn Engine>,
        vhost: VhostId,
        settings: VhostSettings,
    ) -> Result<Self, Problem> {
        let engine = engine.in_vhost(vhost);
        let mut here = Self { settings, ..Self::default() };
        for kind in [PolicyKind::User, PolicyKind::Operator] {
            let policies = engine.policies(kind).await?.into_iter();
            here.policies.extend(policies.map(|(name, policy)| ((kind, name.to_string()), policy)));
        }
        for exchange in engine.exchanges().await? {
            here.bindings.extend(engine.bindings(&exchange.name).await?);
            here.exchanges.insert(exchange.name.to_string(), exchange);
        }
        let show = |queue: QueueView| drop(here.queues.insert(queue.name.to_string(), Some(queue)));
        every_queue(&*engine, show).await?;
        Ok(here)
    }
}

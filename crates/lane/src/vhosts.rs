//! Virtual hosts: name spaces of queues, exchanges, bindings and policies. Nothing goes from one into another: a name means what it
//! means in the one where it is said, or in that of the queue whose settings say it.
//!
//! Invariant: `/` is always there, and what is in a virtual host names it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::broker::Broker;
use crate::command::{Reply, Step};
use crate::fact::Fact;
use crate::ids::{Numbers, QueueId, VhostId};
use crate::policy::{Policies, PoliciesSize, Ruling};
use crate::refusal::Refusal;
use crate::topology::Topology;

/// Most virtual hosts of one broker, `/` among them.
pub const VHOSTS_MAX: usize = 10_000;
/// Most bytes of the description and the tags of a virtual host together.
pub const VHOST_TEXT_LEN_MAX: usize = 2_048;
/// The name of the virtual host that is always there.
pub const VHOST_DEFAULT_NAME: &str = "/";

/// What a virtual host is called until it is described.
const NAMELESS: &str = "";

/// What is said of a virtual host, and what it may hold. It may change at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VhostSettings {
    /// What it is for, in words. With the tags at most [`VHOST_TEXT_LEN_MAX`] bytes, without control characters.
    pub description: String,
    /// Words to find it by. Each is as a name ([`check_name`](crate::check_name)).
    pub tags: Vec<String>,
    /// At most so many queues; `None`: no limit of its own. Lowering it deletes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queues: Option<u64>,
    /// At most so many connections; `None`: no limit. Kept for front ends, which count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u64>,
}

impl VhostSettings {
    fn text_len(&self) -> usize {
        self.description.len() + self.tags.iter().map(String::len).sum::<usize>()
    }

    /// Whether it can be remembered.
    ///
    /// # Errors
    /// [`Refusal::VhostInvalid`].
    fn check(&self) -> Result<(), Refusal> {
        let is_said = !self.description.chars().any(char::is_control)
            && self.tags.iter().all(|tag| crate::check_name(tag).is_ok());
        let fits = self.text_len() <= VHOST_TEXT_LEN_MAX;
        (is_said && fits).then_some(()).ok_or(Refusal::VhostInvalid)
    }
}

/// A virtual host as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostView {
    /// Its number.
    pub vhost: VhostId,
    /// Its name.
    pub name: Arc<str>,
    /// What is said of it.
    pub settings: VhostSettings,
    /// Queues in it.
    pub queues: u64,
}

/// One virtual host.
#[derive(Clone, Debug)]
pub(crate) struct Vhost {
    /// Empty until it is described: a log whose head was given back may say later what its virtual hosts are.
    name: Arc<str>,
    settings: VhostSettings,
    pub(crate) queues: BTreeMap<Arc<str>, QueueId>,
    pub(crate) topology: Topology,
    /// Changed by [`Vhosts::change_policies`] only, which counts those of all.
    pub(crate) policies: Policies,
    pub(crate) ruling: Ruling,
}

impl Vhost {
    fn new(name: Arc<str>, settings: VhostSettings) -> Self {
        let (queues, topology, policies) = (BTreeMap::new(), Topology::default(), Policies::default());
        Self { name, settings, queues, topology, policies, ruling: Ruling::default() }
    }

    /// The number of a queue in it.
    ///
    /// # Errors
    /// [`Refusal::NoSuchQueue`].
    pub(crate) fn queue(&self, name: &str) -> Result<QueueId, Refusal> {
        self.queues.get(name).copied().ok_or(Refusal::NoSuchQueue)
    }

    /// Whether another queue may be made in it.
    ///
    /// # Errors
    /// [`Refusal::VhostQueuesMax`].
    pub(crate) fn check_queues(&self) -> Result<(), Refusal> {
        let is_full = self.settings.max_queues.is_some_and(|most| self.queues.len() as u64 >= most);
        if is_full { Err(Refusal::VhostQueuesMax) } else { Ok(()) }
    }

    fn view(&self, vhost: VhostId) -> VhostView {
        let (name, settings) = (Arc::clone(&self.name), self.settings.clone());
        VhostView { vhost, name, settings, queues: self.queues.len() as u64 }
    }

    fn fact(&self, vhost: VhostId) -> Fact {
        let settings = Box::new(self.settings.clone());
        Fact::VhostStored { vhost, name: Arc::clone(&self.name), settings }
    }

    /// Frees a piece of one that is gone: a name, what leads to one queue, or an exchange. False: nothing is left.
    pub(crate) fn pop(&mut self) -> bool {
        self.queues.pop_first().is_some() || self.topology.pop()
    }

    /// Whether nothing was ever put into it, or nothing is left.
    fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.topology.is_as_predeclared() && self.policies.is_empty()
    }

    /// How much the records of what is in it take, but for queues and policies, in KiB, about.
    fn cost(&self) -> usize {
        self.topology.cost() + 1 + self.settings.text_len() / 1_024
    }
}

/// All virtual hosts of a broker. Invariant: `policies` is the size of the policies of all.
#[derive(Clone, Debug)]
pub(crate) struct Vhosts {
    all: BTreeMap<VhostId, Vhost>,
    names: BTreeMap<Arc<str>, VhostId>,
    /// They come and go and no number is used twice, so the numbers have gaps.
    next: u32,
    policies: PoliciesSize,
}

impl Vhosts {
    /// Only `/`; others get these numbers.
    pub(crate) fn numbered(numbers: Numbers) -> Self {
        let name: Arc<str> = VHOST_DEFAULT_NAME.into();
        let default = Vhost::new(Arc::clone(&name), VhostSettings::default());
        let all = BTreeMap::from([(VhostId::DEFAULT, default)]);
        let names = BTreeMap::from([(name, VhostId::DEFAULT)]);
        let next = numbers.first.max(VhostId::DEFAULT.0 + 1);
        Self { all, names, next, policies: PoliciesSize::default() }
    }

    /// The next one has this number, or the first one after it that is free.
    pub(crate) fn number_from(&mut self, number: u32) {
        self.next = number.max(VhostId::DEFAULT.0 + 1);
    }

    fn free_number(&self, numbers: Numbers) -> Option<VhostId> {
        (self.next..numbers.end).map(VhostId).find(|id| !self.all.contains_key(id))
    }

    /// # Errors
    /// [`Refusal::NoSuchVhost`].
    pub(crate) fn get(&self, id: VhostId) -> Result<&Vhost, Refusal> {
        self.all.get(&id).ok_or(Refusal::NoSuchVhost)
    }

    /// # Errors
    /// [`Refusal::NoSuchVhost`].
    pub(crate) fn get_mut(&mut self, id: VhostId) -> Result<&mut Vhost, Refusal> {
        self.all.get_mut(&id).ok_or(Refusal::NoSuchVhost)
    }

    /// In the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (VhostId, &Vhost)> {
        self.all.iter().map(|(id, vhost)| (*id, vhost))
    }

    /// The first one from a number on.
    pub(crate) fn first_from(&self, id: VhostId) -> Option<(VhostId, &Vhost)> {
        self.all.range(id..).next().map(|(id, vhost)| (*id, vhost))
    }

    /// The queues of all, by virtual host and name.
    pub(crate) fn queues(&self) -> impl Iterator<Item = QueueId> {
        self.all.values().flat_map(|vhost| vhost.queues.values().copied())
    }

    fn id_of(&self, name: &str) -> Result<VhostId, Refusal> {
        self.names.get(name).copied().ok_or(Refusal::NoSuchVhost)
    }

    /// How much the records of all take, but for queues and policies, in KiB, about.
    pub(crate) fn cost(&self) -> usize {
        self.all.values().map(Vhost::cost).sum()
    }

    /// How much of policies there is in all of them.
    pub(crate) fn policies_size(&self) -> PoliciesSize {
        self.policies
    }

    /// Changes the policies of one.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVhost`].
    pub(crate) fn change_policies<T>(
        &mut self,
        id: VhostId,
        change: impl FnOnce(&mut Policies) -> T,
    ) -> Result<T, Refusal> {
        let policies = &mut self.get_mut(id)?.policies;
        let before = policies.size();
        let changed = change(policies);
        let now = policies.size();
        self.policies.change(before, now);
        Ok(changed)
    }

    fn insert(&mut self, id: VhostId, name: Arc<str>, settings: VhostSettings) {
        self.number_used(id);
        if !name.is_empty() {
            self.names.insert(Arc::clone(&name), id);
        }
        self.all.insert(id, Vhost::new(name, settings));
    }

    fn number_used(&mut self, id: VhostId) {
        self.next = self.next.max(id.0.saturating_add(1));
    }

    fn remove(&mut self, id: VhostId) -> Option<Vhost> {
        let gone = self.all.remove(&id)?;
        self.names.remove(&gone.name);
        self.policies.change(gone.policies.size(), PoliciesSize::default());
        Some(gone)
    }

    // ---- folding ----

    /// The one of which a log speaks, nameless if it has not said yet what it is; `None`: there can be none like it.
    pub(crate) fn known_or_nameless(&mut self, id: VhostId) -> Option<&mut Vhost> {
        if !self.all.contains_key(&id) {
            if self.all.len() >= VHOSTS_MAX {
                return None;
            }
            self.insert(id, NAMELESS.into(), VhostSettings::default());
        }
        self.all.get_mut(&id)
    }

    /// One is there, and is so. `None`: it cannot be.
    pub(crate) fn fold_stored(&mut self, id: VhostId, name: Arc<str>, settings: VhostSettings) -> Option<()> {
        crate::check_name(&name).and_then(|()| settings.check()).ok()?;
        match self.id_of(&name) {
            Ok(named) if named == id => {}
            Err(_) if self.known_or_nameless(id)?.name.is_empty() => {
                self.names.insert(Arc::clone(&name), id);
            }
            _ => return None,
        }
        let vhost = self.all.get_mut(&id)?;
        (vhost.name, vhost.settings) = (name, settings);
        Some(())
    }

    /// One is gone. Answers the queues that were in it; `None`: it was not there, or cannot go.
    pub(crate) fn fold_deleted(&mut self, id: VhostId) -> Option<Vec<QueueId>> {
        self.number_used(id);
        let gone = self.all.get(&id).filter(|_| id != VhostId::DEFAULT)?;
        Some(gone.queues.values().copied().collect())
    }

    /// Those that the log never described, because that part of it is damaged: what is in them is not lost with it. Answers
    /// the facts that say how they are called now.
    pub(crate) fn name_the_nameless(&mut self) -> Vec<Fact> {
        let nameless = self.all.iter().filter(|(_, vhost)| vhost.name.is_empty());
        let ids: Vec<VhostId> = nameless.map(|(id, _)| *id).collect();
        let mut facts = Vec::new();
        for id in ids {
            if self.all[&id].is_empty() {
                self.remove(id);
                continue;
            }
            let mut names = (0..).map(|again| format!("recovered-{}{}", id.0, "+".repeat(again)));
            let name = names.find(|name| !self.names.contains_key(&**name)).expect("a name is free");
            let stored = self.fold_stored(id, name.into(), VhostSettings::default());
            stored.expect("it is there and the name is free");
            facts.push(self.all[&id].fact(id));
        }
        facts
    }

    /// The fact that makes one again; `None`: it is made with every broker.
    pub(crate) fn fact(&self, id: VhostId) -> Option<Fact> {
        let vhost = self.all.get(&id)?;
        let is_as_made = id == VhostId::DEFAULT && vhost.settings == VhostSettings::default();
        (!is_as_made).then(|| vhost.fact(id))
    }
}

impl Broker {
    pub(crate) fn declare_vhost(
        &mut self,
        name: Arc<str>,
        settings: VhostSettings,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        crate::check_name(&name)?;
        settings.check()?;
        let id = match self.vhosts.id_of(&name) {
            Ok(id) if self.vhosts.get(id)?.settings == settings => return Ok(Reply::VhostDeclared(id)),
            Ok(id) => {
                self.vhosts.get_mut(id)?.settings = settings;
                id
            }
            Err(_) => {
                if self.vhosts.all.len() >= VHOSTS_MAX {
                    return Err(Refusal::TooManyVhosts);
                }
                let id = self.vhosts.free_number(self.options.numbers).ok_or(Refusal::TooManyVhosts)?;
                self.vhosts.insert(id, name, settings);
                id
            }
        };
        step.facts.push(self.vhosts.get(id)?.fact(id));
        Ok(Reply::VhostDeclared(id))
    }

    /// Deletes a virtual host with all that is in it. The fact that it is gone comes first, and says it of all: whatever of the
    /// others a crash leaves, all is gone or nothing.
    pub(crate) fn delete_vhost(&mut self, name: &str, step: &mut Step) -> Result<Reply, Refusal> {
        let id = self.vhosts.id_of(name)?;
        if id == VhostId::DEFAULT {
            return Err(Refusal::VhostReserved);
        }
        step.facts.push(Fact::VhostDeleted { vhost: id });
        // First: so none of its names and bindings is taken away for itself.
        let gone = self.vhosts.remove(id).expect("it was just there");
        let mut shared = Vec::new();
        for queue in gone.queues.values() {
            let (queue, turns) = self.unseat_queue(*queue, step);
            shared.extend(turns);
            self.remains.add_queue(queue, step);
        }
        self.remains.add_vhost(gone);
        self.forget_producers(id, step);
        self.dispatch_all(shared.into_iter(), step);
        Ok(Reply::Done)
    }

    pub(crate) fn fold_vhost_deleted(&mut self, id: VhostId, step: &mut Step) -> Option<()> {
        for queue in self.vhosts.fold_deleted(id)? {
            self.fold_queue_deleted(queue, step);
            // A queue that is known by what comes before may, once that is given back, be known by its messages alone.
            self.unsaid.insert(queue);
        }
        self.vhosts.remove(id);
        Some(())
    }

    // ---- seeing ----

    /// All virtual hosts as they are now, by name.
    pub fn vhosts(&self) -> impl Iterator<Item = VhostView> + '_ {
        self.vhosts.names.values().map(|id| self.vhosts.all[id].view(*id))
    }

    /// A virtual host as it is now.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVhost`].
    pub fn vhost(&self, name: &str) -> Result<VhostView, Refusal> {
        let id = self.vhosts.id_of(name)?;
        Ok(self.vhosts.get(id)?.view(id))
    }

    /// The name of a virtual host.
    #[must_use]
    pub fn vhost_name(&self, vhost: VhostId) -> Option<&Arc<str>> {
        self.vhosts.get(vhost).ok().map(|vhost| &vhost.name)
    }

    /// How many virtual hosts there are.
    #[must_use]
    pub fn vhost_count(&self) -> usize {
        self.vhosts.all.len()
    }

    /// How many virtual hosts can be deleted, and how many queues are in them.
    #[must_use]
    pub fn deletable(&self) -> (u64, u64) {
        let default = self.vhosts.all[&VhostId::DEFAULT].queues.len();
        (self.vhosts.all.len() as u64 - 1, (self.queues.len() - default) as u64)
    }

    /// Which virtual host a queue is in.
    #[must_use]
    pub fn vhost_of(&self, queue: QueueId) -> Option<VhostId> {
        self.queues.get(&queue).map(|queue| queue.vhost)
    }
}

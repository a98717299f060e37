//! Queues whose definition was lost: their places are found by their keys, and say themselves whose they are.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use overtake_engine::{Failure, Orphan};
use overtake_lane::{
    Asker, Broker, Command, Existing, Fact, Identity, PlaceNumber, QueueId, Refusal, Reply, Settings, Step,
    Time, VhostSettings,
};
use overtake_store::record::Decoder;

use super::House;
use super::hosted::deadline;
use crate::cluster::Call;
use crate::functions::{Adopt, Forget, Of, Owned, Whose};
use crate::places::base_of;

/// The keys that every place has, and only places.
const PLACES: &str = "{[0-9]*:[0-9]*}:c";

/// The places of a queue, by their numbers.
type Found = BTreeMap<PlaceNumber, Owned>;

/// How a queue was defined.
struct Definition {
    vhost: Arc<str>,
    name: Arc<str>,
    settings: Box<Settings>,
    identity: Identity,
}

fn unavailable(why: impl ToString) -> Failure {
    Failure::Unavailable(why.to_string().into())
}

impl House {
    /// All of them.
    pub(super) async fn orphans(&self) -> Result<Vec<Orphan>, Failure> {
        let found = self.orphaned_places().await?;
        self.orphans_seen.store(found.len() as u64, Ordering::Relaxed);
        Ok(found.into_iter().map(|(queue, found)| seen(queue, &found)).collect())
    }

    /// Looks for orphans, and logs how many there are.
    async fn look_for_orphans(&self) {
        match self.orphans().await {
            Ok(all) if all.is_empty() => {}
            Ok(all) => {
                let messages: u64 = all.iter().map(|orphan| orphan.messages).sum();
                tracing::warn!(
                    queues = all.len(),
                    messages,
                    "the servers have queues that are not defined; nobody is given their messages: see `overtake cluster orphans`"
                );
            }
            Err(why) => {
                tracing::warn!(%why, "whether the servers have queues that are not defined is not known");
            }
        }
    }

    /// Places of which no definition says that they are of its queue.
    async fn orphaned_places(&self) -> Result<BTreeMap<QueueId, Found>, Failure> {
        self.definitions.follow().await?;
        let keys = self.cluster.keys(PLACES).await.map_err(unavailable)?;
        let mut places: Vec<(QueueId, PlaceNumber)> = keys.iter().filter_map(|key| place_of(key)).collect();
        places.sort_unstable();
        places.dedup();
        let calls: Vec<Call> =
            places.iter().map(|(queue, place)| Whose.call(&base_of(queue.0, *place))).collect();
        let mut all: BTreeMap<QueueId, Found> = BTreeMap::new();
        for ((queue, place), said) in places.into_iter().zip(self.cluster.calls(deadline(), calls).await) {
            let Some(owned) = Whose::read(&said.map_err(unavailable)?).map_err(unavailable)? else {
                continue;
            };
            let of = self.definitions.of(queue);
            if !of.is_some_and(|of| owned.of.is_empty() || owned.of == of.as_str()) {
                all.entry(queue).or_default().insert(place, owned);
            }
        }
        Ok(all)
    }

    async fn orphaned(&self, queue: QueueId) -> Result<Found, Failure> {
        self.orphaned_places().await?.remove(&queue).ok_or(Refusal::NoSuchOrphan.into())
    }

    /// Defines a queue again whose places are there. Answers it as it is then.
    pub(super) async fn adopt_orphan(
        &self,
        queue: QueueId,
        name: Option<Arc<str>>,
    ) -> Result<Orphan, Failure> {
        let found = self.orphaned(queue).await?;
        let first = found.get(&0).and_then(|first| definition(&first.queue)).ok_or_else(|| {
            unavailable("its first partition is not there, or does not say how the queue was defined: its messages can only be removed")
        })?;
        let Definition { vhost, name: before, settings, identity } = first;
        let name = name.unwrap_or(before);
        if self.definitions.has(queue) {
            // Of as many numbers as there are, a new queue got this one.
            return Err(Refusal::QueueExists.into());
        }
        let is_taken = |broker: &Broker| {
            broker.vhost(&vhost).is_ok_and(|there| broker.id_of(there.vhost, &name).is_ok())
        };
        if self.definitions.with(is_taken) {
            return Err(Refusal::QueueExists.into());
        }
        // A process that ends here leaves the queue orphaned, to be adopted again.
        let of = Of::queue(&self.definitions.incarnation(), &vhost, &name);
        let adopt = |(place, owned): (&PlaceNumber, &Owned)| {
            Adopt { from: owned.of.clone(), of: of.clone() }.call(&base_of(queue.0, *place))
        };
        for adopted in self.cluster.calls(deadline(), found.iter().map(adopt).collect()).await {
            if !Adopt::is_done(&adopted.map_err(unavailable)?).map_err(unavailable)? {
                return Err(Refusal::NoSuchOrphan.into());
            }
        }
        let identity = Identity { exclusive: false, ..identity };
        self.definitions
            .change(Asker::default(), |broker, step| {
                let there = vhost_named(broker, &vhost, step)?;
                if broker.id_of(there, &name).is_ok() {
                    return Err(Refusal::QueueExists);
                }
                broker.number_from(queue.0);
                let (name, settings, identity) = (Arc::clone(&name), settings.clone(), identity.clone());
                let declare = Command::DeclareQueue { name, settings, identity, existing: Existing::Same };
                let asker = Asker { session: None, vhost: there };
                broker.apply_by(Time(0), asker, declare, step).map(drop)
            })
            .await?;
        tracing::warn!(queue = %name, vhost = %vhost, "a queue whose definition was lost is adopted");
        self.orphans_seen.fetch_sub(1, Ordering::Relaxed);
        self.hosted(queue).await?;
        Ok(Orphan { name, vhost: Some(vhost), ..seen(queue, &found) })
    }

    /// Removes a queue that is not defined. Answers how many messages it had.
    pub(super) async fn remove_orphan(&self, queue: QueueId) -> Result<u64, Failure> {
        let found = self.orphaned(queue).await?;
        let messages = found.values().map(|place| place.messages).sum();
        let version = *self.definitions.versions().borrow();
        let forget = |(place, owned): (&PlaceNumber, &Owned)| {
            Forget { version }.call_of(&base_of(queue.0, *place), &owned.of)
        };
        for gone in self.cluster.calls(deadline(), found.iter().map(forget).collect()).await {
            gone.map_err(unavailable)?;
        }
        tracing::warn!(queue = queue.0, messages, "a queue whose definition was lost is removed");
        Ok(messages)
    }
}

/// Looks for them now, and whenever definitions went back.
pub(super) async fn keep_looking_for_orphans(house: Weak<House>) {
    let Some(mut went_back) = house.upgrade().map(|house| house.definitions.went_back()) else { return };
    loop {
        went_back.mark_unchanged();
        let Some(at_work) = house.upgrade() else { return };
        at_work.look_for_orphans().await;
        drop(at_work);
        if went_back.changed().await.is_err() {
            return;
        }
    }
}

fn vhost_named(
    broker: &mut Broker,
    name: &Arc<str>,
    step: &mut Step,
) -> Result<overtake_lane::VhostId, Refusal> {
    if let Ok(there) = broker.vhost(name) {
        return Ok(there.vhost);
    }
    let (name, settings) = (Arc::clone(name), Box::<VhostSettings>::default());
    match broker.apply_by(Time(0), Asker::default(), Command::DeclareVhost { name, settings }, step)? {
        Reply::VhostDeclared(vhost) => Ok(vhost),
        _ => unreachable!("a declaration is answered as one"),
    }
}

/// The place whose key this is.
fn place_of(key: &str) -> Option<(QueueId, PlaceNumber)> {
    let (queue, place) = key.strip_prefix('{')?.strip_suffix("}:c")?.split_once(':')?;
    Some((QueueId(queue.parse().ok()?), place.parse().ok()?))
}

fn seen(queue: QueueId, found: &Found) -> Orphan {
    let definition = found.get(&0).and_then(|first| definition(&first.queue));
    let name = found.values().next().map(|place| Arc::from(&*place.name)).unwrap_or_default();
    Orphan {
        queue,
        vhost: definition.map(|definition| definition.vhost),
        name,
        partitions: found.len() as u64,
        messages: found.values().map(|place| place.messages).sum(),
    }
}

/// What a place was told of its queue.
fn definition(facts: &[u8]) -> Option<Definition> {
    let mut vhost = None;
    for fact in Decoder::new(facts) {
        match fact.ok()?.0 {
            Fact::VhostStored { name, .. } => vhost = Some(name),
            Fact::QueueStored { name, settings, identity, .. } => {
                return Some(Definition { vhost: vhost?, name, settings, identity });
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_keys_of_places_are_those_of_places() {
        assert_eq!(place_of("{12:3}:c"), Some((QueueId(12), 3)));
        for other in ["{12:3}:m", "{overtake}:definitions", "{12:3}:c:c", "{12}:c", "{a:3}:c"] {
            assert_eq!(place_of(other), None, "{other}");
        }
    }
}

//! The brokers on the same servers, the servers, and where the partitions of queues are: kept in memory, for whoever asks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use overtake_engine::{BrokerView, ClusterView, QueuePlacement};
use overtake_lane::Time;

use super::House;
use super::hosted::deadline;
use crate::cluster::Slot;
use crate::functions::{Introduce, Introduced};

/// Who is there, as the servers said last.
#[derive(Debug, Default)]
pub(super) struct Brokers(Mutex<Vec<Introduced>>);

impl House {
    /// Says what this process is, and hears who else is there.
    pub(super) async fn introduce(&self) {
        let (process, since) = (self.process.clone(), self.started);
        let call = Introduce { process, version: env!("CARGO_PKG_VERSION"), since }.call();
        let Ok(value) = self.cluster.call(deadline(), call).await else { return };
        if let Ok(brokers) = Introduce::read(&value) {
            *self.brokers.0.lock().unwrap_or_else(PoisonError::into_inner) = brokers;
        }
    }

    pub(super) fn cluster_view(&self) -> ClusterView {
        ClusterView {
            process: self.process.to_string().into(),
            brokers: self.broker_views(),
            nodes: self.cluster.nodes(),
            queues: self.placements(),
        }
    }

    fn broker_views(&self) -> Vec<BrokerView> {
        let now = self.now();
        let view = |Introduced { process, until, about }: Introduced| {
            let (version, since) = about.unwrap_or_default();
            BrokerView { process: process.into(), version: version.into(), since, is_overdue: until < now }
        };
        let known = self.brokers.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut brokers: Vec<_> = known.into_iter().map(view).collect();
        brokers.sort_by_key(|broker| (broker.since, Arc::clone(&broker.process)));
        brokers
    }

    fn placements(&self) -> Vec<QueuePlacement> {
        let map = self.cluster.map();
        let addresses: BTreeMap<_, Arc<str>> =
            map.primaries().into_iter().map(|place| (place, place.to_string().into())).collect();
        let place_of = |queue: u32, count: u32| {
            let mut partitions: BTreeMap<Arc<str>, u32> = BTreeMap::new();
            for number in 0..count {
                let primary = map.primary(Slot::of(format!("{{{queue}:{number}}}").as_bytes()));
                let address = primary.and_then(|primary| addresses.get(primary)).cloned();
                *partitions.entry(address.unwrap_or_default()).or_default() += 1;
            }
            partitions.into_iter().collect()
        };
        let mut all: Vec<_> = self.definitions.with(|broker| {
            let one = |view: overtake_lane::QueueView| QueuePlacement {
                vhost: broker.vhost_name(view.vhost).cloned().unwrap_or_default(),
                partitions: place_of(view.queue.0, view.settings.partitions.places().into()),
                queue: view.name,
            };
            broker.all_views(Time(0)).map(one).collect()
        });
        all.sort_by_key(|placed: &QueuePlacement| (Arc::clone(&placed.vhost), Arc::clone(&placed.queue)));
        all
    }
}

//! Which channel is heard where, and who listens.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::super::map::Place;
use super::super::roads::Roads;
use super::super::slot::Slot;
use super::super::verdict::Verdict;
use super::Listener;
use super::ear::{Ear, Event, Order, Orders, What};

/// What ears have heard and nobody has looked at; beyond that they do not read.
const EVENTS_MAX: usize = 1_024;

/// Somebody wants to hear a channel.
pub(in crate::cluster) struct Want {
    pub(in crate::cluster) channel: Bytes,
    pub(in crate::cluster) listener: Listener,
}

pub(in crate::cluster) struct Hub {
    roads: Arc<Roads>,
    channels: HashMap<Bytes, Channel>,
    ears: HashMap<Place, Known>,
    events: mpsc::Sender<Event>,
    /// Ears that there were.
    numbers: u64,
    /// Attempts in vain since something was heard of a channel.
    failed: u32,
    /// When what is heard nowhere is tried again.
    retry_at: Option<Instant>,
}

struct Known {
    number: u64,
    orders: Arc<Orders>,
}

struct Channel {
    listeners: Vec<Listener>,
    /// Where it is heard, or about to be.
    at: Option<Place>,
    is_live: bool,
}

impl Hub {
    /// For as long as somebody may want something.
    pub(in crate::cluster) async fn run(roads: Arc<Roads>, mut wants: mpsc::Receiver<Want>) {
        let (events, mut heard) = mpsc::channel(EVENTS_MAX);
        let mut maps = roads.maps.subscribe();
        let mut sweeps = interval(roads.nodes.patience.look());
        sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut hub = Self {
            roads,
            channels: HashMap::new(),
            ears: HashMap::new(),
            events,
            numbers: 0,
            failed: 0,
            retry_at: None,
        };
        loop {
            let retry_at = hub.retry_at;
            tokio::select! {
                want = wants.recv() => match want {
                    Some(want) => hub.want(want),
                    None => return,
                },
                Some(event) = heard.recv() => hub.heard(event),
                changed = maps.changed() => if changed.is_ok() {
                    hub.assign_all();
                },
                () = async { sleep_until(retry_at.expect("there is one")).await }, if retry_at.is_some() => {
                    hub.retry_at = None;
                    hub.assign_all();
                }
                _ = sweeps.tick() => hub.sweep(),
            }
        }
    }

    fn want(&mut self, Want { channel, listener }: Want) {
        let known = self.channels.entry(channel.clone());
        let known = known.or_insert(Channel { listeners: Vec::new(), at: None, is_live: false });
        if known.is_live {
            listener.gap();
        }
        known.listeners.push(listener);
        self.assign(&channel);
    }

    fn assign_all(&mut self) {
        let all: Vec<_> = self.channels.keys().cloned().collect();
        for channel in all {
            self.assign(&channel);
        }
    }

    /// Sees to it that a channel is heard where its slot is.
    fn assign(&mut self, name: &Bytes) {
        let map = self.roads.map();
        let place = map.primary(Slot::of(name));
        let Some(channel) = self.channels.get_mut(name) else { return };
        if channel.at.is_some() && channel.at.as_ref() == place {
            return;
        }
        if let Some(known) = channel.at.take().and_then(|at| self.ears.get(&at)) {
            known.orders.give(Order::Leave(name.clone()));
        }
        channel.is_live = false;
        let Some(place) = place else { return self.later() };
        channel.at = Some(place.clone());
        if !self.ears.contains_key(place) {
            self.listen_at(place);
        }
        self.ears[place].orders.give(Order::Hear(name.clone()));
    }

    fn listen_at(&mut self, place: &Place) {
        self.numbers += 1;
        let (number, orders) = (self.numbers, Arc::<Orders>::default());
        let ear =
            Ear { number, place: place.clone(), orders: Arc::clone(&orders), events: self.events.clone() };
        self.roads.spawn(ear.run(Arc::clone(&self.roads)));
        self.ears.insert(place.clone(), Known { number, orders });
    }

    fn later(&mut self) {
        if self.retry_at.is_none() {
            self.failed += 1;
            self.retry_at = Some(Instant::now() + self.roads.nodes.patience.backoff(self.failed));
        }
        self.roads.look.notify_one();
    }

    fn heard(&mut self, Event { ear, what }: Event) {
        let found = self.ears.iter().find(|(_, known)| known.number == ear);
        let Some(place) = found.map(|(place, _)| place.clone()) else { return };
        match what {
            What::Message(name, message) => {
                if let Some(channel) =
                    self.channels.get(&name).filter(|channel| channel.at.as_ref() == Some(&place))
                {
                    channel.listeners.iter().for_each(|listener| listener.message(message.clone()));
                }
            }
            What::Live(name) => {
                self.failed = 0;
                if let Some(channel) = self.at(&name, &place) {
                    channel.is_live = true;
                    channel.listeners.iter().for_each(Listener::gap);
                }
            }
            What::Off(name) => {
                if let Some(channel) = self.at(&name, &place) {
                    (channel.at, channel.is_live) = (None, false);
                    self.later();
                }
            }
            What::Refused(name, fault) => {
                let Some(channel) = self.at(&name, &place) else { return };
                (channel.at, channel.is_live) = (None, false);
                match Verdict::of(&fault, &place.host) {
                    Verdict::Moved(to) if to != place => {
                        self.roads.moved(Slot::of(&name), &to);
                        self.later();
                    }
                    verdict => {
                        if verdict == Verdict::Refused {
                            let channel = String::from_utf8_lossy(&name);
                            let says = format!("{} {}", fault.code(), fault.details());
                            tracing::warn!(node = %place, %channel, says, "a channel cannot be heard; give the user the right to it (ACL SETUSER … &CHANNEL)");
                        }
                        self.later();
                    }
                }
            }
            What::Lost(why) => {
                tracing::debug!(node = %place, why, "channels are not heard");
                self.ears.remove(&place);
                for channel in
                    self.channels.values_mut().filter(|channel| channel.at.as_ref() == Some(&place))
                {
                    (channel.at, channel.is_live) = (None, false);
                }
                self.later();
            }
        }
    }

    fn at(&mut self, name: &Bytes, place: &Place) -> Option<&mut Channel> {
        self.channels.get_mut(name).filter(|channel| channel.at.as_ref() == Some(place))
    }

    /// What nobody listens to any more is left.
    fn sweep(&mut self) {
        let ears = &self.ears;
        self.channels.retain(|name, channel| {
            channel.listeners.retain(|listener| !listener.is_gone());
            let is_kept = !channel.listeners.is_empty();
            if !is_kept && let Some(known) = channel.at.as_ref().and_then(|at| ears.get(at)) {
                known.orders.give(Order::Leave(name.clone()));
            }
            is_kept
        });
    }
}

//! How often a message died, as bytes, in messages and in the fact that one died.
//!
//! | field | bytes |
//! |---|---|
//! | how many entries | number |
//! | which of them is the first death ever | number, from 0 |
//! | by which route it had come where it died last, and by which to where it is | two routes |
//! | the entries, the newest first | each as below |
//!
//! | field of an entry | bytes |
//! |---|---|
//! | reason | a byte: 0 rejected, 1 delivery limit, 2 expired, 3 its queue was full, 4 it was worked on for too long |
//! | queue, lane | names |
//! | when it died so first, when last | numbers, milliseconds |
//! | how often it died so, how often it had been leased there | numbers |
//! | by which route it had come there | route |
//! | the time to live of its own that it lost | 0 for none, else one more than its milliseconds (number) |
//!
//! A route is the exchange (name), how many routing keys (number), and they (names). A name is 0 and text; or, since mostly the
//! same few return, one more than the number of the name of this history that it is, counted from 0.

use std::sync::Arc;

use overtake_lane::{DEATHS_MAX, Death, DeathReason, Deaths, Route, Time};

use crate::codec::{Reader, number, text};

const REASONS: [DeathReason; 5] = [
    DeathReason::Rejected,
    DeathReason::DeliveryLimit,
    DeathReason::Expired,
    DeathReason::Maxlen,
    DeathReason::Timeout,
];

/// Appends a history.
pub(crate) fn deaths(out: &mut Vec<u8>, deaths: &Deaths) {
    let mut told = Names { out, told: Vec::new() };
    number(told.out, deaths.iter().len() as u64);
    number(told.out, deaths.first_at() as u64);
    told.route(deaths.from());
    told.route(deaths.route());
    for death in deaths.iter() {
        told.death(death);
    }
}

/// A history that is being written, and the names in it so far.
struct Names<'a, 'b> {
    out: &'b mut Vec<u8>,
    told: Vec<&'a str>,
}

impl<'a> Names<'a, '_> {
    fn death(&mut self, death: &'a Death) {
        let reason = REASONS.iter().position(|known| *known == death.reason);
        self.out.push(reason.expect("every reason has a code") as u8);
        self.name(&death.queue);
        self.name(&death.lane);
        number(self.out, death.first_at.0);
        number(self.out, death.at.0);
        number(self.out, u64::from(death.times));
        number(self.out, u64::from(death.count));
        self.route(&death.route);
        number(self.out, death.ttl_ms.map_or(0, |ms| ms.saturating_add(1)));
    }

    fn route(&mut self, route: &'a Route) {
        self.name(&route.exchange);
        number(self.out, route.keys.len() as u64);
        for key in &route.keys {
            self.name(key);
        }
    }

    fn name(&mut self, name: &'a str) {
        if let Some(at) = self.told.iter().position(|told| *told == name) {
            return number(self.out, at as u64 + 1);
        }
        number(self.out, 0);
        text(self.out, name);
        self.told.push(name);
    }
}

impl Reader<'_> {
    /// What [`deaths`] wrote. `None` where the bytes end early or make no sense.
    pub(crate) fn deaths(&mut self) -> Option<Arc<Deaths>> {
        let (count, first) = (usize::try_from(self.number()?).ok()?, usize::try_from(self.number()?).ok()?);
        if count > DEATHS_MAX {
            return None;
        }
        let mut told = Vec::new();
        let (from, route) = (self.route(&mut told)?, self.route(&mut told)?);
        let list = (0..count).map(|_| self.death(&mut told)).collect::<Option<_>>()?;
        Deaths::new(list, first, from, route).map(Arc::new)
    }

    fn death(&mut self, told: &mut Vec<Arc<str>>) -> Option<Death> {
        let reason = *REASONS.get(usize::from(self.byte()?))?;
        let (queue, lane) = (self.name(told)?, self.name(told)?);
        let (first_at, at) = (Time(self.number()?), Time(self.number()?));
        let (times, count) = (self.small()?, self.small()?);
        let route = self.route(told)?;
        let ttl_ms = self.number()?.checked_sub(1);
        Some(Death { reason, queue, lane, first_at, at, times, count, route, ttl_ms })
    }

    fn route(&mut self, told: &mut Vec<Arc<str>>) -> Option<Route> {
        let exchange = self.name(told)?;
        let keys = (0..self.number()?).map(|_| self.name(told)).collect::<Option<_>>()?;
        Some(Route { exchange, keys })
    }

    fn name(&mut self, told: &mut Vec<Arc<str>>) -> Option<Arc<str>> {
        if let Some(at) = self.number()?.checked_sub(1) {
            return told.get(usize::try_from(at).ok()?).cloned();
        }
        told.push(Arc::from(self.text()?));
        told.last().cloned()
    }
}

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
//! | reason | a byte: 0 rejected, 1 delivery limit, 2 expired, 3 its queue was full |
//! | queue, lane | text |
//! | when it died so first, when last | numbers, milliseconds |
//! | how often it died so, how often it had been leased there | numbers |
//! | by which route it had come there | route |
//! | the time to live of its own that it lost | 0 for none, else one more than its milliseconds (number) |
//!
//! A route is the name of the exchange (text), how many routing keys (number), and they (text).

use std::sync::Arc;

use overtake_lane::{DEATHS_MAX, Death, DeathReason, Deaths, Route, Time};

use crate::codec::{Reader, number, text};

const REASONS: [DeathReason; 4] =
    [DeathReason::Rejected, DeathReason::DeliveryLimit, DeathReason::Expired, DeathReason::Maxlen];

/// Appends a history.
pub(crate) fn deaths(out: &mut Vec<u8>, deaths: &Deaths) {
    number(out, deaths.iter().len() as u64);
    number(out, deaths.first_at() as u64);
    route(out, deaths.from());
    route(out, deaths.route());
    for one in deaths.iter() {
        death(out, one);
    }
}

fn death(out: &mut Vec<u8>, death: &Death) {
    let reason = REASONS.iter().position(|known| *known == death.reason);
    out.push(reason.expect("every reason has a code") as u8);
    text(out, &death.queue);
    text(out, &death.lane);
    number(out, death.first_at.0);
    number(out, death.at.0);
    number(out, u64::from(death.times));
    number(out, u64::from(death.count));
    route(out, &death.route);
    number(out, death.ttl_ms.map_or(0, |ms| ms.saturating_add(1)));
}

fn route(out: &mut Vec<u8>, route: &Route) {
    text(out, &route.exchange);
    number(out, route.keys.len() as u64);
    for key in &route.keys {
        text(out, key);
    }
}

/// What the functions above wrote. `None` where the bytes end early or make no sense.
impl Reader<'_> {
    pub(crate) fn deaths(&mut self) -> Option<Arc<Deaths>> {
        let (count, first) = (usize::try_from(self.number()?).ok()?, usize::try_from(self.number()?).ok()?);
        if count > DEATHS_MAX {
            return None;
        }
        let (from, route) = (self.route()?, self.route()?);
        let list = (0..count).map(|_| self.death()).collect::<Option<_>>()?;
        Deaths::new(list, first, from, route).map(Arc::new)
    }

    fn death(&mut self) -> Option<Death> {
        let reason = *REASONS.get(usize::from(self.byte()?))?;
        let (queue, lane) = (Arc::from(self.text()?), Arc::from(self.text()?));
        let (first_at, at) = (Time(self.number()?), Time(self.number()?));
        let (times, count) = (self.small()?, self.small()?);
        let route = self.route()?;
        let ttl_ms = self.number()?.checked_sub(1);
        Some(Death { reason, queue, lane, first_at, at, times, count, route, ttl_ms })
    }

    fn route(&mut self) -> Option<Route> {
        let exchange = Arc::from(self.text()?);
        let keys = (0..self.number()?).map(|_| self.text().map(Arc::from)).collect::<Option<_>>()?;
        Some(Route { exchange, keys })
    }
}

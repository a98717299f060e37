//! Who holds what.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use redis::Value;

use super::slot::{SLOTS, Slot};

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// A name, or the text of an IP address without brackets.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
}

impl Place {
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// `HOST:PORT` as servers say it: of an IPv6 address without brackets, so the last colon counts. Where the host is left out it is the one that was asked.
    pub(crate) fn parse(text: &str, asked: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if host.is_empty() { asked } else { host };
        Some(Self::new(host, port.parse().ok()?))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Slots in a row, and who holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// By their numbers.
    pub slots: RangeInclusive<u16>,
    /// Where they are written.
    pub primary: Place,
    /// Where they are copied to.
    pub replicas: Vec<Place>,
}

/// Who holds what, as a node said it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// How often the cluster had changed its mind: of two maps the one with more of it is newer.
    pub epoch: u64,
    /// In the order of their slots.
    pub shards: Vec<Shard>,
}

impl Map {
    /// One server holds everything.
    pub(crate) fn of_one(place: Place) -> Self {
        Self { epoch: 0, shards: vec![Shard { slots: 0..=SLOTS - 1, primary: place, replicas: Vec::new() }] }
    }

    /// The answer to `CLUSTER SLOTS`: `[[first, last, [host, port, id, …], replica, …], …]`.
    pub(crate) fn parse(epoch: u64, answer: Value, asked: &str) -> Option<Self> {
        let Value::Array(ranges) = answer else { return None };
        let shards: Option<Vec<_>> = ranges.into_iter().map(|range| shard(range, asked)).collect();
        let mut shards = shards?;
        shards.sort_by_key(|shard| *shard.slots.start());
        Some(Self { epoch, shards })
    }

    /// Where a slot is written, if anybody holds it.
    #[must_use]
    pub fn primary(&self, slot: Slot) -> Option<&Place> {
        let number = slot.number();
        let after = self.shards.partition_point(|shard| *shard.slots.start() <= number);
        let shard = self.shards.get(after.checked_sub(1)?)?;
        shard.slots.contains(&number).then_some(&shard.primary)
    }

    /// Each once, in order.
    #[must_use]
    pub fn primaries(&self) -> Vec<&Place> {
        sorted(self.shards.iter().map(|shard| &shard.primary))
    }

    /// Each once, in order.
    #[must_use]
    pub fn nodes(&self) -> Vec<&Place> {
        sorted(self.shards.iter().flat_map(|shard| shard.replicas.iter().chain([&shard.primary])))
    }

    /// Slots that are written at a place.
    pub(crate) fn slots_of<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = RangeInclusive<u16>> + 'a {
        self.shards.iter().filter(move |shard| shard.primary == *place).map(|shard| shard.slots.clone())
    }

    /// Whether every slot is somewhere.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let mut next = 0;
        for shard in &self.shards {
            if *shard.slots.start() != next {
                return false;
            }
            next = shard.slots.end() + 1;
        }
        next == SLOTS
    }

    /// As somebody who was asked in vain says: a slot is elsewhere.
    pub(crate) fn moved(&self, slot: Slot, place: &Place) -> Self {
        let number = slot.number();
        let mut shards = Vec::with_capacity(self.shards.len() + 2);
        for shard in &self.shards {
            let (first, last) = (*shard.slots.start(), *shard.slots.end());
            if !shard.slots.contains(&number) {
                shards.push(shard.clone());
                continue;
            }
            if first < number {
                shards.push(Shard { slots: first..=number - 1, ..shard.clone() });
            }
            if number < last {
                shards.push(Shard { slots: number + 1..=last, ..shard.clone() });
            }
        }
        let known = self.shards.iter().find(|shard| shard.primary == *place);
        let replicas = known.map(|shard| shard.replicas.clone()).unwrap_or_default();
        shards.push(Shard { slots: number..=number, primary: place.clone(), replicas });
        shards.sort_by_key(|shard| *shard.slots.start());
        Self { epoch: self.epoch, shards }
    }
}

fn sorted<'a>(all: impl Iterator<Item = &'a Place>) -> Vec<&'a Place> {
    let mut all: Vec<_> = all.collect();
    all.sort();
    all.dedup();
    all
}

fn shard(range: Value, asked: &str) -> Option<Shard> {
    let Value::Array(parts) = range else { return None };
    let mut parts = parts.into_iter();
    let first = slot_number(parts.next()?)?;
    let last = slot_number(parts.next()?)?;
    let mut nodes = parts.map(|node| place(node, asked));
    let primary = nodes.next()??;
    // A replica whose name is not known yet is nobody to go to.
    Some(Shard { slots: first..=last, primary, replicas: nodes.flatten().collect() })
}

fn slot_number(value: Value) -> Option<u16> {
    let Value::Int(number) = value else { return None };
    u16::try_from(number).ok().filter(|number| *number < SLOTS)
}

fn place(node: Value, asked: &str) -> Option<Place> {
    let Value::Array(parts) = node else { return None };
    let mut parts = parts.into_iter();
    let host = match parts.next()? {
        Value::BulkString(host) => String::from_utf8(host).ok()?,
        Value::Nil => String::new(),
        _ => return None,
    };
    let Some(Value::Int(port)) = parts.next() else { return None };
    let host = match host.as_str() {
        "?" => return None,
        "" => asked,
        host => host,
    };
    Some(Place::new(host, u16::try_from(port).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn node(host: &str, port: i64) -> Value {
        Value::Array(vec![text(host), Value::Int(port), text("id"), Value::Array(vec![])])
    }

    fn range(first: i64, last: i64, nodes: &[Value]) -> Value {
        Value::Array([&[Value::Int(first), Value::Int(last)], nodes].concat())
    }

    fn map() -> Map {
        let answer = Value::Array(vec![
            range(8_000, 16_383, &[node("b", 2), node("?", 4)]),
            range(0, 7_999, &[node("", 1), node("c", 3)]),
        ]);
        Map::parse(7, answer, "asked").expect("a map")
    }

    fn at(map: &Map, number: u16) -> String {
        map.primary(Slot::new(number).expect("a slot")).map_or_else(String::new, Place::to_string)
    }

    #[test]
    fn a_map_says_who_holds_a_slot() {
        let map = map();
        assert_eq!(
            [at(&map, 0), at(&map, 7_999)],
            ["asked:1", "asked:1"],
            "no host is the host that was asked"
        );
        assert_eq!([at(&map, 8_000), at(&map, 16_383)], ["b:2", "b:2"]);
        assert!(map.is_whole());
        assert_eq!(
            map.nodes().iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["asked:1", "b:2", "c:3"]
        );
        assert_eq!(map.primaries().len(), 2);
    }

    #[test]
    fn a_slot_that_moved_is_elsewhere_and_its_neighbours_are_not() {
        let place = Place::parse("::1:9", "asked").expect("a place");
        let moved = map().moved(Slot::new(100).expect("a slot"), &place);
        assert_eq!([at(&moved, 99), at(&moved, 100), at(&moved, 101)], ["asked:1", "[::1]:9", "asked:1"]);
        assert!(moved.is_whole());
        let back = moved.moved(Slot::new(100).expect("a slot"), &Place::new("asked", 1));
        assert_eq!(at(&back, 100), "asked:1");
    }

    #[test]
    fn a_slot_that_nobody_holds_is_nowhere() {
        let answer = Value::Array(vec![range(5, 6, &[node("a", 1)])]);
        let map = Map::parse(0, answer, "a").expect("a map");
        assert_eq!([at(&map, 4), at(&map, 5), at(&map, 7)], ["", "a:1", ""]);
        assert!(!map.is_whole());
        let gained = map.moved(Slot::new(9).expect("a slot"), &Place::new("b", 2));
        assert_eq!(at(&gained, 9), "b:2");
    }
}

//! All routes of a manifest, made ready for messages.
//!
//! ```text
//!   path ──▶ places in a tree of segments ──▶ routes that may match ──▶ conditions ──▶ per sink the most urgent
//! ```
//!
//! Routes stand in the order of their ranks, so of two into the same sink the one with the lesser number wins. Names of all conditions are
//! numbered together: whatever many routes ask of a message is looked up once.

mod conjunction;
mod index;
mod pivot;
mod slots;

use std::collections::HashMap;
use std::fmt;

use crate::body::Wanted;
use crate::condition::Truth;
use crate::manifest::{Manifest, NamedRoute};
use crate::names::Names;
use crate::sink::Sink;
use crate::subject::Subject;
use crate::tree::Node;

use conjunction::{Conjunction, Numbers};
use index::Index;
use pivot::Group;
use slots::{Room, Slots};

/// A route of a table, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

impl RouteId {
    /// Its number: the first is 0, numbers follow one another, and a lesser one is more urgent or of equal urgency.
    #[must_use]
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// A copy of a message that a route makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutedCopy {
    /// The route that makes it; its sink is [`RouteTable::sink`].
    pub route: RouteId,
    /// 0 is the most urgent; nothing comes after all that say something.
    pub priority: Option<u8>,
    /// How long it lives, seconds; nothing is for ever.
    pub ttl_secs: Option<u32>,
}

/// What became of one message, and room to find out: kept for the next, nothing is allocated anew.
#[derive(Debug, Default)]
pub struct Routing {
    copies: Vec<RoutedCopy>,
    matched: Vec<RouteId>,
    undefined: Vec<RouteId>,
    is_fallback: bool,
    /// Which sinks have a copy.
    taken: Vec<bool>,
    made: String,
    room: Room,
}

impl Routing {
    /// Copies to be made, at most one for each sink, the most urgent first.
    #[must_use]
    pub fn copies(&self) -> &[RoutedCopy] {
        &self.copies
    }

    /// Routes that matched, also those into a sink that a more urgent one had.
    #[must_use]
    pub fn matched(&self) -> &[RouteId] {
        &self.matched
    }

    /// Routes from this path whose condition is undefined for this message, in no order.
    #[must_use]
    pub fn undefined(&self) -> &[RouteId] {
        &self.undefined
    }

    /// Whether only fallback routes matched.
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        self.is_fallback
    }

    fn clear(&mut self) {
        self.copies.clear();
        self.matched.clear();
        self.undefined.clear();
        self.is_fallback = false;
    }
}

/// The routes of a manifest, by rank.
pub struct RouteTable {
    entries: Vec<Entry>,
    sinks: Vec<Sink>,
    names: Names,
    wanted: Wanted,
    /// Expressions whose result is kept for a message.
    expressions: usize,
    routes: Index,
    fallbacks: Index,
}

/// What a message needs of a route.
struct Entry {
    name: Box<str>,
    sink: usize,
    priority: Option<u8>,
    ttl_secs: Option<u32>,
    /// Its names are those of the table. Its pivot, if it has one, stands in the index.
    condition: Option<Conjunction>,
}

impl RouteTable {
    /// Makes the routes of a manifest ready.
    #[must_use]
    pub fn compile(manifest: &Manifest) -> Self {
        let mut by_rank = manifest.routes.iter().collect::<Vec<_>>();
        by_rank.sort_by(|one, other| one.rank().cmp(&other.rank()));
        let (mut sinks, mut sink_ids) = (Vec::new(), HashMap::new());
        let mut table = Self {
            entries: Vec::with_capacity(by_rank.len()),
            sinks: Vec::new(),
            names: Names::default(),
            wanted: Wanted::of(&Names::default()),
            expressions: 0,
            routes: Index::default(),
            fallbacks: Index::default(),
        };
        let mut numbers = Numbers::new();
        for route in by_rank {
            let sink = *sink_ids.entry(&route.route.sink).or_insert_with_key(|sink| {
                sinks.push((*sink).clone());
                sinks.len() - 1
            });
            table.add(route, sink, manifest.ttl_of(route), &mut numbers);
        }
        table.wanted = Wanted::of(&table.names);
        table.expressions = numbers.len();
        table.sinks = sinks;
        table
    }

    fn add(&mut self, route: &NamedRoute, sink: usize, ttl_secs: Option<u32>, numbers: &mut Numbers) {
        let id =
            RouteId(u32::try_from(self.entries.len()).expect("a manifest has at most ROUTES_MAX routes"));
        let mut condition = route.route.condition.as_ref().map(|condition| {
            let mut tree = condition.tree().clone();
            for node in tree.nodes_mut() {
                if let Node::Name(name) = node {
                    *name = self.names.id_of(condition.names().get(*name).clone());
                }
            }
            Conjunction::of(tree, &self.names, numbers)
        });
        let index = if route.is_fallback { &mut self.fallbacks } else { &mut self.routes };
        index.group_at(&route.route.source).add(id, condition.as_mut(), &self.names);
        let (name, priority) = (route.name.as_str().into(), route.priority);
        self.entries.push(Entry { name, sink, priority, ttl_secs, condition });
    }

    /// Finds out which copies a message from a path gets.
    ///
    /// For each sink the most urgent of the routes that match makes one copy; between equals, the first by name. Fallback routes count
    /// only where no other route matches.
    pub fn route<S: Subject + ?Sized>(&self, path: &str, subject: &S, routing: &mut Routing) {
        routing.clear();
        let mut room = std::mem::take(&mut routing.room);
        room.forget(self.expressions);
        let slots = Slots::new(subject, &self.names, &self.wanted, room);
        self.routes.each_group(path, |group| self.look_at(group, &slots, routing));
        if routing.matched.is_empty() {
            self.fallbacks.each_group(path, |group| self.look_at(group, &slots, routing));
            routing.is_fallback = !routing.matched.is_empty();
        }
        routing.room = slots.into_room();
        self.choose(routing);
    }

    fn look_at<S: Subject + ?Sized>(&self, group: &Group, slots: &Slots<'_, S>, routing: &mut Routing) {
        routing.matched.extend_from_slice(group.without_condition());
        group.each_candidate(slots, |route, pivot| {
            let condition = self.entries[route.number()].condition.as_ref();
            let condition = condition.expect("it has one, or it is no candidate");
            let truth = condition.truth(pivot, slots, &mut routing.made);
            match truth {
                Truth::True => routing.matched.push(route),
                Truth::Undefined => routing.undefined.push(route),
                Truth::False => {}
            }
        });
    }

    fn choose(&self, routing: &mut Routing) {
        routing.matched.sort_unstable();
        routing.taken.resize(self.sinks.len(), false);
        for route in &routing.matched {
            let Entry { sink, priority, ttl_secs, .. } = self.entries[route.number()];
            if !std::mem::replace(&mut routing.taken[sink], true) {
                routing.copies.push(RoutedCopy { route: *route, priority, ttl_secs });
            }
        }
        // Only what was set is set back: there may be many sinks.
        for copy in &routing.copies {
            routing.taken[self.entries[copy.route.number()].sink] = false;
        }
    }

    /// Routes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All routes, the most urgent first.
    pub fn ids(&self) -> impl Iterator<Item = RouteId> + use<> {
        (0..self.entries.len()).map(|number| RouteId(number as u32))
    }

    /// The name of a route of this table.
    #[must_use]
    pub fn name(&self, route: RouteId) -> &str {
        &self.entries[route.number()].name
    }

    /// Where copies of a route of this table go.
    #[must_use]
    pub fn sink(&self, route: RouteId) -> &Sink {
        &self.sinks[self.entries[route.number()].sink]
    }

    /// Every sink once.
    #[must_use]
    pub fn sinks(&self) -> &[Sink] {
        &self.sinks
    }
}

/// Without routes.
impl Default for RouteTable {
    fn default() -> Self {
        Self::compile(&Manifest::default())
    }
}

impl fmt::Debug for RouteTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RouteTable({} routes)", self.len())
    }
}

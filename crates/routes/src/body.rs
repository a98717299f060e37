//! The values of a body that conditions ask for.
//!
//! A body is read once, from its beginning to its end, and nothing of it is kept but the values at the paths that are wanted. What is not
//! wanted is skipped without recursion, and what is wanted is no deeper than a path is long, so brackets without end do no harm.

use std::cell::Cell;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use crate::encoding::Encoding;
use crate::names::{NameId, Names, Step};
use crate::subject::Body;
use crate::value::Value;

/// The paths that are wanted, as a tree of steps. Node 0 is the whole body.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    nodes: Vec<Place>,
    /// Names there are, of any kind: values stand at their numbers.
    names: usize,
}

#[derive(Clone, Debug, Default)]
struct Place {
    /// By key, for a search.
    keys: Vec<(Box<str>, usize)>,
    /// By number.
    items: Vec<(u32, usize)>,
    parent: usize,
    name: Option<NameId>,
}

impl Wanted {
    pub(crate) fn of(names: &Names) -> Self {
        let mut wanted = Self { nodes: vec![Place::default()], names: names.len() };
        for (path, name) in names.body_paths() {
            let place = path.iter().fold(0, |place, step| wanted.below(place, step));
            wanted.nodes[place].name = Some(name);
        }
        wanted
    }

    fn below(&mut self, place: usize, step: &Step) -> usize {
        let next = self.nodes.len();
        let Place { keys, items, .. } = &mut self.nodes[place];
        let found = match step {
            Step::Key(key) => keys.binary_search_by(|(known, _)| known.cmp(key)).map(|at| keys[at].1),
            Step::Item(item) => items.binary_search_by_key(item, |(known, _)| *known).map(|at| items[at].1),
        };
        match found {
            Ok(there) => there,
            Err(at) => {
                match step {
                    Step::Key(key) => keys.insert(at, (key.clone(), next)),
                    Step::Item(item) => items.insert(at, (*item, next)),
                }
                self.nodes.push(Place { parent: place, ..Place::default() });
                next
            }
        }
    }
}

/// Why there is nothing in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is not said to be JSON.
    OtherType,
    /// It is in an encoding that is not known.
    OtherEncoding,
    /// It is not what it is said to be.
    Broken,
}

/// What is at a wanted path.
#[derive(Debug, Default)]
enum Found {
    #[default]
    Missing,
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    /// An object or an array.
    Whole,
}

/// The values of a body at the wanted paths.
#[derive(Debug)]
pub(crate) struct Document {
    found: Vec<Found>,
}

impl Document {
    pub(crate) fn read(body: Body<'_>, wanted: &Wanted) -> Result<Self, Unread> {
        let media_type = body.content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        if !media_type.trim().eq_ignore_ascii_case("application/json") {
            return Err(Unread::OtherType);
        }
        let encoding = Encoding::named(body.content_encoding).ok_or(Unread::OtherEncoding)?;
        let text = encoding.decode(body.bytes).ok_or(Unread::Broken)?;
        Self::parse(&text, wanted, false)
            .or_else(|_| Self::parse(&text, wanted, true))
            .map_err(|_| Unread::Broken)
    }

    /// A number beyond a 64-bit floating point is an error, and with it the whole body, unless numbers may be infinite.
    fn parse(text: &str, wanted: &Wanted, may_be_infinite: bool) -> serde_json::Result<Self> {
        let found = (0..wanted.names).map(|_| Cell::default()).collect::<Vec<_>>();
        let visits = vec![Cell::default(); wanted.nodes.len()];
        let mut json = serde_json::Deserializer::from_str(text);
        let count = &Cell::new(0);
        let reader =
            Reader { wanted, found: &found, visits: &visits, count, place: 0, visit: 0, may_be_infinite };
        reader.enter(0).deserialize(&mut json).and_then(|()| json.end())?;
        reader.forget_what_was_replaced();
        Ok(Self { found: found.into_iter().map(Cell::into_inner).collect() })
    }

    /// An object or an array is undefined.
    pub(crate) fn value(&self, name: NameId) -> Value<'_> {
        match &self.found[name.at()] {
            Found::Missing => Value::Missing,
            Found::Null => Value::Null,
            Found::Bool(value) => Value::Bool(*value),
            Found::Number(value) => Value::Number(*value),
            Found::Text(value) => Value::Text(value),
            Found::Whole => Value::Undefined,
        }
    }
}

/// When a place was read last, and within which reading of the place above it. The first reading is 1.
type Visit = (u64, u64);

/// Reads what is at a place.
#[derive(Clone, Copy)]
struct Reader<'w> {
    wanted: &'w Wanted,
    found: &'w [Cell<Found>],
    visits: &'w [Cell<Visit>],
    count: &'w Cell<u64>,
    place: usize,
    visit: u64,
    may_be_infinite: bool,
}

impl<'w> Reader<'w> {
    fn place(&self) -> &'w Place {
        &self.wanted.nodes[self.place]
    }

    fn set(&self, found: Found) {
        if let Some(name) = self.place().name {
            self.found[name.at()].set(found);
        }
    }

    fn enter(self, place: usize) -> Self {
        let visit = self.count.get() + 1;
        self.count.set(visit);
        self.visits[place].set((visit, self.visit));
        let inner = Self { place, visit, ..self };
        inner.set(Found::Missing);
        inner
    }

    /// Of a key that comes twice the last one counts, with all that is beneath it, and nothing that was beneath the one before.
    /// Looked at once at the end, since keys may come twice very often.
    fn forget_what_was_replaced(self) {
        let mut counts = vec![true; self.visits.len()];
        for place in 1..self.visits.len() {
            let parent = self.wanted.nodes[place].parent;
            let is_within_last = self.visits[place].get().1 == self.visits[parent].get().0;
            counts[place] = counts[parent] && is_within_last;
            if !counts[place] {
                Self { place, ..self }.set(Found::Missing);
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.may_be_infinite {
            return deserializer.deserialize_any(self);
        }
        let text = <&RawValue>::deserialize(deserializer)?.get();
        match text.parse() {
            Ok(number) => self.visit_f64(number),
            Err(_) => {
                serde_json::Deserializer::from_str(text).deserialize_any(self).map_err(D::Error::custom)
            }
        }
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.set(Found::Null);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.set(Found::Bool(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.set(Found::Number(value as f64));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.set(Found::Number(value as f64));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.set(Found::Number(value));
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        if self.place().name.is_some() {
            self.set(Found::Text(value.to_owned()));
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.set(Found::Whole);
        while let Some(place) = map.next_key_seed(Key(&self.place().keys))? {
            match place {
                Some(place) => map.next_value_seed(self.enter(place))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.set(Found::Whole);
        let mut wanted = self.place().items.iter().peekable();
        for item in 0_u32.. {
            let there = match wanted.next_if(|(wanted, _)| *wanted == item) {
                Some((_, place)) => seq.next_element_seed(self.enter(*place))?.is_some(),
                None => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !there {
                break;
            }
        }
        Ok(())
    }
}

/// The place that a key leads to.
struct Key<'w>(&'w [(Box<str>, usize)]);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        let found = self.0.binary_search_by(|(known, _)| (**known).cmp(key));
        Ok(found.ok().map(|at| self.0[at].1))
    }
}

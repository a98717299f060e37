//! One message, looked at by many conditions: what was asked once is remembered.

use std::cell::OnceCell;

use super::conjunction::Known;
use crate::body::{Document, Unread, Wanted};
use crate::condition::{either, shown};
use crate::evaluate::Lookup;
use crate::names::{Name, NameId, Names};
use crate::subject::{Shown, Subject};
use crate::value::{Value, number_of};

/// What is known of a property of the message.
#[derive(Debug, Default)]
struct Slot<'m> {
    shown: OnceCell<Shown<'m>>,
    number: OnceCell<Option<f64>>,
}

/// What is kept from message to message so that nothing is allocated anew.
#[derive(Debug, Default)]
pub(super) struct Room {
    slots: Vec<Slot<'static>>,
    known: Known,
}

impl Room {
    /// Nothing is known of so many expressions.
    pub(super) fn forget(&mut self, expressions: usize) {
        self.known.clear();
        self.known.resize_with(expressions, Default::default);
    }
}

/// What is known of a message.
pub(super) struct Slots<'m, S: ?Sized> {
    subject: &'m S,
    names: &'m Names,
    wanted: &'m Wanted,
    slots: Vec<Slot<'m>>,
    pub(super) known: Known,
    document: OnceCell<Result<Document, Unread>>,
}

impl<'m, S: Subject + ?Sized> Slots<'m, S> {
    pub(super) fn new(subject: &'m S, names: &'m Names, wanted: &'m Wanted, room: Room) -> Self {
        let mut slots = emptied(room.slots);
        slots.resize_with(names.len(), Slot::default);
        Self { subject, names, wanted, slots, known: room.known, document: OnceCell::new() }
    }

    /// The room, for the next message.
    pub(super) fn into_room(self) -> Room {
        Room { slots: emptied(self.slots), known: self.known }
    }

    fn text(&self, name: NameId, look: impl FnOnce() -> Shown<'m>) -> Value<'m> {
        shown(*self.slots[name.at()].shown.get_or_init(look))
    }
}

impl<S: Subject + ?Sized> Lookup for Slots<'_, S> {
    fn value(&self, name: NameId) -> Value<'_> {
        match self.names.get(name) {
            Name::Property(text) => self.text(name, || self.subject.property(text)),
            Name::Either(text) => self.text(name, || either(self.subject, text)),
            Name::System(text) => self.text(name, || self.subject.system(text)),
            Name::Body(_) => {
                let document = self.document.get_or_init(|| Document::read(self.subject.body(), self.wanted));
                document.as_ref().map_or(Value::Undefined, |document| document.value(name))
            }
        }
    }

    fn number(&self, name: NameId) -> Option<f64> {
        *self.slots[name.at()].number.get_or_init(|| match self.value(name) {
            Value::Text(text) => number_of(text),
            value => value.as_number(),
        })
    }
}

/// The room of slots for slots of another message. `collect` keeps an allocation that fits.
fn emptied<'b>(mut slots: Vec<Slot<'_>>) -> Vec<Slot<'b>> {
    slots.clear();
    slots.into_iter().map(|_| Slot::default()).collect()
}

//! A condition: what has to be true of a message.

use std::cell::OnceCell;
use std::fmt;

use crate::body::{Document, Wanted};
use crate::evaluate::{Evaluator, Lookup};
use crate::explain::Explanation;
use crate::names::{Name, NameId, Names};
use crate::show::Expression;
use crate::subject::{Shown, Subject};
use crate::tree::{Spans, Tree};
use crate::value::Value;

/// What a condition comes to. Only what is true matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// The message lacks what would decide it.
    Undefined,
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Undefined => Self::Undefined,
        }
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "true",
            Self::False => "false",
            Self::Undefined => "undefined",
        })
    }
}

/// A condition that was read and checked.
#[derive(Clone)]
pub struct Condition {
    tree: Tree,
    names: Names,
    wanted: Wanted,
    spans: Spans,
}

impl Condition {
    pub(crate) fn new(tree: Tree, names: Names, spans: Spans) -> Self {
        let wanted = Wanted::of(&names);
        Self { tree, names, wanted, spans }
    }

    /// What it comes to for a message.
    ///
    /// Nothing is allocated for it, unless it makes texts (`concat`, `||`, and `lower` and `upper` where they change something) or looks
    /// into the body, which is read once.
    pub fn evaluate<S: Subject + ?Sized>(&self, subject: &S) -> Truth {
        let seen = Seen { subject, condition: self, document: OnceCell::new() };
        Evaluator { tree: &self.tree, lookup: &seen, made: &mut String::new() }.truth()
    }

    /// What it comes to for a message, and why it is not true.
    pub fn explain<S: Subject + ?Sized>(&self, subject: &S) -> Explanation {
        let seen = Seen { subject, condition: self, document: OnceCell::new() };
        let document = || seen.document().as_ref().err().copied();
        Explanation::of(&self.tree, &self.names, &self.spans, &seen, &document)
    }

    /// Sentences about parts that are probably slips.
    pub(crate) fn notes(&self) -> Vec<String> {
        crate::notes::notes(&self.tree, &self.names)
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }
}

/// The same words, whatever brackets and blanks they were written with.
impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

/// In one line and in one form.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Expression { tree: &self.tree, names: &self.names, root: self.tree.root() }.fmt(f)
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({self})")
    }
}

/// A message, looked at by one condition.
struct Seen<'s, S: ?Sized> {
    subject: &'s S,
    condition: &'s Condition,
    document: OnceCell<Result<Document, crate::body::Unread>>,
}

impl<S: Subject + ?Sized> Seen<'_, S> {
    fn document(&self) -> &Result<Document, crate::body::Unread> {
        self.document.get_or_init(|| Document::read(self.subject.body(), &self.condition.wanted))
    }
}

impl<S: Subject + ?Sized> Lookup for Seen<'_, S> {
    fn value(&self, name: NameId) -> Value<'_> {
        match self.condition.names.get(name) {
            Name::Property(name) => shown(self.subject.property(name)),
            Name::Either(name) => shown(either(self.subject, name)),
            Name::System(name) => shown(self.subject.system(name)),
            Name::Body(_) => {
                self.document().as_ref().map_or(Value::Undefined, |document| document.value(name))
            }
        }
    }
}

/// The application property of this name, which begins with `$`, else the system property.
pub(crate) fn either<'s, S: Subject + ?Sized>(subject: &'s S, name: &str) -> Shown<'s> {
    match subject.property(name) {
        Shown::Missing => subject.system(&name[1..]),
        shown => shown,
    }
}

/// A property as a value.
pub(crate) fn shown(shown: Shown<'_>) -> Value<'_> {
    match shown {
        Shown::Missing => Value::Undefined,
        Shown::Null => Value::Null,
        Shown::Text(text) => Value::Text(text),
    }
}

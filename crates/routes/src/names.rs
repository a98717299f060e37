//! What a condition asks of a message: each distinct name once.

use std::collections::HashMap;
use std::fmt;

/// Most steps of a path into a body.
pub const STEPS_MAX: usize = 32;

/// A name, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameId(u32);

impl NameId {
    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// Something that is looked up in a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    /// An application property.
    Property(Box<str>),
    /// `$name`: the application property that is called so, with its `$`, else the system property.
    Either(Box<str>),
    /// `{$name}`: a system property, whatever application properties there are. Without its `$`.
    System(Box<str>),
    /// A path into the body; without a step it is all of it.
    Body(Box<[Step]>),
}

/// One step into a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Step {
    /// A member of an object.
    Key(Box<str>),
    /// An item of an array, the first is 0.
    Item(u32),
}

/// Every name once, in the order in which they were met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    all: Vec<Name>,
    ids: HashMap<Name, NameId>,
}

impl Names {
    /// The number of a name, which is new or known.
    pub(crate) fn id_of(&mut self, name: Name) -> NameId {
        let next = NameId(u32::try_from(self.all.len()).expect("names are fewer than bytes of routes"));
        *self.ids.entry(name).or_insert_with_key(|name| {
            self.all.push(name.clone());
            next
        })
    }

    pub(crate) fn get(&self, id: NameId) -> &Name {
        &self.all[id.at()]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.all.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Paths into the body.
    pub(crate) fn body_paths(&self) -> impl Iterator<Item = (&[Step], NameId)> {
        self.all.iter().filter_map(|name| match name {
            Name::Body(steps) => Some((&**steps, self.ids[name])),
            Name::Property(_) | Name::Either(_) | Name::System(_) => None,
        })
    }
}

/// As it is written in a condition.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Property(name) if crate::lexer::is_plain_name(name) => f.write_str(name),
            Self::Property(name) => write!(f, "{{{name}}}"),
            Self::Either(name) => f.write_str(name),
            Self::System(name) => write!(f, "{{${name}}}"),
            Self::Body(steps) => {
                f.write_str("$body")?;
                steps.iter().try_for_each(|step| step.fmt(f))
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(at) => write!(f, "[{at}]"),
            Self::Key(key) if crate::lexer::is_member(key) => write!(f, ".{key}"),
            Self::Key(key) => write!(f, "[{}]", crate::show::text(key, '"')),
        }
    }
}

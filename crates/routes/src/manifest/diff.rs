//! What changes from one manifest to another, route by route.

use std::fmt;

use super::{Manifest, NamedRoute, TTL_FOR_EVER};

/// A difference between two manifests.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A route that was not there.
    Added(Box<NamedRoute>),
    /// A route that is no more.
    Removed(Box<NamedRoute>),
    /// A route that is another under the same name.
    Changed {
        /// Its name.
        name: String,
        /// What of it; not empty.
        fields: Vec<FieldChange>,
    },
    /// The time to live of all routes that say nothing.
    GlobalTtl(FieldChange),
}

/// A field before and after, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// Its key in the manifest.
    pub field: &'static str,
    /// Before.
    pub from: String,
    /// After.
    pub to: String,
}

/// What changes: first the time to live of all, then routes by name. Routes are the same when their canonical texts are.
#[must_use]
pub fn diff(old: &Manifest, new: &Manifest) -> Vec<Change> {
    let ttl = field("storeAndForwardConfiguration.timeToLiveSecs", secs(old.ttl_secs), secs(new.ttl_secs));
    let mut changes = ttl.into_iter().map(Change::GlobalTtl).collect::<Vec<_>>();
    let (mut old, mut new) = (old.routes.iter().peekable(), new.routes.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return changes,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => old.name.cmp(&new.name),
        };
        let before = old.next_if(|_| order.is_le());
        let after = new.next_if(|_| order.is_ge());
        match (before, after) {
            (Some(before), Some(after)) => {
                let fields = fields(before, after);
                if !fields.is_empty() {
                    changes.push(Change::Changed { name: after.name.clone(), fields });
                }
            }
            (Some(gone), None) => changes.push(Change::Removed(Box::new(gone.clone()))),
            (None, Some(added)) => changes.push(Change::Added(Box::new(added.clone()))),
            (None, None) => {}
        }
    }
}

fn fields(old: &NamedRoute, new: &NamedRoute) -> Vec<FieldChange> {
    let priority =
        |route: &NamedRoute| route.priority.map_or("none".to_owned(), |priority| priority.to_string());
    let all = [
        field("route", old.route.to_string(), new.route.to_string()),
        field("priority", priority(old), priority(new)),
        field("timeToLiveSecs", secs(old.ttl_secs), secs(new.ttl_secs)),
        field("fallback", old.is_fallback.to_string(), new.is_fallback.to_string()),
    ];
    all.into_iter().flatten().collect()
}

fn field(field: &'static str, from: String, to: String) -> Option<FieldChange> {
    (from != to).then_some(FieldChange { field, from, to })
}

/// 0 says as much as nothing.
fn secs(secs: Option<u32>) -> String {
    match secs {
        None | Some(0) => "none".to_owned(),
        Some(TTL_FOR_EVER) => "for ever".to_owned(),
        Some(secs) => secs.to_string(),
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(route) => write!(f, "+ {}: {}", route.name, told(route)),
            Self::Removed(route) => write!(f, "- {}: {}", route.name, told(route)),
            Self::Changed { name, fields } => {
                write!(f, "~ {name}")?;
                fields.iter().try_for_each(|field| write!(f, "\n    {field}"))
            }
            Self::GlobalTtl(field) => write!(f, "~ {field}"),
        }
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} → {}", self.field, self.from, self.to)
    }
}

fn told(route: &NamedRoute) -> String {
    let priority = route.priority.map(|priority| format!(", priority {priority}"));
    let ttl = route.ttl_secs.filter(|secs| *secs > 0);
    let ttl = ttl.map(|ttl| format!(", timeToLiveSecs {}", secs(Some(ttl))));
    let fallback = route.is_fallback.then(|| ", fallback".to_owned());
    let rest = [priority, ttl, fallback].into_iter().flatten().collect::<String>();
    format!("{}{rest}", route.route)
}

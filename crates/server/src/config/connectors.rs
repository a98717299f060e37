//! Endpoints and sources that stand in the configuration: `[endpoints.NAME]` and `[sources.NAME]`, with the same keys as over HTTP.

use std::collections::BTreeMap;

use overtake_connectors::{Endpoint, Source};

use super::Origin;

/// What to do about one that cannot be.
pub(crate) const CONNECTORS_HINT: &str = "see docs/endpoints.md for what each key means";

/// The endpoints of one source of settings, by name.
pub(super) type EndpointTables = BTreeMap<String, Endpoint>;
/// The sources of one source of settings, by name.
pub(super) type SourceTables = BTreeMap<String, Source>;

/// An endpoint or a source that stands in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured<C> {
    /// Its name.
    pub name: String,
    /// What it is.
    pub definition: C,
    /// Where it stands.
    pub origin: Origin,
}

/// What a later source says takes the place of what an earlier one says, as a whole.
pub(super) fn overlay<C>(
    all: &mut Vec<Configured<C>>,
    later: BTreeMap<String, C>,
    origin: impl Fn(&str) -> Origin,
) {
    for (name, definition) in later {
        let origin = origin(&name);
        all.retain(|one| one.name != name);
        all.push(Configured { name, definition, origin });
    }
}

//! Manifests: all routes with their names, priorities and times to live, as one document that holds whole or not at all.
//!
//! The format is that of IoT Edge's deployment manifests (`$edgeHub.properties.desired`, schema versions 1.0 to 1.3), in JSON or TOML,
//! with one key of our own: `fallback`.

mod diff;
mod document;
mod parts;
mod read;
mod section;

use std::fmt;
use std::path::Path;

use serde_json::{Map, Value, json};

pub use diff::{Change, FieldChange, diff};
pub use parts::Parts;

use crate::error::quoted;
use crate::route::Route;

/// Most routes of a manifest.
pub const ROUTES_MAX: usize = 10_000;
/// Longest name of a route, bytes.
pub const ROUTE_NAME_LEN_MAX: usize = 255;
/// Longest text of a manifest, bytes.
pub const MANIFEST_LEN_MAX: usize = 8 << 20;
/// The least urgent of the priorities that can be given; 0 is the most urgent.
pub const PRIORITY_MAX: u8 = 9;
/// A time to live that is for ever, which a manifest writes as -1: some 136 years.
///
/// Source: IoT Edge, class `StoreAndForwardConfiguration`: a time to live below 0 has no end.
pub const TTL_FOR_EVER: u32 = u32::MAX;
/// Most wrong routes that a summary names.
const NAMED_MAX: usize = 5;
/// Problems beyond these are only counted.
const PROBLEMS_MAX: usize = 100;

/// The result of reading a text: a manifest, and notes about keys that were passed over and conditions that are probably slips.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The manifest.
    pub manifest: Manifest,
    /// A sentence for each key that says nothing about routes, as `mqttBroker` (keys of the hub itself, as `$version`, have none), and for
    /// each part of a condition that can be read and is probably a slip, as the property `body.x` where the body's is `$body.x`.
    pub notes: Vec<String>,
}

/// Routes that hold together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// By name, in its order; no name comes twice.
    pub routes: Vec<NamedRoute>,
    /// How long messages live where their route says nothing, seconds. Nothing, and 0, mean as their queue says; [`TTL_FOR_EVER`].
    pub ttl_secs: Option<u32>,
    /// The version of the format that it is written in.
    pub schema_version: SchemaVersion,
}

/// A route of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRoute {
    /// Its name: `^[^\.\$# ]+$`.
    pub name: String,
    /// The route.
    pub route: Route,
    /// 0 to [`PRIORITY_MAX`], 0 is the most urgent; nothing comes after them all.
    pub priority: Option<u8>,
    /// How long a copy lives, seconds. Nothing, and 0, mean what the manifest says for all; [`TTL_FOR_EVER`].
    pub ttl_secs: Option<u32>,
    /// Whether it counts only for messages that no other route matches.
    pub is_fallback: bool,
}

/// 1.0 to 1.3: the number behind the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaVersion(u8);

impl SchemaVersion {
    const MINOR_MAX: u8 = 3;

    /// Reads `1.1` or `1.1.0`.
    fn parse(text: &str) -> Option<Self> {
        let minor = text.strip_prefix("1.")?;
        let minor = minor.strip_suffix(".0").unwrap_or(minor);
        let minor = minor.parse().ok().filter(|_| minor.len() == 1)?;
        (minor <= Self::MINOR_MAX).then_some(Self(minor))
    }
}

/// 1.1, the first with priorities.
impl Default for SchemaVersion {
    fn default() -> Self {
        Self(1)
    }
}

impl fmt::Display for SchemaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

impl Reading {
    /// Reads JSON: the section itself (`{"routes": …}`), inside `$edgeHub` and `properties.desired`, a whole deployment with
    /// `modulesContent`, or a twin. What stands between the braces of the outermost object is read as well.
    ///
    /// # Errors
    /// [`ManifestError`] with all that is wrong.
    pub fn from_json(text: &str) -> Result<Self, ManifestError> {
        read::from_json(text)
    }

    /// Reads TOML, with the same keys.
    ///
    /// # Errors
    /// [`ManifestError`] with all that is wrong.
    pub fn from_toml(text: &str) -> Result<Self, ManifestError> {
        read::from_toml(text)
    }

    /// Reads JSON or TOML, whichever the name of its file says: `.toml`, or another ending for JSON; without one, or without a name,
    /// what begins as JSON is JSON.
    ///
    /// # Errors
    /// [`ManifestError`] with all that is wrong.
    pub fn from_file(name: Option<&Path>, text: &str) -> Result<Self, ManifestError> {
        let is_toml = match name.and_then(Path::extension) {
            Some(ending) => ending == "toml",
            None => !(text.trim_start().starts_with('{') || read::is_inside_of_object(text)),
        };
        if is_toml { Self::from_toml(text) } else { Self::from_json(text) }
    }
}

impl Manifest {
    /// The manifest of [`Reading::from_json`].
    ///
    /// # Errors
    /// [`ManifestError`] with all that is wrong.
    pub fn from_json(text: &str) -> Result<Self, ManifestError> {
        Reading::from_json(text).map(|reading| reading.manifest)
    }

    /// The manifest of [`Reading::from_toml`].
    ///
    /// # Errors
    /// [`ManifestError`] with all that is wrong.
    pub fn from_toml(text: &str) -> Result<Self, ManifestError> {
        Reading::from_toml(text).map(|reading| reading.manifest)
    }

    /// The section as JSON, in one form: every route as an object and in its canonical text. What is read from it is the same.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.section()).expect("plain data is JSON")
    }

    fn section(&self) -> Value {
        let routes =
            self.routes.iter().map(|route| (route.name.clone(), route.to_value())).collect::<Map<_, _>>();
        let mut section = json!({"schemaVersion": self.schema_version.to_string(), "routes": routes});
        if let Some(secs) = self.ttl_secs {
            section["storeAndForwardConfiguration"] = json!({"timeToLiveSecs": written(secs)});
        }
        section
    }

    /// The route of a name.
    #[must_use]
    pub fn route(&self, name: &str) -> Option<&NamedRoute> {
        let at = self.routes.binary_search_by(|route| route.name.as_str().cmp(name));
        at.ok().map(|at| &self.routes[at])
    }

    /// How long a copy lives that a route of this manifest makes, seconds; nothing is for ever.
    #[must_use]
    pub fn ttl_of(&self, route: &NamedRoute) -> Option<u32> {
        let set = |secs: Option<u32>| secs.filter(|secs| *secs > 0);
        set(route.ttl_secs).or(set(self.ttl_secs))
    }
}

impl NamedRoute {
    /// Where it stands among routes into the same sink: the least is the most urgent, names decide between equals.
    #[must_use]
    pub fn rank(&self) -> (u8, &str) {
        (self.priority.unwrap_or(PRIORITY_MAX + 1), &self.name)
    }

    fn to_value(&self) -> Value {
        let mut route = json!({"route": self.route.to_string()});
        if let Some(priority) = self.priority {
            route["priority"] = json!(priority);
        }
        if let Some(secs) = self.ttl_secs {
            route["timeToLiveSecs"] = json!(written(secs));
        }
        if self.is_fallback {
            route["fallback"] = json!(true);
        }
        route
    }
}

/// A time to live as a manifest writes it.
fn written(secs: u32) -> i64 {
    if secs == TTL_FOR_EVER { -1 } else { secs.into() }
}

/// A manifest that does not hold: all that is wrong with it; of routes, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// Each problem; not empty.
    pub problems: Vec<Problem>,
    /// So many more were found.
    pub more: usize,
}

/// One thing that is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: a JSON pointer (RFC 6901), empty for the whole text.
    pub at: String,
    /// The route, where it is one.
    pub route: Option<String>,
    /// What is wrong, a lower-case phrase.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// In the text of a route, its line and the carets beneath the place.
    pub shown: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.at.is_empty() {
            write!(f, "{}: ", self.at)?;
        }
        f.write_str(&self.what)?;
        let shown = self.shown.iter().flat_map(|shown| shown.lines()).map(str::to_owned);
        let hint = self.hint.iter().map(|hint| format!("hint: {hint}"));
        shown.chain(hint).try_for_each(|line| write!(f, "\n  {line}"))
    }
}

impl ManifestError {
    /// What is wrong in one line without a full stop, to be said of a file: `is no manifest`, or the names of the routes where only routes
    /// are wrong.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut routes = self.problems.iter().map(|problem| problem.route.as_deref()).collect::<Vec<_>>();
        routes.dedup();
        match routes[..] {
            [Some(route)] if self.more == 0 => format!("has a wrong route: {}", quoted(route)),
            _ => match routes.into_iter().collect::<Option<Vec<_>>>() {
                None => "is no manifest".to_owned(),
                Some(routes) => {
                    let named = routes.iter().take(NAMED_MAX).map(|route| quoted(route)).collect::<Vec<_>>();
                    let others = if routes.len() > NAMED_MAX || self.more > 0 { " and others" } else { "" };
                    format!("has wrong routes: {}{others}", named.join(", "))
                }
            },
        }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "\n" })?;
        }
        if self.more > 0 { write!(f, "\nand {} more", self.more) } else { Ok(()) }
    }
}

impl std::error::Error for ManifestError {}

//! Manifests from text. Everything is looked at, and everything that is wrong is told together.

use std::collections::BTreeMap;

use overtake_redact::{reason, toml_error};

use super::document::Document;
use super::section::{find, layers, pointer};
use super::{
    MANIFEST_LEN_MAX, Manifest, ManifestError, NamedRoute, PRIORITY_MAX, PROBLEMS_MAX, Problem,
    ROUTE_NAME_LEN_MAX, ROUTES_MAX, Reading, SchemaVersion, TTL_FOR_EVER,
};
use crate::condition::Condition;
use crate::error::{RouteError, quoted};
use crate::nearest::did_you_mean;
use crate::route::Route;

const SECTION_KEYS: [&str; 3] = ["schemaVersion", "routes", "storeAndForwardConfiguration"];
const ROUTE_KEYS: [&str; 4] = ["route", "priority", "timeToLiveSecs", "fallback"];
const STORE_KEYS: [&str; 1] = ["timeToLiveSecs"];

pub(super) fn from_json(text: &str) -> Result<Reading, ManifestError> {
    let parse = || {
        let braced = is_inside_of_object(text).then(|| format!("{{{text}}}"));
        serde_json::from_str(braced.as_deref().unwrap_or(text)).map_err(|error| reason(&error.to_string()))
    };
    let document = too_long(text).map_or_else(parse, Err);
    read(document.map_err(|why| format!("this is no JSON: {why}")))
}

pub(super) fn from_toml(text: &str) -> Result<Reading, ManifestError> {
    let document = too_long(text).map_or_else(
        || toml::from_str(text).map_err(|error| toml_error(text, error.span(), error.message())),
        Err,
    );
    read(document.map_err(|why| format!("this is no TOML: {why}")))
}

/// Whether it is what stands between the braces of an object, as people quote a part of a deployment.
pub(super) fn is_inside_of_object(text: &str) -> bool {
    text.trim_start().starts_with('"') && text.trim_end().ends_with('}')
}

fn too_long(text: &str) -> Option<String> {
    (text.len() > MANIFEST_LEN_MAX).then(|| format!("it is longer than {MANIFEST_LEN_MAX} bytes"))
}

fn read(document: Result<Document, String>) -> Result<Reading, ManifestError> {
    let mut reader = Reader::default();
    let manifest = match &document {
        Ok(document) => {
            let (section, at) = find(document);
            let layers = layers(document);
            match layers.first() {
                Some(layer) if at.is_empty() && section.get("routes").is_none() => {
                    let hint = "write the routes into one object: `{\"routes\": {…}}`, or that inside `properties.desired`";
                    let what = "this is a part of a layered deployment, which is not put together here";
                    reader.tell(layer, what, Some(hint.to_owned()), None);
                    Manifest::default()
                }
                _ => {
                    reader.notes.extend(layers.iter().map(|layer| {
                        format!("{layer}: a part of a layered deployment, which is passed over: write it into `properties.desired`")
                    }));
                    reader.section(section, &at)
                }
            }
        }
        Err(why) => {
            reader.wrong("", why.clone());
            Manifest::default()
        }
    };
    let more = reader.problems.len().saturating_sub(PROBLEMS_MAX);
    reader.problems.truncate(PROBLEMS_MAX);
    reader.notes.truncate(PROBLEMS_MAX);
    if reader.problems.is_empty() {
        Ok(Reading { manifest, notes: reader.notes })
    } else {
        Err(ManifestError { problems: reader.problems, more })
    }
}

#[derive(Default)]
struct Reader {
    problems: Vec<Problem>,
    notes: Vec<String>,
    /// The route that is read.
    route: Option<String>,
}

impl Reader {
    fn wrong(&mut self, at: &str, what: impl Into<String>) {
        self.tell(at, what, None, None);
    }

    fn tell(&mut self, at: &str, what: impl Into<String>, hint: Option<String>, shown: Option<String>) {
        let route = self.route.clone();
        self.problems.push(Problem { at: at.to_owned(), route, what: what.into(), hint, shown });
    }

    /// The entries of an object with known keys only.
    fn entries<'d>(&mut self, document: &'d Document, at: &str, known: &[&str]) -> &'d [(String, Document)] {
        self.entries_beside(document, at, known, false)
    }

    /// The entries of an object. Where others may stand beside the known keys, they are passed over, and noted unless they are the hub's own;
    /// one that is nearly a known key is a mistake all the same.
    fn entries_beside<'d>(
        &mut self,
        document: &'d Document,
        at: &str,
        known: &[&str],
        may_be_others: bool,
    ) -> &'d [(String, Document)] {
        let Document::Table(entries) = document else {
            self.wrong(at, format!("an object is expected here, and this is {}", document.words()));
            return &[];
        };
        for (nth, (key, _)) in entries.iter().enumerate() {
            if entries[..nth].iter().any(|(before, _)| before == key) {
                let hint = Some("leave one of them".to_owned());
                self.tell(&pointer(at, key), format!("the key {} is there twice", quoted(key)), hint, None);
            }
            let near = did_you_mean(key, known.iter().copied());
            let at = pointer(at, key);
            match known.contains(&key.as_str()) || (may_be_others && key.starts_with('$')) {
                true => {}
                false if may_be_others && near.is_none() => self
                    .notes
                    .push(format!("{at}: {} says nothing about routes, and is passed over", quoted(key))),
                false => {
                    let hint = near.unwrap_or_else(|| format!("known here: {}", row(known)));
                    self.tell(&at, format!("there is no key {} here", quoted(key)), Some(hint), None);
                }
            }
        }
        entries
    }

    fn section(&mut self, section: &Document, at: &str) -> Manifest {
        let mut manifest = Manifest::default();
        let mut has_routes = false;
        for (key, value) in self.entries_beside(section, at, &SECTION_KEYS, true) {
            let at = pointer(at, key);
            match key.as_str() {
                "schemaVersion" => manifest.schema_version = self.schema_version(value, &at),
                "routes" => {
                    manifest.routes = self.routes(value, &at);
                    has_routes = true;
                }
                "storeAndForwardConfiguration" => {
                    for (key, value) in self.entries_beside(value, &at, &STORE_KEYS, true) {
                        if key == STORE_KEYS[0] {
                            manifest.ttl_secs = self.secs(value, &pointer(&at, key)).or(manifest.ttl_secs);
                        }
                    }
                }
                _ => {}
            }
        }
        if !has_routes && self.problems.is_empty() {
            let hint =
                "a manifest is `{\"routes\": {…}}`, or has that inside `$edgeHub` and `properties.desired`";
            self.tell(at, "there is no key `routes`", Some(hint.to_owned()), None);
        }
        manifest
    }

    fn schema_version(&mut self, value: &Document, at: &str) -> SchemaVersion {
        let version = match value {
            Document::Text(text) => SchemaVersion::parse(text),
            _ => None,
        };
        if version.is_none() {
            let hint = "there are \"1.0\", \"1.1\", \"1.2\" and \"1.3\"";
            self.tell(at, "this is no version of the format that is known", Some(hint.to_owned()), None);
        }
        version.unwrap_or_default()
    }

    fn routes(&mut self, routes: &Document, at: &str) -> Vec<NamedRoute> {
        let Document::Table(entries) = routes else {
            self.wrong(
                at,
                format!("an object of routes by name is expected here, and this is {}", routes.words()),
            );
            return Vec::new();
        };
        // An object wins over a string of the same name, wherever it stands; else the last wins.
        let mut by_name = BTreeMap::<&str, &Document>::new();
        for (name, value) in entries {
            let is_object = |value: &Document| matches!(value, Document::Table(_));
            let there = by_name.entry(name).or_insert(value);
            if is_object(value) || !is_object(there) {
                *there = value;
            }
        }
        if by_name.len() > ROUTES_MAX {
            self.wrong(at, format!("there are more than {ROUTES_MAX} routes"));
            return Vec::new();
        }
        let all =
            by_name.into_iter().filter_map(|(name, value)| self.named_route(name, value, &pointer(at, name)));
        all.collect()
    }

    fn named_route(&mut self, name: &str, value: &Document, at: &str) -> Option<NamedRoute> {
        self.route = Some(name.to_owned());
        let problems = self.problems.len();
        if name.is_empty() || name.contains(['.', '$', '#', ' ']) {
            let hint = "a name has at least one character, and none of `.`, `$`, `#` and blank";
            self.tell(at, format!("{} is no name of a route", quoted(name)), Some(hint.to_owned()), None);
        }
        if name.len() > ROUTE_NAME_LEN_MAX || name.chars().any(char::is_control) {
            let hint = format!("give at most {ROUTE_NAME_LEN_MAX} bytes without control characters");
            self.tell(
                at,
                "the name of a route is too long or has control characters".to_owned(),
                Some(hint),
                None,
            );
        }
        let route = match value {
            Document::Text(text) => self.text(text, at).map(|route| plain(name, route)),
            Document::Table(_) => self.object(name, value, at),
            _ => {
                self.wrong(at, format!("a route is a string or an object, and this is {}", value.words()));
                None
            }
        };
        self.route = None;
        route.filter(|_| self.problems.len() == problems)
    }

    fn object(&mut self, name: &str, value: &Document, at: &str) -> Option<NamedRoute> {
        let (mut route, mut priority, mut ttl_secs, mut is_fallback) = (None, None, None, false);
        let mut has_route = false;
        for (key, value) in self.entries(value, at, &ROUTE_KEYS) {
            let at = pointer(at, key);
            match (key.as_str(), value) {
                ("route", Document::Text(text)) => {
                    has_route = true;
                    route = self.text(text, &at);
                }
                ("route", _) => {
                    has_route = true;
                    self.wrong(&at, format!("a route is a string, and this is {}", value.words()));
                }
                ("priority", _) => {
                    priority = self.whole(value, &at, u32::from(PRIORITY_MAX)).and_then(|n| n.try_into().ok())
                }
                ("timeToLiveSecs", _) => ttl_secs = self.secs(value, &at),
                ("fallback", Document::Bool(value)) => is_fallback = *value,
                ("fallback", _) => {
                    self.wrong(&at, format!("true or false is expected here, and this is {}", value.words()))
                }
                _ => {}
            }
        }
        if !has_route {
            let hint = "write `\"route\": \"FROM … INTO …\"`";
            self.tell(at, "there is no key `route`", Some(hint.to_owned()), None);
        }
        Some(NamedRoute { priority, ttl_secs, is_fallback, ..plain(name, route?) })
    }

    fn text(&mut self, text: &str, at: &str) -> Option<Route> {
        match Route::parse(text) {
            Ok(route) => {
                let notes = route.condition.iter().flat_map(Condition::notes);
                self.notes.extend(notes.map(|note| format!("{at}: {note}")));
                Some(route)
            }
            Err(error) => {
                let shown = RouteError { hint: None, ..error.clone() }.render(text);
                self.tell(at, error.what, error.hint, Some(shown));
                None
            }
        }
    }

    fn secs(&mut self, value: &Document, at: &str) -> Option<u32> {
        match value {
            Document::Number(-1.0) => Some(TTL_FOR_EVER),
            _ => self.whole_or(value, at, u32::MAX, ", or -1 for ever,"),
        }
    }

    fn whole(&mut self, value: &Document, at: &str, max: u32) -> Option<u32> {
        self.whole_or(value, at, max, "")
    }

    fn whole_or(&mut self, value: &Document, at: &str, max: u32, or: &str) -> Option<u32> {
        match value {
            Document::Number(number) if number.fract() == 0.0 && (0.0..=f64::from(max)).contains(number) => {
                Some(*number as u32)
            }
            _ => {
                self.wrong(
                    at,
                    format!(
                        "a whole number from 0 to {max}{or} is expected here, and this is {}",
                        told(value)
                    ),
                );
                None
            }
        }
    }
}

fn plain(name: &str, route: Route) -> NamedRoute {
    NamedRoute { name: name.to_owned(), route, priority: None, ttl_secs: None, is_fallback: false }
}

fn told(value: &Document) -> String {
    match value {
        Document::Number(number) => crate::show::number(*number),
        other => other.words().to_owned(),
    }
}

/// Words in a row.
fn row(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

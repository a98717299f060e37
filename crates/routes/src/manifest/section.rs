//! Where in a document the section with the routes is.

use super::document::Document;

/// Keys that lead to the section, tried in turn: a whole deployment, a module's twin as the hub or a module prints it.
const WAYS: [&[&str]; 8] = [
    &["modulesContent", "$edgeHub", "properties.desired"],
    &["modulesContent", "$edgeHub", "properties", "desired"],
    &["content", "modulesContent", "$edgeHub", "properties.desired"],
    &["$edgeHub", "properties.desired"],
    &["$edgeHub", "properties", "desired"],
    &["properties.desired"],
    &["properties", "desired"],
    &["desired"],
];

/// The section and the pointer to it. What stands beside the way to it is other modules' business.
pub(crate) fn find(document: &Document) -> (&Document, String) {
    for way in WAYS {
        let section = way.iter().try_fold(document, |document, key| document.get(key));
        if let Some(section) = section {
            let at = way.iter().map(|key| pointer("", key)).collect();
            return (section, at);
        }
    }
    (document, String::new())
}

/// The keys of one dotted text that stand beside the section or where it would be, as a layered deployment has them:
/// `properties.desired.routes.NAME`. Each with the pointer to it.
pub(crate) fn layers(document: &Document) -> Vec<String> {
    const WITHIN: [&[&str]; 4] =
        [&["modulesContent", "$edgeHub"], &["content", "modulesContent", "$edgeHub"], &["$edgeHub"], &[]];
    let beside = |way: &&[&str]| {
        let within = way.iter().try_fold(document, |document, key| document.get(key))?;
        let Document::Table(entries) = within else { return None };
        let at: String = way.iter().map(|key| pointer("", key)).collect();
        let layers = entries.iter().filter(|(key, _)| key.starts_with(LAYER));
        Some(layers.map(|(key, _)| pointer(&at, key)).collect::<Vec<_>>())
    };
    WITHIN.iter().filter_map(beside).flatten().collect()
}

/// How a key of a layered deployment begins.
const LAYER: &str = "properties.desired.";

/// A pointer to what a key leads to (RFC 6901).
pub(crate) fn pointer(to: &str, key: &str) -> String {
    format!("{to}/{}", key.replace('~', "~0").replace('/', "~1"))
}

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

/// A pointer to what a key leads to (RFC 6901).
pub(crate) fn pointer(to: &str, key: &str) -> String {
    format!("{to}/{}", key.replace('~', "~0").replace('/', "~1"))
}

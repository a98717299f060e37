//! A manifest in parts: a text for each route, and one for all else, so that small changes are small where it is kept.

use serde_json::{Map, Value, json};

use super::{Manifest, ManifestError};

const ROUTES: &str = "routes";

/// The texts of a manifest, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// All but the routes.
    pub head: String,
    /// Each route by its name.
    pub routes: Vec<(String, String)>,
}

impl Manifest {
    /// In parts.
    #[must_use]
    pub fn to_parts(&self) -> Parts {
        let head = Self { routes: Vec::new(), ..*self }.section().to_string();
        let routes = self.routes.iter().map(|route| (route.name.clone(), route.to_value().to_string()));
        Parts { head, routes: routes.collect() }
    }

    /// Together again.
    ///
    /// # Errors
    /// What is wrong with it, as of any manifest.
    pub fn from_parts(parts: &Parts) -> Result<Self, ManifestError> {
        // What is no JSON is told of where it stands.
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!(text));
        let routes: Map<_, _> = parts.routes.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        let mut section = value(&parts.head);
        if let Some(section) = section.as_object_mut() {
            section.insert(ROUTES.to_owned(), routes.into());
        }
        Self::from_json(&section.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_same_manifest_again() {
        let text = r#"{"schemaVersion": "1.2", "storeAndForwardConfiguration": {"timeToLiveSecs": 7200}, "routes": {
            "all": "FROM /* INTO $upstream",
            "hot": {"route": "FROM /messages/* WHERE a = '\u00e9\"' INTO Queue(\"q\")", "priority": 0, "timeToLiveSecs": 5},
            "rest": {"route": "FROM /* INTO Endpoint('e')", "fallback": true}}}"#;
        let manifest = Manifest::from_json(text).expect("it holds");
        let parts = manifest.to_parts();
        assert_eq!(parts.routes.len(), 3);
        assert_eq!(Manifest::from_parts(&parts).as_ref(), Ok(&manifest));
        let empty = Manifest::default();
        assert_eq!(Manifest::from_parts(&empty.to_parts()), Ok(empty));
    }

    #[test]
    fn parts_that_are_damaged_are_told_of() {
        let parts = Parts { head: "{}".to_owned(), routes: vec![("a".to_owned(), "{".to_owned())] };
        let error = Manifest::from_parts(&parts).expect_err("it does not hold");
        assert_eq!(error.problems[0].route.as_deref(), Some("a"), "{error}");
    }
}

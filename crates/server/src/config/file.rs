//! A configuration file: parsed on its own, so that every error and every value knows its line.
//!
//! `[env.NAME]` is an environment: what it says, in sections of its own, holds where `OVERTAKE_ENV` names it. A table `[NAME]` that is no section
//! is the old form of the same, with a warning.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use overtake_redact::{excerpt, reason};
use overtake_routes::nearest::{did_you_mean, nearest};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Deserializer, ValueDeserializer};

use super::keys::{Layer, SECTIONS};
use super::{ConfigError, Origin};

/// What a file says everywhere, and what in which environment.
pub(super) struct Layers {
    pub(super) base: Layer,
    pub(super) environments: BTreeMap<String, Environment>,
}

/// What holds in one environment.
pub(super) struct Environment {
    pub(super) layer: Layer,
    /// Whether its table is `[NAME]` and not `[env.NAME]`.
    pub(super) is_old_form: bool,
}

/// The table that has a table for each environment.
pub(super) const ENVIRONMENTS: &str = "env";

/// The section that has a table for each queue.
const QUEUES: &str = "queues";

/// The text of a file, to find places in it.
pub(super) struct File {
    path: PathBuf,
    text: String,
}

impl File {
    /// Reads and parses a file.
    pub(super) fn read(path: &Path) -> Result<(Self, Layers), ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError {
            place: None,
            what: format!("cannot read the configuration file {}: {error}", path.display()),
            excerpt: None,
            more: Vec::new(),
            hint: Some("check the path and who may read it; `--config`, OVERTAKE_CONFIG, $CONFIGURATION_DIRECTORY/overtake.toml and /etc/overtake/overtake.toml are tried in this order".to_owned()),
        })?;
        Self::parse(path, text)
    }

    /// Parses the text of a file.
    pub(super) fn parse(path: &Path, text: String) -> Result<(Self, Layers), ConfigError> {
        let file = Self { path: path.to_owned(), text };
        match layers(&file.text) {
            Ok(layers) => {
                file.refuse_misspelt_sections(&layers)?;
                Ok((file, layers))
            }
            Err(error) => {
                let mut errors = faults(&file.text);
                errors.push(error);
                errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
                let mut faults: Vec<_> = errors.iter().map(|error| file.of_parser(error)).collect();
                faults.dedup();
                Err(ConfigError::all(faults).expect_err("there is one"))
            }
        }
    }

    /// What the parser says, with the key.
    fn of_parser(&self, error: &toml::de::Error) -> ConfigError {
        let key = error.span().and_then(|span| self.key_at(span.start)).unwrap_or_default();
        let lead = if key.is_empty() { String::new() } else { format!("`{key}`: ") };
        let wrong = self.error(error.span(), lead + &reason(error.message()));
        match key.split_once('.') {
            Some((section, _)) if section != ENVIRONMENTS && !SECTIONS.contains(&section) => {
                wrong.hint(no_section(section))
            }
            _ => wrong,
        }
    }

    /// Refuses a table that is no section and, empty or with a name like that of a section, is hardly meant as an environment.
    fn refuse_misspelt_sections(&self, layers: &Layers) -> Result<(), ConfigError> {
        let old = layers.environments.iter().filter(|(_, environment)| environment.is_old_form);
        for (name, _) in old {
            let span = self.span(&[name.as_str()]);
            if self.is_empty_table(name) || nearest(name, SECTIONS.iter().copied()).is_some() {
                let what = format!("`{name}` is no section");
                return Err(self.error(span, what).hint(no_section(name)));
            }
        }
        Ok(())
    }

    fn is_empty_table(&self, name: &str) -> bool {
        let Ok(root) = DeTable::parse(&self.text) else { return false };
        let table = root.get_ref().iter().find(|(key, _)| key.get_ref() == name);
        table.is_some_and(|(_, value)| value.get_ref().as_table().is_some_and(DeTable::is_empty))
    }

    /// An error at a place in the file.
    pub(super) fn error(&self, span: Option<Range<usize>>, what: String) -> ConfigError {
        let Some(span) = span else {
            return ConfigError::at(self.origin_at(0), what);
        };
        let mut error = ConfigError::at(self.origin_at(span.start), what);
        error.excerpt = Some(excerpt(&self.text, span));
        error
    }

    /// Where a key stands, or as much of its path as is there.
    pub(super) fn origin(&self, path: &[&str]) -> Origin {
        self.origin_at(self.span(path).map_or(0, |span| span.start))
    }

    /// The bytes of the last key of a path, or of the last one that is there.
    pub(super) fn span(&self, path: &[&str]) -> Option<Range<usize>> {
        let root = DeTable::parse(&self.text).ok()?;
        let mut table = root.get_ref();
        let mut found = None;
        for part in path {
            let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == part) else { break };
            found = Some(Spanned::span(key));
            match value.get_ref() {
                DeValue::Table(inner) => table = inner,
                _ => break,
            }
        }
        found
    }

    /// The dotted path of the key that stands here, or whose value does.
    fn key_at(&self, at: usize) -> Option<String> {
        let root = DeTable::parse(&self.text).ok()?;
        let (mut table, mut path) = (root.get_ref(), Vec::new());
        while let Some((key, value)) =
            table.iter().find(|(key, value)| Spanned::span(key).contains(&at) || holds(value, at))
        {
            path.push(key.get_ref().to_string());
            match value.get_ref() {
                DeValue::Table(inner) if !Spanned::span(key).contains(&at) => table = inner,
                _ => break,
            }
        }
        (!path.is_empty()).then(|| path.join("."))
    }

    fn origin_at(&self, at: usize) -> Origin {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Origin::File {
            path: self.path.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

fn no_section(name: &str) -> String {
    let near = did_you_mean(name, SECTIONS.iter().copied());
    let lead = near.map_or_else(|| "the".to_owned(), |near| near + " The");
    format!(
        "{lead} sections are {}; an environment, which holds where OVERTAKE_ENV names it, is [env.{name}]",
        SECTIONS.join(", ")
    )
}

/// Each table as a layer. All environments are read, so that what is wrong in one is found in every other.
fn layers(text: &str) -> Result<Layers, toml::de::Error> {
    let root = DeTable::parse(text)?;
    let (span, mut sections, mut environments) = (root.span(), DeTable::new(), BTreeMap::new());
    for (key, value) in root.into_inner() {
        let is_table = value.get_ref().is_table();
        if is_table && key.get_ref() == ENVIRONMENTS {
            let all = BTreeMap::<String, Layer>::deserialize(ValueDeserializer::from(value))?;
            environments.extend(
                all.into_iter().map(|(name, layer)| (name, Environment { layer, is_old_form: false })),
            );
        } else if is_table && !SECTIONS.contains(&key.get_ref().as_ref()) {
            let layer = Layer::deserialize(ValueDeserializer::from(value))?;
            environments
                .entry(key.into_inner().into_owned())
                .or_insert(Environment { layer, is_old_form: true });
        } else {
            sections.insert(key, value);
        }
    }
    let base = Layer::deserialize(Deserializer::from(Spanned::new(span, sections)))?;
    Ok(Layers { base, environments })
}

/// What is wrong with each key of each section by itself, where the text is TOML: one that is wrong hides no other.
fn faults(text: &str) -> Vec<toml::de::Error> {
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let mut faults = Vec::new();
    for (section, value) in root.into_inner() {
        if section.get_ref() == ENVIRONMENTS {
            let environments = table(value).into_iter().map(|(_, value)| value);
            environments.for_each(|value| faults.extend(faults_of_environment(value)));
        } else if SECTIONS.contains(&section.get_ref().as_ref()) {
            faults.extend(faults_of_section(&section, value));
        } else {
            faults.extend(faults_of_environment(value));
        }
    }
    faults
}

fn faults_of_environment(value: Spanned<DeValue<'_>>) -> Vec<toml::de::Error> {
    table(value).into_iter().flat_map(|(section, value)| faults_of_section(&section, value)).collect()
}

fn faults_of_section(section: &Spanned<DeString<'_>>, value: Spanned<DeValue<'_>>) -> Vec<toml::de::Error> {
    let span = value.span();
    let of = |key, value| {
        let document = DeTable::from_iter([(section.clone(), within(&span, key, value))]);
        Layer::deserialize(Deserializer::from(Spanned::new(span.clone(), document))).err()
    };
    let entries = table(value).into_iter();
    entries
        .flat_map(|(key, value)| match value.get_ref().is_table() && section.get_ref() == QUEUES {
            // Each setting of a queue, too.
            true => {
                let span = value.span();
                let settings = table(value).into_iter();
                settings.filter_map(|(name, value)| of(key.clone(), within(&span, name, value))).collect()
            }
            false => Vec::from_iter(of(key, value)),
        })
        .collect()
}

/// A table with one entry, in place of the one that stands there.
fn within<'t>(
    span: &Range<usize>,
    key: Spanned<DeString<'t>>,
    value: Spanned<DeValue<'t>>,
) -> Spanned<DeValue<'t>> {
    Spanned::new(span.clone(), DeValue::Table(DeTable::from_iter([(key, value)])))
}

fn table(value: Spanned<DeValue<'_>>) -> DeTable<'_> {
    match value.into_inner() {
        DeValue::Table(table) => table,
        _ => DeTable::new(),
    }
}

/// Whether something inside a value stands here. The span of a table is only that of its header.
fn holds(value: &Spanned<DeValue<'_>>, at: usize) -> bool {
    let inside = match value.get_ref() {
        DeValue::Table(inner) => {
            inner.iter().any(|(key, value)| Spanned::span(key).contains(&at) || holds(value, at))
        }
        _ => false,
    };
    inside || value.span().contains(&at)
}

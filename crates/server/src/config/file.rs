//! A configuration file: parsed on its own, so that every error and every value knows its line.
//!
//! `[env.NAME]` is an environment: what it says, in sections of its own, holds where `OVERTAKE_ENV` names it. A table `[NAME]` that is no section
//! is the old form of the same, with a warning.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use overtake_redact::{Strict, excerpt, reason};
use overtake_routes::nearest::{did_you_mean, nearest};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Deserializer, ValueDeserializer};

use super::keys::{KEYS, Layer, SECTIONS};
use super::value::quoted;
use super::{ByteSize, ConfigError, ConfiguredQueue, Key, Millis, Origin, Value as _};

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

/// The hint at how a queue is given in one word.
const INLINE_TABLE: &str = "give the settings as an inline table: { scheme = \"signed\", max_active = 10 }";

/// Longest value in an error, bytes.
pub(super) const SHOWN_LEN_MAX: usize = 60;

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
            more: Box::default(),
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

    /// The parser's error, with the key and, where it may be shown, the value.
    fn of_parser(&self, error: &toml::de::Error) -> ConfigError {
        let path = error.span().and_then(|span| self.path_at(span.start)).unwrap_or_default();
        let (key, why) = (path.join("."), reason(error.message()));
        let lead = match self.value(&path) {
            _ if key.is_empty() => String::new(),
            Some(value) if why.contains(", found ") && is_open(&path) && is_plain(&value) => {
                format!("`{key}` is `{}`: ", value.trim_matches('"'))
            }
            _ => format!("`{key}`: "),
        };
        let wrong = self.error(error.span(), lead + &why);
        match (&path[..], unknown_field(&why)) {
            ([section, _, ..], _) if section != ENVIRONMENTS && !SECTIONS.contains(&&**section) => {
                wrong.hint(no_section(section))
            }
            (_, Some((field, known))) => match meant(field, &known) {
                Some(near) => wrong.hint(did_you_mean_key(near, self.value(&path).as_deref())),
                None => wrong,
            },
            ([.., last], None) if last.ends_with("_ms") => {
                match self.value(&path).and_then(|value| ms(&value)) {
                    Some(ms) => wrong.hint(format!("`{last}` counts milliseconds: {ms}")),
                    None => wrong,
                }
            }
            _ => wrong,
        }
    }

    /// The value of a key as it is written, if it is no table and not long.
    fn value(&self, path: &[String]) -> Option<String> {
        let root = DeTable::parse(&self.text).ok()?;
        let mut table = root.get_ref();
        let (last, tables) = path.split_last()?;
        for part in tables {
            table = table.iter().find(|(key, _)| key.get_ref() == part)?.1.get_ref().as_table()?;
        }
        let (_, value) = table.iter().find(|(key, _)| key.get_ref() == last)?;
        let text = self.text.get(value.span()).filter(|_| !value.get_ref().is_table())?;
        (text.len() <= SHOWN_LEN_MAX && !text.contains('\n')).then(|| text.to_owned())
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

    /// Reads the settings of a queue from one word: a TOML inline table, or nothing for the defaults.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(super) fn queue(name: &str, text: &str, origin: Origin) -> Result<ConfiguredQueue, ConfigError> {
        let table = if text.trim().is_empty() { "{}" } else { text };
        let document = format!("{QUEUES}.{} = {table}", quoted(name));
        match Self::parse(Path::new(""), document) {
            Ok((_, mut layers)) => {
                let settings = layers.base.queues.remove(name).unwrap_or_default();
                Ok(ConfiguredQueue { name: name.to_owned(), settings, origin })
            }
            Err(mut first) => {
                let further = std::mem::take(&mut first.more);
                let placed = [first].into_iter().chain(further).map(|fault| {
                    // A text that is no TOML has no keys.
                    let is_of_key = fault.what.starts_with('`');
                    let what =
                        if is_of_key { fault.what } else { format!("`{QUEUES}.{name}`: {}", fault.what) };
                    ConfigError { place: Some(origin.clone()), excerpt: None, what, ..fault }
                });
                let error = ConfigError::all(placed).expect_err("there is one");
                Err(match error.hint {
                    Some(_) => error,
                    None => error.hint(INLINE_TABLE),
                })
            }
        }
    }

    /// An error at a place in the file.
    pub(super) fn error(&self, span: Option<Range<usize>>, what: String) -> ConfigError {
        let Some(span) = span else {
            return ConfigError::at(self.origin_at(0), what);
        };
        let mut error = ConfigError::at(self.origin_at(span.start), what);
        error.excerpt = Some(excerpt(&self.text, span).into());
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

    /// As [`span`](Self::span), in the table of the file or of one of its environments in which the first two parts of the path stand at `origin`.
    pub(super) fn span_of(&self, origin: &Origin, path: &[&str]) -> Option<Range<usize>> {
        let root = DeTable::parse(&self.text).ok()?;
        let mut tables = vec![Vec::new()];
        for (key, value) in root.get_ref() {
            match value.get_ref().as_table().filter(|_| !SECTIONS.contains(&&**key.get_ref())) {
                Some(all) if key.get_ref() == ENVIRONMENTS => {
                    tables.extend(all.keys().map(|name| vec![ENVIRONMENTS, &**name.get_ref()]));
                }
                Some(_) => tables.push(vec![&**key.get_ref()]),
                None => {}
            }
        }
        let is_there = |table: &Vec<&str>| self.origin(&[table, &path[..2]].concat()) == *origin;
        let table = tables.into_iter().find(is_there)?;
        self.span(&[&table, path].concat())
    }

    /// The path of the key that stands here, or whose value does.
    fn path_at(&self, at: usize) -> Option<Vec<String>> {
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
        (!path.is_empty()).then_some(path)
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

/// Whether the value of a key may be in an error: that of a setting which holds no secret. What stands under a key that nobody knows may be one.
fn is_open(path: &[String]) -> bool {
    let path = match path {
        [first, _, rest @ ..] if first == ENVIRONMENTS => rest,
        [first, rest @ ..] if !SECTIONS.contains(&&**first) => rest,
        path => path,
    };
    let is_open =
        |key: &&Key| !["engine.", "access.", "telemetry."].iter().any(|may| key.path.starts_with(may));
    let key = path.join(".");
    path.first().is_some_and(|section| section == QUEUES)
        || KEYS.iter().filter(is_open).any(|known| known.path == key)
}

/// Whether a value is nobody's secret: a number, a switch, a duration or a size, and no other text.
fn is_plain(value: &str) -> bool {
    let Some(text) = value.strip_prefix('"') else { return true };
    let text = text.trim_end_matches('"');
    let is_switch = ["true", "false", "yes", "no", "on", "off"].contains(&&*text.to_lowercase());
    is_switch || Millis::read(text).is_ok() || ByteSize::read(text).is_ok()
}

/// The milliseconds of a duration that is written as a text.
fn ms(value: &str) -> Option<u64> {
    let text = value.strip_prefix('"')?.strip_suffix('"')?;
    Millis::read(text).ok().map(|Millis(ms)| ms)
}

/// The field of a message that it is none of those that there are, and these.
fn unknown_field(why: &str) -> Option<(&str, Vec<&str>)> {
    let (field, known) = why.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    Some((field, known.split('`').skip(1).step_by(2).collect()))
}

/// The key that was probably meant by one that is not there: another spelling, one without its unit, or a slip.
pub(super) fn meant<'k>(field: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = field.to_lowercase().replace('-', "_");
    let plain = plain.strip_prefix("x_").unwrap_or(&plain);
    let of = |unit: &str| known.iter().copied().find(|key| key.strip_suffix(unit) == Some(plain));
    let exact = ["", "_ms", "_bytes"].into_iter().find_map(of);
    let without_unit = || {
        let near = nearest(plain, known.iter().filter_map(|key| key.strip_suffix("_ms")));
        known.iter().copied().find(|key| key.strip_suffix("_ms") == near && near.is_some())
    };
    exact.or_else(|| nearest(plain, known.iter().copied())).or_else(without_unit)
}

/// A hint at a key, with the number for it where the value that was given is a duration.
pub(super) fn did_you_mean_key(key: &str, value: Option<&str>) -> String {
    match value.filter(|_| key.ends_with("_ms")).and_then(ms) {
        Some(ms) => format!("did you mean `{key}`? It counts milliseconds: {ms}"),
        None => format!("did you mean `{key}`?"),
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
            let all = BTreeMap::<String, Layer>::deserialize(Strict(ValueDeserializer::from(value)))?;
            environments.extend(
                all.into_iter().map(|(name, layer)| (name, Environment { layer, is_old_form: false })),
            );
        } else if is_table && !SECTIONS.contains(&key.get_ref().as_ref()) {
            let layer = Layer::deserialize(Strict(ValueDeserializer::from(value)))?;
            environments
                .entry(key.into_inner().into_owned())
                .or_insert(Environment { layer, is_old_form: true });
        } else {
            sections.insert(key, value);
        }
    }
    let base = Layer::deserialize(Strict(Deserializer::from(Spanned::new(span, sections))))?;
    Ok(Layers { base, environments })
}

/// The errors of all keys of all sections, each key read by itself, so that an error hides no other. Empty where the text is no TOML.
fn faults(text: &str) -> Vec<toml::de::Error> {
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let mut faults = Vec::new();
    for (section, value) in root.into_inner() {
        if section.get_ref() == ENVIRONMENTS {
            let environments = table(value).into_iter().map(|(_, value)| value);
            environments.for_each(|value| faults.extend(faults_of_environment(value)));
        } else if SECTIONS.contains(&section.get_ref().as_ref()) {
            faults.extend(faults_of_section(&section, value));
        } else if value.get_ref().is_table() {
            faults.extend(faults_of_environment(value));
        } else {
            faults.extend(fault(section, value));
        }
    }
    faults
}

fn faults_of_environment(value: Spanned<DeValue<'_>>) -> Vec<toml::de::Error> {
    table(value).into_iter().flat_map(|(section, value)| faults_of_section(&section, value)).collect()
}

/// The error of a key that is read by itself.
fn fault<'t>(key: Spanned<DeString<'t>>, value: Spanned<DeValue<'t>>) -> Option<toml::de::Error> {
    let span = value.span();
    let document = DeTable::from_iter([(key, value)]);
    Layer::deserialize(Strict(Deserializer::from(Spanned::new(span, document)))).err()
}

fn faults_of_section(section: &Spanned<DeString<'_>>, value: Spanned<DeValue<'_>>) -> Vec<toml::de::Error> {
    if !value.get_ref().is_table() {
        return Vec::from_iter(fault(section.clone(), value));
    }
    let span = value.span();
    let of = |key, value| fault(section.clone(), within(&span, key, value));
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

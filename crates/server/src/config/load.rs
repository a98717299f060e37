//! Defaults, file, environment, flags: laid over each other in this order.

use std::path::{Path, PathBuf};

use overtake_routes::nearest::nearest;

use super::file::{ENVIRONMENTS, Environment, File, did_you_mean_key, meant};
use super::keys::KEYS;
use super::{Around, Config, ConfigError, Key, Origin, check, otlp};

/// The file that is read when none is named, if it is there.
pub const DEFAULT_FILE: &str = "/etc/overtake/overtake.toml";
/// What the name of every variable that sets something begins with.
pub(super) const VARIABLE_PREFIX: &str = "OVERTAKE__";
/// Names the environment whose tables of the file hold.
const ENVIRONMENT_VARIABLE: &str = "OVERTAKE_ENV";
const QUEUES_VARIABLE: &str = "QUEUES__";

/// A value given as a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag without its dashes: that of a [`Key`](super::Key), or [`QUEUE_FLAG`](super::QUEUE_FLAG).
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Reads all sources and checks the result.
///
/// `file` is the one that was named with a flag; it must exist. Without it `OVERTAKE_CONFIG` names one that must exist,
/// and without that one in `$CONFIGURATION_DIRECTORY`, or [`DEFAULT_FILE`], is read if it is there.
///
/// # Errors
/// All faults of the file or, if it can be read, all faults of variables and flags or, if these can be read, all of the settings; each with
/// its place.
pub fn load(around: &Around, file: Option<&Path>, flags: &[Flag]) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    config.store.data_dir = around.data_dir();
    let file = match named_file(around, file) {
        Some(path) => {
            let (file, mut layers) = File::read(&path)?;
            config.overlay(layers.base, |path| file.origin(path));
            for (name, environment) in &layers.environments {
                if environment.is_old_form {
                    let place = file.origin(&[name.as_str()]);
                    config.warnings.push(format!(
                        "{place}: write the environment `{name}` as [env.{name}]; a later version refuses [{name}]"
                    ));
                }
            }
            if let Some(name) = environment(around) {
                let Some(Environment { layer, is_old_form }) = layers.environments.remove(name) else {
                    return Err(no_environment(name, layers.environments.keys()));
                };
                let table = if is_old_form { vec![name] } else { vec![ENVIRONMENTS, name] };
                config.overlay(layer, |path| file.origin(&[&table[..], path].concat()));
            }
            Some(file)
        }
        None => match environment(around) {
            Some(name) => return Err(no_environment(name, std::iter::empty())),
            None => None,
        },
    };
    let mut faults = Vec::new();
    for (name, path) in otlp::VARIABLES {
        if let Some(value) = around.variable(name) {
            let origin = Origin::Variable(name.to_owned());
            let set = config.set(path, value, origin.clone()).expect("the table names settings");
            faults.extend(set.err().map(|why| ConfigError::at(origin, format!("`{path}`: {why}"))));
        }
    }
    for (name, value) in &around.variables {
        if let Some(path) = name.strip_prefix(VARIABLE_PREFIX) {
            faults.extend(set_variable(&mut config, name, path, value).err());
        }
    }
    config.warnings.extend(around.variables.iter().filter_map(|(name, _)| warning_of(name)));
    faults.extend(flags.iter().filter_map(|flag| set_flag(&mut config, flag).err()));
    ConfigError::all(faults)?;
    config.queues.sort_by(|a, b| a.name.cmp(&b.name));
    config.endpoints.sort_by(|a, b| a.name.cmp(&b.name));
    config.sources.sort_by(|a, b| a.name.cmp(&b.name));
    check::check(&config, file.as_ref())?;
    Ok(config)
}

/// The faults of the environments of the file that do not hold, in one line each: what [`load`] would refuse where they held, with nothing said besides the
/// file. Variables and flags may mend one, so a start does not look.
///
/// # Errors
/// The file cannot be read.
pub fn faults_elsewhere(around: &Around, file: Option<&Path>) -> Result<Vec<String>, ConfigError> {
    let Some(path) = named_file(around, file) else { return Ok(Vec::new()) };
    let (file, layers) = File::read(&path)?;
    let mut base = Config::default();
    base.overlay(layers.base, |path| file.origin(path));
    let mut faults = Vec::new();
    for (name, Environment { layer, is_old_form }) in layers.environments {
        if environment(around) == Some(&*name) {
            continue;
        }
        let mut config = base.clone();
        let table = if is_old_form { vec![&*name] } else { vec![ENVIRONMENTS, &*name] };
        config.overlay(layer, |path| file.origin(&[&table[..], path].concat()));
        let Err(error) = check::check(&config, Some(&file)) else { continue };
        let more = error.more.into_vec();
        faults.extend([ConfigError { more: Box::default(), ..error }].into_iter().chain(more).map(|fault| {
            let fault = ConfigError { excerpt: None, ..fault };
            format!(
                "{fault}; so it is in the environment `{name}`, unless a variable or a flag says otherwise"
            )
        }));
    }
    Ok(faults)
}

/// The environment that is named, if one is.
fn environment(around: &Around) -> Option<&str> {
    around.variable(ENVIRONMENT_VARIABLE).filter(|name| !name.is_empty())
}

/// The settings of an environment that is not there would silently be those of development.
fn no_environment<'a>(name: &str, known: impl Iterator<Item = &'a String> + Clone) -> ConfigError {
    let near = nearest(name, known.clone().map(String::as_str));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let known: Vec<_> = known.map(|name| format!("`{name}`")).collect();
    let known = if known.is_empty() {
        "the configuration has no environment:".to_owned()
    } else {
        format!("the configuration has {}: name one of these,", known.join(", "))
    };
    let what = format!("there is no environment `{name}`{near}");
    ConfigError::at(Origin::Variable(ENVIRONMENT_VARIABLE.to_owned()), what)
        .hint(format!("{known} declare [env.{name}] in the file, or unset {ENVIRONMENT_VARIABLE}"))
}

fn named_file(around: &Around, file: Option<&Path>) -> Option<PathBuf> {
    let named = file.map(Path::to_owned).or_else(|| around.variable("OVERTAKE_CONFIG").map(PathBuf::from));
    named.or_else(|| around.system_file.clone())
}

fn set_variable(config: &mut Config, name: &str, path: &str, value: &str) -> Result<(), ConfigError> {
    let origin = Origin::Variable(name.to_owned());
    if let Some(queue) = path.strip_prefix(QUEUES_VARIABLE) {
        return set_queue(config, queue, value, origin);
    }
    let path = path.to_lowercase().replace("__", ".");
    match config.set(&path, value, origin.clone()) {
        Some(Ok(())) => Ok(()),
        Some(Err(why)) => Err(ConfigError::at(origin, format!("`{path}`: {why}"))),
        None => {
            let known: Vec<_> = KEYS.iter().map(|key| key.path).collect();
            let near = meant(&path, &known).and_then(|near| KEYS.iter().find(|key| key.path == near));
            let near = near.map(|key| did_you_mean_key(&key.variable(), None) + " ").unwrap_or_default();
            let error = ConfigError::at(origin, format!("there is no setting `{path}`"));
            Err(error.hint(format!("{near}{}", known_like(&path))))
        }
    }
}

/// The warning of a variable that sets nothing, since it has one underscore where the variable of a setting has two.
fn warning_of(name: &str) -> Option<String> {
    let variables = KEYS.iter().map(Key::variable);
    let meant = variables.into_iter().find(|variable| variable.replace("__", "_") == name)?;
    Some(format!("environment {name}: it sets nothing; did you mean {meant}?"))
}

fn set_flag(config: &mut Config, flag: &Flag) -> Result<(), ConfigError> {
    let origin = Origin::Flag(format!("--{}", flag.name));
    if flag.name == super::QUEUE_FLAG {
        let (name, settings) = flag.value.split_once('=').unwrap_or((&flag.value, ""));
        return set_queue(config, name.trim(), settings, origin);
    }
    let key = KEYS.iter().find(|key| key.flag == flag.name);
    match key.and_then(|key| config.set(key.path, &flag.value, origin.clone())) {
        Some(Ok(())) => Ok(()),
        Some(Err(why)) => Err(ConfigError::at(origin, why)),
        None => Err(ConfigError::at(origin, "there is no such flag")),
    }
}

fn set_queue(config: &mut Config, name: &str, text: &str, origin: Origin) -> Result<(), ConfigError> {
    let queue = File::queue(name, text, origin)?;
    config.queues.retain(|other| other.name != name);
    config.queues.push(queue);
    Ok(())
}

/// The settings of the same section, or else the sections.
fn known_like(path: &str) -> String {
    let section = path.split('.').next().unwrap_or(path);
    let same: Vec<_> =
        KEYS.iter().map(|key| key.path).filter(|known| known.split('.').next() == Some(section)).collect();
    let mut sections: Vec<_> = KEYS.iter().filter_map(|key| key.path.split('.').next()).collect();
    sections.dedup();
    if same.is_empty() {
        format!("The sections are {} and queues; write OVERTAKE__SECTION__KEY", sections.join(", "))
    } else {
        format!("In [{section}] there are {}", same.join(", "))
    }
}

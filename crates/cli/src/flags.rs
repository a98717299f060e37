//! A flag for every setting of the server, made of the server's own list.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use overtake_server::config::{Around, Config, ConfigError, Flag, KEYS, QUEUE_FLAG, faults_elsewhere, load};

/// Where the configuration comes from.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The configuration file [default: $OVERTAKE_CONFIG, else overtake.toml in $CONFIGURATION_DIRECTORY or /etc/overtake if it is there].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: SettingFlags,
}

impl ConfigArgs {
    /// The configuration of all sources.
    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        self.load_after(Vec::new())
    }

    /// The same, with flags before those that were given, which go before them.
    pub(crate) fn load_after(&self, mut flags: Vec<Flag>) -> Result<Config, ConfigError> {
        flags.extend(self.flags.0.iter().cloned());
        load(&Around::here(), self.config.as_deref(), &flags)
    }

    /// The faults of the environments of the file that do not hold.
    pub(crate) fn faults_elsewhere(&self) -> Result<Vec<String>, ConfigError> {
        faults_elsewhere(&Around::here(), self.config.as_deref())
    }
}

/// The settings that were given as flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFlags(Vec<Flag>);

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for name in KEYS.iter().map(|key| key.flag).chain([QUEUE_FLAG]) {
            let values = matches.get_many::<String>(name).into_iter().flatten();
            self.0.extend(values.map(|value| Flag { name: name.to_owned(), value: value.clone() }));
        }
        Ok(())
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let defaults = Config::default();
        let shown = defaults.entries();
        let settings = KEYS.iter().zip(shown).map(|(key, (_, default, _))| {
            let default = default.trim_matches('"').to_owned();
            let default = if default.is_empty() || key.flag == "data-dir" {
                String::new()
            } else {
                format!(" [default: {default}]")
            };
            let arg = Arg::new(key.flag)
                .long(key.flag)
                .value_name(key.kind)
                .help(format!("{}{default}", key.about));
            if key.is_switch {
                arg.num_args(0..=1).require_equals(true).default_missing_value("true")
            } else {
                arg
            }
        });
        let queue = Arg::new(QUEUE_FLAG)
            .long(QUEUE_FLAG)
            .value_name("NAME[={SETTINGS}]")
            .action(ArgAction::Append)
            .help("Declare a queue at start, with settings as a TOML inline table. May be given again.");
        command.args(settings.map(|arg| arg.help_heading("Settings"))).arg(queue.help_heading("Settings"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

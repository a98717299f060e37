//! What the server is told to be, and by whom.
//!
//! A setting is declared once, in `keys.rs`: its section, name, flag, type, default and description. Files, environment
//! and flags are read from that one declaration, so none of them can lack a setting.
//!
//! ```text
//!  defaults < file (--config, OVERTAKE_CONFIG, $CONFIGURATION_DIRECTORY, /etc/overtake/overtake.toml) < [$OVERTAKE_ENV.…] in it < OTEL_… < OVERTAKE__SECTION__KEY < --flag
//! ```
//!
//! Each file is parsed by itself into a layer whose every value may be missing, so that errors still know their line;
//! merging comes after. Every value keeps where it came from.

mod around;
mod check;
mod connectors;
mod engine;
mod error;
mod file;
mod keys;
mod load;
mod origin;
mod otlp;
mod queues;
mod show;
mod value;

pub use around::Around;
pub(crate) use connectors::CONNECTORS_HINT;
pub use connectors::Configured;
pub use engine::{EngineKind, Replicas, SecretPlace, Servers, Urls};
pub use error::ConfigError;
pub use keys::{
    Access, Amqp, Config, Engine, EngineTls, Http, KEYS, Lanes, Limits, Log, Routes, Server, Store,
    Telemetry, Tls,
};
pub use load::{DEFAULT_FILE, Flag, faults_elsewhere, load};
pub use origin::{Origin, Sourced};
pub use otlp::{Attributes, Collector, CollectorHeaders};
pub use queues::{ConfiguredQueue, QUEUE_FLAG};
pub use show::show;
pub use value::{
    ByteSize, Count, HostNames, Listen, Listener, LogFilter, LogFormat, Millis, OnDamage, Share, Value,
    Watermark, Whole,
};

/// One setting, as files, environment, flags and `config show` know it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// `section.key`, as in the file.
    pub path: &'static str,
    /// The flag of `overtake serve`, without its dashes.
    pub flag: &'static str,
    /// What kind of value it takes, for `--help`.
    pub kind: &'static str,
    /// What it is for, in one sentence.
    pub about: &'static str,
    /// Whether it is yes or no, so that the bare flag means yes.
    pub is_switch: bool,
}

impl Key {
    /// The variable of the environment that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{}{}", load::VARIABLE_PREFIX, self.path.replace('.', "__").to_uppercase())
    }
}

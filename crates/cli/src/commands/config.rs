//! `overtake config`

use clap::{Args, Subcommand};
use overtake_server::check_files;
use overtake_server::config::{Config, show};
use serde_json::{Map, Value, json};

use super::Ended;
use crate::failure::Exit;
use crate::flags::ConfigArgs;
use crate::out::Out;
use crate::table::count;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration and the certificates it names, and change nothing.
    #[command(after_help = "\
Examples:
  overtake config check
  overtake config check --config /etc/overtake/overtake.toml && systemctl restart overtake
  overtake config check --config overtake.toml --no-files")]
    Check(CheckArgs),
    /// Show the configuration in force, as a file that says the same.
    #[command(after_help = "\
Examples:
  overtake config show
  overtake config show --origin
  overtake config show > overtake.toml")]
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Do not read the certificates: they are on another machine.
    #[arg(long)]
    no_files: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Say where each value comes from.
    #[arg(long)]
    origin: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Loads the configuration as `serve` would.
pub(crate) fn run(command: &ConfigCommand, out: Out) -> Ended {
    match command {
        ConfigCommand::Check(args) => {
            let config = args.config.load()?;
            if !args.no_files {
                check_files(&config)?;
            }
            let queues = config.queues.len() as u64;
            let warnings = &config.warnings;
            out.done(&json!({ "ok": true, "queues": queues, "warnings": warnings }), || {
                let mut said: String =
                    warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
                said += &format!("the configuration is good ({} declared at start)", count(queues, "queue"));
                said
            })?;
        }
        ConfigCommand::Show(args) => {
            let config = args.config.load()?;
            match out.is_json() {
                true => out.json(&as_json(&config, args.origin))?,
                false => out.text(&show(&config, args.origin))?,
            }
        }
    }
    Ok(Exit::Done)
}

/// `{"http.listen": "127.0.0.1:15672", …}`, or with origins `{"http.listen": {"value": …, "origin": …}, …}`.
fn as_json(config: &Config, origins: bool) -> Value {
    let with_origin = |value: Value, origin: String| match origins {
        true => json!({ "value": value, "origin": origin }),
        false => value,
    };
    let mut shown = Map::new();
    for (path, value, origin) in config.entries() {
        let value = toml::from_str::<Map<String, Value>>(&format!("v = {value}"))
            .ok()
            .and_then(|mut v| v.remove("v"));
        shown.insert(path.to_owned(), with_origin(value.unwrap_or_default(), origin.to_string()));
    }
    for queue in &config.queues {
        let settings = serde_json::to_value(&queue.settings).unwrap_or_default();
        shown.insert(format!("queues.{}", queue.name), with_origin(settings, queue.origin.to_string()));
    }
    Value::Object(shown)
}

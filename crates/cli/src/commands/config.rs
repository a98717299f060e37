//! `overtake config`

use clap::{Args, Subcommand};
use overtake_server::config::{Config, show};
use serde_json::{Map, Value, json};

use super::Ended;
use crate::failure::Exit;
use crate::flags::ConfigArgs;
use crate::out::Out;
use crate::table::count;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration, the files it names and, while no broker runs, what is stored in the data directory, and change nothing.
    ///
    /// What a start would refuse is refused here, too: a store that cannot be opened, a queue whose messages do not allow what the configuration
    /// says. A fault of an environment that does not hold is a warning: variables and flags may mend it where it holds. The last lines say what was not
    /// checked.
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
    /// Read neither the files it names nor the data directory: they are on another machine.
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
            let unchecked = match args.no_files {
                true => vec![
                    "the certificates, the definitions, the routes and the data directory (--no-files)"
                        .to_owned(),
                ],
                false => overtake_server::check(&config)?,
            };
            let queues = config.queues.len() as u64;
            let warnings = &[&config.warnings[..], &args.config.faults_elsewhere()?].concat();
            let answer =
                json!({ "ok": true, "queues": queues, "warnings": warnings, "not_checked": unchecked });
            out.done(&answer, || {
                let mut said: String =
                    warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
                said += &format!("the configuration is good ({} declared at start)", count(queues, "queue"));
                said.extend(unchecked.iter().map(|what| format!("\nnot checked: {what}")));
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

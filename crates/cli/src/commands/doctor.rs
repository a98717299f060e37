//! `overtake doctor`

use std::path::PathBuf;

use clap::Args;
use overtake_server::config::Flag;
use serde_json::json;

use super::Ended;
use crate::args::Global;
use crate::doctor;
use crate::failure::{Exit, Failure};
use crate::flags::ConfigArgs;
use crate::out::Out;
use crate::redis::PASSWORD;

/// Say what a confirmed message survives where messages are kept, and what to change.
///
/// Looks at the servers of Redis or Valkey that the configuration names, or at the directory of the embedded store, and changes nothing. Exit
/// code 0 when every promise holds, 1 when something does not, 2 when it cannot be told.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake doctor --config /etc/overtake/overtake.toml
  overtake doctor --nodes 10.0.0.1:6379,10.0.0.2:6379 --engine-replicas-acked 2
  overtake doctor --engine redis --nodes rediss://ann@redis.example --redis-password-file pw
  overtake doctor --json | jq '.promises[] | select(.holds != true)'")]
pub(crate) struct DoctorArgs {
    /// Look at these servers, whatever the configuration says: a cluster, unless --engine says redis.
    #[arg(long, value_name = "URL,…")]
    nodes: Option<String>,
    /// A file with the password for --nodes [else: OVERTAKE_REDIS_PASSWORD].
    #[arg(long, value_name = "FILE", requires = "nodes")]
    redis_password_file: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArgs,
}

impl DoctorArgs {
    /// What `--nodes` means, as flags of settings.
    fn of_nodes(&self, global: &Global) -> Vec<Flag> {
        let Some(nodes) = &self.nodes else { return Vec::new() };
        let of_environment = || std::env::var_os(PASSWORD).map(|_| format!("{{ env = \"{PASSWORD}\" }}"));
        let quoted = |path: &PathBuf| json!(path.to_string_lossy()).to_string();
        let of_file = self.redis_password_file.as_ref().map(|file| format!("{{ file = {} }}", quoted(file)));
        let ca_file = global.ca_file.as_ref().map(|file| file.display().to_string());
        let all = [
            ("engine", Some("cluster".to_owned())),
            ("engine-nodes", Some(nodes.clone())),
            ("engine-password", of_file.or_else(of_environment)),
            ("engine-tls-ca", ca_file),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some(Flag { name: name.to_owned(), value: value? }))
            .collect()
    }
}

/// Looks, and tells.
pub(crate) fn run(args: &DoctorArgs, global: &Global, out: Out) -> Ended {
    let config = args.config.load_after(args.of_nodes(global))?;
    let report = match config.engine.servers() {
        None => doctor::store::look(&config),
        Some(servers) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(doctor::servers::look(&servers.nodes))
        }
    };
    let report = report.map_err(|why| Failure::new(Exit::Usage, format!("cannot tell: {why}")))?;
    out.answer(&report.as_json(), |_| report.as_text())?;
    Ok(report.exit())
}

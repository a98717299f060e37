//! `overtake health`

use clap::Args;
use serde_json::json;

use super::{Ended, Session};
use crate::failure::{Exit, Failure};

/// Ask whether the broker serves.
///
/// Exit code 0 when it is ready, 69 when it is not or cannot be reached. One whose disk is full is ready, and says so: its
/// consumers still empty it. A container's health check, and whatever restarts a broker, asks with --live.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake health
  overtake health --live --quiet || systemctl restart overtake
  overtake --url http://10.0.0.5:15672 health --json")]
pub(crate) struct HealthArgs {
    /// Only whether the process answers, not whether it wants requests.
    #[arg(long)]
    live: bool,
}

/// Asks `/readyz`, or `/livez`.
pub(crate) async fn run(args: &HealthArgs, session: &Session) -> Ended {
    let answer = session.client.look(if args.live { "/livez" } else { "/readyz" }).await?;
    let status = answer.status.as_u16();
    if !answer.status.is_success() {
        let why = answer.body["detail"].as_str().or(answer.body.as_str()).unwrap_or("it does not say why");
        return Err(Failure::new(Exit::Unreachable, format!("the broker is not ready: {why} ({status})")));
    }
    let said = answer.body["status"].as_str();
    let Some(said) = said else {
        return Err(Failure::new(Exit::Error, "what answers there is no Overtake broker"));
    };
    let version = answer.body["version"].as_str().unwrap_or("?");
    let warning = answer.body["warning"].as_str();
    session.out.done(&json!({ "status": said, "version": version, "warning": warning }), || {
        let warning = warning.map(|warning| format!("\nwarning: {warning}")).unwrap_or_default();
        format!("{said} (overtake {version}){warning}")
    })?;
    Ok(Exit::Done)
}

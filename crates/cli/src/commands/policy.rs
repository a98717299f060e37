//! `overtake policy`

use clap::{Args, Subcommand, ValueEnum};
use hyper::Method;
use serde_json::{Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::{Exit, Failure};
use crate::table::{Side, Table};
use crate::words;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Set a policy: it holds at once for every queue whose name its pattern matches, also for those that are there.
    #[command(after_help = "\
Examples:
  overtake policy set urgent '^jobs' '{\"max-priority\": 9}'
  overtake policy set short '.*' '{\"message-ttl\": 60000, \"max-length\": 100000}' --apply-to queues
  overtake policy set --operator bounds '.*' '{\"max-length-bytes\": 1000000000}'")]
    Set(SetArgs),
    /// List policies.
    #[command(after_help = "\
Examples:
  overtake policy list
  overtake --vhost tenant-7 policy list --operator")]
    List {
        /// Operator policies.
        #[arg(long)]
        operator: bool,
    },
    /// Remove a policy: what it said holds no more.
    #[command(after_help = "\
Examples:
  overtake policy remove urgent
  overtake policy remove --operator bounds --yes")]
    Remove {
        /// Its name.
        name: String,
        /// An operator policy.
        #[arg(long)]
        operator: bool,
        #[command(flatten)]
        yes: Yes,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Its name.
    name: String,
    /// A regular expression over names.
    pattern: String,
    /// What it says, as JSON.
    definition: String,
    /// Of those that match the one with the highest priority holds.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = words::whole(i32::MIN..=i32::MAX))]
    priority: i32,
    /// What it is for.
    #[arg(long, default_value = "all")]
    apply_to: ApplyTo,
    /// An operator policy: it bounds what users and their policies say.
    #[arg(long)]
    operator: bool,
}

/// What a policy is for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ApplyTo {
    /// Queues.
    Queues,
    /// Exchanges.
    Exchanges,
    /// Both.
    All,
}

impl ApplyTo {
    fn as_str(self) -> &'static str {
        match self {
            Self::Queues => "queues",
            Self::Exchanges => "exchanges",
            Self::All => "all",
        }
    }
}

/// Where policies of a kind are.
fn kind(operator: bool) -> &'static str {
    if operator { "operator-policies" } else { "policies" }
}

/// Asks the broker about policies.
pub(crate) async fn run(command: &PolicyCommand, session: &Session) -> Ended {
    let vhost = session.client.vhost();
    match command {
        PolicyCommand::Set(args) => set(args, session).await,
        PolicyCommand::List { operator } => list(*operator, session).await,
        PolicyCommand::Remove { name, operator, yes } => {
            yes.or_ask(&format!("Remove the policy `{name}`?"))?;
            let path = path(&["api", kind(*operator), vhost, name]);
            session.client.ask(Method::DELETE, &path, None).await?;
            session.out.done(&json!({ "removed": name }), || format!("policy {name} is removed"))?;
            Ok(Exit::Done)
        }
    }
}

async fn set(args: &SetArgs, session: &Session) -> Ended {
    let SetArgs { name, pattern, definition, priority, apply_to, operator } = args;
    let definition: Value = words::json(definition.as_bytes()).map_err(|error| {
        Failure::usage(format!("the definition cannot be read as JSON: {error}"))
            .hint("write it as an object: '{\"max-length\": 1000}'")
    })?;
    // Operator policies are for queues, all of them.
    let apply_to = if *operator { "queues" } else { apply_to.as_str() };
    let policy =
        json!({ "pattern": pattern, "definition": definition, "priority": priority, "apply-to": apply_to });
    let path = path(&["api", kind(*operator), session.client.vhost(), name]);
    session.client.ask(Method::PUT, &path, Some(&policy)).await?;
    session.out.done(&policy, || format!("policy {name} holds from now on"))?;
    Ok(Exit::Done)
}

async fn list(operator: bool, session: &Session) -> Ended {
    let answer = session.client.get(&path(&["api", kind(operator), session.client.vhost()])).await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[
            ("NAME", Side::Left),
            ("PATTERN", Side::Left),
            ("APPLIES TO", Side::Left),
            ("PRIORITY", Side::Right),
            ("DEFINITION", Side::Left),
        ]);
        for policy in answer.as_array().into_iter().flatten() {
            let [name, pattern, apply_to] = ["name", "pattern", "apply-to"].map(|key| text(&policy[key]));
            table.row(vec![
                name,
                pattern,
                apply_to,
                policy["priority"].to_string(),
                policy["definition"].to_string(),
            ]);
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

//! Definitions: all that is declared in a broker, as a file that RabbitMQ writes and reads.
//!
//! ```text
//!   file ─ read ─▶ Definitions ─ plan, against what is there ─▶ Plan ─ carry out ─▶ done
//!                      │                     │
//!                      └── a place and why ──┘      nothing is done before everything was checked
//! ```
//!
//! What is there and the same is left as it is, so importing twice changes nothing.

mod export;
mod file;
mod import;
mod plan;

use std::fmt;

use overtake_access::{Desks, Identity, Tag};
use serde_json::json;

pub use file::Definitions;
pub use plan::Plan;

use crate::answer::{Answer, done, seen};
use crate::ask::Ask;
use crate::problem::Problem;
use crate::routes::Routes;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Administrator, "/api/definitions", whole)
        .post(Tag::Administrator, "/api/definitions", take)
        .get(Tag::Administrator, "/api/definitions/{vhost}", one_vhost)
        .post(Tag::Administrator, "/api/definitions/{vhost}", take)
}

/// Why definitions were not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotImported {
    reason: String,
}

impl fmt::Display for NotImported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for NotImported {}

impl From<Problem> for NotImported {
    fn from(problem: Problem) -> Self {
        Self { reason: problem.reason }
    }
}

/// Imports a file for the server itself, as it starts. Answers what was changed, a line each.
///
/// # Errors
/// [`NotImported`], with the place in the file. Then nothing was changed, unless the engine stopped half-way.
pub async fn load(desks: &Desks, file: &[u8]) -> Result<Vec<String>, NotImported> {
    let plan = plan(desks, file).await?;
    plan.carry_out(desks, None).await?;
    Ok(plan.changes().to_vec())
}

/// What importing a file would change.
///
/// # Errors
/// [`NotImported`], with the place in the file.
pub async fn plan(desks: &Desks, file: &[u8]) -> Result<Plan, NotImported> {
    let itself = Identity::almighty("overtake");
    Ok(Plan::of(desks, &itself, &Definitions::read(file)?, None).await?)
}

async fn whole(ask: Ask) -> Answer {
    seen(&export::whole(&ask).await?)
}

async fn one_vhost(ask: Ask) -> Answer {
    seen(&export::one_vhost(&ask, ask.named("vhost")).await?)
}

/// Imports into the broker, or all of it into one virtual host. With `dry_run=true` it only says what it would change.
async fn take(ask: Ask) -> Answer {
    let into = ask.in_path("vhost");
    if let Some(vhost) = into {
        ask.must_be_vhost(vhost).await?;
    }
    let definitions = Definitions::read(&ask.body)?;
    let plan = Plan::of(&ask.app.desks, &ask.who, &definitions, into).await?;
    if ask.says("dry_run") {
        return seen(&json!({ "changes": plan.changes() }));
    }
    plan.carry_out(&ask.app.desks, Some(&ask.who)).await?;
    done()
}

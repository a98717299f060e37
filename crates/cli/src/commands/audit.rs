//! `overtake audit` and `overtake whoami`

use clap::Args;
use serde_json::Value;

use super::queue::text;
use super::{Ended, Session};
use crate::failure::Exit;
use crate::table::{Side, Table, one_line};

/// Characters of a state before and after that are shown.
const STATE_MAX: usize = 80;

/// Show what administrators did last: who, what, when, and how it was before.
///
/// Since the broker was started, at most 1,000; all of them are in its log, and in the file that access.audit_file names.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake audit
  overtake audit --json")]
pub(crate) struct AuditArgs {}

/// Show who the broker takes you for.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake whoami
  overtake whoami --user ann --password-file ann.secret")]
pub(crate) struct WhoamiArgs {}

/// Shows what administrators did.
pub(crate) async fn run(_: &AuditArgs, session: &Session) -> Ended {
    let answer = session.client.get("/v1/audit").await?;
    session.out.answer(&answer, |answer| {
        let mut table = Table::new(&[
            ("WHEN", Side::Left),
            ("WHO", Side::Left),
            ("FROM", Side::Left),
            ("WHAT", Side::Left),
            ("VHOST", Side::Left),
            ("OBJECT", Side::Left),
            ("BEFORE → AFTER", Side::Left),
        ]);
        for deed in answer["deeds"].as_array().into_iter().flatten() {
            let who = if deed["user"].is_null() { "the server".to_owned() } else { text(&deed["user"]) };
            let or_none = |key: &str| if deed[key].is_null() { String::new() } else { text(&deed[key]) };
            let change = format!("{} → {}", state(&deed["before"]), state(&deed["after"]));
            let [at, action, object] = ["at", "action", "object"].map(|key| text(&deed[key]));
            table.row(vec![at, who, or_none("from"), action, or_none("vhost"), object, change]);
        }
        table.text()
    })?;
    Ok(Exit::Done)
}

fn state(state: &Value) -> String {
    if state.is_null() { "–".to_owned() } else { one_line(&state.to_string(), STATE_MAX) }
}

/// Shows who asks.
pub(crate) async fn whoami(_: &WhoamiArgs, session: &Session) -> Ended {
    let answer = session.client.get("/v1/whoami").await?;
    session.out.answer(&answer, |answer| {
        let tags = answer["tags"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(", ");
        let tags = if tags.is_empty() { String::new() } else { format!(" ({tags})") };
        let token = if answer["token"].is_null() {
            String::new()
        } else {
            format!(", by token {}", text(&answer["token"]))
        };
        format!("{}{tags}{token}\n", text(&answer["name"]))
    })?;
    Ok(Exit::Done)
}

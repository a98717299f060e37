//! `overtake dlq`

use clap::{Args, Subcommand, ValueEnum};
use overtake_streams::Swept;
use serde_json::{Value, json};

use super::{Ended, Session};
use crate::body;
use crate::confirm::Yes;
use crate::dlq::{DeadLetter, Place};
use crate::failure::{Exit, Failure};
use crate::out::{HEAD, RESET};
use crate::redis::RedisArgs;
use crate::table::{Side, Table, count, number, one_line};
use crate::words;

/// Characters of a body that a table shows.
const BODY_CHARS: usize = 60;

#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// List dead letters, the newest of each group first.
    ///
    /// Exit code 75 when there is none.
    #[command(after_help = "\
Examples:
  overtake dlq list
  overtake dlq list --category customer --lane backfill --json
  overtake dlq list --redis redis://127.0.0.1:6379/0 --category customer")]
    List {
        #[command(flatten)]
        of: Of,
        /// At most so many of each group.
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = words::whole(1_u64..))]
        limit: u64,
    },
    /// Show a dead letter: where it died, why, and what it says.
    #[command(after_help = "\
Examples:
  overtake dlq inspect seq-17 --category customer
  overtake dlq inspect seq-17 --category customer --group mails --json")]
    Inspect {
        /// Its id.
        id: String,
        #[command(flatten)]
        of: Of,
    },
    /// Put a dead letter back into the lane it died in.
    #[command(after_help = "\
Examples:
  overtake dlq replay seq-17 --category customer
  overtake dlq replay seq-17 --category customer --group mails")]
    Replay {
        /// Its id.
        id: String,
        #[command(flatten)]
        of: Of,
    },
    /// Put all dead letters of a category back, each into the lane it died in.
    #[command(after_help = "\
Examples:
  overtake dlq replay-all --category customer
  overtake dlq replay-all --category customer --group mails --lane backfill")]
    ReplayAll {
        #[command(flatten)]
        of: Of,
    },
    /// Remove all dead letters of a category.
    #[command(after_help = "\
Examples:
  overtake dlq purge --category customer --group mails
  overtake dlq purge --category customer --lane backfill --yes")]
    Purge {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        yes: Yes,
    },
}

/// Whose dead letters.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Whose")]
pub(crate) struct Of {
    /// The category.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) category: Option<String>,
    /// Only this group of consumers.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// Only this lane.
    #[arg(long, value_name = "LANE")]
    pub(crate) lane: Option<LaneName>,
    /// Those in streams of Redis or Valkey, in place of the broker's: redis://HOST:PORT/DATABASE.
    #[arg(long, value_name = "URL", help_heading = "In Redis or Valkey")]
    pub(crate) redis: Option<String>,
    #[command(flatten)]
    pub(crate) streams: RedisArgs,
}

/// A lane of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LaneName {
    /// Everyday messages.
    Primary,
    /// What is below the threshold.
    Backfill,
}

impl Of {
    /// The category, where one must be named.
    pub(crate) fn named(&self) -> Result<&str, Failure> {
        self.category.as_deref().ok_or_else(|| Failure::usage("name the category with --category"))
    }

    /// Whose dead letters, in words.
    fn words(&self) -> Result<String, Failure> {
        let mut words = format!("all dead letters of `{}`", self.named()?);
        if let Some(group) = &self.group {
            words.push_str(&format!(", group `{group}`"));
        }
        match self.lane {
            Some(LaneName::Primary) => words.push_str(", primary lane"),
            Some(LaneName::Backfill) => words.push_str(", backfill lane"),
            None => {}
        }
        Ok(words)
    }
}

/// Asks for dead letters where they are.
pub(crate) async fn run(command: &DlqCommand, session: &Session) -> Ended {
    match command {
        DlqCommand::List { of, limit } => list(of, *limit, session).await,
        DlqCommand::Inspect { id, of } => {
            let found = Place::of(of, session)?.find(id).await?;
            session.out.answer(&found.json(), |_| shown(&found))?;
            Ok(Exit::Done)
        }
        DlqCommand::Replay { id, of } => {
            let back = Place::of(of, session)?.replay(id).await?;
            let told = json!({ "id": id, "stream": back });
            session.out.done(&told, || format!("{id} is back in {back}"))?;
            Ok(Exit::Done)
        }
        DlqCommand::ReplayAll { of } => {
            of.named()?;
            done(Place::of(of, session)?.replay_all().await?, "replayed", session)
        }
        DlqCommand::Purge { of, yes } => {
            yes.or_ask(&format!("Remove {}?", of.words()?))?;
            done(Place::of(of, session)?.purge().await?, "removed", session)
        }
    }
}

fn done(swept: Swept<u64>, what: &str, session: &Session) -> Ended {
    let Swept { done: many, faults } = swept;
    let mut told = json!({ "count": many });
    if !faults.is_empty() {
        told["faults"] = json!(faults);
    }
    session.out.done(&told, || format!("{} {what}", count(many, "dead letter")))?;
    all_done(&faults).map(|()| Exit::Done)
}

/// # Errors
/// Something could not be done: which, and why.
fn all_done(faults: &[String]) -> Result<(), Failure> {
    match faults {
        [] => Ok(()),
        _ => Err(Failure::new(Exit::Error, faults.join("\n"))
            .hint("all others are done; mend these, and try again")),
    }
}

async fn list(of: &Of, limit: u64, session: &Session) -> Ended {
    let Swept { done: all, faults } = Place::of(of, session)?.list(limit).await?;
    if all.is_empty() && !session.out.is_json() {
        return all_done(&faults).and(Err(Failure::new(Exit::Empty, "no dead letters")));
    }
    let exit = if all.is_empty() { Exit::Empty } else { Exit::Done };
    let mut answer = json!({ "dead_letters": all.iter().map(DeadLetter::json).collect::<Vec<_>>() });
    if !faults.is_empty() {
        answer["faults"] = json!(faults);
    }
    session.out.answer(&answer, |_| table(&all))?;
    all_done(&faults).map(|()| exit)
}

fn table(all: &[DeadLetter]) -> String {
    let mut table = Table::new(&[
        ("ID", Side::Left),
        ("STREAM", Side::Left),
        ("GROUP", Side::Left),
        ("TYPE", Side::Left),
        ("DIED", Side::Left),
        ("REASON", Side::Left),
        ("ATTEMPTS", Side::Right),
        ("BODY", Side::Left),
    ]);
    for letter in all {
        table.row(vec![
            letter.id.clone(),
            letter.dead_letters.clone(),
            letter.group.clone(),
            letter.kind.clone(),
            letter.died_at.clone(),
            letter.reason.clone(),
            number(letter.attempts),
            one_line(&String::from_utf8_lossy(&letter.body), BODY_CHARS),
        ]);
    }
    table.text()
}

fn shown(letter: &DeadLetter) -> String {
    let mut text = format!("{HEAD}{}{RESET}\n", one_line(&letter.id, usize::MAX));
    let attempts = number(letter.attempts);
    let said = [
        ("stream", &letter.stream),
        ("dead letters", &letter.dead_letters),
        ("group", &letter.group),
        ("type", &letter.kind),
        ("priority", &letter.priority),
        ("died", &letter.died_at),
        ("reason", &letter.reason),
        ("attempts", &attempts),
    ];
    for (name, value) in said.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("  {name}: {}\n", one_line(value, usize::MAX)));
    }
    for (name, value) in &letter.headers {
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        text.push_str(&format!("  {}: {}\n", one_line(name, usize::MAX), one_line(&value, usize::MAX)));
    }
    text.push('\n');
    text.push_str(&one_line(&String::from_utf8_lossy(&letter.body), usize::MAX));
    text.push('\n');
    text
}

impl DeadLetter {
    /// As programs read it.
    fn json(&self) -> Value {
        let mut json = json!({
            "id": self.id,
            "stream": self.stream,
            "dead_letters": self.dead_letters,
            "group": self.group,
            "type": self.kind,
            "priority": self.priority,
            "died_at": self.died_at,
            "reason": self.reason,
            "attempts": self.attempts,
            "headers": self.headers,
        });
        if let Some(json) = json.as_object_mut() {
            body::put(json, &self.body);
        }
        json
    }
}

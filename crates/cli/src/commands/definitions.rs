//! `overtake definitions`

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

use super::{Ended, Session};
use crate::address::{path, query};
use crate::args::Global;
use crate::failure::{Exit, Failure};
use crate::words;

#[derive(Debug, Subcommand)]
pub(crate) enum DefinitionsCommand {
    /// Write all that is declared into a file: virtual hosts, users, rights, queues, exchanges, bindings. Messages are not in it.
    ///
    /// Users are in it with the hashes of their passwords: keep it as a secret.
    #[command(after_help = "\
Examples:
  overtake definitions export broker.json
  overtake definitions export --in tenant-7 - | jq .queues")]
    Export {
        /// The file; - is stdout.
        file: PathBuf,
        /// Only this virtual host, without users; --vhost says the same [default: all].
        #[arg(id = "in", long = "in", value_name = "VHOST")]
        only: Option<String>,
    },
    /// Declare all that is in a file, also one that RabbitMQ exported. What is there and the same stays as it is.
    ///
    /// Everything is checked before anything is done.
    #[command(after_help = "\
Examples:
  overtake definitions import rabbit.json --dry-run
  overtake definitions import broker.json
  overtake definitions import --in tenant-8 tenant-7.json")]
    Import {
        /// The file; - is stdin.
        file: PathBuf,
        /// Only say what would be changed.
        #[arg(long)]
        dry_run: bool,
        /// All of it into this virtual host: a file that was exported of one; --vhost says the same [default: as the file says].
        #[arg(id = "in", long = "in", value_name = "VHOST")]
        only: Option<String>,
    },
}

/// Asks the broker about definitions.
pub(crate) async fn run(command: &DefinitionsCommand, global: &Global, session: &Session) -> Ended {
    let meant = |only: &Option<String>| only.clone().or_else(|| global.vhost.clone());
    match command {
        DefinitionsCommand::Export { file, only } => export(file, meant(only).as_deref(), session).await,
        DefinitionsCommand::Import { file, dry_run, only } => {
            import(file, *dry_run, meant(only).as_deref(), session).await
        }
    }
}

fn place(vhost: Option<&str>) -> String {
    vhost.map_or_else(|| "/api/definitions".to_owned(), |vhost| path(&["api", "definitions", vhost]))
}

async fn export(file: &Path, vhost: Option<&str>, session: &Session) -> Ended {
    let definitions = session.client.get(&place(vhost)).await?;
    let text = format!("{definitions:#}\n");
    if file == Path::new("-") {
        io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    write_for_me_alone(file, text.as_bytes()).map_err(|error| {
        Failure::new(Exit::Error, format!("cannot write {}: {error}", file.display()))
            .hint("name a file in a directory that you may write to")
    })?;
    let count = |key: &str| definitions[key].as_array().map_or(0, Vec::len);
    session.out.done(&json!({ "file": file }), || {
        format!(
            "{} queues, {} exchanges, {} users are in {}",
            count("queues"),
            count("exchanges"),
            count("users"),
            file.display()
        )
    })?;
    Ok(Exit::Done)
}

fn write_for_me_alone(file: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(file)?.write_all(bytes)
}

async fn import(file: &Path, dry_run: bool, vhost: Option<&str>, session: &Session) -> Ended {
    let text = read(file).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read {}: {error}", file.display()))
            .hint("name a file that `overtake definitions export` or RabbitMQ has written")
    })?;
    let definitions: Value = words::json(text.as_bytes()).map_err(|error| {
        Failure::new(Exit::Usage, format!("{} cannot be read as JSON: {error}", file.display()))
            .hint("name a file that `overtake definitions export` or RabbitMQ has written")
    })?;
    // First what it would change, which is also what it will have changed.
    let dry = query(&[("dry_run".to_owned(), "true".to_owned())]);
    let plan = session.client.post(&format!("{}{dry}", place(vhost)), &definitions).await?;
    if !dry_run {
        session.client.post(&place(vhost), &definitions).await?;
    }
    session.out.answer(&plan, |plan| {
        let changes = plan["changes"].as_array().into_iter().flatten();
        let mut lines: Vec<String> =
            changes.map(|line| line.as_str().unwrap_or_default().to_owned()).collect();
        lines.push(match (lines.len(), dry_run) {
            (0, _) => "all of it is there: nothing to change".to_owned(),
            (_, true) => "nothing was changed: that is what would be".to_owned(),
            (count, false) => format!("{count} changed"),
        });
        lines.join("\n") + "\n"
    })?;
    Ok(Exit::Done)
}

fn read(file: &Path) -> io::Result<String> {
    if file != Path::new("-") {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}

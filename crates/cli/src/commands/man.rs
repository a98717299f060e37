//! `overtake man`

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use super::Ended;
use crate::args::Cli;
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Write the manual pages, one for each command, into a directory.
///
/// They say what --help says. The directory is made where it is missing; pages that are there are written anew.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake man ~/.local/share/man/man1
  overtake man /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Where the pages go.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Writes `overtake.1`, `overtake-serve.1`, …
pub(crate) fn run(args: &ManArgs, out: Out) -> Ended {
    let mut overtake = Cli::command();
    overtake.build();
    std::fs::create_dir_all(&args.dir).map_err(|error| cannot_write(&args.dir, &error))?;
    let pages = write(&overtake, &args.dir)?;
    out.done(&serde_json::json!({ "pages": pages }), || format!("{pages} pages in {}", args.dir.display()))?;
    Ok(Exit::Done)
}

/// The page of a command, and those of the commands below it; how many there were.
fn write(command: &clap::Command, dir: &Path) -> Result<usize, Failure> {
    let page = Man::new(command.clone()).source(concat!("overtake ", env!("CARGO_PKG_VERSION")));
    let path = dir.join(page.get_filename());
    let mut roff = Vec::new();
    page.render(&mut roff)?;
    std::fs::write(&path, roff).map_err(|error| cannot_write(&path, &error))?;
    let mut pages = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages += write(below, dir)?;
    }
    Ok(pages)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Error, format!("{} cannot be written: {error}", path.display()))
        .hint("name a directory in which you may write")
}

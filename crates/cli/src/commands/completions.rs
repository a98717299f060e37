//! `overtake completions`

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Ended;
use crate::args::Cli;
use crate::failure::Exit;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake completions bash > ~/.local/share/bash-completion/completions/overtake
  overtake completions zsh > ~/.zfunc/_overtake
  overtake completions fish > ~/.config/fish/completions/overtake.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "overtake", &mut script);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&script)?;
    stdout.flush()?;
    Ok(Exit::Done)
}

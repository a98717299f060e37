//! Asking before something is lost.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

use crate::failure::Failure;

/// `--yes`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Yes {
    /// Do not ask.
    #[arg(long, short, help_heading = "Asking")]
    yes: bool,
}

/// Whether there is somebody to ask.
fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

impl Yes {
    /// Asks a person at a terminal. Without a terminal the command goes on: the command line named the messages.
    pub(crate) fn or_ask_at_terminal(self, question: &str) -> Result<(), Failure> {
        if is_terminal() { self.or_ask(question) } else { Ok(()) }
    }

    /// Goes on if the person agrees. Without a terminal there is nobody to ask, so `--yes` must have been said.
    pub(crate) fn or_ask(self, question: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !is_terminal() {
            return Err(Failure::usage(format!("not done without being asked: {question}"))
                .hint("say --yes: there is no terminal to ask on"));
        }
        let mut stderr = io::stderr();
        write!(stderr, "{question} [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failure::new(crate::failure::Exit::Error, "nothing was done")),
        }
    }
}

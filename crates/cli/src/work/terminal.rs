//! The terminal under a live display: whether it shows one, and that it does not write into it.

use std::io::{self, IsTerminal, Stderr};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};

/// Rows and columns of a terminal that does not say how many it has.
const SIZE: (usize, usize) = (24, 80);

/// A terminal that does not show the keys that send signals: `^C` in the last line would move the display down by one. It is as
/// it was when this is dropped.
pub(crate) struct Terminal {
    stderr: Stderr,
    before: Termios,
}

impl Terminal {
    /// Ours, where it can show a live display and this is what people see.
    pub(crate) fn take() -> Option<Self> {
        let stderr = io::stderr();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if is_dumb || !io::stdout().is_terminal() || !is_ours(&stderr) {
            return None;
        }
        let before = tcgetattr(&stderr).ok()?;
        let mut now = before.clone();
        now.local_modes.remove(LocalModes::ECHOCTL);
        tcsetattr(&stderr, OptionalActions::Now, &now).ok()?;
        Some(Self { stderr, before })
    }
}

impl Terminal {
    /// How many rows and columns it has now.
    pub(crate) fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(&self.stderr).map_or((0, 0), |size| (size.ws_row, size.ws_col));
        if size.0 == 0 || size.1 == 0 { SIZE } else { (size.0.into(), size.1.into()) }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // From behind it would stop the process instead.
        if is_ours(&self.stderr) {
            let _ = tcsetattr(&self.stderr, OptionalActions::Now, &self.before);
        }
    }
}

/// Whether it is a terminal and this process stands in front of it.
fn is_ours(stderr: &Stderr) -> bool {
    tcgetpgrp(stderr).is_ok_and(|group| group == getpgrp())
}

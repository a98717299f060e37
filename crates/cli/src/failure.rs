//! How a command ends, and what it says when it ends badly.

use std::io::{self, Write};
use std::process::ExitCode;

use overtake_server::ServeError;
use overtake_server::config::ConfigError;

/// Why the process ends, as scripts see it. The numbers are those of `sysexits.h` where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// The broker declines, or something went wrong.
    Error = 1,
    /// The command line makes no sense. The same as clap's. Of `doctor`: it cannot tell.
    Usage = 2,
    /// There is no broker, or it is not available.
    Unreachable = 69,
    /// Nothing came in time, or there was nothing.
    Empty = 75,
    /// The broker does not know the caller, or he may not.
    Denied = 77,
    /// The configuration cannot be used.
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What goes at the end of `overtake --help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0   done
  1   the broker declined, or something went wrong
  2   the command line makes no sense
  69  the broker cannot be reached, or is not available
  75  nothing came in time, or there was nothing
  77  denied
  78  the configuration cannot be used";

/// A command that ends badly.
#[derive(Debug)]
pub(crate) enum Failure {
    /// With something to say.
    Said {
        /// What it means to a script.
        exit: Exit,
        /// What went wrong.
        what: String,
        /// What to do.
        hint: Option<String>,
        /// The broker declined, so nothing was done.
        declined: bool,
        /// The stable word for why.
        code: Option<String>,
    },
    /// Whoever read the output has had enough. No error.
    BrokenPipe,
}

impl Failure {
    /// A failure without a hint.
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self::Said { exit, what: what.into(), hint: None, declined: false, code: None }
    }

    /// A command line that makes no sense.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// The same with what to do.
    pub(crate) fn hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Said { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// The same, said by a broker that did nothing of what was asked.
    pub(crate) fn declined(mut self) -> Self {
        if let Self::Said { declined, .. } = &mut self {
            *declined = true;
        }
        self
    }

    /// The same with the broker's word for it.
    pub(crate) fn code(mut self, word: Option<String>) -> Self {
        if let Self::Said { code, .. } = &mut self {
            *code = word;
        }
        self
    }

    /// The broker's word for it.
    pub(crate) fn word(&self) -> Option<&str> {
        match self {
            Self::Said { code, .. } => code.as_deref(),
            Self::BrokenPipe => None,
        }
    }

    /// What went wrong.
    pub(crate) fn what(&self) -> &str {
        match self {
            Self::Said { what, .. } => what,
            Self::BrokenPipe => "nobody reads the output any more",
        }
    }

    /// Whether it is known that nothing was done.
    pub(crate) fn is_declined(&self) -> bool {
        matches!(self, Self::Said { declined: true, .. })
    }

    /// The same with its beginning told: what was tried.
    pub(crate) fn during(mut self, tried: &str) -> Self {
        if let Self::Said { what, .. } = &mut self {
            *what = format!("{tried}: {what}");
        }
        self
    }

    /// The same with more to say.
    pub(crate) fn and(mut self, more: &str) -> Self {
        if let Self::Said { what, .. } = &mut self {
            *what = format!("{what}; {more}");
        }
        self
    }

    /// How the process ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Said { exit, .. } => *exit,
            Self::BrokenPipe => Exit::Done,
        }
    }

    /// Says on stderr what went wrong, for programs as one line of JSON: `error`, `hint`, `code` as the broker says it, and `exit`.
    pub(crate) fn print(&self, as_json: bool) {
        let Self::Said { what, hint, code, exit, .. } = self else { return };
        if as_json {
            let mut said = serde_json::Map::from_iter([("error".to_owned(), what.as_str().into())]);
            let more = [("hint", hint), ("code", code)].into_iter();
            said.extend(more.filter_map(|(key, text)| Some((key.to_owned(), text.as_deref()?.into()))));
            said.insert("exit".to_owned(), (*exit as u8).into());
            // Without a stderr there is nobody to tell.
            let _ = writeln!(io::stderr(), "{}", serde_json::Value::Object(said));
            return;
        }
        let (bad, good, off) = (crate::out::BAD, crate::out::HINT, crate::out::RESET);
        let mut stderr = anstream::stderr();
        // Without a stderr there is nobody to tell.
        let _ = writeln!(stderr, "{bad}error:{off} {what}");
        for hint in hint.iter().flat_map(|hint| hint.lines()) {
            let _ = writeln!(stderr, " {good}hint:{off} {hint}");
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::new(Exit::Error, error.to_string()),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Said {
            exit: Exit::Config,
            what: error.to_string(),
            hint: error.hint,
            declined: false,
            code: None,
        }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let exit = match error {
            ServeError::Queues(_) => Exit::Config,
            _ => Exit::Error,
        };
        Self::Said { exit, what: error.to_string(), hint: error.hint(), declined: false, code: None }
    }
}

//! Who asks: a name and a password, or a token. Never from the command line itself, which everybody on the machine can read.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use hyper::header::HeaderValue;

use crate::address::Base;
use crate::failure::{Exit, Failure};

/// Who is there where nobody was made yet, with this password; from the broker's own machine only.
const GUEST: &str = "guest";

/// Who asks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Login {
    /// Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a
    /// broker on this machine.
    #[arg(long, global = true, env = "OVERTAKE_USER", hide_env_values = true, value_name = "NAME")]
    user: Option<String>,
    /// A file with the password of --user.
    #[arg(long, global = true, env = "OVERTAKE_PASSWORD_FILE", hide_env_values = true, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN.
    #[arg(long, global = true, env = "OVERTAKE_TOKEN_FILE", hide_env_values = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Login {
    /// What to show the broker at this address.
    ///
    /// # Errors
    /// When a file cannot be read, or nobody can be asked for a password.
    pub(crate) fn header(&self, base: &Base) -> Result<Option<HeaderValue>, Failure> {
        let Self { user, password_file, token_file } = self;
        Shown { user, password_file, token_file, words: &HERE }.header(base)
    }
}

/// Who asks at the broker that something goes to.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoginThere {
    /// Who asks there. The password is in OVERTAKE_TO_PASSWORD or --to-password-file, or is asked for; without a user and a token:
    /// guest, at a broker on this machine.
    #[arg(long, env = "OVERTAKE_TO_USER", hide_env_values = true, value_name = "NAME")]
    to_user: Option<String>,
    /// A file with the password of --to-user.
    #[arg(long, env = "OVERTAKE_TO_PASSWORD_FILE", hide_env_values = true, value_name = "FILE")]
    to_password_file: Option<PathBuf>,
    /// A file with a token, in place of a user; or the token is in OVERTAKE_TO_TOKEN.
    #[arg(long, env = "OVERTAKE_TO_TOKEN_FILE", hide_env_values = true, value_name = "FILE")]
    to_token_file: Option<PathBuf>,
}

impl LoginThere {
    /// What to show the broker at this address.
    ///
    /// # Errors
    /// When a file cannot be read, or nobody can be asked for a password.
    pub(crate) fn header(&self, base: &Base) -> Result<Option<HeaderValue>, Failure> {
        let Self { to_user, to_password_file, to_token_file } = self;
        Shown { user: to_user, password_file: to_password_file, token_file: to_token_file, words: &THERE }
            .header(base)
    }
}

/// By what words a secret is found.
struct Words {
    /// The variable with the password.
    password: &'static str,
    /// The variable with the token.
    token: &'static str,
    /// The flag that names a file with the password.
    password_file: &'static str,
}

const HERE: Words =
    Words { password: "OVERTAKE_PASSWORD", token: "OVERTAKE_TOKEN", password_file: "--password-file" };
const THERE: Words = Words {
    password: "OVERTAKE_TO_PASSWORD",
    token: "OVERTAKE_TO_TOKEN",
    password_file: "--to-password-file",
};

/// What is shown to a broker.
struct Shown<'a> {
    user: &'a Option<String>,
    password_file: &'a Option<PathBuf>,
    token_file: &'a Option<PathBuf>,
    words: &'static Words,
}

impl Shown<'_> {
    fn header(&self, base: &Base) -> Result<Option<HeaderValue>, Failure> {
        let value = match (self.user, self.token()?) {
            (Some(user), _) => basic(user, &self.password(user)?),
            (None, Some(token)) => format!("Bearer {token}"),
            (None, None) if base.is_loopback() => basic(GUEST, GUEST),
            // The broker says what it wants to see.
            (None, None) => return Ok(None),
        };
        let mut header = HeaderValue::from_str(&value)
            .map_err(|_| Failure::usage("a token is text without control characters and line breaks"))?;
        header.set_sensitive(true);
        Ok(Some(header))
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        match self.token_file {
            Some(file) => first_line(file).map(Some),
            None => Ok(std::env::var(self.words.token).ok().filter(|token| !token.is_empty())),
        }
    }

    fn password(&self, user: &str) -> Result<String, Failure> {
        if let Some(file) = self.password_file {
            return first_line(file);
        }
        if let Ok(password) = std::env::var(self.words.password) {
            return Ok(password);
        }
        let Words { password, password_file, .. } = self.words;
        ask(&format!("Password of {user}: ")).ok_or_else(|| {
            Failure::usage(format!("the password of {user} is not said"))
                .hint(format!("set {password}, or name a file with {password_file}"))
        })
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// A secret in a file.
fn first_line(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read {}: {error}", file.display()))
            .hint("name a file that holds the secret and nothing else")
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// A secret that is typed in, if somebody is there to.
fn ask(prompt: &str) -> Option<String> {
    rpassword::prompt_password(prompt).ok()
}

/// A new password: typed in twice, or the first line of what is piped in.
///
/// # Errors
/// When there is none, or it was typed in differently.
pub(crate) fn new_password(user: &str) -> Result<String, Failure> {
    if !io::stdin().is_terminal() {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    let again = |prompt: &str| {
        ask(prompt).ok_or_else(|| Failure::usage("no password was typed in").hint("pipe it in, a line"))
    };
    let password = again(&format!("New password of {user}: "))?;
    if again("Again: ")? == password {
        Ok(password)
    } else {
        Err(Failure::usage("the passwords are not the same").hint("nothing was done; try again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(user: Option<&str>, password: Option<&Path>, token: Option<&Path>) -> Login {
        let file = |path: Option<&Path>| path.map(Path::to_path_buf);
        Login { user: user.map(Into::into), password_file: file(password), token_file: file(token) }
    }

    #[test]
    fn secrets_come_from_files_and_guest_is_for_this_machine() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("secret");
        std::fs::write(&file, "s3cret\r\nmore\n").expect("written");
        let base = |url| Base::parse(url).expect("an address");
        let header = |login: Login, url| {
            let header = login.header(&base(url)).expect("readable");
            header.map(|header| header.to_str().expect("text").to_owned())
        };
        let here = "http://127.0.0.1:15672";
        assert_eq!(
            header(login(Some("ann"), Some(&file), None), here).as_deref(),
            Some("Basic YW5uOnMzY3JldA==")
        );
        assert_eq!(header(login(None, None, Some(&file)), here).as_deref(), Some("Bearer s3cret"));
        assert_eq!(header(login(None, None, None), here).as_deref(), Some("Basic Z3Vlc3Q6Z3Vlc3Q="));
        assert_eq!(header(login(None, None, None), "https://broker"), None);
        let missing = dir.path().join("none");
        assert!(login(Some("ann"), Some(&missing), None).header(&base(here)).is_err());
    }
}

//! Where streams of Redis are, and how categories are parted there.

use std::path::PathBuf;

use clap::Args;
use overtake_streams::{Lanes, Named, RedisServer, Secret, Tls, Vault};

use crate::commands::Session;
use crate::failure::Failure;

/// The variable with the password.
pub(crate) const PASSWORD: &str = "OVERTAKE_REDIS_PASSWORD";

/// How streams of Redis or Valkey are reached and read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "In Redis or Valkey")]
pub(crate) struct RedisArgs {
    /// A file with the password of the user in the URL, or of the one without a name [else: OVERTAKE_REDIS_PASSWORD].
    #[arg(long, value_name = "FILE")]
    redis_password_file: Option<PathBuf>,
    /// What the backfill lane of `customer` is called behind `customer:`.
    #[arg(long, value_name = "NAME", default_value = "backfill")]
    backfill_suffix: String,
    /// Categories have one lane: whoever writes them has no priority lanes enabled.
    #[arg(long)]
    one_lane: bool,
}

impl RedisArgs {
    /// The server of a URL.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn server(&self, url: &str, session: &Session) -> Result<RedisServer, Failure> {
        let of_environment = || std::env::var_os(PASSWORD).map(|_| Secret::Env(PASSWORD.to_owned()));
        let password = self.redis_password_file.clone().map(Secret::File).or_else(of_environment);
        let tls = Tls { ca_file: session.ca_file.clone(), ..Tls::default() };
        let named = Named { url, username: None, password: password.as_ref(), tls: &tls };
        RedisServer::new(Vault::ANY, &named).map_err(|why| {
            let hint = format!("say the password with --redis-password-file or {PASSWORD}");
            if why.contains("password") { Failure::usage(why).hint(hint) } else { Failure::usage(why) }
        })
    }

    /// The lanes of categories.
    ///
    /// # Errors
    /// What the suffix must be.
    pub(crate) fn lanes(&self) -> Result<Lanes, Failure> {
        Lanes::new(!self.one_lane, 0, &*self.backfill_suffix).map_err(Failure::usage)
    }
}

//! Redis and Valkey: a connection to one of them, and what both directions read and write there.
//!
//! The commands are those of Redis 6.2 and of every Valkey. A cluster is not followed: a node that does not hold the stream says so, and the
//! address to name is the one it says.

pub mod entries;
mod fault;
mod line;
mod resp;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use overtake_redact::masked;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, Value, cmd};
use tokio::task::JoinHandle;

pub use self::fault::Fault;
pub use self::line::{Answers, Commands, Line};
use crate::peer::{Named, Peer};
use crate::secret::Vault;

/// How its URLs begin.
const SCHEMES: [(&str, u16, bool); 4] =
    [("redis", 6379, false), ("rediss", 6379, true), ("valkey", 6379, false), ("valkeys", 6379, true)];

/// A server and one of its databases.
#[derive(Clone)]
pub struct RedisServer {
    peer: Peer,
    database: u32,
}

impl RedisServer {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub fn new(vault: Vault, named: &Named<'_>) -> Result<Self, String> {
        let peer = Peer::new(vault, named, &SCHEMES)?;
        if peer.username.is_some() && named.password.is_none() {
            return Err("a user is known by its password: say it in `password`".to_owned());
        }
        let path = peer.url.path().trim_start_matches('/');
        let database = if path.is_empty() { Ok(0) } else { path.parse() };
        let database = database.map_err(|_| {
            format!("`{}` must end in the number of a database, as redis://HOST:6379/0", masked(named.url))
        })?;
        Ok(Self { peer, database })
    }

    /// A connection that may do what it is for, as far as that can be asked.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn connect(&self) -> Result<Wire, String> {
        let socket = self.peer.connect().await?;
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        // How long an answer may take is for others to say: a read waits for as long as nothing comes.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let begun = MultiplexedConnection::new_with_config(&info, socket, config).await;
        let (connection, driver) = begun.map_err(|error| self.peer.says(error))?;
        let mut wire = Wire { peer: self.peer.clone(), connection, driver: tokio::spawn(driver) };
        self.log_in(&mut wire).await?;
        Ok(wire)
    }

    /// The same user, password and trust at another place.
    ///
    /// # Errors
    /// The host is none.
    pub fn at(&self, host: &str, port: u16) -> Result<Self, String> {
        Ok(Self { peer: self.peer.at(host, port)?, database: self.database })
    }

    /// Where it is, as it stands in a URL.
    #[must_use]
    pub fn authority(&self) -> String {
        self.peer.address.authority()
    }

    /// The host by itself: a name, or the text of an IP address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.peer.address.host
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.peer.address.port
    }

    /// Connections to it are made under TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.peer.address.is_secure
    }

    /// The number of its database.
    #[must_use]
    pub fn database(&self) -> u32 {
        self.database
    }

    async fn log_in(&self, wire: &mut Wire) -> Result<(), String> {
        if let Some(auth) = self.auth()? {
            wire.ask(&auth).await?.map_err(|fault| self.says(fault.at_login()))?;
        }
        if let Some(select) = self.select() {
            wire.ask(&select).await?.map_err(|fault| self.says(self.of_database(&fault)))?;
        }
        match wire.ask(&cmd("PING")).await? {
            // A user who may only write to the stream is fine.
            Err(fault) if !fault.is_forbidden() => Err(self.says(fault.at_login())),
            _ => Ok(()),
        }
    }

    fn auth(&self) -> Result<Option<Cmd>, String> {
        let Some(password) = self.peer.password()? else { return Ok(None) };
        let mut auth = cmd("AUTH");
        if let Some(username) = &self.peer.username {
            auth.arg(username);
        }
        auth.arg(password);
        Ok(Some(auth))
    }

    fn select(&self) -> Option<Cmd> {
        (self.database != 0).then(|| cmd("SELECT").arg(self.database).take())
    }

    fn of_database(&self, fault: &Fault) -> String {
        format!("database {}: {fault}", self.database)
    }

    fn says(&self, what: impl std::fmt::Display) -> String {
        self.peer.says(what)
    }
}

/// An answer that is under way, whoever waits for it.
pub type Asked<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A connection: commands and their answers. Dropping it closes it.
pub struct Wire {
    peer: Peer,
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Wire {
    /// # Errors
    /// The connection is lost; within: what the server says against it.
    pub async fn ask(&mut self, command: &Cmd) -> Result<Result<Value, Fault>, String> {
        let answered = self.connection.send_packed_command(command).await;
        Ok(judge(answered.map_err(|error| self.says(error))?))
    }

    /// One answer for each, in their order.
    ///
    /// # Errors
    /// The connection is lost; within: what the server says against each.
    pub async fn ask_all(&mut self, commands: &Pipeline) -> Result<Vec<Result<Value, Fault>>, String> {
        let answered = self.connection.send_packed_commands(commands, 0, commands.len()).await;
        let answers = answered.map_err(|error| self.says(error))?;
        if answers.len() != commands.len() {
            return Err(self.peer.says("it does not answer every command"));
        }
        Ok(answers.into_iter().map(judge).collect())
    }

    /// Whether a key is a stream, or none yet, where one may ask.
    ///
    /// # Errors
    /// What else it is.
    pub async fn check_stream(&mut self, key: &str) -> Result<(), String> {
        let kind = match self.ask(cmd("TYPE").arg(key)).await? {
            Ok(Value::SimpleString(kind)) => kind,
            Ok(_) => return Ok(()),
            Err(fault) if fault.is_forbidden() => return Ok(()),
            Err(fault) => return Err(self.peer.says(format!("{key}: {fault}"))),
        };
        match kind.as_str() {
            "stream" | "none" => Ok(()),
            kind => Err(self
                .peer
                .says(format!("the key {key} holds a {kind} and no stream: name another in `stream`"))),
        }
    }

    /// Ends when the connection is lost.
    pub async fn lost(&mut self) -> String {
        let _ = (&mut self.driver).await;
        self.peer.says("it closed the connection")
    }

    /// What the server says, with its name before it.
    pub fn says(&self, what: impl std::fmt::Display) -> String {
        self.peer.says(what)
    }

    /// As [`Wire::ask`], for work that outlives whoever waits for it; what the server says against it, or its silence, is a loss of the connection.
    pub fn ask_alone(&self, command: Cmd, patience: Duration) -> Asked<Result<Value, String>> {
        let (asked, peer) = (self.ask_apart(command, patience), self.peer.clone());
        Box::pin(async move { asked.await?.map_err(|fault| peer.says(fault)) })
    }

    /// As [`Wire::ask`], for work that outlives whoever waits for it, and for several at once; silence is a loss of the connection.
    pub fn ask_apart(&self, command: Cmd, patience: Duration) -> Asked<Result<Result<Value, Fault>, String>> {
        let (mut connection, peer) = (self.connection.clone(), self.peer.clone());
        Box::pin(async move {
            let answered = tokio::time::timeout(patience, connection.send_packed_command(&command)).await;
            let answer = answered.map_err(|_| peer.says("it does not answer any more"))?;
            Ok(judge(answer.map_err(|error| peer.says(error))?))
        })
    }
}

fn judge(answer: Value) -> Result<Value, Fault> {
    match answer {
        Value::ServerError(error) => Err(Fault::from(&error)),
        value => Ok(value),
    }
}

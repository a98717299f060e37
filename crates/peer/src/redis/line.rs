//! A connection on which commands are written and answers are read as they come: for who pipelines, and for who is told what it did not ask.

use bytes::BytesMut;
use redis::{Cmd, Value, cmd};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use super::resp::Reading;
use super::{Fault, RedisServer};
use crate::peer::{Peer, Socket};

/// Least room for what comes next, bytes.
const READ_LEN: usize = 16 << 10;

/// A connection in two halves, logged in.
pub struct Line {
    /// Where answers come from.
    pub answers: Answers,
    /// Where commands go.
    pub commands: Commands,
}

/// The half that is read.
pub struct Answers {
    peer: Peer,
    half: ReadHalf<Box<dyn Socket>>,
    reading: Reading,
    bytes: BytesMut,
}

/// The half that is written.
pub struct Commands {
    peer: Peer,
    half: WriteHalf<Box<dyn Socket>>,
}

impl RedisServer {
    /// A connection that may do what it is for, as far as that can be asked.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn line(&self) -> Result<Line, String> {
        let (answers, commands) = tokio::io::split(self.peer.connect().await?);
        let answers = Answers {
            peer: self.peer.clone(),
            half: answers,
            reading: Reading::default(),
            bytes: BytesMut::with_capacity(READ_LEN),
        };
        let mut line = Line { answers, commands: Commands { peer: self.peer.clone(), half: commands } };
        self.log_in_to(&mut line).await?;
        Ok(line)
    }

    async fn log_in_to(&self, line: &mut Line) -> Result<(), String> {
        if let Some(auth) = self.auth()? {
            line.ask(&auth).await?.map_err(|fault| self.says(fault.at_login()))?;
        }
        if let Some(select) = self.select() {
            line.ask(&select).await?.map_err(|fault| self.says(self.of_database(&fault)))?;
        }
        // One that wants TLS closes the connection, and says nothing.
        let wants_tls = |why| {
            if self.peer.address.is_secure { why } else { format!("{why}; if it wants TLS, say rediss://") }
        };
        match line.ask(&cmd("PING")).await.map_err(wants_tls)? {
            Err(fault) if !fault.is_forbidden() => Err(self.says(fault.at_login())),
            _ => Ok(()),
        }
    }
}

impl Line {
    /// Only where nothing else is under way.
    ///
    /// # Errors
    /// The connection is lost; within: what the server says against it.
    pub async fn ask(&mut self, command: &Cmd) -> Result<Result<Value, Fault>, String> {
        self.commands.write_all(&command.get_packed_command()).await?;
        self.answers.next().await
    }
}

impl Answers {
    /// The next answer, or what the server says unasked. Nothing is lost where the wait for it is given up.
    ///
    /// # Errors
    /// The connection is lost; within: what the server says against a command.
    pub async fn next(&mut self) -> Result<Result<Value, Fault>, String> {
        loop {
            if let Some(answer) = self.buffered()? {
                return Ok(answer);
            }
            self.bytes.reserve(READ_LEN);
            match self.half.read_buf(&mut self.bytes).await {
                Ok(0) => return Err(self.peer.says("it closed the connection")),
                Ok(_) => {}
                Err(error) => return Err(self.peer.says(error)),
            }
        }
    }

    /// The next answer, if it is here already.
    ///
    /// # Errors
    /// It is no answer of such a server.
    pub fn buffered(&mut self) -> Result<Option<Result<Value, Fault>>, String> {
        self.reading.next(&mut self.bytes).map_err(|why| self.peer.says(why))
    }
}

impl Commands {
    /// All of it.
    ///
    /// # Errors
    /// The connection is lost, and how much was written is not known.
    pub async fn write_all(&mut self, packed: &[u8]) -> Result<(), String> {
        let written = async {
            self.half.write_all(packed).await?;
            self.half.flush().await
        };
        written.await.map_err(|error| self.peer.says(error))
    }

    /// As much as goes at once, in bytes; with nothing to write, what was written is sent on its way. Nothing is lost where the wait for it is given up.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn write(&mut self, packed: &[u8]) -> Result<usize, String> {
        let written = if packed.is_empty() {
            self.half.flush().await.map(|()| 0)
        } else {
            self.half.write(packed).await
        };
        match written {
            Ok(0) if !packed.is_empty() => Err(self.peer.says("it closed the connection")),
            Ok(len) => Ok(len),
            Err(error) => Err(self.peer.says(error)),
        }
    }
}

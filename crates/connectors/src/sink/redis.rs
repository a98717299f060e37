//! A stream of Redis or Valkey: one `XADD` for each message.
//!
//! What the fields of an entry are is said in [`crate::redis::fields`], and what errors mean in [`crate::redis::fault`].

use overtake_forward::Answer;
use overtake_peer::redis::{RedisServer, Wire};
use overtake_peer::{Named, Secret, Tls, Vault};
use redis::{Cmd, Pipeline, cmd};
use serde::{Deserialize, Serialize};

use super::{Link, LinkError, Sink, Work};
use crate::outbox::Outbox;
use crate::outgoing::Outgoing;
use crate::redis::{fault, fields};
use crate::texts;

/// Most messages that are handed to the socket before the outbox is looked at again.
const PIECE_MAX: usize = 16;
/// No further one is added to a piece of so many bytes.
const PIECE_BYTES: usize = 1 << 20;
/// What is around a name and a value, bytes, about: their lengths and ends of lines.
const FRAME_LEN: usize = 14;

/// A stream of Redis or Valkey.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedisReceiver {
    /// Where: `redis://HOST:6379/DATABASE`, or `rediss://` for TLS; `valkey://` and `valkeys://` mean the same.
    pub url: String,
    /// The key of the stream. It is made by the first message.
    pub stream: String,
    /// The user; by default that of the URL, else the one without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Its password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// About so many entries are kept, the newest ones (`MAXLEN ~`); by default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maxlen: Option<u64>,
    /// Each lane has a stream of its own, `STREAM:LANE`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub per_lane: bool,
    /// Under `rediss://`.
    #[serde(skip_serializing_if = "Tls::is_plain")]
    pub tls: Tls,
}

/// A stream, once its settings are read.
pub(crate) struct RedisSink {
    server: RedisServer,
    stream: String,
    maxlen: Option<u64>,
    per_lane: bool,
}

impl RedisReceiver {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn sink(&self, vault: Vault) -> Result<RedisSink, String> {
        if self.stream.is_empty() {
            return Err("`stream` must be the key of a stream".to_owned());
        }
        if self.maxlen == Some(0) {
            return Err("`maxlen` must be at least 1: with 0 nothing would stay in the stream".to_owned());
        }
        let server = RedisServer::new(
            vault,
            &Named {
                url: &self.url,
                username: self.username.as_deref(),
                password: self.password.as_ref(),
                tls: &self.tls,
            },
        )?;
        Ok(RedisSink { server, stream: self.stream.clone(), maxlen: self.maxlen, per_lane: self.per_lane })
    }
}

impl Sink for RedisSink {
    fn left_out(&self, message: &Outgoing) -> Vec<String> {
        texts::no_texts(message).collect()
    }

    fn connect(&self) -> Work<'_, Result<Box<dyn Link>, LinkError>> {
        Box::pin(async {
            let mut wire = self.server.connect().await?;
            if !self.per_lane {
                wire.check_stream(&self.stream).await?;
            }
            let Self { stream, maxlen, per_lane, .. } = self;
            let link = RedisLink { wire, stream: stream.clone(), maxlen: *maxlen, per_lane: *per_lane };
            Ok(Box::new(link) as Box<dyn Link>)
        })
    }
}

struct RedisLink {
    wire: Wire,
    stream: String,
    maxlen: Option<u64>,
    per_lane: bool,
}

impl RedisLink {
    /// And its bytes on the line, about.
    fn entry(&self, message: &Outgoing) -> (Cmd, usize) {
        let mut add = cmd("XADD");
        if self.per_lane {
            add.arg(format!("{}:{}", self.stream, message.leased().message.lane));
        } else {
            add.arg(&self.stream);
        }
        if let Some(maxlen) = self.maxlen {
            add.arg("MAXLEN").arg("~").arg(maxlen);
        }
        add.arg("*");
        let mut len = 0;
        for (name, value) in fields::of(message) {
            len += name.len() + value.len() + FRAME_LEN;
            add.arg(name.as_ref()).arg(value.as_ref());
        }
        (add, len)
    }

    /// What goes out together, and the number and bytes of each. It is little, since nothing that is more urgent overtakes what the socket has:
    /// after each piece the outbox says whether the batch goes on.
    fn piece(&self, outbox: &mut Outbox<'_>) -> (Pipeline, Vec<(usize, u64)>) {
        let (mut commands, mut sent, mut bytes) = (Pipeline::new(), Vec::new(), 0);
        while sent.len() < PIECE_MAX && bytes < PIECE_BYTES {
            let Some(at) = outbox.next() else { break };
            let (entry, len) = self.entry(outbox.get(at));
            bytes += len;
            sent.push((at, len as u64));
            commands.add_command(entry);
        }
        (commands, sent)
    }
}

impl Link for RedisLink {
    fn send<'a>(&'a mut self, outbox: &'a mut Outbox<'_>) -> Work<'a, Result<(), LinkError>> {
        Box::pin(async move {
            loop {
                let (commands, sent) = self.piece(outbox);
                if sent.is_empty() {
                    return Ok(());
                }
                let answers = self.wire.ask_all(&commands).await?;
                for ((at, bytes), answer) in sent.into_iter().zip(answers) {
                    let answer =
                        answer.map_or_else(|fault| fault::answer(&fault), |_| Answer::Accepted { bytes });
                    outbox.answer(at, answer);
                }
            }
        })
    }

    fn lost(&mut self) -> Work<'_, LinkError> {
        Box::pin(async { self.wire.lost().await.into() })
    }
}

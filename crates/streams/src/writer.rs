//! Entries added to streams, many with one answer's wait.

use overtake_peer::redis::{Fault, RedisServer, Wire};
use redis::{Pipeline, Value, cmd};

use crate::layout::partitions_of;

/// The fields of an entry: names and values.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A connection that adds entries.
pub struct Writer {
    wire: Wire,
    len_max: Option<u64>,
}

impl Writer {
    /// # Errors
    /// Why there is no connection.
    pub async fn connect(server: &RedisServer) -> Result<Self, String> {
        Ok(Self { wire: server.connect().await?, len_max: None })
    }

    /// Streams that are added to keep about so many entries, and lose their oldest, whoever has not read them (`MAXLEN ~`).
    #[must_use]
    pub fn len_max(self, entries: u64) -> Self {
        Self { len_max: Some(entries), ..self }
    }

    /// Adds each to its stream, in this order: its id, or what the server says against it. What is said against one does not keep the others.
    ///
    /// # Errors
    /// The connection is lost, and it is not known which of them are added.
    pub async fn add(&mut self, entries: &[(String, Fields)]) -> Result<Vec<Result<String, Fault>>, String> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let mut commands = Pipeline::with_capacity(entries.len());
        for (stream, fields) in entries {
            let mut add = cmd("XADD");
            add.arg(stream);
            if let Some(entries) = self.len_max {
                add.arg("MAXLEN").arg("~").arg(entries);
            }
            add.arg("*");
            for (name, value) in fields {
                add.arg(&name[..]).arg(&value[..]);
            }
            commands.add_command(add);
        }
        let answers = self.wire.ask_all(&commands).await?;
        Ok(answers.into_iter().map(|answer| answer.and_then(id)).collect())
    }

    /// Says that keys have streams of their own (see [`crate::PARTITIONS`]), so that who reads all of them finds these.
    ///
    /// # Errors
    /// The connection is lost; within: what the server says against it.
    pub async fn record_keys(&mut self, category: &str, keys: &[&str]) -> Result<Result<(), Fault>, String> {
        if keys.is_empty() {
            return Ok(Ok(()));
        }
        let mut record = cmd("SADD");
        record.arg(partitions_of(category)).arg(keys);
        Ok(self.wire.ask(&record).await?.map(drop))
    }

    /// Ends when the connection is lost, and says why.
    pub async fn lost(&mut self) -> String {
        self.wire.lost().await
    }
}

fn id(answer: Value) -> Result<String, Fault> {
    match answer {
        Value::BulkString(id) => Ok(String::from_utf8_lossy(&id).into_owned()),
        _ => Err(Fault::new("ERR", "and no id of an entry: it is no Redis, or a newer one")),
    }
}

//! A connection that comes again, for several at once.

use std::sync::Arc;
use std::time::Duration;

use overtake_peer::redis::{Fault, RedisServer, Wire};
use redis::{Cmd, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A server that says nothing for so long is gone.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Between attempts to connect, at first and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Waits that double.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(BACKOFF.0)
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(BACKOFF.1);
    }
}

/// A connection that is made where there is none.
pub(crate) struct Link {
    server: RedisServer,
    wire: Mutex<Option<Arc<Wire>>>,
}

impl Link {
    pub(crate) fn new(server: RedisServer) -> Self {
        Self { server, wire: Mutex::new(None) }
    }

    async fn wire(&self) -> Result<Arc<Wire>, String> {
        let mut wire = self.wire.lock().await;
        if let Some(wire) = &*wire {
            return Ok(Arc::clone(wire));
        }
        let made = Arc::new(self.server.connect().await?);
        *wire = Some(Arc::clone(&made));
        Ok(made)
    }

    /// # Errors
    /// There is no connection, or it is lost; within: what the server says against it.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Result<Value, Fault>, String> {
        let wire = self.wire().await?;
        let answer = wire.ask_apart(command.clone(), PATIENCE).await;
        if answer.is_err() {
            let mut now = self.wire.lock().await;
            if now.as_ref().is_some_and(|now| Arc::ptr_eq(now, &wire)) {
                *now = None;
            }
        }
        answer
    }

    /// As [`Link::ask`], again and again for so long, for what may be asked twice.
    pub(crate) async fn ask_for(
        &self,
        command: &Cmd,
        patience: Duration,
    ) -> Result<Result<Value, Fault>, String> {
        let (until, mut backoff) = (Instant::now() + patience, Backoff::new());
        loop {
            match self.ask(command).await {
                Err(_) if Instant::now() < until => backoff.wait().await,
                answer => return answer,
            }
        }
    }
}

//! Running the broker, from its first line to its last.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overtake_engine::{Engine, LocalEngine};
use overtake_http::{HttpOptions, Readiness};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accept::accept;
use crate::config::Config;
use crate::connection::Connections;
use crate::ports::PortsFile;
use crate::signals::Signals;
use crate::{ServeError, logs, open, queues, room};

/// What a server that is ready has to say.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Where HTTP is served.
    pub http: SocketAddr,
    /// Where the data is.
    pub data_dir: PathBuf,
    /// Queues that were found in the store.
    pub recovered_queues: u64,
    /// Messages that were found in them.
    pub recovered_messages: u64,
    /// How often the store was opened, this time included.
    pub life: u32,
    /// How long opening the store took.
    pub opened_in: Duration,
    /// Damage that was skipped while opening the store, one sentence each.
    pub skipped: Vec<String>,
}

/// How a server that was told to stop did so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// What was under way was finished, and the store is closed.
    Drained,
    /// A second signal came before that.
    Forced,
}

/// Runs the broker until a signal ends it. `on_ready` hears when it serves.
///
/// # Errors
/// Why it did not start, or stopped by itself.
pub fn serve(config: &Config, on_ready: impl FnOnce(&Ready)) -> Result<Stopped, ServeError> {
    logs::start(&config.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let stopped = runtime.block_on(run(config, on_ready));
    // After a second signal nothing is waited for.
    runtime.shutdown_background();
    stopped
}

async fn run(config: &Config, on_ready: impl FnOnce(&Ready)) -> Result<Stopped, ServeError> {
    let mut signals = Signals::take()?;
    // First the port: that fails at once and touches nothing.
    let listener = listen(config).await?;
    let http = listener.local_addr()?;
    let started = Instant::now();
    let engine = tokio::select! {
        signal = signals.next() => {
            tracing::info!("{signal}: stopped before it was ready");
            return Ok(Stopped::Drained);
        }
        opened = open::open(config) => opened?,
    };
    let opened_in = started.elapsed();
    let watching = tokio::spawn(room::watch(engine.full()));
    queues::declare(&*engine, &config.queues).await?;

    let serving = Serving::start(config, listener, &engine);
    let ports = &config.server.ports_file.value;
    let ports = (!ports.as_os_str().is_empty())
        .then(|| {
            PortsFile::write(ports, http)
                .map_err(|error| ServeError::PortsFile { path: ports.clone(), error })
        })
        .transpose()?;
    on_ready(&ready(config, http, &engine, opened_in));

    tokio::select! {
        signal = signals.next() => tracing::info!("{signal}: draining"),
        why = engine.failed() => return Err(ServeError::Stopped { why: why.to_string() }),
    }
    watching.abort();
    // Dropping the last handle would close the store, which is what a second signal does not wait for.
    let held = Arc::clone(&engine);
    let drained = async {
        serving.drain(Duration::from_millis(config.server.drain_timeout_ms.value.0)).await;
        open::close(engine).await
    };
    tokio::select! {
        biased;
        signal = signals.next() => {
            tracing::warn!("{signal}: giving up");
            std::mem::forget(held);
            return Ok(Stopped::Forced);
        }
        closed = drained => closed?,
    }
    drop(ports);
    tracing::info!("stopped");
    Ok(Stopped::Drained)
}

async fn listen(config: &Config) -> Result<TcpListener, ServeError> {
    let listen = &config.http.listen;
    TcpListener::bind(listen.value.0).await.map_err(|error| ServeError::Listen {
        address: listen.value.0,
        place: listen.origin.clone(),
        error,
    })
}

fn ready(config: &Config, http: SocketAddr, engine: &LocalEngine, opened_in: Duration) -> Ready {
    let recovered = engine.recovered();
    let ready = Ready {
        http,
        data_dir: config.store.data_dir.value.clone(),
        recovered_queues: recovered.queues as u64,
        recovered_messages: recovered.messages,
        life: recovered.life,
        opened_in,
        skipped: open::skipped(engine),
    };
    for damage in &ready.skipped {
        tracing::error!("damage skipped: {damage}");
    }
    tracing::info!(
        %http,
        data_dir = %ready.data_dir.display(),
        queues = ready.recovered_queues,
        messages = ready.recovered_messages,
        life = ready.life,
        "ready"
    );
    ready
}

/// A server that accepts.
struct Serving {
    shutdown: CancellationToken,
    accepting: JoinHandle<TaskTracker>,
}

impl Serving {
    fn start(config: &Config, listener: TcpListener, engine: &Arc<LocalEngine>) -> Self {
        let shutdown = CancellationToken::new();
        let options = HttpOptions {
            max_message_bytes: config.max_message_bytes(),
            max_request_bytes: config.http.max_request_bytes.value.0,
            shutdown: shutdown.clone(),
            readiness: Readiness::default(),
            loopback_only: config.http.listen.value.0.ip().is_loopback(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let routes = overtake_http::router(Arc::clone(engine) as Arc<dyn Engine>, options);
        let connections =
            Connections::new(routes, Duration::from_millis(config.http.header_timeout_ms.value.0));
        let most = config.http.max_connections.value.0;
        let accepting = tokio::spawn(accept(listener, connections, most, shutdown.clone()));
        Self { shutdown, accepting }
    }

    /// Accepts nothing more, ends waits, and gives requests under way so long to finish.
    async fn drain(self, timeout: Duration) {
        self.shutdown.cancel();
        let Ok(open) = self.accepting.await else { return };
        if tokio::time::timeout(timeout, open.wait()).await.is_err() {
            let (many, are) = if open.len() == 1 { ("connection", "is") } else { ("connections", "are") };
            tracing::warn!("{} {many} did not finish in {timeout:?} and {are} cut", open.len());
        }
    }
}

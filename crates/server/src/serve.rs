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
use crate::amqp::Amqp;
use crate::config::{Config, Listen, Listener, Origin, Sourced};
use crate::http::Http;
use crate::ports::PortsFile;
use crate::signals::Signals;
use crate::{ServeError, logs, open, queues, room, tls};

/// What a server that is ready has to say.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Where HTTP is served.
    pub http: SocketAddr,
    /// Where AMQP is served, if it is.
    pub amqp: Option<SocketAddr>,
    /// Where AMQP is served under TLS, if it is.
    pub amqps: Option<SocketAddr>,
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
    let listening = Listening::start(config).await?;
    let (http, [amqp, amqps]) = listening.addresses()?;
    let tls = listening.amqps.is_some().then(|| tls::load(&config.tls)).transpose()?;
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

    let serving = Serving::start(config, listening, tls, &engine);
    let ports = &config.server.ports_file.value;
    let ports = (!ports.as_os_str().is_empty())
        .then(|| {
            PortsFile::write(ports, http, [amqp, amqps])
                .map_err(|error| ServeError::PortsFile { path: ports.clone(), error })
        })
        .transpose()?;
    on_ready(&ready(config, (http, [amqp, amqps]), &engine, opened_in));

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

/// Ports that are taken, and not served yet.
struct Listening {
    http: TcpListener,
    amqp: Option<TcpListener>,
    amqps: Option<TcpListener>,
}

impl Listening {
    async fn start(config: &Config) -> Result<Self, ServeError> {
        let (http, amqp, amqps) = (&config.http.listen, &config.amqp.listen, &config.amqp.tls_listen);
        let http = listen(http.value, &http.origin, "--http").await?;
        let amqp = listen_perhaps(amqp, "--amqp").await?;
        let amqps = listen_perhaps(amqps, "--amqps").await?;
        Ok(Self { http, amqp, amqps })
    }

    /// Of HTTP, and of AMQP and AMQP under TLS where they are served.
    fn addresses(&self) -> std::io::Result<(SocketAddr, [Option<SocketAddr>; 2])> {
        let amqp = self.amqp.as_ref().map(TcpListener::local_addr).transpose()?;
        let amqps = self.amqps.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok((self.http.local_addr()?, [amqp, amqps]))
    }
}

async fn listen_perhaps(
    setting: &Sourced<Listener>,
    flag: &'static str,
) -> Result<Option<TcpListener>, ServeError> {
    match setting.value.0 {
        Some(address) => listen(address, &setting.origin, flag).await.map(Some),
        None => Ok(None),
    }
}

async fn listen(address: Listen, place: &Origin, flag: &'static str) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address.0).await.map_err(|error| ServeError::Listen {
        address: address.0,
        place: place.clone(),
        flag,
        error,
    })
}

fn ready(
    config: &Config,
    (http, [amqp, amqps]): (SocketAddr, [Option<SocketAddr>; 2]),
    engine: &LocalEngine,
    opened_in: Duration,
) -> Ready {
    let recovered = engine.recovered();
    let ready = Ready {
        http,
        amqp,
        amqps,
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
        amqp = ready.amqp.map(tracing::field::display),
        amqps = ready.amqps.map(tracing::field::display),
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
    accepting: Vec<JoinHandle<TaskTracker>>,
}

impl Serving {
    fn start(
        config: &Config,
        listening: Listening,
        tls: Option<Arc<rustls::ServerConfig>>,
        engine: &Arc<LocalEngine>,
    ) -> Self {
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
        let Listening { http, amqp, amqps } = listening;
        let protocol = Http::new(routes, Duration::from_millis(config.http.header_timeout_ms.value.0));
        let most = config.http.max_connections.value.0;
        let mut accepting = vec![tokio::spawn(accept(http, protocol, most, shutdown.clone()))];
        let most = config.amqp.max_connections.value.0;
        for (listener, tls) in [(amqp, None), (amqps, tls)] {
            let Some(listener) = listener else { continue };
            let amqp = Amqp::new(config, tls, engine);
            accepting.push(tokio::spawn(accept(listener, amqp, most, shutdown.clone())));
        }
        Self { shutdown, accepting }
    }

    /// Accepts nothing more, ends waits, and gives requests under way so long to finish.
    async fn drain(self, timeout: Duration) {
        self.shutdown.cancel();
        let mut open = Vec::new();
        for accepting in self.accepting {
            open.extend(accepting.await);
        }
        let all = async {
            for tracker in &open {
                tracker.wait().await;
            }
        };
        if tokio::time::timeout(timeout, all).await.is_err() {
            let left: usize = open.iter().map(TaskTracker::len).sum();
            let (many, are) = if left == 1 { ("connection", "is") } else { ("connections", "are") };
            tracing::warn!("{left} {many} did not finish in {timeout:?} and {are} cut");
        }
    }
}

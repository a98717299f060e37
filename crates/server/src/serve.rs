//! Running the broker, from its first line to its last.

use std::io::Write;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overtake_access::{Desks, Gate};
use overtake_amqp::connection as amqp;
use overtake_categories::Categories;
use overtake_connections::{
    Amqp, Bounds, Budget, Crowd, Descriptors, Doors, Files, Hosts, Http, Presented, Term,
};
use overtake_engine::{Engine, SystemClock, WallClock};
use overtake_http::{Drain, HttpOptions, Readiness, Services};
use overtake_lane::PriorityLanes;
use overtake_management::Connections;
use overtake_overview::Overview;
use overtake_schedules::Schedules;
use overtake_telemetry::Registry;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Config, Lanes, Listen, Listener, Origin, Sourced};
use crate::descriptors::Refused;
use crate::memory::{HeldMemory, Shares};
use crate::ports::PortsFile;
use crate::routes::RoutesFile;
use crate::running::{Found, Notice, Opened, Running};
use crate::signals::{Asked, Signals};
use crate::telemetry::{Pushing, Spans};
use crate::{
    ServeError, access, connectors, descriptors, drain, logs, management, open, queues, room, supervisor,
    telemetry, threads,
};

/// Where each protocol is served, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// HTTP.
    pub http: SocketAddr,
    /// HTTP under TLS.
    pub https: Option<SocketAddr>,
    /// AMQP.
    pub amqp: Option<SocketAddr>,
    /// AMQP under TLS.
    pub amqps: Option<SocketAddr>,
}

impl Addresses {
    /// Each that is there, by the scheme of its URL.
    pub fn served(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + use<> {
        let all =
            [("http", Some(self.http)), ("https", self.https), ("amqp", self.amqp), ("amqps", self.amqps)];
        all.into_iter().filter_map(|(scheme, address)| Some((scheme, address?)))
    }
}

/// What a server that is ready has to say.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Where it is.
    pub addresses: Addresses,
    /// Where the messages are, and what was found there.
    pub found: Found,
    /// How long opening the engine took.
    pub opened_in: Duration,
}

/// How a server that was told to stop did so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// What was under way was finished, and the engine is closed.
    Finished,
    /// A second signal came before that.
    Forced,
}

/// Runs the broker until a signal ends it. `on_ready` hears when it serves.
///
/// # Errors
/// Why it did not start, or stopped by itself.
pub fn serve(config: &Config, on_ready: &dyn Fn(&Ready)) -> Result<Stopped, ServeError> {
    logs::start(&config.log);
    threads::check(config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Boxed, so that all of it is compiled here, and once.
    let running: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(run(config, on_ready));
    let stopped = runtime.block_on(running);
    // After a second signal nothing is waited for.
    runtime.shutdown_background();
    stopped
}

async fn run(config: &Config, on_ready: &dyn Fn(&Ready)) -> Result<Stopped, ServeError> {
    let mut signals = Signals::take()?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let descriptors = descriptors::prepare(config);
    let shares = Shares::of(config);
    // First the port: that fails at once and touches nothing.
    let listening = Listening::start(config).await?;
    let addresses = listening.addresses()?;
    let tls = certificate(config)?;
    let spans = Spans::of(config);
    let started = Instant::now();
    let Opened { running, found } = tokio::select! {
        signal = signals.next_stop() => {
            tracing::info!("{signal}: stopped before it was ready");
            return Ok(Stopped::Finished);
        }
        opened = open::open(config, spans.traces(), &shares) => opened?,
    };
    let opened_in = started.elapsed();
    let engine = Arc::clone(&running) as Arc<dyn Engine>;
    let telemetry = telemetry::registry(Arc::clone(&engine));
    let watching = tokio::spawn(room::watch(running.full()));
    let audit = access::audit_file(config)?;
    let (gate, desks) = prepare(config, &engine, audit, &addresses).await?;
    let followed = Arc::clone(&gate);
    let following = tokio::spawn(async move { followed.follow().await });
    let schedules = Schedules::open(Arc::clone(&engine), Arc::clone(&gate), Arc::new(WallClock));
    let schedules = schedules.await.map_err(|failure| ServeError::Stopped { why: failure.to_string() })?;
    let (endpoints, sources) = connectors::open(config, &engine, &gate, &telemetry).await?;
    let connections = Connections::default();
    telemetry.add(Arc::new(connections.clone()));
    telemetry.add(Refused::of(&descriptors));
    telemetry.add(HeldMemory::of(&shares));
    let routes = RoutesFile::open(config, Arc::clone(&engine)).await?;
    let look_at_routes = Arc::new(Notify::new());
    let watching_routes = routes.map(|file| tokio::spawn(file.watch(Arc::clone(&look_at_routes))));
    let pushing = Pushing::start(config, &telemetry, spans, &addresses)?;
    let management = management::router(config, desks, connections.clone(), &addresses);
    let overview = Arc::new(Overview::new(engine, Arc::new(SystemClock)));
    let categories = categories(config);
    let settled = categories.settle(&*running).await;
    settled.map_err(|failure| ServeError::Stopped { why: failure.to_string() })?;
    let services = Services { categories: Arc::new(categories), schedules, endpoints, sources, overview };
    let (endpoints, sources) = (Arc::clone(&services.endpoints), Arc::clone(&services.sources));
    let house = House {
        running: Arc::clone(&running),
        gate: Arc::clone(&gate),
        services,
        connections,
        descriptors,
        budget: shares.connections,
        telemetry,
    };
    let serving = Serving::start(config, listening, tls.as_ref(), house, management);
    let ports = &config.server.ports_file.value;
    let ports = (!ports.as_os_str().is_empty())
        .then(|| {
            PortsFile::write(ports, &addresses)
                .map_err(|error| ServeError::PortsFile { path: ports.clone(), error })
        })
        .transpose()?;
    on_ready(&ready(addresses, found, opened_in));
    let status = status(&addresses);
    supervisor::ready(&status);

    loop {
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::Stop(signal) => {
                    tracing::info!("{signal}: stopping");
                    break;
                }
                Asked::Drain => {
                    tracing::info!("SIGUSR2");
                    serving.drain.begin(drain_timeout(config));
                }
                Asked::Reload => {
                    supervisor::reloading();
                    reload(config, tls.as_ref(), &gate);
                    look_at_routes.notify_one();
                    supervisor::ready(&status);
                }
            },
            why = running.failed() => return Err(ServeError::Stopped { why: why.to_string() }),
        }
    }
    supervisor::stopping("finishing what is under way");
    watching.abort();
    following.abort();
    if let Some(watching) = watching_routes {
        watching.abort();
    }
    // Dropping the last handle would close the engine, which is what a second signal does not wait for.
    let held = Arc::clone(&running);
    let drained = async {
        let patience = drain_timeout(config);
        tokio::join!(serving.stop(patience), endpoints.stop(patience), sources.stop(patience));
        pushing.stop().await;
        running.close().await
    };
    tokio::select! {
        biased;
        signal = signals.next_stop() => {
            tracing::warn!("{signal}: giving up");
            std::mem::forget(held);
            return Ok(Stopped::Forced);
        }
        closed = drained => closed?,
    }
    drop(ports);
    if let Some(why) = held.health().full.filter(|why| why.is_loss()) {
        return Err(ServeError::Stopped { why: why.to_string() });
    }
    tracing::info!("stopped");
    Ok(Stopped::Finished)
}

/// Declares what the configuration says beside its settings, and opens the gate.
async fn prepare(
    config: &Config,
    engine: &Arc<dyn Engine>,
    audit: Option<Box<dyn Write + Send>>,
    addresses: &Addresses,
) -> Result<(Arc<Gate>, Desks), ServeError> {
    queues::declare(&**engine, &config.queues).await?;
    let gate = Arc::new(access::open(config, Arc::clone(engine), audit).await?);
    let desks = Desks::new(Arc::clone(engine), Arc::clone(&gate));
    // They may bring the administrator.
    access::load_definitions(config, &desks).await?;
    access::check_reach(addresses, &gate)?;
    Ok((gate, desks))
}

/// Categories with the lanes of the configuration.
fn categories(config: &Config) -> Categories {
    let Lanes { enabled, threshold, backfill_suffix } = &config.server.priority_lanes;
    let lanes = PriorityLanes::new(enabled.value, threshold.value.0, &*backfill_suffix.value);
    Categories::new(lanes.expect("the configuration was checked"))
}

/// Where it is, in a line.
fn status(addresses: &Addresses) -> String {
    let all: Vec<String> =
        addresses.served().map(|(scheme, address)| format!("{scheme}://{address}")).collect();
    format!("serving {}", all.join(", "))
}

/// Reads again what may have changed. What is wrong is told, and stays as it was.
fn reload(config: &Config, tls: Option<&Presented>, gate: &Gate) {
    match access::audit_file(config) {
        Ok(file) => gate.audit().write_to(file),
        Err(error) => tracing::error!("SIGHUP: {error}; it is written where it was before"),
    }
    match tls.map(|tls| tls.reload().map_err(ServeError::from)) {
        None => tracing::info!("SIGHUP: no listener is under TLS, so there is nothing to read again"),
        Some(Ok(())) => tracing::info!("SIGHUP: the certificate is read again, for connections to come"),
        Some(Err(error)) => {
            tracing::error!("SIGHUP: {error}; connections to come are shown the certificate of before");
        }
    }
}

/// Ports that are taken, and not served yet.
struct Listening {
    http: TcpListener,
    https: Option<TcpListener>,
    amqp: Option<TcpListener>,
    amqps: Option<TcpListener>,
}

impl Listening {
    async fn start(config: &Config) -> Result<Self, ServeError> {
        let (http, amqp, amqps) = (&config.http.listen, &config.amqp.listen, &config.amqp.tls_listen);
        let http = listen(http.value, &http.origin, "--http").await?;
        let https = listen_perhaps(&config.http.tls_listen, "--https").await?;
        let amqp = listen_perhaps(amqp, "--amqp").await?;
        let amqps = listen_perhaps(amqps, "--amqps").await?;
        Ok(Self { http, https, amqp, amqps })
    }

    fn addresses(&self) -> std::io::Result<Addresses> {
        let of = |listener: &Option<TcpListener>| listener.as_ref().map(TcpListener::local_addr).transpose();
        let http = self.http.local_addr()?;
        Ok(Addresses { http, https: of(&self.https)?, amqp: of(&self.amqp)?, amqps: of(&self.amqps)? })
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

fn ready(addresses: Addresses, found: Found, opened_in: Duration) -> Ready {
    let (store, servers) = match &found {
        Found::Store(store) => (Some(store), None),
        Found::Servers { primaries } => (None, Some(primaries.join(","))),
    };
    for Notice { is_loss, text } in store.iter().flat_map(|store| &store.notices) {
        if *is_loss {
            tracing::error!("{text}");
        } else {
            tracing::warn!("{text}");
        }
    }
    tracing::info!(
        http = %addresses.http,
        https = addresses.https.map(tracing::field::display),
        amqp = addresses.amqp.map(tracing::field::display),
        amqps = addresses.amqps.map(tracing::field::display),
        data_dir = store.map(|store| tracing::field::display(store.dir.display())),
        queues = store.map(|store| store.queues),
        messages = store.map(|store| store.messages),
        life = store.map(|store| store.life),
        servers,
        "ready"
    );
    Ready { addresses, found, opened_in }
}

/// What is behind the doors.
struct House {
    running: Arc<dyn Running>,
    gate: Arc<Gate>,
    services: Services,
    connections: Connections,
    descriptors: Descriptors,
    budget: Budget,
    telemetry: Arc<Registry>,
}

/// A server that accepts.
struct Serving {
    shutdown: CancellationToken,
    drain: Drain,
    http: Term,
    amqp: Term,
}

impl Serving {
    fn start(
        config: &Config,
        listening: Listening,
        tls: Option<&Presented>,
        house: House,
        management: axum::Router,
    ) -> Self {
        let House { running, gate, services, connections, descriptors, budget, telemetry } = house;
        let engine = Arc::clone(&running) as Arc<dyn Engine>;
        let (shutdown, drain) = (CancellationToken::new(), Drain::default());
        let options = HttpOptions {
            max_message_bytes: config.max_message_bytes(),
            max_request_bytes: config.max_request_bytes(),
            drain: drain.clone(),
            drain_timeout: drain_timeout(config),
            shutdown: shutdown.clone(),
            readiness: Readiness::default(),
            trace_url: Some(&*config.telemetry.trace_url.value).filter(|url| !url.is_empty()).map(Into::into),
            version: env!("CARGO_PKG_VERSION").into(),
            telemetry,
        };
        let desks = Desks::new(Arc::clone(&engine), Arc::clone(&gate));
        let (schedules, overview) = (Arc::clone(&services.schedules), Arc::clone(&services.overview));
        let routes =
            overtake_http::router(desks, services, options).merge(management).merge(overtake_page::router());
        let Listening { http, https, amqp, amqps } = listening;
        let serving = Self {
            http: Term { closing: shutdown.clone(), stop: shutdown.clone(), ..Term::default() },
            amqp: Term { closing: drain.begun(), ..Term::default() },
            shutdown,
            drain,
        };
        let (term, most) = (&serving.http, config.http.max_connections.value.0);
        let header_timeout = Duration::from_millis(config.http.header_timeout_ms.value.0);
        let hosts = Hosts::new(&config.http.hosts.value.0, Some(&management::machine()));
        for (listener, tls) in [(Some(http), None), (https, tls)] {
            let Some(listener) = listener else { continue };
            let http = Http::new(routes.clone(), hosts.clone(), tls.cloned(), header_timeout, budget.clone());
            term.open.spawn(http.accept(listener, most, descriptors.clone(), term.clone()));
        }
        let doors = Doors { engine: Arc::clone(&engine), gate, crowd: Crowd::default() };
        let (term, most) = (&serving.amqp, config.amqp.max_connections.value.0);
        let send_timeout =
            Some(config.amqp.send_timeout_ms.value.0).filter(|ms| *ms > 0).map(Duration::from_millis);
        for (listener, tls) in [(amqp, None), (amqps, tls)] {
            let Some(listener) = listener else { continue };
            let amqp = Amqp::new(
                amqp_options(config),
                tls.cloned(),
                running.full(),
                connections.clone(),
                doors.clone(),
                Bounds { budget: budget.clone(), send_timeout },
                serving.drain.begun(),
            );
            term.open.spawn(amqp.accept(listener, most, descriptors.clone(), term.clone()));
        }
        let Self { shutdown, drain, amqp, .. } = &serving;
        tokio::spawn(drain::carry_out(drain.clone(), amqp.clone(), engine, shutdown.clone()));
        let stop = shutdown.clone();
        tokio::spawn(async move { stop.run_until_cancelled(schedules.run()).await });
        let stop = shutdown.clone();
        tokio::spawn(async move { stop.run_until_cancelled(overview.run()).await });
        serving
    }

    /// Accepts nothing more, ends waits, and gives requests under way so long to finish.
    async fn stop(self, timeout: Duration) {
        // First, so that nobody takes this for a drain that may take its time.
        self.shutdown.cancel();
        self.amqp.stop.cancel();
        self.drain.begin(Duration::ZERO);
        let all = [self.http.open, self.amqp.open];
        let ended = async {
            for open in &all {
                open.close();
                open.wait().await;
            }
        };
        if tokio::time::timeout(timeout, ended).await.is_err() {
            let left: usize = all.iter().map(TaskTracker::len).sum();
            let (many, are) = if left == 1 { ("connection", "is") } else { ("connections", "are") };
            tracing::warn!("{left} {many} did not finish in {timeout:?} and {are} cut");
        }
    }
}

/// Checks what a start would refuse besides the configuration itself: certificates, and with the store as it is, without a change of it, what is to be
/// declared. Returns what was not checked.
///
/// # Errors
/// The first that a start would refuse.
pub fn check(config: &Config) -> Result<Vec<String>, ServeError> {
    certificate(config)?;
    access::check_audit_file(config)?;
    let mut unchecked = vec![
        "whether the addresses are free, and what endpoints, sources and the collector answer".to_owned(),
    ];
    let dir = config.store.data_dir.value.display();
    let is_open = || open::is_open_elsewhere(&config.store.data_dir.value);
    let open_elsewhere = || {
        format!(
            "the queues, users and routes against the store in {dir}: a running broker has it open, and they are checked when the next one starts"
        )
    };
    if config.engine.servers().is_some() {
        unchecked.push(
            "the queues, users and routes against what the servers have: see `overtake doctor`".to_owned(),
        );
    } else if is_open() {
        unchecked.push(open_elsewhere());
    } else {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let checked: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(check_store(config));
        let checked = runtime.block_on(checked);
        match checked {
            // The store changed while it was read.
            Err(_) if is_open() => unchecked.push(open_elsewhere()),
            checked => checked?,
        }
    }
    Ok(unchecked)
}

/// Does what a start does up to its first client, with a store whose changes stay in memory.
async fn check_store(config: &Config) -> Result<(), ServeError> {
    let copy: Arc<dyn Running> = Arc::new(open::open_copy(config, &Shares::of(config)).await?);
    let engine = Arc::clone(&copy) as Arc<dyn Engine>;
    let address = |listener: &Sourced<Listener>| listener.value.0.map(|listen| listen.0);
    let addresses = Addresses {
        http: config.http.listen.value.0,
        https: address(&config.http.tls_listen),
        amqp: address(&config.amqp.listen),
        amqps: address(&config.amqp.tls_listen),
    };
    prepare(config, &engine, None, &addresses).await?;
    RoutesFile::open(config, engine).await?;
    copy.close().await
}

/// The certificate, where something listens with TLS.
fn certificate(config: &Config) -> Result<Option<Presented>, ServeError> {
    let is_secure = config.http.tls_listen.value.0.is_some() || config.amqp.tls_listen.value.0.is_some();
    Ok(is_secure.then(|| Presented::load(tls_files(config))).transpose()?)
}

/// The files that the section `[tls]` names.
fn tls_files(config: &Config) -> Files {
    let tls = &config.tls;
    let client_ca = Some(tls.client_ca_file.value.clone()).filter(|path| !path.as_os_str().is_empty());
    Files { cert: tls.cert_file.value.clone(), key: tls.key_file.value.clone(), client_ca }
}

/// What each AMQP connection may do, from the section `[amqp]`.
fn amqp_options(config: &Config) -> amqp::Options {
    let amqp = &config.amqp;
    amqp::Options {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        channel_max: amqp.max_channels.value.0.try_into().unwrap_or(u16::MAX),
        heartbeat_s: amqp.heartbeat_ms.value.0.div_ceil(1_000).try_into().unwrap_or(u16::MAX),
        body_max: config.max_message_bytes(),
        ..amqp::Options::default()
    }
}

fn drain_timeout(config: &Config) -> Duration {
    Duration::from_millis(config.server.drain_timeout_ms.value.0)
}

//! What the types of single values cannot say.

use overtake_connectors::{Connector, check_configured};
use overtake_engine::SHARDS_MAX;
use overtake_lane::{PriorityLanes, Refusal, Scheme};
use overtake_peer::Vault;
use overtake_store::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};

use super::connectors::CONNECTORS_HINT;
use super::file::{File, SHOWN_LEN_MAX};
use super::{Config, ConfigError, Configured, EngineKind, Origin, Sourced, Value};

/// Largest body on servers, bytes: half of the longest string that they take unless told otherwise (`proto-max-bulk-len`).
const BODY_BYTES_MAX: u64 = 256 << 20;
/// Room in a request for what a message has besides its body.
const ENVELOPE_BYTES: u64 = 1 << 20;
/// Journal files are whole pages.
const SEGMENT_PAGE: u64 = 4096;

impl Config {
    /// Largest message that the engine takes, bytes: in the embedded store, one that fits a journal file of this size.
    fn message_bytes_that_fit(&self) -> u64 {
        match self.engine.kind.value {
            EngineKind::Embedded => self.store.segment_bytes.value.0 / 4,
            EngineKind::Redis | EngineKind::Cluster => BODY_BYTES_MAX,
        }
    }

    /// Largest message, bytes: what is configured, or less where that does not fit the engine.
    pub(crate) fn max_message_bytes(&self) -> u64 {
        self.limits.max_message_bytes.value.0.min(self.message_bytes_that_fit())
    }

    /// Largest body of a request over HTTP, bytes: what is configured; by default at least what the largest message takes as base64.
    pub(crate) fn max_request_bytes(&self) -> u64 {
        let request = &self.http.max_request_bytes;
        match request.origin {
            Origin::Default => request.value.0.max(self.max_message_bytes() / 3 * 4 + ENVELOPE_BYTES),
            _ => request.value.0,
        }
    }
}

/// Checks a merged configuration. `file` is where to look for the line of a key of a queue, an endpoint or a source.
pub(super) fn check(config: &Config, file: Option<&File>) -> Result<(), ConfigError> {
    let interval = &config.telemetry.otlp_interval_ms;
    let settings = [
        check_listener(config),
        check_admin(config),
        check_engine(config),
        check_sizes(config),
        check_watermarks(config),
        check_some("telemetry.otlp_interval_ms", interval, interval.value.0),
        check_traces(config),
        check_lanes(config),
        check_store(config),
        check_default_ttl(config),
    ];
    let queues = config.queues.iter();
    let queues = queues
        .map(|queue| check_queue(queue, file).and_then(|()| check_history(queue, &config.queues, file)));
    let scheme = |name: &str| {
        let queue = config.queues.iter().find(|queue| queue.name == name);
        queue.map(|queue| queue.settings.scheme)
    };
    let endpoints = config.endpoints.iter();
    let endpoints = endpoints.map(|endpoint| check_connector("endpoints", endpoint, &scheme, file));
    let sources = config.sources.iter().map(|source| check_connector("sources", source, &scheme, file));
    let all = settings.into_iter().chain(queues).chain(endpoints).chain(sources);
    ConfigError::all(all.filter_map(Result::err))
}

fn check_store(config: &Config) -> Result<(), ConfigError> {
    let dir = &config.store.data_dir;
    if dir.value.as_os_str().is_empty() {
        return Err(wrong("store.data_dir", dir, "it must name a directory"));
    }
    Ok(())
}

fn check_default_ttl(config: &Config) -> Result<(), ConfigError> {
    let ttl = &config.limits.default_ttl_ms;
    if ttl.value.0 > overtake_lane::DURATION_MS_MAX {
        return Err(wrong("limits.default_ttl_ms", ttl, "it must be at most ten years"));
    }
    Ok(())
}

/// The streams of a category have different names, and not those of dead letters.
fn check_lanes(config: &Config) -> Result<(), ConfigError> {
    let suffix = &config.server.priority_lanes.backfill_suffix;
    let fits = PriorityLanes::check_suffix(&suffix.value);
    fits.map_err(|why| wrong("server.priority_lanes.backfill_suffix", suffix, &why))
}

/// What is told of traces has somewhere to go, and a page of them says which.
fn check_traces(config: &Config) -> Result<(), ConfigError> {
    let telemetry = &config.telemetry;
    if telemetry.traces_sample.value.0 > 0 && telemetry.otlp_endpoint.value.0.is_none() {
        let wrong = wrong("telemetry.traces_sample", &telemetry.traces_sample, "there is no collector");
        return Err(wrong.hint("name one in telemetry.otlp_endpoint (--otlp-endpoint), or leave it at 0"));
    }
    let url = &telemetry.trace_url;
    let is_one = url.value.starts_with("http") && url.value.contains("{trace_id}");
    if !(url.value.is_empty() || is_one) {
        let what =
            "it must be an address with {trace_id} in it, such as https://jaeger.example/trace/{trace_id}";
        return Err(wrong("telemetry.trace_url", url, what));
    }
    Ok(())
}

fn check_listener(config: &Config) -> Result<(), ConfigError> {
    let (http, amqp) = (&config.http, &config.amqp);
    check_tls(config)?;
    check_some("http.max_connections", &http.max_connections, http.max_connections.value.0.into())?;
    check_some("http.header_timeout_ms", &http.header_timeout_ms, http.header_timeout_ms.value.0)?;
    check_some("amqp.max_connections", &amqp.max_connections, amqp.max_connections.value.0.into())?;
    check_some("amqp.max_channels", &amqp.max_channels, amqp.max_channels.value.0.into())
}

/// Where messages are kept on servers, these are named, and only then.
fn check_engine(config: &Config) -> Result<(), ConfigError> {
    let engine = &config.engine;
    check_some("engine.sweep_ms", &engine.sweep_ms, engine.sweep_ms.value.0)?;
    let Some(servers) = engine.servers() else {
        return match engine.nodes.value.0.is_empty() {
            true => Ok(()),
            false => Err(wrong("engine.nodes", &engine.nodes, "messages are kept in the embedded store").hint(
                "say engine.kind = \"cluster\" (--engine cluster), or \"redis\" for one server, or leave the nodes out",
            )),
        };
    };
    let Err(why) = servers.nodes.servers(Vault::CLOSED) else { return Ok(()) };
    match engine.nodes.origin {
        Origin::Default => Err(wrong("engine.kind", &engine.kind, &why)
            .hint("name them in engine.nodes (--engine-nodes 10.0.0.1:6379,10.0.0.2:6379)")),
        _ => Err(wrong("engine.nodes", &engine.nodes, &why)),
    }
}

/// Whoever listens under TLS has something to show.
fn check_tls(config: &Config) -> Result<(), ConfigError> {
    let tls = &config.tls;
    let files = [("tls.cert_file", &tls.cert_file), ("tls.key_file", &tls.key_file)];
    let Some((missing, _)) = files.into_iter().find(|(_, file)| file.value.as_os_str().is_empty()) else {
        return Ok(());
    };
    let listeners = [
        ("amqp.tls_listen", &config.amqp.tls_listen, "--amqps"),
        ("http.tls_listen", &config.http.tls_listen, "--https"),
    ];
    match listeners.into_iter().find(|(_, listener, _)| listener.value.0.is_some()) {
        None => Ok(()),
        Some((key, listener, flag)) => Err(wrong(key, listener, &format!("{missing} is not set"))
            .hint(format!("name PEM files with --tls-cert and --tls-key, or leave {flag} out"))),
    }
}

fn check_some<T: Value>(key: &str, setting: &Sourced<T>, number: u64) -> Result<(), ConfigError> {
    if number == 0 { Err(wrong(key, setting, "it must be 1 or more")) } else { Ok(()) }
}

/// The first administrator has a name and a password.
fn check_admin(config: &Config) -> Result<(), ConfigError> {
    let (user, file) = (&config.access.admin_user, &config.access.admin_password_file);
    match (user.value.is_empty(), file.value.as_os_str().is_empty()) {
        (false, true) => Err(wrong("access.admin_user", user, "access.admin_password_file is not set").hint(
            "name a file with the password (--admin-password-file); it is never given on the command line",
        )),
        (true, false) => Err(wrong("access.admin_password_file", file, "access.admin_user is not set")
            .hint("name the administrator whose password it is (--admin-user)")),
        (false, false) if overtake_lane::check_name(&user.value).is_err() => {
            Err(wrong("access.admin_user", user, "it must be 1 to 200 bytes without control characters"))
        }
        _ => Ok(()),
    }
}

fn check_watermarks(config: &Config) -> Result<(), ConfigError> {
    let (low, high) = (&config.store.disk_low_bytes, &config.store.disk_high_bytes);
    match (low.value.bytes(), high.value.bytes()) {
        (Some(least), Some(most)) if most < least => {
            let why = format!("it must be at least store.disk_low_bytes, which is {least}");
            Err(wrong("store.disk_high_bytes", high, &why)
                .hint("publishes are refused below the low one, and taken again above the high one"))
        }
        _ => Ok(()),
    }
}

fn check_sizes(config: &Config) -> Result<(), ConfigError> {
    let (message, request) = (&config.limits.max_message_bytes, &config.http.max_request_bytes);
    if message.value.0 == 0 {
        return Err(wrong("limits.max_message_bytes", message, "it must be 1 or more"));
    }
    let (segment, range) = (&config.store.segment_bytes, SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX);
    if !range.contains(&segment.value.0) || !segment.value.0.is_multiple_of(SEGMENT_PAGE) {
        return Err(wrong(
            "store.segment_bytes",
            segment,
            "it must be a multiple of 4096 from 64KiB to 1GiB",
        ));
    }
    let shards = &config.store.shards;
    if !(1..=SHARDS_MAX as u32).contains(&shards.value.0) {
        return Err(wrong("store.shards", shards, &format!("it must be from 1 to {SHARDS_MAX}")));
    }
    // The default follows the journal; a limit that somebody asked for does not.
    if message.origin != Origin::Default && message.value.0 > config.message_bytes_that_fit() {
        let most = config.message_bytes_that_fit();
        return Err(wrong(
            "limits.max_message_bytes",
            message,
            &match config.engine.kind.value {
                EngineKind::Embedded => format!("it must be at most {most}, a quarter of a journal file"),
                EngineKind::Redis | EngineKind::Cluster => format!("it must be at most {most}, which servers take"),
            },
        )
        .hint(match config.engine.kind.value {
            EngineKind::Embedded => "raise store.segment_bytes (--segment-bytes) for a new store, or send large bodies another way",
            EngineKind::Redis | EngineKind::Cluster => "send large bodies another way",
        }));
    }
    if config.max_request_bytes() < config.max_message_bytes() {
        let why =
            format!("it must be at least limits.max_message_bytes, which is {}", config.max_message_bytes());
        return Err(wrong("http.max_request_bytes", request, &why)
            .hint("leave room for base64, too: 4/3 of the largest message and a little"));
    }
    Ok(())
}

fn check_queue(queue: &super::ConfiguredQueue, file: Option<&File>) -> Result<(), ConfigError> {
    let fault = match (overtake_lane::check_queue_name(&queue.name), queue.settings.validate()) {
        (Err(refusal), _) => {
            (String::new(), format!("`queues.{}`: {refusal}: {}", queue.name, refusal.hint()))
        }
        (_, Err(bad)) => {
            let path = format!("queues.{}.{}", queue.name, bad.key);
            let settings = serde_json::to_value(&queue.settings).unwrap_or_default();
            let value = settings.pointer(&format!("/{}", bad.key.replace('.', "/")));
            let shown = value.filter(|value| !value.is_null()).map(ToString::to_string);
            let what = match shown.filter(|shown| shown.len() <= SHOWN_LEN_MAX) {
                Some(shown) => format!("`{path}` is `{}`: it {}", shown.trim_matches('"'), bad.why),
                None => format!("`{path}` {}", bad.why),
            };
            (bad.key.clone(), what)
        }
        _ => return Ok(()),
    };
    let (key, what) = fault;
    let mut path = vec!["queues", &queue.name];
    path.extend(key.split('.'));
    Err(within(&queue.origin, file, &path, what))
}

/// Refuses a history that is the queue itself or, among the queues of the configuration, leads back to it.
fn check_history(
    queue: &super::ConfiguredQueue,
    all: &[super::ConfiguredQueue],
    file: Option<&File>,
) -> Result<(), ConfigError> {
    let mut next = queue.settings.history.as_deref();
    for _ in all {
        if next == Some(&queue.name) {
            let what = format!("`queues.{}.history`: {}", queue.name, Refusal::HistoryCircular);
            let error = within(&queue.origin, file, &["queues", &queue.name, "history"], what);
            return Err(error.hint(Refusal::HistoryCircular.hint()));
        }
        let history = all.iter().find(|other| Some(&*other.name) == next);
        next = history.and_then(|history| history.settings.history.as_deref());
    }
    Ok(())
}

/// What its start would refuse is refused here already.
fn check_connector<C: Connector>(
    section: &str,
    one: &Configured<C>,
    scheme: &dyn Fn(&str) -> Option<Scheme>,
    file: Option<&File>,
) -> Result<(), ConfigError> {
    let Err(flaw) = check_configured(&one.name, &one.definition, scheme) else { return Ok(()) };
    let mut path = vec![section, &one.name];
    path.extend(flaw.part.split('.').filter(|part| !part.is_empty()));
    let what = format!("`{}`: {}", path.join("."), flaw.why);
    // Where what is quoted first is no key, the place is that of the part.
    let key = flaw.why.strip_prefix('`').and_then(|rest| rest.split('`').next());
    path.extend(key.into_iter().flat_map(|key| key.split('.')));
    Err(within(&one.origin, file, &path, what).hint(CONNECTORS_HINT))
}

/// An error at a key of a file, or where else its table stands. `path` begins with a section and a name, and `origin` is where that name stands.
fn within(origin: &Origin, file: Option<&File>, path: &[&str], what: String) -> ConfigError {
    match (origin, file) {
        (Origin::File { .. }, Some(file)) => file.error(file.span_of(origin, path), what),
        _ => ConfigError::at(origin.clone(), what),
    }
}

fn wrong<T: Value>(key: &str, setting: &Sourced<T>, why: &str) -> ConfigError {
    let shown = setting.value.show();
    let is = match shown.trim_matches('"') {
        "" => "empty".to_owned(),
        shown => format!("`{shown}`"),
    };
    ConfigError::at(setting.origin.clone(), format!("`{key}` is {is}: {why}"))
}

//! What is counted, and where it is pushed.

use std::sync::Arc;
use std::time::Duration;

use overtake_engine::Engine;
use overtake_engine::traces::{SpanQueue, Traces};
use overtake_telemetry::otlp::{Exporter, Push, Resource, Tell};
use overtake_telemetry::{Broker, Process, Registry};

use crate::ServeError;
use crate::config::{CollectorHeaders, Config, Origin};
use crate::management::machine;
use crate::serve::Addresses;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Most spans that wait to be told: with their texts some 30 MB.
const SPANS_MAX: usize = 1 << 16;
/// How long a server that stops waits for its last push.
const LAST_PUSH: Duration = Duration::from_secs(5);

/// What is counted of an engine that was opened just now, and of the process.
pub(crate) fn registry(engine: Arc<dyn Engine>) -> Arc<Registry> {
    let registry = Registry::default();
    registry.add(Arc::new(Broker::new(engine, VERSION)));
    registry.add(Arc::new(Process));
    Arc::new(registry)
}

/// Spans that wait to be told, where messages are traced.
pub(crate) struct Spans {
    queue: Option<Arc<SpanQueue>>,
    share: f64,
}

impl Spans {
    /// As the configuration says.
    pub(crate) fn of(config: &Config) -> Self {
        let share = config.telemetry.traces_sample.value.of_one();
        Self { queue: (share > 0.0).then(|| SpanQueue::new(SPANS_MAX)), share }
    }

    /// How the engine is to trace messages.
    pub(crate) fn traces(&self) -> Option<Traces> {
        let sink = self.queue.clone()?;
        Some(Traces::new(sink, self.share))
    }
}

/// Pushes, where there is somewhere to push to.
pub(crate) struct Pushing {
    push: Option<(Arc<Push>, tokio::task::JoinHandle<()>)>,
    tell: Option<(Arc<Tell>, tokio::task::JoinHandle<()>)>,
    /// Who serves is gone before the last push.
    _registry: Arc<Registry>,
}

impl Pushing {
    /// Pushes everything as often as the configuration says, and spans as they end.
    pub(crate) fn start(
        config: &Config,
        registry: &Arc<Registry>,
        spans: Spans,
        addresses: &Addresses,
    ) -> Result<Self, ServeError> {
        warn_of_headers_in_flag(config);
        let settings = &config.telemetry;
        let kept = Arc::clone(registry);
        let Some(endpoint) = settings.otlp_endpoint.value.0.clone() else {
            return Ok(Self { push: None, tell: None, _registry: kept });
        };
        let headers = settings.otlp_headers.value.headers();
        let headers = headers.map_err(|why| ServeError::Collector { why: format!("otlp_headers: {why}") })?;
        let exporter = Exporter::new(endpoint, headers);
        let exporter = exporter.map_err(|error| ServeError::Collector { why: error.to_string() })?;
        let to = exporter.endpoint().as_str().to_owned();
        let resource = resource(config, addresses);
        let tell = spans.queue.map(|queue| {
            tracing::info!("of the traces that are sampled, {} are told to {to}", spans.share);
            let tell = Tell::join(registry, queue, exporter.clone(), resource.clone(), VERSION);
            let telling = Arc::clone(&tell);
            (tell, tokio::spawn(async move { telling.run().await }))
        });
        let push = Push::join(registry, exporter, resource, VERSION);
        let interval = Duration::from_millis(settings.otlp_interval_ms.value.0);
        tracing::info!("metrics are pushed to {to} every {interval:?}");
        let pushing = Arc::clone(&push);
        let task = tokio::spawn(async move { pushing.run(interval).await });
        Ok(Self { push: Some((push, task)), tell, _registry: kept })
    }

    /// Pushes a last time: what has become of everything, and the last spans.
    pub(crate) async fn stop(self) {
        if let Some((tell, task)) = self.tell {
            task.abort();
            if tokio::time::timeout(LAST_PUSH, tell.rest()).await.is_err() {
                tracing::warn!("the last spans were not told within {LAST_PUSH:?}");
            }
        }
        let Some((push, task)) = self.push else { return };
        task.abort();
        if tokio::time::timeout(LAST_PUSH, push.once()).await.is_err() {
            tracing::warn!("the last push of metrics did not end within {LAST_PUSH:?}");
        }
    }
}

/// A command line is read by everybody on the machine.
fn warn_of_headers_in_flag(config: &Config) {
    let headers = &config.telemetry.otlp_headers;
    if let (Origin::Flag(flag), CollectorHeaders::Said(_)) = (&headers.origin, &headers.value) {
        tracing::warn!(
            "{flag} says the headers on the command line, where everybody on this machine can read them (`ps`): say where they are, as \
             {flag} '{{ file = \"/run/secrets/otlp\" }}' or {flag} '{{ env = \"NAME\" }}'"
        );
    }
}

/// Who this is. What the configuration says goes before what is known anyway.
fn resource(config: &Config, addresses: &Addresses) -> Resource {
    let settings = &config.telemetry;
    let mut all = settings.resource_attributes.value.0.0.clone();
    let name = &settings.service_name;
    if name.origin != Origin::Default {
        all.retain(|(key, _)| key != "service.name");
    }
    let known = [
        ("service.name", name.value.clone()),
        ("service.version", VERSION.to_owned()),
        ("service.instance.id", format!("{}:{}", machine(), addresses.http.port())),
    ];
    for (key, value) in known {
        if !all.iter().any(|(there, _)| there == key) {
            all.push((key.to_owned(), value));
        }
    }
    Resource(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Around, load};

    #[test]
    fn a_broker_says_who_it_is_and_what_it_was_told_to_say() {
        let addresses =
            Addresses { http: ([127, 0, 0, 1], 15_672).into(), https: None, amqp: None, amqps: None };
        let said = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            let config =
                load(&Around { variables, ..Around::default() }, None, &[]).expect("a configuration");
            let Resource(said) = resource(&config, &addresses);
            let known = |key: &str| {
                let mut all = said.iter().filter(|(there, _)| there == key).map(|(_, value)| value.clone());
                let value = all.next().unwrap_or_default();
                assert_eq!(all.next(), None, "{key} is there once");
                value
            };
            [known("service.name"), known("service.version"), known("service.instance.id"), known("a")]
        };
        let here = format!("{}:15672", machine());
        assert_eq!(said(&[]), ["overtake", VERSION, &here, ""]);
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "a=1,service.name=x,service.instance.id=me");
        assert_eq!(said(&[attributes]), ["x", VERSION, "me", "1"]);
        assert_eq!(said(&[attributes, ("OTEL_SERVICE_NAME", "y")]), ["y", VERSION, "me", "1"]);
    }
}

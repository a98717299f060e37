//! A broker in memory, and a collector that remembers what it was sent, read by the protocol's own crate.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use overtake_engine::{Engine, LocalEngine, NewMessage, Options, SystemClock, Target};
use overtake_store::MemoryDisk;
use overtake_telemetry::otlp::{Exporter, Resource};
use overtake_telemetry::{Broker, Registry};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// An engine on a disk in memory, and what is counted of it.
pub(crate) fn broker() -> (Arc<LocalEngine>, Arc<Registry>) {
    let small = Options { segment_bytes: 1 << 20, ..Options::default() };
    let engine = LocalEngine::open_on(MemoryDisk::new(1), small, Arc::new(SystemClock));
    let engine = Arc::new(engine.expect("a store"));
    let registry = Arc::new(Registry::default());
    registry.add(Arc::new(Broker::new(Arc::clone(&engine) as Arc<dyn Engine>, "1.2.3")));
    (engine, registry)
}

pub(crate) fn message(queue: &str, priority: i64) -> NewMessage {
    NewMessage { to: Target::Queue(queue.into()), priority: priority.into(), ..NewMessage::default() }
}

/// What a collector answers from now on.
#[derive(Clone, Default)]
pub(crate) enum Mood {
    #[default]
    Takes,
    Rejects(i64, &'static str),
    Fails(StatusCode, &'static str),
}

/// What a collector was sent and took.
pub(crate) struct Sent {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Sent {
    /// As metrics are pushed.
    pub(crate) fn request(&self) -> ExportMetricsServiceRequest {
        assert_eq!(self.path, "/v1/metrics");
        ExportMetricsServiceRequest::decode(self.body.clone()).expect("it is what it should be")
    }

    fn metrics(&self) -> Vec<Metric> {
        let of_resources = self.request().resource_metrics.into_iter();
        of_resources.flat_map(|of| of.scope_metrics).flat_map(|of| of.metrics).collect()
    }

    fn spans(&self) -> Vec<Span> {
        assert_eq!(self.path, "/v1/traces");
        let request = ExportTraceServiceRequest::decode(self.body.clone()).expect("it is what it should be");
        let of_resources = request.resource_spans.into_iter();
        of_resources.flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Collector {
    pub(crate) sent: Arc<Mutex<Vec<Sent>>>,
    pub(crate) mood: Arc<Mutex<Mood>>,
    /// A request has come.
    pub(crate) arrived: Arc<Notify>,
}

impl Collector {
    /// Starts one. Answers its address, too.
    pub(crate) async fn start() -> (Self, String) {
        let collector = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = collector.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let serving = serving.clone();
                let answer = service_fn(move |request| {
                    let serving = serving.clone();
                    async move { serving.answer(request).await }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
        (collector, address)
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let path = head.uri.path().to_owned();
        let sent = Sent { path, headers: head.headers, body };
        self.arrived.notify_one();
        // With as many spans it would be the same bytes.
        let mut answer = ExportMetricsServiceResponse::default();
        let mood = self.mood.lock().unwrap().clone();
        match mood {
            Mood::Fails(status, why) => {
                let mut response = Response::new(Full::from(why));
                *response.status_mut() = status;
                return Ok(response);
            }
            Mood::Rejects(rejected_data_points, why) => {
                let error_message = why.to_owned();
                answer.partial_success =
                    Some(ExportMetricsPartialSuccess { rejected_data_points, error_message });
            }
            Mood::Takes => {}
        }
        self.sent.lock().unwrap().push(sent);
        Ok(Response::new(Full::from(answer.encode_to_vec())))
    }

    /// All metrics that were sent, in order; one that came in parts is there as often.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let sent = self.sent.lock().unwrap();
        sent.iter().flat_map(Sent::metrics).collect()
    }

    /// All spans that were sent, in order.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let sent = self.sent.lock().unwrap();
        sent.iter().flat_map(Sent::spans).collect()
    }

    pub(crate) fn metric(&self, name: &str) -> Metric {
        let mut all = self.metrics();
        all.retain(|metric| metric.name == name);
        all.pop().unwrap_or_else(|| panic!("{name} was not sent"))
    }
}

/// A client of a collector at this address.
pub(crate) fn exporter(address: &str, headers: &str) -> Exporter {
    Exporter::new(address.parse().expect("an address"), headers.parse().expect("headers")).expect("a client")
}

pub(crate) fn resource() -> Resource {
    Resource(vec![("service.name".to_owned(), "overtake".to_owned())])
}

/// `name=value` of each, with blanks between.
pub(crate) fn shown(attributes: &[KeyValue]) -> String {
    let text = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => format!("{}={text}", pair.key),
        other => panic!("{} is {other:?}", pair.key),
    };
    attributes.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// How many series a metric has, and the attributes of each.
pub(crate) fn series(metric: &Metric) -> Vec<String> {
    let of = |attributes: &[KeyValue]| format!("{} {}", metric.name, shown(attributes));
    match metric.data.as_ref().expect("data") {
        Data::Gauge(gauge) => gauge.data_points.iter().map(|point| of(&point.attributes)).collect(),
        Data::Sum(sum) => sum.data_points.iter().map(|point| of(&point.attributes)).collect(),
        Data::Histogram(all) => all.data_points.iter().map(|point| of(&point.attributes)).collect(),
        other => panic!("{other:?}"),
    }
}

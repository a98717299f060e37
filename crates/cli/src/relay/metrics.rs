//! What a relay counts, as Prometheus reads it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use overtake_outbox::{CLAIM_BOUNDS_S, OTHER_GROUPS, Seen, Watch};
use overtake_telemetry::Kind::{Counter, Gauge, Histogram as Sizes};
use overtake_telemetry::{Family, Histogram, Value, labels, text};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// Until the next connection is accepted after one could not be.
const PAUSE: Duration = Duration::from_millis(100);

/// Where it is served. Dropping it ends that.
pub(crate) struct Served {
    /// The address that was bound.
    pub(crate) address: SocketAddr,
    task: AbortHandle,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Served {
    /// From now on.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(crate) async fn start(address: SocketAddr, watch: Watch) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else {
                    // One connection failed, or there are too many: for those it takes a while.
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                let watch = watch.clone();
                tokio::spawn(async move {
                    let answer = service_fn(|request| {
                        let answer = answer(&request, &watch);
                        async { Ok::<_, Infallible>(answer) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(socket), answer)
                        .await;
                });
            }
        });
        Ok(Self { address, task: task.abort_handle() })
    }
}

fn answer<B>(request: &Request<B>, watch: &Watch) -> Response<Full<Bytes>> {
    let is_asked = request.method() == Method::GET && request.uri().path() == "/metrics";
    let (status, body) = if is_asked {
        (StatusCode::OK, text::render(&families(&watch.seen())))
    } else {
        (StatusCode::NOT_FOUND, "only GET /metrics is served here\n".to_owned())
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, text::CONTENT_TYPE.parse().expect("it is a header's value"));
    response
}

/// Each thing that is counted.
fn families(seen: &Seen) -> Vec<Family> {
    let row = |name, help, number: u64| Family::new(name, Counter, "{row}", help).of(number);
    let is = |name, help, yes: bool| Family::new(name, Gauge, "", help).of(yes.into());
    let mut waiting = Family::new(
        "overtake.outbox.rows",
        Gauge,
        "{row}",
        "Rows that wait to be published, by priority and status; counted now and then.",
    );
    let mut oldest = Family::new(
        "overtake.outbox.oldest_age",
        Gauge,
        "s",
        "Age of the oldest row that waits to be published, by priority; looked at now and then.",
    );
    for lag in &seen.lag {
        let priority = lag.priority.to_string();
        for (status, rows) in
            [("pending", lag.pending), ("processing", lag.processing), ("failed", lag.failed)]
        {
            waiting = waiting.with(labels([("priority", &priority), ("status", status)]), Value::Whole(rows));
        }
        if let Some(age) = lag.oldest_s {
            oldest = oldest.with(labels([("priority", &priority)]), Value::Real(age));
        }
    }
    let mut all = vec![
        is("overtake.relay.database.up", "1: the database answered the last claim.", seen.has_database),
        is("overtake.relay.sink.up", "1: the sink was there when it was last asked.", seen.has_sink),
        row("overtake.relay.published", "Rows that were published and marked so.", seen.published),
        row("overtake.relay.failed", "Attempts in vain, after which there is another.", seen.failed),
        row("overtake.relay.abandoned", "Rows that were set aside.", seen.abandoned),
        row("overtake.relay.released", "Rows that were claimed and given back untried.", seen.released),
        row(
            "overtake.relay.overtaken",
            "Rows that were tried, and were another relay's when that was to be marked.",
            seen.overtaken,
        ),
        row(
            "overtake.relay.expired",
            "Rows that were put back because the lock of their claim was over.",
            seen.expired,
        ),
        row("overtake.relay.cleaned", "Rows that were cleaned.", seen.cleaned),
        claims(seen),
        waiting,
        oldest,
    ];
    all.extend(groups(seen));
    all
}

/// How far the groups of consumers are.
fn groups(seen: &Seen) -> [Family; 3] {
    let mut waiting = Family::new(
        "overtake.relay.group.waiting_entries",
        Gauge,
        "{entry}",
        "Entries of streams that a group has not read yet, by category, lane and group; counted now and then.",
    );
    let mut pending = Family::new(
        "overtake.relay.group.pending_entries",
        Gauge,
        "{entry}",
        "Entries that consumers of a group hold and have not settled, by category, lane and group; counted now and then.",
    );
    let mut oldest = Family::new(
        "overtake.relay.group.oldest_age",
        Gauge,
        "s",
        "Age of the oldest entry that a group has not settled, by category, lane and group; looked at now and then.",
    );
    for lag in &seen.groups {
        let group = lag.group.as_deref().unwrap_or(OTHER_GROUPS);
        let labels = labels([("category", &lag.category), ("lane", lag.lane), ("group", group)]);
        waiting = waiting.with(labels.clone(), Value::Whole(lag.waiting));
        pending = pending.with(labels.clone(), Value::Whole(lag.pending));
        if lag.waiting + lag.pending > 0 {
            oldest = oldest.with(labels, Value::Whole(lag.oldest_s));
        }
    }
    [waiting, pending, oldest]
}

fn claims(seen: &Seen) -> Family {
    let mut below = 0;
    let buckets = CLAIM_BOUNDS_S.iter().zip(seen.claims.counts).map(|(bound, count)| {
        below += count;
        (*bound, below)
    });
    let buckets = buckets.collect();
    let histogram = Histogram { buckets, count: seen.claims.counts.iter().sum(), sum: seen.claims.seconds };
    Family::new(
        "overtake.relay.claim.duration",
        Sizes,
        "s",
        "How long claims took, those that found nothing, too.",
    )
    .with(labels([]), Value::Histogram(Box::new(histogram)))
}

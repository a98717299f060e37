//! Leases: take, settle, extend; and transactions, which settle and publish together.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use overtake_api::body::{ExtendIn, LeaseIn, SettleIn, TransactionIn};
use overtake_api::params::Shown;
use overtake_engine::LeaseRequest;
use overtake_lane::{LeaseTerm, Refusal};
use tokio::time::sleep;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{LeasedList, PublishedList, ResultList, ResultOut};
use crate::app::{Answer, App, json};
use crate::batch;
use crate::decode::Json;
use crate::held;
use crate::login::At;
use crate::messages::limits;
use crate::path::QueueName;
use crate::problem::Problem;
use crate::trace;

/// The paths of leases.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(lease))
        .routes(routes!(settle))
        .routes(routes!(extend))
        .routes(routes!(transact))
}

/// Leases messages: at once what is there, else the first that comes within `wait_ms`.
///
/// No more than 16 MiB of content (bodies and headers, before they are encoded), but one message at least. A client that
/// goes away while it waits takes no message with it.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/leases", tag = "leases",
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    request_body = LeaseIn,
    responses((status = 200, description = "The messages; none when the wait was over first", body = LeasedList))
)]
async fn lease(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(queue): QueueName,
    Json(ask): Json<LeaseIn>,
) -> Answer {
    let drain_begun = app.options.drain.begun();
    if drain_begun.is_cancelled() {
        return Err(draining());
    }
    let shown = Shown { body: true, properties: ask.properties };
    let worker = held::worker(ask.worker)?;
    let max = ask.max.map_or(1, |max| u32::try_from(max.0).unwrap_or(u32::MAX));
    let request = LeaseRequest {
        wait_ms: ask.wait_ms.map_or(0, |ms| ms.0),
        term: ask.visibility_timeout_ms.map_or(LeaseTerm::OfQueue, |ms| LeaseTerm::Ms(ms.0)),
        ..LeaseRequest::new(Arc::clone(&queue), max)
    };
    // Biased: what is leased already goes out also when the drain begins in the same moment.
    let leased = tokio::select! {
        biased;
        leased = desk.lease(request, worker) => leased?,
        () = drain_begun.cancelled() => Vec::new(),
    };
    if let Some(first) = leased.first() {
        app.queue_ids.remember(&desk, &queue, first.receipt.queue);
    }
    json(StatusCode::OK, &LeasedList::of(&leased, shown))
}

fn draining() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "draining",
        "the broker is being drained and gives out no more messages",
        "settle what you hold, then connect again when the broker is back",
    )
}

/// Ends leases, each for itself.
///
/// With one receipt, what cannot be done is a problem (409 for a lease that is over); with more, each has its result.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/settle", tag = "leases",
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    request_body = SettleIn,
    responses((status = 200, description = "A result per receipt", body = ResultList))
)]
async fn settle(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(queue): QueueName,
    Json(mut ask): Json<SettleIn>,
) -> Answer {
    let (outcome, report) = (ask.outcome()?, ask.take_report()?);
    let receipts = app.receipts(&desk, &queue, &ask.receipts.0).await?;
    if let (Some(report), [receipt]) = (report, &receipts[..]) {
        return each(&ask.receipts.0, vec![desk.finish(&queue, *receipt, outcome, report).await?]);
    }
    each(&ask.receipts.0, desk.settle(&queue, receipts, outcome).await?)
}

/// Lengthens leases, each for itself.
///
/// With one receipt and a `report` it also says how far the work is. With one receipt and `wait_ms` the answer waits: it comes at once when somebody
/// wants the message back (409, `cancel-asked`), or when the lease is over because the message was removed (409, `stale-receipt`).
#[utoipa::path(
    post, path = "/v1/queues/{queue}/extend", tag = "leases",
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    request_body = ExtendIn,
    responses((status = 200, description = "A result per receipt", body = ResultList))
)]
async fn extend(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(queue): QueueName,
    Json(mut ask): Json<ExtendIn>,
) -> Answer {
    let (report, wait_ms) = (ask.take_report()?, ask.wait_ms()?);
    let receipts = app.receipts(&desk, &queue, &ask.receipts.0).await?;
    let visibility_ms = ask.visibility_timeout_ms.0;
    // Before the lease is looked at: a withdrawal after that is heard.
    let mut withdrawals = desk.withdrawals();
    let mut results = match (report, &receipts[..]) {
        (Some(report), [receipt]) => {
            vec![desk.progress(&queue, *receipt, visibility_ms, report.output.into()).await?]
        }
        _ => desk.extend(&queue, receipts.clone(), visibility_ms).await?,
    };
    if wait_ms > 0 {
        let over = sleep(Duration::from_millis(wait_ms));
        tokio::pin!(over);
        while results[..] == [Ok(())] {
            tokio::select! {
                biased;
                () = app.options.drain.begun().cancelled_owned() => break,
                () = &mut over => break,
                changed = withdrawals.changed() => if changed.is_err() { break },
            }
            results = desk.extend(&queue, receipts.clone(), visibility_ms).await?;
        }
    }
    each(&ask.receipts.0, results)
}

fn each(receipts: &[String], results: Vec<Result<(), Refusal>>) -> Answer {
    if let [Err(refusal)] = results[..] {
        return Err(Problem::from(refusal).key("receipts[0]"));
    }
    let results = receipts.iter().zip(results).map(|(receipt, result)| ResultOut::of(receipt, result));
    json(StatusCode::OK, &ResultList { results: results.collect() })
}

/// Publishes and settles over any queues: all of it happens or none.
///
/// Of a refusal `key` says which part is at fault, as in `publish[3].priority` or `settle[0].receipts[2]`.
#[utoipa::path(
    post, path = "/v1/transactions", tag = "leases",
    request_body = TransactionIn,
    responses((status = 200, description = "Durable: what was published", body = PublishedList))
)]
async fn transact(
    At(desk): At,
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Json(ask): Json<TransactionIn>,
) -> Answer {
    let receipts = ask.receipt_counts();
    let (mut messages, settlements) = ask.into_parts(limits(&app))?;
    trace::inherit(&headers, &mut messages);
    let copies = batch::transact(&desk, messages, settlements, &receipts).await?;
    json(StatusCode::OK, &PublishedList::with_queues(copies))
}

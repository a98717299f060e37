//! Messages of a queue: publish, browse, show, and one by one remove and reprioritise.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;

use overtake_access::{Desk, NotDone};
use overtake_api::body::{Limits, PriorityIn, PublishIn};
use overtake_api::params::Params;
use overtake_api::raw;
use overtake_engine::{ANSWER_BYTES_MAX, Browse, BrowsedMessage, Page, Select, Target};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{BrowsedOut, CountOut, PageOut, PublishedList};
use crate::app::{Answer, App, done, json};
use crate::batch;
use crate::decode::{self, Json};
use crate::login::At;
use crate::path::{MessageId, QueueName};
use crate::schema::RawBodySchema;
use crate::trace;

/// The paths of messages.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(publish, browse))
        .routes(routes!(show_message, remove_message))
        .routes(routes!(cancel_message))
        .routes(routes!(reprioritise_message))
}

/// What the server allows a message.
pub(crate) fn limits(app: &App) -> Limits {
    Limits { max_message_bytes: app.options.max_message_bytes }
}

/// Publishes messages; answers once they are durable.
///
/// Many are published all or none; of a refusal `key` says which message is at fault, as in `messages[3]`.
///
/// As `application/json` a message or many. With any other `Content-Type` but a form's, the body of the request is the body of
/// the message, and the headers `Overtake-Priority`, `-Id`, `-Key`, `-Ttl-Ms`, `-Delay-Ms`, `-User-Id` and `-Header-NAME` say the
/// rest.
///
/// Messages without a header `traceparent` are of the trace that the request's own says (W3C Trace Context).
#[utoipa::path(
    post, path = "/v1/queues/{queue}/messages", tag = "messages",
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    request_body(content((PublishIn = "application/json"), (RawBodySchema = "application/octet-stream"))),
    responses((status = 201, description = "Durable", body = PublishedList))
)]
async fn publish(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(queue): QueueName,
    request: Request,
) -> Answer {
    let headers = request.headers().clone();
    let body = decode::read(request, app.options.max_request_bytes).await?;
    let mut messages = if decode::is_json(&headers) {
        decode::decode::<PublishIn>(&body)?.into_messages(&queue, limits(&app))?
    } else {
        vec![raw::for_queue(&headers, body, Target::Queue(queue), limits(&app))?]
    };
    trace::inherit(&headers, &mut messages);
    json(StatusCode::CREATED, &PublishedList::in_one_queue(batch::publish(&desk, messages).await?))
}

/// A page of messages, left where they are.
///
/// A request looks at about `looks` messages, whether they match or not; in dispatch order it also shows what it has found by then of those that
/// are leased, delayed or dead, up to `limit`. Its page then ends with a `next_cursor`, though it may have few messages or none; `looked_at` of
/// `in_queue` messages tell how far it came. Follow `next_cursor` until it is missing.
///
/// A page also ends early, with a `next_cursor`, where it has 16 MiB of content (bodies and headers, before they are encoded), but
/// not before its first message. Bodies that are not asked for do not count.
#[utoipa::path(
    get, path = "/v1/queues/{queue}/messages", tag = "messages",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("status" = Option<String>, Query, description = "`ready`, `delayed`, `leased` or `dead`"),
        ("priority" = Option<String>, Query, description = "A number or a name, in the words of the queue's scheme"),
        ("without_priority" = Option<bool>, Query, description = "`true`: only messages that were published without a priority"),
        ("key" = Option<String>, Query, description = "The key"),
        ("header.NAME" = Option<String>, Query, description = "The header NAME, compared as text; any number of them"),
        ("user_id" = Option<String>, Query, description = "The user that they say they are of"),
        ("order" = Option<String>, Query, description = "`dispatch` (as they will be leased), `published`, or `newest` (the last published first)"),
        ("limit" = Option<u64>, Query, description = "1 to 1000, else 50"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
        ("looks" = Option<u64>, Query, description = "At how many messages the request looks at most: 1 to 100000, else 100000"),
        ("body" = Option<String>, Query, description = "`full` or `none`"),
        ("properties" = Option<String>, Query, description = "`base64`: with `properties_base64`, or `text`"),
    ),
    responses((status = 200, description = "A page", body = PageOut))
)]
async fn browse(At(desk): At, QueueName(queue): QueueName, params: Params) -> Answer {
    let (browse, shown) = params.into_browse()?;
    let order = browse.order;
    let page = if shown.body {
        desk.browse(&queue, browse).await?
    } else {
        bare_page(&desk, &queue, browse).await?
    };
    json(StatusCode::OK, &PageOut::of(&page, order, shown))
}

/// A page whose bodies are not shown. The engine counts them, so it takes as many of its pages as make one, with no more looks than one has.
async fn bare_page(desk: &Desk, queue: &str, mut browse: Browse) -> Result<Page, NotDone> {
    let (mut all, mut bytes) = (Page::default(), 0);
    loop {
        let page = desk.browse(queue, browse.clone()).await?;
        let bare = |message: &BrowsedMessage| message.content.size() - message.content.body.len();
        bytes += page.messages.iter().map(bare).sum::<usize>() as u64;
        if bytes > ANSWER_BYTES_MAX && !all.messages.is_empty() {
            return Ok(all);
        }
        let is_out_of_looks =
            page.messages.is_empty() || browse.looks.is_some_and(|left| left as u64 <= page.looked_at);
        browse.looks = browse.looks.map(|left| left.saturating_sub(page.looked_at as usize));
        browse.limit -= page.messages.len();
        browse.cursor.clone_from(&page.next);
        all.messages.extend(page.messages);
        all.looked_at += page.looked_at;
        (all.next, all.in_queue) = (page.next, page.in_queue);
        if all.next.is_none() || browse.limit == 0 || is_out_of_looks {
            return Ok(all);
        }
    }
}

/// One message, with its positions.
#[utoipa::path(
    get, path = "/v1/queues/{queue}/messages/{id}", tag = "messages",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("id" = String, Path, description = "The publisher's id, or `seq-` and the sequence"),
        ("body" = Option<String>, Query, description = "`full` or `none`"),
        ("properties" = Option<String>, Query, description = "`base64`: with `properties_base64`, or `text`"),
    ),
    responses((status = 200, description = "The message", body = BrowsedOut))
)]
async fn show_message(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(queue): QueueName,
    MessageId(id): MessageId,
    params: Params,
) -> Answer {
    let shown = params.into_shown()?;
    let message = desk.message(&queue, &id).await?;
    json(StatusCode::OK, &BrowsedOut::alone(&message, shown, app.options.trace_url.as_deref()))
}

/// Removes one message, wherever in its life it stands.
#[utoipa::path(
    delete, path = "/v1/queues/{queue}/messages/{id}", tag = "messages",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("id" = String, Path, description = "The publisher's id, or `seq-` and the sequence"),
    ),
    responses((status = 204, description = "Gone"))
)]
async fn remove_message(At(desk): At, QueueName(queue): QueueName, MessageId(id): MessageId) -> Answer {
    desk.remove(&queue, Select::Id(id)).await?;
    done()
}

/// Takes one message back: what waits ends at once, as `cancelled` in the history of the queue.
///
/// Who has leased it is told when it asks to lengthen the lease (409, `cancel-asked`).
#[utoipa::path(
    post, path = "/v1/queues/{queue}/messages/{id}/cancel", tag = "messages",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("id" = String, Path, description = "The publisher's id, or `seq-` and the sequence"),
    ),
    responses((status = 204, description = "Gone, or asked for"))
)]
async fn cancel_message(At(desk): At, QueueName(queue): QueueName, MessageId(id): MessageId) -> Answer {
    desk.cancel_messages(&queue, Select::Id(id)).await?;
    done()
}

/// Gives one ready or delayed message another priority; it keeps its sequence.
#[utoipa::path(
    put, path = "/v1/queues/{queue}/messages/{id}/priority", tag = "messages",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("id" = String, Path, description = "The publisher's id, or `seq-` and the sequence"),
    ),
    request_body = PriorityIn,
    responses((status = 200, description = "Done", body = CountOut))
)]
async fn reprioritise_message(
    At(desk): At,
    QueueName(queue): QueueName,
    MessageId(id): MessageId,
    Json(PriorityIn { priority }): Json<PriorityIn>,
) -> Answer {
    let count = desk.reprioritise(&queue, Select::Id(id), priority.0).await?;
    json(StatusCode::OK, &CountOut { count })
}

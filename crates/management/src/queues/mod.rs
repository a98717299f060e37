//! Queues: listed, shown, declared, deleted, purged; what leads to them.

pub(crate) mod view;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use overtake_access::{Desk, NotDone, Tag};
use overtake_amqp::connection as amqp;
use overtake_amqp_session::{arguments, differs};
use overtake_engine::{DeclareQueue, DeleteOnly, Failure};
use overtake_lane::{QueueView, Refusal, Settings};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::{Answer, done, put};
use crate::ask::Ask;
use crate::policies::Definitions;
use crate::problem::Problem;
use crate::rates::Watched;
use crate::routes::Routes;
use crate::{bindings, lenient, messages, paging, tables};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Management, "/api/queues", list)
        .get(Tag::Management, "/api/queues/detailed", list)
        .get(Tag::Management, "/api/queues/{vhost}", list)
        .get(Tag::Management, "/api/queues/{vhost}/{name}", show)
        .put(Tag::Management, "/api/queues/{vhost}/{name}", declare)
        .delete(Tag::Management, "/api/queues/{vhost}/{name}", delete)
        .delete(Tag::Management, "/api/queues/{vhost}/{name}/contents", purge)
        .get(Tag::Management, "/api/queues/{vhost}/{name}/bindings", bindings::of_queue)
        .post(Tag::Management, "/api/queues/{vhost}/{name}/get", messages::get)
        .post(Tag::Management, "/api/queues/{vhost}/{name}/actions", act)
}

/// Every queue that may be seen at a desk.
pub(crate) async fn all(desk: &Desk) -> Result<Vec<QueueView>, Problem> {
    Ok(desk.queues(None, usize::MAX).await?.queues)
}

async fn list(ask: Ask) -> Answer {
    ask.app.watch(Watched::Queues);
    let mut items = Vec::new();
    for desk in ask.desks().await? {
        let queues = all(&desk).await?;
        let policies = Definitions::look(&desk).await?;
        items.extend(queues.iter().map(|queue| view::shown(&ask.app, desk.vhost(), queue, &policies)));
    }
    paging::list(&ask, items)
}

async fn show(ask: Ask) -> Answer {
    ask.app.watch(Watched::Queues);
    let desk = ask.desk().await?;
    let queue = desk.queue(ask.named("name")).await?;
    let mut item = view::shown(&ask.app, desk.vhost(), &queue, &Definitions::look(&desk).await?);
    let connected = ask.app.connections.look().await;
    let consumers = crate::consumers::all(&ask.app, &connected, std::slice::from_ref(&queue), desk.vhost());
    let tag_of = |key: &str| {
        let is_it = |consumer: &&Value| consumer[key] == true;
        consumers.iter().find(is_it).map_or(Value::Null, |consumer| consumer["consumer_tag"].clone())
    };
    item["exclusive_consumer_tag"] = tag_of("exclusive");
    if queue.effective_settings().single_active_consumer {
        item["single_active_consumer_tag"] = tag_of("active");
    }
    item["consumer_details"] = consumers.into();
    paging::one(&ask, item)
}

/// A queue as a tool declares it.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub(crate) struct QueuePut {
    #[serde(deserialize_with = "lenient::truth")]
    pub(crate) durable: bool,
    #[serde(deserialize_with = "lenient::truth")]
    pub(crate) auto_delete: bool,
    #[serde(deserialize_with = "lenient::truth")]
    pub(crate) exclusive: bool,
    #[serde(deserialize_with = "lenient::object")]
    pub(crate) arguments: Map<String, Value>,
    /// All its settings, where arguments do not say them: ours.
    pub(crate) settings: Option<Settings>,
}

impl Default for QueuePut {
    fn default() -> Self {
        Self { durable: true, auto_delete: false, exclusive: false, arguments: Map::new(), settings: None }
    }
}

impl QueuePut {
    /// The same as a client of AMQP declares it. One of a connection cannot be made here: there is none.
    pub(crate) fn wanted(&self, name: &str) -> Result<amqp::DeclareQueue, Problem> {
        if self.exclusive {
            return Err(Problem::bad("a queue of one connection is declared by that connection"));
        }
        Ok(amqp::DeclareQueue {
            name: name.to_owned(),
            passive: false,
            durable: self.durable,
            exclusive: false,
            auto_delete: self.auto_delete,
            arguments: tables::table(&self.arguments)?,
        })
    }

    /// The same as the engine is asked for it.
    pub(crate) fn queue(&self, wanted: &amqp::DeclareQueue, vhost: &str) -> Result<DeclareQueue, Problem> {
        let mut queue = arguments::queue(wanted, vhost)?;
        if let Some(settings) = &self.settings {
            settings.validate().map_err(Problem::bad)?;
            queue.settings = settings.clone();
        }
        Ok(queue)
    }
}

async fn declare(ask: Ask) -> Answer {
    let (desk, name) = (ask.desk().await?, ask.named("name"));
    let said = ask.body::<QueuePut>()?;
    let wanted = said.wanted(name)?;
    if name.starts_with("amq.") {
        return Err(Problem::denied(format_args!("queue name '{name}' contains reserved prefix 'amq.*'")));
    }
    let queue = said.queue(&wanted, desk.vhost())?;
    match desk.declare(name, queue).await {
        Ok(declared) => put(declared.made),
        Err(NotDone::Failed(Failure::Refused(refused))) if refused.refusal == Refusal::QueueDiffers => {
            let is = desk.queue(name).await?;
            Err(differs::queue(&wanted, &is, desk.vhost()).into())
        }
        Err(not_done) => Err(not_done.into()),
    }
}

async fn delete(ask: Ask) -> Answer {
    let only = DeleteOnly { if_empty: ask.demands("if-empty")?, if_unused: ask.demands("if-unused")? };
    ask.desk().await?.delete_queue(ask.named("name"), only).await?;
    done()
}

async fn purge(ask: Ask) -> Answer {
    ask.desk().await?.purge(ask.named("name"), None, None).await?;
    done()
}

/// What RabbitMQ's mirrored queues could be told, which means nothing here.
async fn act(ask: Ask) -> Answer {
    #[derive(Deserialize)]
    struct Act {
        action: String,
    }
    ask.desk().await?.queue(ask.named("name")).await?;
    let Act { action } = ask.body()?;
    match &*action {
        "sync" | "cancel_sync" => done(),
        other => Err(Problem::bad(format_args!("no such action: {other}"))),
    }
}

/// It is there now, under this path.
pub(crate) fn made_at(place: &str) -> Response {
    (StatusCode::CREATED, [(header::LOCATION, place.to_owned())]).into_response()
}

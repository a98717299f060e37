//! What is declared, as a file.

use overtake_access::Desk;
use overtake_amqp_session::arguments::kind_name;
use overtake_lane::QueueView;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::options::RABBITMQ_VERSION;
use crate::problem::Problem;
use crate::queues::QueuePut;
use crate::users::every_permission;
use crate::{bindings, parameters, queues, tables, users};

/// All there is.
pub(super) async fn whole(ask: &Ask) -> Result<Value, Problem> {
    let mut objects = Objects::default();
    let vhosts = ask.app.vhosts().await?;
    for vhost in &vhosts {
        objects.gather(&ask.desk_in(&vhost.name).await?).await?;
    }
    let directory = ask.app.desks.gate().roll().now();
    let users: Vec<Value> = directory.users().map(|(name, user)| users::shown(name, &user.account)).collect();
    let described = vhosts.iter().map(|vhost| {
        let (description, tags) = (&vhost.settings.description, &vhost.settings.tags);
        json!({
            "name": vhost.name,
            "description": description,
            "tags": tags,
            "metadata": {"description": description, "tags": tags},
        })
    });
    let all = parameters::read(&**ask.app.engine()).await?;
    Ok(json!({
        "rabbit_version": RABBITMQ_VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": "Overtake",
        "product_version": ask.app.options.version,
        "rabbitmq_definition_format": "cluster",
        "original_cluster_name": parameters::cluster_name(&ask.app).await?,
        "explanation": "Definitions of an Overtake broker",
        "users": users,
        "vhosts": described.collect::<Vec<_>>(),
        "permissions": every_permission(ask, None),
        "topic_permissions": [],
        "parameters": parameters::of_components(&all),
        "global_parameters": parameters::globals(&all),
        "policies": [],
        "queues": objects.queues,
        "exchanges": objects.exchanges,
        "bindings": objects.bindings,
    }))
}

/// What is in one virtual host, to be imported into any.
pub(super) async fn one_vhost(ask: &Ask, vhost: &str) -> Result<Value, Problem> {
    let mut objects = Objects::default();
    objects.gather(&ask.desk_in(vhost).await?).await?;
    let all = parameters::read(&**ask.app.engine()).await?;
    let mut here = parameters::of_components(&all);
    here.retain(|one| one["vhost"] == vhost);
    let settings = ask.app.engine().vhost(vhost).await?.settings;
    Ok(json!({
        "rabbit_version": RABBITMQ_VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": "Overtake",
        "product_version": ask.app.options.version,
        "rabbitmq_definition_format": "single_virtual_host",
        "original_vhost_name": vhost,
        "explanation": "Definitions of a virtual host of an Overtake broker",
        "metadata": {"description": settings.description, "tags": settings.tags, "default_queue_type": "classic"},
        "description": settings.description,
        "default_queue_type": "classic",
        "limits": [],
        "parameters": placeless(here),
        "policies": [],
        "queues": placeless(objects.queues),
        "exchanges": placeless(objects.exchanges),
        "bindings": placeless(objects.bindings),
    }))
}

fn placeless(mut all: Vec<Value>) -> Vec<Value> {
    for one in &mut all {
        one.as_object_mut().expect("it was made an object").remove("vhost");
    }
    all
}

/// A queue, with all its settings where its arguments do not say them: then it was made or changed in another way.
fn queue_defined(vhost: &str, queue: &QueueView) -> Value {
    let said = QueuePut {
        durable: queue.identity.durable,
        auto_delete: queue.identity.auto_delete,
        arguments: tables::remembered(&queue.identity.arguments).as_object().cloned().unwrap_or_default(),
        ..QueuePut::default()
    };
    let mut defined = json!({
        "name": queue.name,
        "vhost": vhost,
        "type": "classic",
        "durable": said.durable,
        "auto_delete": said.auto_delete,
        "arguments": said.arguments,
    });
    let follows = said.wanted(&queue.name).and_then(|wanted| said.queue(&wanted, vhost));
    if follows.is_ok_and(|follows| follows.settings != queue.settings) {
        defined["settings"] = json!(queue.settings);
    }
    defined
}

/// What was declared in virtual hosts, but for what is always there and what goes with its connection.
#[derive(Default)]
struct Objects {
    queues: Vec<Value>,
    exchanges: Vec<Value>,
    bindings: Vec<Value>,
}

impl Objects {
    async fn gather(&mut self, desk: &Desk) -> Result<(), Problem> {
        let vhost = desk.vhost();
        for queue in queues::all(desk).await?.iter().filter(|queue| !queue.identity.exclusive) {
            self.queues.push(queue_defined(vhost, queue));
        }
        for exchange in desk.exchanges().await?.iter().filter(|exchange| !exchange.name.starts_with("amq.")) {
            let settings = &exchange.settings;
            self.exchanges.push(json!({
                "name": exchange.name,
                "vhost": vhost,
                "type": kind_name(settings),
                "durable": settings.durable,
                "auto_delete": settings.auto_delete,
                "internal": settings.internal,
                "arguments": tables::remembered(&settings.arguments),
            }));
        }
        for binding in bindings::made(desk).await? {
            let mut shown = bindings::shown(vhost, &binding);
            shown.as_object_mut().expect("it was made an object").remove("properties_key");
            self.bindings.push(shown);
        }
        Ok(())
    }
}

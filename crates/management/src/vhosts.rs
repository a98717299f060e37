//! Virtual hosts.

use overtake_access::Tag;
use serde_json::{Value, json};

use crate::answer::{Answer, seen};
use crate::app::App;
use crate::ask::Ask;
use crate::paging;
use crate::problem::Problem;
use crate::queues;
use crate::rates::{Counts, Samples};
use crate::routes::Routes;
use crate::users::every_permission;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Management, "/api/vhosts", list)
        .get(Tag::Management, "/api/vhosts/{vhost}", show)
        .get(Tag::Administrator, "/api/vhosts/{vhost}/permissions", permissions)
        .get(Tag::Administrator, "/api/vhosts/{vhost}/topic-permissions", no_topic_permissions)
}

async fn shown(ask: &Ask, vhost: &str) -> Result<Value, Problem> {
    let desk = ask.desk_in(vhost).await?;
    let counts = queues::all(&desk).await?.iter().map(Counts::of).fold(Counts::default(), Counts::and);
    let samples = Samples::default();
    let mut shown = named(&ask.app, vhost);
    let fields = shown.as_object_mut().expect("it was made an object");
    fields.extend(samples.stocks(&counts));
    fields.insert("message_stats".to_owned(), samples.flows(&counts));
    Ok(shown)
}

/// What a virtual host is.
pub(crate) fn named(app: &App, vhost: &str) -> Value {
    let metadata = json!({ "description": "", "tags": [], "default_queue_type": "classic" });
    json!({
        "name": vhost,
        "description": "",
        "tags": [],
        "default_queue_type": "classic",
        "protected_from_deletion": false,
        "metadata": metadata,
        "tracing": false,
        "cluster_state": { app.options.node.as_str(): "running" },
    })
}

async fn list(ask: Ask) -> Answer {
    let mut items = Vec::new();
    for vhost in ask.app.vhosts().await? {
        if ask.sees(&vhost) {
            items.push(shown(&ask, &vhost).await?);
        }
    }
    paging::list(&ask, items)
}

async fn show(ask: Ask) -> Answer {
    let item = shown(&ask, ask.named("vhost")).await?;
    paging::one(&ask, item)
}

async fn permissions(ask: Ask) -> Answer {
    ask.must_be_vhost(ask.named("vhost")).await?;
    seen(&every_permission(&ask, Some(ask.named("vhost"))).into())
}

async fn no_topic_permissions(ask: Ask) -> Answer {
    ask.must_be_vhost(ask.named("vhost")).await?;
    seen(&json!([]))
}

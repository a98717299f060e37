//! Virtual hosts, and what each may hold.

use overtake_access::Tag;
use overtake_lane::{VhostSettings, VhostView};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, done, put, seen};
use crate::app::App;
use crate::ask::Ask;
use crate::problem::Problem;
use crate::rates::{Counts, Watched};
use crate::routes::Routes;
use crate::users::every_permission;
use crate::{lenient, paging, queues};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Management, "/api/vhosts", list)
        .get(Tag::Management, "/api/vhosts/{vhost}", show)
        .put(Tag::Administrator, "/api/vhosts/{vhost}", put_one)
        .delete(Tag::Administrator, "/api/vhosts/{vhost}", delete)
        .post(Tag::Administrator, "/api/vhosts/{vhost}/start/{node}", start)
        .get(Tag::Administrator, "/api/vhosts/{vhost}/permissions", permissions)
        .get(Tag::Administrator, "/api/vhosts/{vhost}/topic-permissions", no_topic_permissions)
        .get(Tag::Management, "/api/vhost-limits", all_limits)
        .get(Tag::Management, "/api/vhost-limits/{vhost}", limits)
        .put(Tag::Administrator, "/api/vhost-limits/{vhost}/{limit}", set_limit)
        .delete(Tag::Administrator, "/api/vhost-limits/{vhost}/{limit}", clear_limit)
}

async fn shown(ask: &Ask, vhost: &VhostView) -> Result<Value, Problem> {
    ask.app.watch(Watched::Queues);
    let desk = ask.desk_in(&vhost.name).await?;
    let queues = queues::all(&desk).await?;
    let counts = queues.iter().map(Counts::of).fold(Counts::default(), Counts::and);
    let samples = ask.app.rates.queues(&queues);
    let mut shown = described(&ask.app, vhost);
    let fields = shown.as_object_mut().expect("it was made an object");
    fields.extend(samples.stocks(&counts));
    fields.insert("message_stats".to_owned(), samples.flows(&counts));
    Ok(shown)
}

fn described(app: &App, vhost: &VhostView) -> Value {
    let VhostSettings { description, tags, .. } = &vhost.settings;
    let metadata = json!({ "description": description, "tags": tags, "default_queue_type": "classic" });
    json!({
        "name": vhost.name,
        "description": description,
        "tags": tags,
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
        if ask.sees(&vhost.name) {
            items.push(shown(&ask, &vhost).await?);
        }
    }
    paging::list(&ask, items)
}

/// The virtual host of the path.
async fn named(ask: &Ask) -> Result<VhostView, Problem> {
    Ok(ask.app.engine().vhost(ask.named("vhost")).await?)
}

async fn show(ask: Ask) -> Answer {
    let item = shown(&ask, &named(&ask).await?).await?;
    paging::one(&ask, item)
}

/// What a tool says of a virtual host. What it does not say stays.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VhostPut {
    pub(crate) description: Option<String>,
    #[serde(deserialize_with = "said_words")]
    pub(crate) tags: Option<Vec<String>>,
    /// Where a file of definitions says it, or part of it.
    pub(crate) metadata: Option<Box<VhostPut>>,
}

fn said_words<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    lenient::words(deserializer).map(Some)
}

impl VhostPut {
    /// The settings that follow from it.
    pub(crate) fn over(&self, before: &VhostSettings) -> VhostSettings {
        let inner = self.metadata.as_deref();
        let description = self.description.as_ref().or_else(|| inner?.description.as_ref());
        let tags = self.tags.as_ref().or_else(|| inner?.tags.as_ref());
        VhostSettings {
            description: description.unwrap_or(&before.description).clone(),
            tags: tags.unwrap_or(&before.tags).clone(),
            ..before.clone()
        }
    }
}

/// The one who creates a virtual host has all permissions there.
async fn put_one(ask: Ask) -> Answer {
    let (said, name): (VhostPut, _) = (ask.body()?, ask.named("vhost"));
    let before = ask.app.vhosts().await?.into_iter().find(|vhost| *vhost.name == *name);
    let settings = said.over(&before.map(|vhost| vhost.settings).unwrap_or_default());
    put(ask.office()?.put_vhost(name, settings).await?)
}

/// Deletes a virtual host with all that is in it, and the permissions there. Its connections are closed.
async fn delete(ask: Ask) -> Answer {
    ask.office()?.delete_vhost(ask.named("vhost")).await?;
    done()
}

/// One that is there runs.
async fn start(ask: Ask) -> Answer {
    named(&ask).await?;
    done()
}

async fn permissions(ask: Ask) -> Answer {
    ask.must_be_vhost(ask.named("vhost")).await?;
    seen(&every_permission(&ask, Some(ask.named("vhost"))).into())
}

async fn no_topic_permissions(ask: Ask) -> Answer {
    ask.must_be_vhost(ask.named("vhost")).await?;
    seen(&json!([]))
}

// ---- limits ----

/// The limits of a virtual host that has any.
fn limits_shown(vhost: &VhostView) -> Option<Value> {
    let VhostSettings { max_queues, max_connections, .. } = vhost.settings;
    let all = [("max-queues", max_queues), ("max-connections", max_connections)];
    let set = all.into_iter().filter_map(|(name, most)| Some((name.to_owned(), most?.into())));
    let set: Map<String, Value> = set.collect();
    (!set.is_empty()).then(|| json!({ "vhost": vhost.name, "value": set }))
}

async fn all_limits(ask: Ask) -> Answer {
    let mut all = ask.app.vhosts().await?;
    all.retain(|vhost| ask.sees(&vhost.name));
    seen(&all.iter().filter_map(limits_shown).collect::<Vec<_>>().into())
}

async fn limits(ask: Ask) -> Answer {
    ask.desk().await?;
    seen(&limits_shown(&named(&ask).await?).into_iter().collect::<Vec<_>>().into())
}

/// Another limit; as in RabbitMQ a number below 0 is none.
async fn limit(ask: &Ask, most: Option<i64>) -> Answer {
    let vhost = named(ask).await?;
    let most = most.and_then(|most| u64::try_from(most).ok());
    let mut settings = vhost.settings.clone();
    match ask.named("limit") {
        "max-queues" => settings.max_queues = most,
        "max-connections" => settings.max_connections = most,
        other => {
            return Err(Problem::bad(format_args!(
                "there is no limit `{other}`: max-queues, max-connections"
            )));
        }
    }
    ask.office()?.put_vhost(&vhost.name, settings).await?;
    done()
}

async fn set_limit(ask: Ask) -> Answer {
    ask.must_be_vhost(ask.named("vhost")).await?;
    let lenient::Limit { value } = ask.body()?;
    limit(&ask, Some(value)).await
}

async fn clear_limit(ask: Ask) -> Answer {
    limit(&ask, None).await
}

//! Parameters: small values that tools keep at the broker. They mean nothing here, but for the name of the cluster.
//!
//! ```text
//!   management/global/NAME                     JSON
//!   management/parameter/COMPONENT/VHOST/NAME  JSON
//! ```
//! Each part is percent-encoded.

use std::collections::BTreeMap;

use overtake_access::{Deed, Tag};
use overtake_engine::Engine;
use overtake_lane::MetadataEntry;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{Answer, done, put, seen};
use crate::app::App;
use crate::ask::Ask;
use crate::problem::Problem;
use crate::routes::Routes;

const ROOM: &str = "management/";
const GLOBAL: &str = "global";
const COMPONENT: &str = "parameter";
const CLUSTER_NAME: &str = "cluster_name";

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Policymaker, "/api/global-parameters", global_list)
        .get(Tag::Policymaker, "/api/global-parameters/{name}", global_show)
        .put(Tag::Administrator, "/api/global-parameters/{name}", global_put)
        .delete(Tag::Administrator, "/api/global-parameters/{name}", global_delete)
        .get(Tag::Policymaker, "/api/parameters", list)
        .get(Tag::Policymaker, "/api/parameters/{component}", list)
        .get(Tag::Policymaker, "/api/parameters/{component}/{vhost}", list)
        .get(Tag::Policymaker, "/api/parameters/{component}/{vhost}/{name}", show)
        .put(Tag::Policymaker, "/api/parameters/{component}/{vhost}/{name}", put_one)
        .delete(Tag::Policymaker, "/api/parameters/{component}/{vhost}/{name}", delete)
}

/// All parameters, by the parts of their keys.
pub(crate) type Parameters = BTreeMap<Vec<String>, Value>;

/// Reads all parameters there are.
pub(crate) async fn read(engine: &dyn Engine) -> Result<Parameters, Problem> {
    let mut all = Parameters::new();
    for (key, value) in engine.metadata().await? {
        let Some(ours) = key.strip_prefix(ROOM) else { continue };
        let parts = ours.split('/').map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned());
        if let Ok(value) = serde_json::from_slice(&value) {
            all.insert(parts.collect(), value);
        }
    }
    Ok(all)
}

fn encoded(parts: &[&str]) -> String {
    let parts: Vec<String> =
        parts.iter().map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string()).collect();
    format!("{ROOM}{}", parts.join("/"))
}

/// What sets a global parameter.
pub(crate) fn global_entry(name: &str, value: &Value) -> MetadataEntry {
    MetadataEntry::set(&encoded(&[GLOBAL, name]), value.to_string().as_bytes())
}

/// What sets a parameter of a component.
pub(crate) fn entry(component: &str, vhost: &str, name: &str, value: &Value) -> MetadataEntry {
    MetadataEntry::set(&encoded(&[COMPONENT, component, vhost, name]), value.to_string().as_bytes())
}

/// The global ones.
pub(crate) fn globals(all: &Parameters) -> Vec<Value> {
    let shown = |(parts, value): (&Vec<String>, &Value)| match &parts[..] {
        [kind, name] if kind == GLOBAL => Some(json!({ "name": name, "value": value })),
        _ => None,
    };
    all.iter().filter_map(shown).collect()
}

/// Those of components.
pub(crate) fn of_components(all: &Parameters) -> Vec<Value> {
    let shown = |(parts, value): (&Vec<String>, &Value)| match &parts[..] {
        [kind, component, vhost, name] if kind == COMPONENT => {
            Some(json!({ "component": component, "vhost": vhost, "name": name, "value": value }))
        }
        _ => None,
    };
    all.iter().filter_map(shown).collect()
}

#[derive(Deserialize)]
struct ParameterPut {
    value: Value,
}

/// Sets or removes one, and writes it down. Answers whether it was there.
async fn change(ask: &Ask, tag: Tag, parts: &[&str], value: Option<Value>) -> Result<bool, Problem> {
    let engine = ask.engine(tag)?;
    let key: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
    let before = read(&**engine).await?.remove(&key);
    let entry = match &value {
        Some(value) => MetadataEntry::set(&encoded(parts), value.to_string().as_bytes()),
        None => MetadataEntry::remove(&encoded(parts)),
    };
    engine.set_metadata(vec![entry]).await?;
    let (action, was_there) =
        (if value.is_some() { "parameter.put" } else { "parameter.delete" }, before.is_some());
    ask.app.desks.gate().record(Deed::of(Some(&ask.who), action, parts.join("/")).from_to(before, value));
    Ok(was_there)
}

// ---- of the whole broker ----

async fn global_list(ask: Ask) -> Answer {
    seen(&globals(&read(&**ask.engine(Tag::Policymaker)?).await?).into())
}

async fn global_show(ask: Ask) -> Answer {
    let all = globals(&read(&**ask.engine(Tag::Policymaker)?).await?);
    found(all, |one| one["name"] == ask.named("name"))
}

fn found(all: Vec<Value>, is_it: impl Fn(&Value) -> bool) -> Answer {
    seen(&all.into_iter().find(is_it).ok_or_else(Problem::not_found)?)
}

async fn global_put(ask: Ask) -> Answer {
    let ParameterPut { value } = ask.body()?;
    put(!change(&ask, Tag::Administrator, &[GLOBAL, ask.named("name")], Some(value)).await?)
}

async fn global_delete(ask: Ask) -> Answer {
    if change(&ask, Tag::Administrator, &[GLOBAL, ask.named("name")], None).await? {
        return done();
    }
    Err(Problem::not_found())
}

/// What the broker is called; unset: as its node.
pub(crate) async fn cluster_name(app: &App) -> Result<Value, Problem> {
    let key = vec![GLOBAL.to_owned(), CLUSTER_NAME.to_owned()];
    Ok(read(&**app.engine()).await?.remove(&key).unwrap_or_else(|| app.options.node.as_str().into()))
}

pub(crate) async fn set_cluster_name(ask: &Ask, name: &str) -> Result<(), Problem> {
    change(ask, Tag::Administrator, &[GLOBAL, CLUSTER_NAME], Some(name.into())).await.map(drop)
}

// ---- of components in virtual hosts ----

async fn list(ask: Ask) -> Answer {
    if let Some(vhost) = ask.in_path("vhost") {
        ask.desk_in(vhost).await?;
    }
    let mut all = of_components(&read(&**ask.engine(Tag::Policymaker)?).await?);
    let is = |one: &Value, part: &str| ask.in_path(part).is_none_or(|wanted| one[part] == wanted);
    all.retain(|one| is(one, "component") && is(one, "vhost"));
    all.retain(|one| one["vhost"].as_str().is_some_and(|vhost| ask.sees(vhost)));
    seen(&all.into())
}

async fn show(ask: Ask) -> Answer {
    ask.desk().await?;
    let all = of_components(&read(&**ask.engine(Tag::Policymaker)?).await?);
    found(all, |one| ["component", "vhost", "name"].iter().all(|part| one[part] == ask.named(part)))
}

fn parts(ask: &Ask) -> [&str; 4] {
    [COMPONENT, ask.named("component"), ask.named("vhost"), ask.named("name")]
}

async fn put_one(ask: Ask) -> Answer {
    ask.desk().await?;
    let ParameterPut { value } = ask.body()?;
    put(!change(&ask, Tag::Policymaker, &parts(&ask), Some(value)).await?)
}

async fn delete(ask: Ask) -> Answer {
    ask.desk().await?;
    if change(&ask, Tag::Policymaker, &parts(&ask), None).await? {
        return done();
    }
    Err(Problem::not_found())
}

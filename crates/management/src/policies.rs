//! Policies, and those of operators, which bound what users and their policies say.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_access::{Desk, Tag};
use overtake_lane::{Policy, PolicyKind, QueueView};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use serde_path_to_error::{Path, Segment};

use crate::answer::{Answer, done, put, seen};
use crate::ask::{Ask, with_place};
use crate::paging;
use crate::problem::Problem;
use crate::routes::Routes;

/// Of a policy of this kind its operator's.
const OPERATOR: bool = true;
/// Of a policy of this kind its users'.
const USER: bool = false;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Policymaker, "/api/policies", list::<USER>)
        .get(Tag::Policymaker, "/api/policies/{vhost}", list::<USER>)
        .get(Tag::Policymaker, "/api/policies/{vhost}/{name}", show::<USER>)
        .put(Tag::Policymaker, "/api/policies/{vhost}/{name}", put_one::<USER>)
        .delete(Tag::Policymaker, "/api/policies/{vhost}/{name}", delete::<USER>)
        .get(Tag::Policymaker, "/api/operator-policies", list::<OPERATOR>)
        .get(Tag::Policymaker, "/api/operator-policies/{vhost}", list::<OPERATOR>)
        .get(Tag::Policymaker, "/api/operator-policies/{vhost}/{name}", show::<OPERATOR>)
        .put(Tag::Administrator, "/api/operator-policies/{vhost}/{name}", put_one::<OPERATOR>)
        .delete(Tag::Administrator, "/api/operator-policies/{vhost}/{name}", delete::<OPERATOR>)
}

fn kind_of(is_operator: bool) -> PolicyKind {
    if is_operator { PolicyKind::Operator } else { PolicyKind::User }
}

/// A policy as tools write it. What else they say, as its name once more, is passed over.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PolicyPut {
    pattern: String,
    definition: Map<String, Value>,
    #[serde(default)]
    priority: Option<i32>,
    #[serde(default, alias = "apply_to")]
    apply_to: Option<String>,
}

fn value_at<'a>(value: &'a Value, path: &Path) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Map { key } => value.get(key),
        Segment::Seq { index } => value.get(index),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

impl PolicyPut {
    /// The policy that is meant.
    pub(crate) fn policy(&self, kind: PolicyKind) -> Result<Policy, Problem> {
        let mut fields = json!({ "pattern": self.pattern, "definition": self.definition });
        if let Some(priority) = self.priority {
            fields["priority"] = priority.into();
        }
        if let Some(apply_to) = &self.apply_to {
            fields["apply-to"] = apply_to.as_str().into();
        }
        let policy: Policy = serde_path_to_error::deserialize(&fields).map_err(|error| {
            let why = with_place(error.path(), error.inner());
            let value = value_at(&fields, error.path()).map(|value| format!(" (it is `{value}`)"));
            Problem::bad(format_args!("Validation failed: {why}{}", value.unwrap_or_default()))
        })?;
        policy.check(kind).map_err(Problem::bad)?;
        Ok(policy)
    }
}

/// A policy in RabbitMQ's shape.
pub(crate) fn shown(vhost: &str, name: &str, policy: &Policy) -> Value {
    let mut shown = json!({ "vhost": vhost, "name": name });
    let said = json!(policy);
    let fields = shown.as_object_mut().expect("it was made an object");
    fields.extend(said.as_object().cloned().unwrap_or_default());
    shown
}

async fn list<const IS_OPERATOR: bool>(ask: Ask) -> Answer {
    let mut items = Vec::new();
    for desk in ask.desks().await? {
        let policies = desk.policies(kind_of(IS_OPERATOR)).await?;
        items.extend(policies.iter().map(|(name, policy)| shown(desk.vhost(), name, policy)));
    }
    paging::list(&ask, items)
}

/// The policy of the path, if it is there.
async fn named(ask: &Ask, desk: &Desk, kind: PolicyKind) -> Result<Option<Policy>, Problem> {
    let mut policies = desk.policies(kind).await?.into_iter();
    Ok(policies.find(|(name, _)| **name == *ask.named("name")).map(|(_, policy)| policy))
}

async fn show<const IS_OPERATOR: bool>(ask: Ask) -> Answer {
    let desk = ask.desk().await?;
    let policy = named(&ask, &desk, kind_of(IS_OPERATOR)).await?.ok_or_else(Problem::not_found)?;
    seen(&shown(desk.vhost(), ask.named("name"), &policy))
}

async fn put_one<const IS_OPERATOR: bool>(ask: Ask) -> Answer {
    let (desk, kind) = (ask.desk().await?, kind_of(IS_OPERATOR));
    let said: PolicyPut = ask.body()?;
    let is_new = named(&ask, &desk, kind).await?.is_none();
    desk.set_policy(kind, ask.named("name"), said.policy(kind)?).await?;
    put(is_new)
}

async fn delete<const IS_OPERATOR: bool>(ask: Ask) -> Answer {
    let (desk, kind) = (ask.desk().await?, kind_of(IS_OPERATOR));
    named(&ask, &desk, kind).await?.ok_or_else(Problem::not_found)?;
    desk.remove_policy(kind, ask.named("name")).await?;
    done()
}

/// What the policies of a virtual host say, by their names.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    user: BTreeMap<Arc<str>, Value>,
    operator: BTreeMap<Arc<str>, Value>,
}

impl Definitions {
    pub(crate) async fn look(desk: &Desk) -> Result<Self, Problem> {
        let said = async |kind| {
            let policies = desk.policies(kind).await?.into_iter();
            Ok::<_, Problem>(policies.map(|(name, policy)| (name, json!(policy.definition))).collect())
        };
        Ok(Self { user: said(PolicyKind::User).await?, operator: said(PolicyKind::Operator).await? })
    }

    /// What the policies of a queue say together: of two numbers the less, else the operator's.
    pub(crate) fn effective(&self, queue: &QueueView) -> Value {
        let of = |name: &Option<Arc<str>>, all: &BTreeMap<Arc<str>, Value>| {
            let said = name.as_ref().and_then(|name| all.get(name)).and_then(Value::as_object);
            said.cloned().unwrap_or_default()
        };
        let mut both: Map<String, Value> = of(&queue.policy, &self.user);
        for (key, value) in of(&queue.operator_policy, &self.operator) {
            let less =
                both.get(&key).and_then(Value::as_i64).zip(value.as_i64()).map(|(one, other)| one.min(other));
            both.insert(key, less.map_or(value, Value::from));
        }
        both.into()
    }
}

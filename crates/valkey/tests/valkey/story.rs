//! What tests ask for: a list per key to which an id is added once, however often it is asked for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use overtake_peer::Vault;
use overtake_valkey::cluster::{Call, CallError, Cluster, Library, Nodes};
use redis::Value;
use tokio::time::Instant;

pub(crate) const LIBRARY: Library = Library { name: "story", version: 1, source: SOURCE };

const SOURCE: &str = "
redis.register_function('story_add', function(keys, args)
  if redis.call('SADD', keys[1], args[1]) == 0 then return 0 end
  redis.call('RPUSH', keys[2], args[1])
  return 1
end)
redis.register_function{function_name='story_all', flags={'no-writes'}, callback=function(keys)
  return redis.call('LRANGE', keys[2], 0, -1)
end}
redis.register_function('story_no', function() return redis.error_reply('STALE the lease is of another') end)
";

/// Longer than any test may take.
pub(crate) fn long() -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}

pub(crate) async fn connect(nodes: Nodes) -> Arc<Cluster> {
    Cluster::connect(nodes, Vault::Any, LIBRARY).await.expect("a cluster")
}

fn keys(tag: &str) -> Vec<Bytes> {
    vec![format!("{{{tag}}}:ids").into(), format!("{{{tag}}}:list").into()]
}

pub(crate) fn add(tag: &str, id: impl ToString) -> Call {
    Call::write("story_add", keys(tag), vec![id.to_string().into()])
}

pub(crate) fn no(tag: &str) -> Call {
    Call::write("story_no", keys(tag), vec![])
}

pub(crate) fn all(tag: &str) -> Call {
    Call::read("story_all", keys(tag), vec![])
}

/// What is in the list of a key, in its order.
pub(crate) async fn list(cluster: &Cluster, tag: &str) -> Vec<String> {
    match cluster.call(long(), all(tag)).await {
        Ok(Value::Array(items)) => items.into_iter().map(super::world::text).collect(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

pub(crate) fn refused(answer: &Result<Value, CallError>) -> String {
    match answer {
        Err(CallError::Refused(fault)) => fault.code().to_owned(),
        other => panic!("{other:?}"),
    }
}

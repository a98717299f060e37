//! What tests ask for: a list per key to which an id is added once, however often it is asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use overtake_peer::Vault;
use overtake_valkey::cluster::{Call, CallError, Cluster, Library, Nodes};
use redis::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::world::{text, until};

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

/// Short, for what is not to come.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(2)
}

/// Longer than any test may take.
pub(crate) fn long() -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}

pub(crate) async fn connect(nodes: Nodes) -> Arc<Cluster> {
    Cluster::connect(nodes, Vault::ANY, LIBRARY).await.expect("a cluster")
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
        Ok(Value::Array(items)) => items.into_iter().map(text).collect(),
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

/// Writers, one for each tag, which add numbers from 0 on, some at a time, until they are told to end.
pub(crate) struct Load {
    done: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    writers: JoinSet<(String, usize)>,
}

impl Load {
    pub(crate) fn begin(cluster: &Arc<Cluster>, tags: &[String], at_once: usize) -> Self {
        let (done, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let mut writers = JoinSet::new();
        for tag in tags {
            let (cluster, tag) = (Arc::clone(cluster), tag.clone());
            let (done, is_over) = (Arc::clone(&done), Arc::clone(&is_over));
            writers.spawn(async move {
                let mut count = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let calls = (count..count + at_once).map(|id| add(&tag, id)).collect();
                    for answer in cluster.calls(long(), calls).await {
                        // Where it was in doubt it may have been there.
                        assert!(matches!(answer, Ok(Value::Int(0 | 1))), "{answer:?}");
                    }
                    count += at_once;
                    done.fetch_add(at_once, Ordering::Relaxed);
                }
                (tag, count)
            });
        }
        Self { done, is_over, writers }
    }

    /// Until so many more are there.
    pub(crate) async fn more(&self, count: usize) {
        let wanted = self.done.load(Ordering::Relaxed) + count;
        until(async || self.done.load(Ordering::Relaxed) >= wanted).await;
    }

    /// Every call had its answer; what became of it is not looked at.
    pub(crate) async fn leave(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.writers.join_all().await;
    }

    /// Everything that was answered is there, once, in its order; how much that is.
    pub(crate) async fn end(self, cluster: &Cluster) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        let mut sum = 0;
        for (tag, count) in self.writers.join_all().await {
            assert_eq!(list(cluster, &tag).await, numbers(count), "of {tag}");
            sum += count;
        }
        sum
    }
}

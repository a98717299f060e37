//! The least a priority queue must do, so that several stores can do the same work.

use std::path::Path;

use bytes::Bytes;

/// A queue on a directory of its own, asked by one thread.
///
/// A lease may end with the process, which puts the message back, or outlive it.
pub(super) trait MinimalQueue: Sized {
    /// What to show when acknowledging.
    type Ticket;
    /// Whether it makes batches durable on its own, several in flight, without being told to by [`MinimalQueue::sync`].
    const IS_PIPELINED: bool;

    /// A new one in an empty directory.
    fn create(dir: &Path) -> Self;
    /// The one that is there, after whatever happened to it.
    fn open(dir: &Path) -> Self;

    /// Adds messages. They can be leased at once.
    fn publish_batch(&mut self, batch: Vec<Message>);
    /// At most so many messages that nobody has: the most urgent first, the oldest first among equals.
    fn lease_batch(&mut self, max: usize) -> Vec<Leased<Self::Ticket>>;
    /// Forgets messages that were leased.
    fn ack_batch(&mut self, tickets: Vec<Self::Ticket>);
    /// All of the above is durable when this returns.
    fn sync(&mut self);
}

/// A message to publish.
#[derive(Clone)]
pub(super) struct Message {
    /// Larger is more urgent.
    pub(super) priority: u8,
    pub(super) body: Bytes,
}

/// A message, lent.
pub(super) struct Leased<T> {
    pub(super) ticket: T,
    pub(super) priority: u8,
    pub(super) body: Bytes,
}

/// The one story every store must tell alike, before its speed is worth anything. In one thing they differ: what can be
/// leased in the second life, while `e:9` was leased and not acknowledged in the first.
#[cfg(test)]
pub(super) fn check<Q: MinimalQueue>(then: &str) {
    fn lease<Q: MinimalQueue>(queue: &mut Q, max: usize) -> (String, Vec<Q::Ticket>) {
        let leased = queue.lease_batch(max);
        let seen: Vec<String> = leased
            .iter()
            .map(|one| format!("{}:{}", String::from_utf8_lossy(&one.body), one.priority))
            .collect();
        (seen.join(" "), leased.into_iter().map(|one| one.ticket).collect())
    }
    let message = |body: &'static str, priority| Message { priority, body: body.into() };
    let dir = tempfile::tempdir().expect("a directory");
    let mut queue = Q::create(dir.path());
    queue.publish_batch(vec![message("a", 1), message("b", 5), message("c", 1), message("d", 5)]);
    queue.sync();
    let (seen, tickets) = lease(&mut queue, 3);
    assert_eq!(seen, "b:5 d:5 a:1");
    queue.ack_batch(tickets);
    queue.publish_batch(vec![message("e", 9)]);
    queue.sync();
    assert_eq!(lease(&mut queue, 1).0, "e:9");
    drop(queue);

    let mut queue = Q::open(dir.path());
    queue.publish_batch(vec![message("f", 1)]);
    let (seen, tickets) = lease(&mut queue, 10);
    assert_eq!(seen, then);
    queue.ack_batch(tickets);
    queue.sync();
    drop(queue);
    assert_eq!(lease(&mut Q::open(dir.path()), 10).0, "");
}

//! Spans that wait to be told to somebody.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::SpanSink;
use super::span::Span;

/// A bounded queue of spans: what does not fit is dropped and counted, and nobody ever waits to put one in.
#[derive(Debug)]
pub struct SpanQueue {
    spans: Mutex<VecDeque<Span>>,
    most: usize,
    came: Notify,
    dropped: AtomicU64,
}

impl SpanQueue {
    /// For so many spans.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        let (spans, came) = (Mutex::default(), Notify::new());
        Arc::new(Self { spans, most, came, dropped: AtomicU64::new(0) })
    }

    /// Takes so many at most, the oldest first.
    #[must_use]
    pub fn take(&self, most: usize) -> Vec<Span> {
        let mut spans = self.spans();
        let len = spans.len().min(most);
        spans.drain(..len).collect()
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans().len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until one came since this was last waited for.
    pub async fn came(&self) {
        self.came.notified().await;
    }

    /// How many were dropped since it was made, here or before they came.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn spans(&self) -> MutexGuard<'_, VecDeque<Span>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpanSink for SpanQueue {
    fn ended(&self, span: Span) {
        let mut spans = self.spans();
        if spans.len() >= self.most {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_empty = spans.is_empty();
        spans.push_back(span);
        drop(spans);
        if was_empty {
            self.came.notify_one();
        }
    }

    fn missed(&self, spans: u64) {
        self.dropped.fetch_add(spans, Ordering::Relaxed);
    }
}

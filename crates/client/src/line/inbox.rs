//! Messages that came for a consumer and were not taken yet.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::Error;
use crate::received::Received;

/// A message, and what to settle it by.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The connection it came over.
    pub(crate) life: u64,
    pub(crate) tag: u64,
    pub(crate) received: Received,
}

/// What one consumer was given. As many at most as its window.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    inner: Mutex<Inner>,
    /// The connection that is.
    life: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    came: VecDeque<Incoming>,
    waker: Option<Waker>,
    /// Why nothing more comes.
    end: Option<Error>,
    is_ended: bool,
    /// Nobody takes anything out.
    is_closed: bool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more. False: nobody wants it.
    pub(super) fn push(&self, incoming: Incoming) -> bool {
        let mut inner = self.lock();
        if inner.is_closed {
            return false;
        }
        inner.came.push_back(incoming);
        inner.wake();
        true
    }

    /// What came over another connection than this one comes again.
    pub(super) fn begin(&self, life: u64) {
        self.life.store(life, Ordering::Relaxed);
        self.lock().came.clear();
    }

    /// Nothing more comes.
    pub(super) fn end(&self, why: Error) {
        let mut inner = self.lock();
        if !inner.is_ended {
            inner.end = Some(why);
            inner.is_ended = true;
        }
        inner.wake();
    }

    /// Nobody takes anything out any more. Answers what is left.
    pub(super) fn close(&self) -> VecDeque<Incoming> {
        let mut inner = self.lock();
        inner.is_closed = true;
        std::mem::take(&mut inner.came)
    }

    /// All that came, into an empty `batch`; or why nothing comes any more, once; `None` after that.
    pub(crate) fn poll(
        &self,
        cx: &mut Context<'_>,
        batch: &mut VecDeque<Incoming>,
    ) -> Poll<Option<Result<(), Error>>> {
        let mut inner = self.lock();
        if !inner.came.is_empty() {
            std::mem::swap(&mut inner.came, batch);
            return Poll::Ready(Some(Ok(())));
        }
        if inner.is_ended {
            return Poll::Ready(inner.end.take().map(Err));
        }
        match &mut inner.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// The connection over which what comes now comes.
    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::Relaxed)
    }
}

impl Inner {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

//! The body of a request as the listener lets it through: no larger than the client may send, and no slower.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::HttpBody;
use axum::http::StatusCode;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use overtake_api::problem::Problem;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Sleep;

use crate::budget::{Holding, PATIENCE};
use crate::patience::{FLOOR, Patience};

/// Longest body of a request that shows nothing by which its sender could be known.
pub(crate) const WITHOUT_LOGIN_MAX: u64 = 8 << 10;

/// The reason why the rest of a body is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cut {
    /// The client took too long.
    Slow = 1,
    /// The client must log in to send as much.
    Large = 2,
    /// There is no memory for more.
    Crowded = 3,
}

impl Cut {
    /// The response in place of the handler's, which saw no more than that the body ended.
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::Slow => Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "body-too-slow",
                "the body of the request came too slowly",
                "send the body without long pauses, faster than 1 KiB per second",
            )
            .detail(format!(
                "the body was awaited for too long; at least {FLOOR} bytes per second are expected"
            )),
            Self::Crowded => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "memory-used-up",
                "the memory for requests of all connections is used up",
                "try again later, send less at once, or raise server.connection_memory_bytes",
            ),
            Self::Large => Problem::too_large(
                "request-too-large",
                "the body of a request without a login is too large",
                WITHOUT_LOGIN_MAX,
                "a login at /v1/session takes no more; with anything else send `Authorization: Basic` with name and password (curl -u NAME:PASSWORD), or `Authorization: Bearer` with a token",
            ),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slow => "it came too slowly",
            Self::Large => "it is too large without a login",
            Self::Crowded => "there is no memory for it",
        })
    }
}

impl std::error::Error for Cut {}

/// Tells the listener why a body was cut, after the handler has had its say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate(Arc<AtomicU8>);

impl Fate {
    pub(crate) fn cut(&self) -> Option<Cut> {
        match self.0.load(Ordering::Acquire) {
            1 => Some(Cut::Slow),
            2 => Some(Cut::Large),
            3 => Some(Cut::Crowded),
            _ => None,
        }
    }

    fn set(&self, cut: Cut) -> Box<dyn std::error::Error + Send + Sync> {
        self.0.store(cut as u8, Ordering::Release);
        Box::new(cut)
    }
}

/// What a request holds of the memory that all connections share: its body, until it is answered.
pub(crate) type Share = Arc<Mutex<Holding>>;

/// Memory that is waited for.
type Waiting = (Pin<Box<OwnedNotified>>, Pin<Box<Sleep>>);

/// A body that is read with [`Patience`], up to a limit if there is one, and no further than there is memory for.
pub(crate) struct Watched<B> {
    body: B,
    patience: Patience,
    room: Option<u64>,
    share: Share,
    waiting: Option<Waiting>,
    fate: Fate,
}

impl<B> Watched<B> {
    pub(crate) fn new(body: B, patience: Duration, most: Option<u64>, share: Share, fate: Fate) -> Self {
        Self { body, patience: Patience::new(patience), room: most, share, waiting: None, fate }
    }

    /// Ready when the body may go on, or not: there was no memory for too long.
    fn poll_memory(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        loop {
            let share = lock(&self.share);
            if share.may_grow() {
                self.waiting = None;
                return Poll::Ready(true);
            }
            let Some((freed, patience)) = &mut self.waiting else {
                share.count_wait();
                self.waiting = Some((Box::pin(share.freed()), Box::pin(tokio::time::sleep(PATIENCE))));
                continue;
            };
            if patience.as_mut().poll(context).is_ready() {
                share.count_refusal();
                return Poll::Ready(false);
            }
            ready!(freed.as_mut().poll(context));
            *freed = Box::pin(share.freed());
        }
    }
}

fn lock(share: &Share) -> MutexGuard<'_, Holding> {
    share.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B> HttpBody for Watched<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if !ready!(this.poll_memory(context)) {
            return Poll::Ready(Some(Err(this.fate.set(Cut::Crowded))));
        }
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            ready!(this.patience.poll_wait(context));
            return Poll::Ready(Some(Err(this.fate.set(Cut::Slow))));
        };
        let frame = match frame {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        this.patience.moved(bytes);
        lock(&this.share).add(bytes as u64);
        if let Some(room) = &mut this.room {
            match room.checked_sub(bytes as u64) {
                Some(left) => *room = left,
                None => return Poll::Ready(Some(Err(this.fate.set(Cut::Large)))),
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

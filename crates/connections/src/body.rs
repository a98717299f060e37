//! The body of a request as the listener lets it through: no larger than the client may send, and no slower.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::HttpBody;
use axum::http::StatusCode;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use overtake_api::problem::Problem;

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
            Self::Large => Problem::too_large(
                "request-too-large",
                "the body of a request without a login is too large",
                WITHOUT_LOGIN_MAX,
                "send `Authorization: Basic` with name and password (curl -u NAME:PASSWORD), or `Authorization: Bearer` with a token",
            ),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slow => "it came too slowly",
            Self::Large => "it is too large without a login",
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
            _ => None,
        }
    }

    fn set(&self, cut: Cut) -> Box<dyn std::error::Error + Send + Sync> {
        self.0.store(cut as u8, Ordering::Release);
        Box::new(cut)
    }
}

/// A body that is read with [`Patience`], up to a limit if there is one.
pub(crate) struct Watched<B> {
    body: B,
    patience: Patience,
    room: Option<u64>,
    fate: Fate,
}

impl<B> Watched<B> {
    pub(crate) fn new(body: B, patience: Duration, most: Option<u64>, fate: Fate) -> Self {
        Self { body, patience: Patience::new(patience), room: most, fate }
    }
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

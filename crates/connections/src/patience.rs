//! How long the broker waits for the other end of an HTTP connection to send or to take bytes.
//!
//! A limit for a whole request would cut large uploads, and a limit between two bytes lets a client hold a connection for days with a byte
//! now and then. So waiting is a budget: it begins full, time spent waiting for the other end takes from it, and bytes that move put back
//! what they may take at [`FLOOR`]. A client that keeps to the floor is never cut, and may pause for as long as the budget is.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Bytes per second that the other end must send or take on average.
pub(crate) const FLOOR: u32 = 1_024;

/// The budget of one direction of one connection.
#[derive(Debug)]
pub(crate) struct Patience {
    most: Duration,
    left: Duration,
    /// Since when nothing moves, and what rings when the budget is used up.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        Self { most, left: most, waiting: None }
    }

    /// Nothing moves now. Ready when the other end has no time left.
    pub(crate) fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let left = self.left;
        let (_, alarm) =
            self.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
        alarm.as_mut().poll(context)
    }

    /// So many bytes moved.
    pub(crate) fn moved(&mut self, bytes: usize) {
        if let Some((since, _)) = self.waiting.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
        if self.left < self.most {
            let earned = Duration::from_secs_f64(bytes as f64 / f64::from(FLOOR));
            self.left = self.most.min(self.left.saturating_add(earned));
        }
    }
}

/// A stream whose other end must take what is written.
#[derive(Debug)]
pub(crate) struct Impatient<S> {
    stream: S,
    writes: Patience,
}

impl<S> Impatient<S> {
    pub(crate) fn new(stream: S, most: Duration) -> Self {
        Self { stream, writes: Patience::new(most) }
    }

    fn judge(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => self.writes.moved(bytes),
            Poll::Ready(Err(_)) => {}
            Poll::Pending if self.writes.poll_wait(context).is_ready() => {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the client does not read the answer",
                )));
            }
            Poll::Pending => {}
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context).map_ok(|()| 0);
        self.judge(flushed, context).map_ok(drop)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context).map_ok(|()| 0);
        self.judge(ended, context).map_ok(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::advance;

    use super::*;

    const MOST: Duration = Duration::from_secs(30);

    /// Whether the budget is used up after so many seconds in which nothing moves.
    async fn is_used_up(patience: &mut Patience, seconds: u64) -> bool {
        let first = poll_fn(|context| Poll::Ready(patience.poll_wait(context).is_ready())).await;
        advance(Duration::from_secs(seconds)).await;
        first || poll_fn(|context| Poll::Ready(patience.poll_wait(context).is_ready())).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_keeps_to_the_floor_is_never_cut() {
        let mut patience = Patience::new(MOST);
        for second in 0..10_000 {
            assert!(!is_used_up(&mut patience, 1).await, "after {second} s");
            patience.moved(FLOOR as usize);
        }
        for minute in 0..1_000 {
            assert!(!is_used_up(&mut patience, 29).await, "after {minute} pauses");
            patience.moved(29 * FLOOR as usize);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_does_not_hold_a_connection() {
        let mut patience = Patience::new(MOST);
        let mut seconds = 0;
        while !is_used_up(&mut patience, 1).await {
            patience.moved(1);
            seconds += 1;
            assert!(seconds < 40, "a byte per second is far below the floor");
        }
        assert!(seconds >= 28, "{seconds} s: the budget is there to be used");
    }

    #[tokio::test(start_paused = true)]
    async fn what_moved_before_is_no_reason_to_wait_for_ever() {
        let mut patience = Patience::new(MOST);
        patience.moved(1 << 30);
        assert!(!is_used_up(&mut patience, 29).await);
        assert!(is_used_up(&mut patience, 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_ends_and_one_that_is_read_slowly_does_not() {
        let (near, _far) = tokio::io::duplex(16);
        let error = Impatient::new(near, MOST).write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        let (near, mut far) = tokio::io::duplex(20 * FLOOR as usize);
        let reading = tokio::spawn(async move {
            let mut into = vec![0; 20 * FLOOR as usize];
            for _ in 0..100 {
                advance(Duration::from_secs(19)).await;
                far.read_exact(&mut into).await.expect("it goes on");
            }
        });
        let mut writer = Impatient::new(near, MOST);
        writer.write_all(&vec![0; 100 * 20 * FLOOR as usize]).await.expect("it is read");
        reading.await.expect("it reads all");
    }
}

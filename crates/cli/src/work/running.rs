//! A program that runs: it is fed its message, and the end of what it prints is kept.

use std::io::PipeReader;
use std::os::fd::OwnedFd;
use std::process::ChildStdin;
use std::sync::Arc;

use rustix::process::WaitStatus;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Job;
use super::display::Shown;
use super::group::Group;
use super::item::Item;
use super::printed::Printed;
use super::program::Started;

/// Bytes of a read.
const READ_BYTES: usize = 16 << 10;
/// What a pipe holds at most: what is read after the end of a group, if somebody outside it still prints.
const REST_BYTES_MAX: usize = 1 << 20;
/// A longer line is shown in pieces.
const LINE_BYTES_MAX: usize = 4 << 10;

/// A program, its group, and who reads and writes for it.
pub(crate) struct Running {
    pub(crate) group: Group,
    ended: oneshot::Receiver<WaitStatus>,
    feeder: JoinHandle<()>,
    reader: JoinHandle<String>,
    /// Nothing of the group is left to print.
    over: oneshot::Sender<()>,
}

impl Running {
    /// Starts the program for a message. What it prints is kept there.
    pub(crate) fn start(item: &mut Item, printed: Printed, job: &Job) -> std::io::Result<Self> {
        let around = job.supply.around();
        let Started { leader, ended, input, output } = job.program.start(item, &around, &job.reaper)?;
        let group = Group::of(leader, Arc::clone(&job.reaper));
        let body = std::mem::take(&mut item.body);
        let feeder = tokio::spawn(async move { feed(input, &body).await });
        let (over, is_over) = oneshot::channel();
        let show = job.plan.show.then(|| Shown::of(&item.id, job.display.clone()));
        let reader = tokio::spawn(Reader { printed, show, line: Vec::new() }.read(output, is_over));
        Ok(Self { group, ended, feeder, reader, over })
    }

    /// Waits until the program itself has ended, whatever it left.
    pub(crate) async fn ended(&mut self) -> Option<WaitStatus> {
        (&mut self.ended).await.ok()
    }

    /// How it ended, once its group is gone, and the end of what was printed.
    pub(crate) async fn close(mut self, status: Option<WaitStatus>) -> (Option<WaitStatus>, String) {
        // What was not read by now is never read.
        self.feeder.abort();
        let _ = self.over.send(());
        let output = self.reader.await.unwrap_or_default();
        // Not waited for: what even SIGKILL does not end has no status.
        (status.or_else(|| self.ended.try_recv().ok()), output)
    }
}

/// Writes the body, then the end. A program need not read it.
async fn feed(input: Option<ChildStdin>, body: &[u8]) {
    let Some(Ok(mut input)) = input.map(|input| pipe::Sender::from_owned_fd(OwnedFd::from(input))) else {
        return;
    };
    // A program that reads no more has read enough.
    let _ = input.write_all(body).await;
}

/// Who reads what a program prints.
struct Reader {
    printed: Printed,
    show: Option<Shown>,
    line: Vec<u8>,
}

impl Reader {
    /// Reads to the end, or what is there when nobody is left to print.
    async fn read(mut self, output: PipeReader, mut is_over: oneshot::Receiver<()>) -> String {
        let Ok(mut output) = pipe::Receiver::from_owned_fd(OwnedFd::from(output)) else {
            return String::new();
        };
        let mut bytes = vec![0; READ_BYTES];
        loop {
            tokio::select! {
                read = output.read(&mut bytes) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(len) => self.take(&bytes[..len]).await,
                },
                _ = &mut is_over => {
                    self.read_rest(&output, &mut bytes).await;
                    break;
                }
            }
        }
        self.show_line().await;
        self.printed.text()
    }

    async fn read_rest(&mut self, output: &pipe::Receiver, bytes: &mut [u8]) {
        let mut rest = 0;
        while rest < REST_BYTES_MAX {
            // Not by the runtime, which may not have heard yet that there is something. It does not wait.
            match rustix::io::read(output, &mut *bytes) {
                Ok(0) | Err(_) => return,
                Ok(len) => {
                    self.take(&bytes[..len]).await;
                    rest += len;
                }
            }
        }
    }

    async fn take(&mut self, bytes: &[u8]) {
        self.printed.push(bytes);
        if self.show.is_none() {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() >= LINE_BYTES_MAX {
                self.show_line().await;
            }
        }
    }

    async fn show_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if let Some(show) = self.show.as_ref().filter(|_| !line.is_empty()) {
            show.line(&line).await;
        }
    }
}

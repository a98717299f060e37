//! The one who hears of every process that ends below the worker.
//!
//! Programs are waited for here and nowhere else, so that what they leave behind can be waited for, too: on Linux the worker is
//! the parent of whatever loses its own below it, in a container mostly of everything.

use std::collections::HashMap;
use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::process::{Pid, WaitOptions, WaitStatus, wait};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, oneshot};

/// Who is told what.
pub(crate) struct Reaper {
    programs: Mutex<HashMap<Pid, oneshot::Sender<WaitStatus>>>,
    ended: Notify,
}

impl Reaper {
    /// From now on every process that ends is heard of.
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        adopt()?;
        let mut signals = signal(SignalKind::child())?;
        let reaper = Arc::new(Self { programs: Mutex::default(), ended: Notify::new() });
        let ours = Arc::clone(&reaper);
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                ours.reap();
            }
        });
        Ok(reaper)
    }

    /// Starts a program. How it ends is told once.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<(Child, oneshot::Receiver<WaitStatus>)> {
        // Under the lock: it may end before it is known.
        let mut programs = self.programs();
        let child = command.spawn()?;
        let (tell, ended) = oneshot::channel();
        programs.insert(Pid::from_child(&child), tell);
        Ok((child, ended))
    }

    /// Waits until some process has ended, from when this is polled first.
    pub(crate) async fn some_ended(&self) {
        self.ended.notified().await;
    }

    fn reap(&self) {
        let mut programs = self.programs();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if let Some(tell) = programs.remove(&pid) {
                // A program that nobody waits for any more is reaped all the same.
                let _ = tell.send(status);
            }
        }
        self.ended.notify_waiters();
    }

    fn programs(&self) -> MutexGuard<'_, HashMap<Pid, oneshot::Sender<WaitStatus>>> {
        self.programs.lock().expect("nothing panics under this lock")
    }
}

/// Makes the worker the parent of whatever loses its own below it.
#[cfg(target_os = "linux")]
fn adopt() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Elsewhere that is process 1.
#[cfg(not(target_os = "linux"))]
fn adopt() -> io::Result<()> {
    Ok(())
}

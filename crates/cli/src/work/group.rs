//! The process group of a program: the program, its children, and theirs. A group ends as a whole.

use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::time::{sleep, timeout};

use super::reaper::Reaper;
use super::stage::{Stage, Stages};

/// How often a group is looked at whose processes may be other people's to wait for.
const LOOK: Duration = Duration::from_millis(100);
/// What SIGKILL does not end in this time hangs in the kernel, or its parent outside the group does not wait for it.
const KILLED: Duration = Duration::from_secs(2);

/// A group, named by the program that leads it.
pub(crate) struct Group {
    leader: Pid,
    reaper: Arc<Reaper>,
}

impl Group {
    /// The group that a program leads.
    pub(crate) fn of(leader: Pid, reaper: Arc<Reaper>) -> Self {
        Self { leader, reaper }
    }

    /// Ends it: SIGTERM, after `grace` SIGKILL, or at once when the worker leaves.
    pub(crate) async fn end(&self, grace: Duration, stages: &Stages) {
        if self.is_gone() {
            return;
        }
        self.signal(Signal::TERM);
        tokio::select! {
            () = self.gone() => return,
            () = sleep(grace) => {}
            () = stages.reached(Stage::Leaving) => {}
        }
        self.signal(Signal::KILL);
        let _ = timeout(KILLED, self.gone()).await;
    }

    /// Waits until nothing of it is left.
    async fn gone(&self) {
        while !self.is_gone() {
            let _ = timeout(LOOK, self.reaper.some_ended()).await;
        }
    }

    fn is_gone(&self) -> bool {
        test_kill_process_group(self.leader) == Err(Errno::SRCH)
    }

    /// It may have ended meanwhile.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
    }
}

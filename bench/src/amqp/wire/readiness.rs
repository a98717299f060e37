//! Which of many sockets have something to be read, without asking each.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::Timespec;
use rustix::event::epoll;

use super::Source;

/// At most so many are told at once.
const AT_ONCE: usize = 256;

/// By epoll(7), level-triggered.
pub(crate) struct Readiness {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Readiness {
    pub(crate) fn of(sources: &[Box<dyn Source>]) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (at, source) in sources.iter().enumerate() {
            let at = epoll::EventData::new_u64(at as u64);
            epoll::add(&epoll, source.socket(), at, epoll::EventFlags::IN)?;
        }
        Ok(Self { epoll, events: Vec::with_capacity(AT_ONCE) })
    }

    /// The indices of those that have something to be read, after at most so long.
    pub(crate) fn wait(&mut self, wait: Duration) -> Result<impl Iterator<Item = usize>> {
        let wait = Timespec { tv_sec: wait.as_secs().try_into()?, tv_nsec: wait.subsec_nanos().into() };
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("looking whether there is something to be read"),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize))
    }
}

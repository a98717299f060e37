//! The client's end of a connection: how far it is, and its channels.

use std::collections::BTreeMap;

use bytes::BytesMut;
use overtake_engine::NewMessage;

use super::Habits;
use super::channel::Channel;

/// How far a connection is, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Start,
    Tune,
    Open,
    Running,
    /// The client has closed it.
    Closing,
    Over,
}

/// The client's end.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) stage: Stage,
    /// What has come and was not understood yet.
    pub(super) unread: BytesMut,
    /// What was agreed on, bytes; 0 before.
    pub(super) frame_max: u32,
    pub(super) channels: BTreeMap<u16, Channel>,
    /// When it last said something, µs.
    pub(super) said_at: u64,
    pub(super) wants_notice: bool,
    pub(super) is_blocked: bool,
    /// In doubt since their channels ended.
    lost: Vec<NewMessage>,
}

impl Side {
    pub(super) fn new(habits: Habits) -> Self {
        Self {
            stage: Stage::Start,
            unread: BytesMut::new(),
            frame_max: 0,
            channels: BTreeMap::new(),
            said_at: 0,
            wants_notice: habits.wants_notice,
            is_blocked: false,
            lost: Vec::new(),
        }
    }

    /// A channel is over. What was not confirmed is in doubt.
    pub(super) fn end_channel(&mut self, number: u16) {
        if let Some(mut channel) = self.channels.remove(&number) {
            self.lost.extend(channel.doubts());
        }
    }

    /// What is in doubt now that the connection is gone, or since channels are.
    pub(super) fn doubts(&mut self) -> Vec<NewMessage> {
        for number in self.channels.keys().copied().collect::<Vec<_>>() {
            self.end_channel(number);
        }
        self.take_lost()
    }

    pub(super) fn take_lost(&mut self) -> Vec<NewMessage> {
        std::mem::take(&mut self.lost)
    }

    /// Whether nothing is waited for.
    pub(super) fn is_content(&self) -> bool {
        self.stage == Stage::Running && self.channels.values().all(Channel::is_content)
    }
}

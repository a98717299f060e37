//! What the suite needs of an engine that it tests.

use std::future::Future;
use std::sync::Arc;

use overtake_lane::{Settings, Time};

use crate::api::Engine;

/// An engine under test, freshly opened and empty, and the hands that move its time and restart it.
///
/// An engine with a clock of its own waits in [`Fixture::advance`] until the time has passed; the suite moves time by
/// seconds at most, and never claims that something did *not* happen in less.
pub trait Fixture: Send {
    /// The engine as it runs now.
    fn engine(&self) -> Arc<dyn Engine>;

    /// The settings of a queue that is to have these, for an engine that keeps queues in a way of its own: what they mean stays the same.
    fn settings(&self, settings: Settings) -> Settings {
        settings
    }

    /// The time by the engine's clock.
    fn now(&self) -> Time;

    /// Lets so much time pass.
    fn advance(&self, ms: u64) -> impl Future<Output = ()> + Send;

    /// Stops the engine as planned and starts it again on what it kept.
    fn restart(&mut self) -> impl Future<Output = ()> + Send;

    /// Ends the engine without warning, as hard as can be, and starts it again on what it kept. One that cannot be ended so
    /// restarts as planned.
    fn crash(&mut self) -> impl Future<Output = ()> + Send {
        self.restart()
    }
}

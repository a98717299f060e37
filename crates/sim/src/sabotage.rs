//! Bugs planted on purpose, so that each checker is seen to catch one. They sit in the simulator's own doors: what the
//! disk keeps, what the driver does, what a checker is shown.

use std::sync::Arc;

use overtake_engine::RouteSet;

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Publishes are confirmed before they are committed.
    ConfirmsEarly,
    /// Settlements are confirmed before they are committed.
    SettlesEarly,
    /// After a recovery the driver does again what was asked before the crash and never answered.
    ReplaysInbox,
    /// Two deliveries of one lane change places.
    SwapsInLane,
    /// A delivery changes places with a more urgent one.
    SwapsLanes,
    /// A delivery is handed out twice.
    DeliversTwice,
    /// Queues get a cap one higher than was asked for.
    RaisesCaps,
    /// Queues are declared without their backoff.
    ForgetsBackoff,
    /// The engine's clock is behind.
    ClockBehind,
    /// The engine's clock is the wall clock, whoever sets it.
    BelievesWallClock,
    /// A copy is missing in an answer.
    LosesCopy,
    /// A message is missing on a page.
    ShowsLess,
    /// A change of many messages leaves one out.
    ChangesLess,
    /// A look goes through all messages in one step.
    LooksAtAll,
    /// A settlement is not counted.
    Miscounts,
    /// A lease or put-back is lost on its way to the disk.
    LosesFact,
    /// Nobody keeps house.
    HoardsJournal,
    /// A request that takes more than the prepared files have is not kept back until the next one is there.
    NeverWaits,
    /// The alarm is set too late.
    Oversleeps,
    /// A publish over AMQP is confirmed and never asked for.
    SwallowsPublish,
    /// An acknowledgement over AMQP is never asked for.
    SwallowsAck,
    /// Of metadata that is set together only the first is.
    SetsLess,
    /// A virtual host is declared without its limit of queues.
    ForgetsLimits,
    /// A policy is set with another priority.
    RulesOtherwise,
    /// A byte on its way to a client that speaks AMQP is another.
    BendsBytes,
    /// Of routes that are set together only half are.
    SetsSomeRoutes,
    /// Routes are set with other priorities.
    RoutesOtherwise,
    /// Routes are set without their times to live.
    ForgetsRouteTimes,
    /// A lease is asked for without the lanes it is from.
    TakesAnyLane,
    /// An endpoint does not settle some of what its receiver has.
    DropsSettles,
    /// An endpoint does not put back what it did not send.
    LosesPutBacks,
    /// The line of an endpoint goes on when it is told to halt.
    IgnoresHalt,
    /// An endpoint asks for nothing more urgent while it sends.
    LooksAway,
    /// The line of an endpoint sends what is over.
    SendsExpired,
    /// The line of an endpoint sends a batch from its end.
    SendsBackwards,
    /// The line of an endpoint does not say that the receiver has a message.
    ForgetsAnswer,
    /// All that has come due is done in one step.
    DoesAllAtOnce,
}

impl Sabotage {
    /// The routes that are set when these are to be.
    pub(crate) fn of_routes(self, set: &Arc<RouteSet>) -> Arc<RouteSet> {
        let mut manifest = set.manifest().clone();
        match self {
            Self::SetsSomeRoutes => manifest.routes.truncate(manifest.routes.len().div_ceil(2)),
            Self::RoutesOtherwise => {
                let priorities = manifest.routes.iter_mut().filter_map(|route| route.priority.as_mut());
                priorities.for_each(|priority| *priority = 9 - *priority);
            }
            Self::ForgetsRouteTimes => {
                manifest.ttl_secs = None;
                manifest.routes.iter_mut().for_each(|route| route.ttl_secs = None);
            }
            _ => return Arc::clone(set),
        }
        Arc::new(RouteSet::new(manifest))
    }
}

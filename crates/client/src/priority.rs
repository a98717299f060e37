//! How urgent work is, and scopes that have a priority.
//!
//! A scope goes with a task: whatever the task awaits, or calls, is inside. A task that is spawned begins without one; [`InPriority`] hands it on.

use std::fmt;
use std::future::Future;

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    /// The priority of the scope; `None`: outside of any, although one may be around.
    static SCOPE: Option<Priority>;
}

/// How urgent a message is: any whole number, larger is more urgent. Five have names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// −100: imports, rebuilding everything.
    pub const BULK: Self = Self(-100);
    /// −50: migrations, backfills.
    pub const LOW: Self = Self(-50);
    /// 0: what people wait for, and what holds where nobody says anything.
    pub const NORMAL: Self = Self(0);
    /// 50: what must not wait behind that, such as payments.
    pub const HIGH: Self = Self(50);
    /// 100: security, compliance.
    pub const CRITICAL: Self = Self(100);

    /// The priority of that name, in any case; `background`, of the scheme `named`, is [`Priority::BULK`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "BULK" | "BACKGROUND" => Self::BULK,
            "LOW" => Self::LOW,
            "NORMAL" => Self::NORMAL,
            "HIGH" => Self::HIGH,
            "CRITICAL" => Self::CRITICAL,
            _ => return None,
        })
    }

    /// The priority of the scope this is called in, else [`Priority::NORMAL`].
    #[must_use]
    pub fn current() -> Self {
        scope().unwrap_or_default()
    }
}

/// The five names, else the number.
impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BULK => f.write_str("BULK"),
            Self::LOW => f.write_str("LOW"),
            Self::NORMAL => f.write_str("NORMAL"),
            Self::HIGH => f.write_str("HIGH"),
            Self::CRITICAL => f.write_str("CRITICAL"),
            Self(number) => number.fmt(f),
        }
    }
}

impl From<i32> for Priority {
    fn from(number: i32) -> Self {
        Self(number)
    }
}

impl From<Priority> for i32 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

/// What the scope says, if there is one.
pub(crate) fn scope() -> Option<Priority> {
    SCOPE.try_with(|scope| *scope).unwrap_or_default()
}

/// The scope that something was made in, until it is used: in another scope, that one holds. So `with_priority(LOW, client.publish(…))` is LOW, although
/// the arguments of a call are evaluated before it, and what was called in a scope keeps it where it is awaited outside of any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MadeIn(Option<Priority>);

impl MadeIn {
    pub(crate) fn here() -> Self {
        Self(scope())
    }

    /// The scope that holds now.
    pub(crate) fn scope(self) -> Option<Priority> {
        scope().or(self.0)
    }
}

/// A future in a scope. See [`with_priority`] and [`InPriority`].
pub type Scoped<F> = TaskLocalFuture<Option<Priority>, F>;

/// Runs a future in a scope of this priority: what it publishes has it, unless the message says another. Scopes nest, the innermost wins;
/// when the future ends, panics or is dropped, the scope around it holds again.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use overtake_client::{Priority, with_priority};
///
/// with_priority(Priority::LOW, async {
///     assert_eq!(Priority::current(), Priority::LOW);
///     with_priority(Priority::CRITICAL, async {
///         assert_eq!(Priority::current(), Priority::CRITICAL);
///     })
///     .await;
///     assert_eq!(Priority::current(), Priority::LOW);
/// })
/// .await;
/// assert_eq!(Priority::current(), Priority::NORMAL);
/// # });
/// ```
pub fn with_priority<F: Future>(priority: impl Into<Priority>, future: F) -> Scoped<F> {
    SCOPE.scope(Some(priority.into()), future)
}

/// Runs a function in a scope of this priority, for what does not await anything.
///
/// ```
/// use overtake_client::{Priority, with_priority_sync};
///
/// assert_eq!(with_priority_sync(7, Priority::current), Priority(7));
/// ```
pub fn with_priority_sync<R>(priority: impl Into<Priority>, call: impl FnOnce() -> R) -> R {
    SCOPE.sync_scope(Some(priority.into()), call)
}

/// Futures that take a scope along to where they are awaited.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use overtake_client::{InPriority, Priority, with_priority};
///
/// with_priority(Priority::LOW, async {
///     let spawned = tokio::spawn(async { Priority::current() }.in_current_priority());
///     assert_eq!(spawned.await.unwrap(), Priority::LOW);
/// })
/// .await;
/// # });
/// ```
pub trait InPriority: Future + Sized {
    /// In the scope in which this is called, or outside of any.
    fn in_current_priority(self) -> Scoped<Self> {
        SCOPE.scope(scope(), self)
    }

    /// As [`with_priority`].
    fn in_priority(self, priority: impl Into<Priority>) -> Scoped<Self> {
        with_priority(priority, self)
    }
}

impl<F: Future> InPriority for F {}

/// In the scope of a message: its priority, or outside of any.
pub(crate) fn of_message<F: Future>(priority: Option<Priority>, future: F) -> Scoped<F> {
    SCOPE.scope(priority, future)
}

/// A call in the scope of a message.
pub(crate) fn sync_of_message<R>(priority: Option<Priority>, call: impl FnOnce() -> R) -> R {
    SCOPE.sync_scope(priority, call)
}

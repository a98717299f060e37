//! Work that only one of the brokers on the same servers does at a time: one of them leads, the others are ready to follow it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// The broker that does some work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Leader {
    /// Not known: nobody here does the work.
    #[default]
    Unknown,
    /// This broker.
    Us {
        /// Higher each time that the work goes to another broker. Always 0 where there can be no other.
        fence: u64,
        /// The name of this broker, where there can be others.
        broker: Option<Arc<str>>,
    },
    /// Another broker.
    Other {
        /// Its name.
        broker: Arc<str>,
    },
}

impl Leader {
    /// Whether this broker does the work.
    #[must_use]
    pub fn is_us(&self) -> bool {
        matches!(self, Self::Us { .. })
    }

    /// The name of the broker that does the work, where that is known and there can be several.
    #[must_use]
    pub fn broker(&self) -> Option<&Arc<str>> {
        match self {
            Self::Unknown => None,
            Self::Us { broker, .. } => broker.as_ref(),
            Self::Other { broker } => Some(broker),
        }
    }
}

/// A wish to do some work, of which one broker at a time does it. Dropping it lets another broker begin.
pub struct Leadership {
    leader: watch::Receiver<Leader>,
    /// Dropped with it.
    _wish: Option<Box<dyn Any + Send + Sync>>,
}

impl Leadership {
    /// Where no other broker can do the work.
    #[must_use]
    pub fn undisputed() -> Self {
        let (_, leader) = watch::channel(Leader::Us { fence: 0, broker: None });
        Self { leader, _wish: None }
    }

    /// Told so who leads; `wish` is dropped when nobody here wants to lead any more.
    #[must_use]
    pub fn new(leader: watch::Receiver<Leader>, wish: impl Any + Send + Sync) -> Self {
        Self { leader, _wish: Some(Box::new(wish)) }
    }

    /// The broker that leads now.
    #[must_use]
    pub fn leader(&self) -> Leader {
        self.leader.borrow().clone()
    }

    /// Whether this broker does the work now. A broker that cannot reach the servers is told no before another may begin.
    #[must_use]
    pub fn is_us(&self) -> bool {
        self.leader.borrow().is_us()
    }

    /// Told whenever another broker leads.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Leader> {
        self.leader.clone()
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leadership").field(&*self.leader.borrow()).finish()
    }
}

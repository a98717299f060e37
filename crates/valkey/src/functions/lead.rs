//! Work of which one process at a time does it.

use std::sync::Arc;

use bytes::Bytes;
use redis::Value;

use super::ask::text;
use super::define::Process;
use super::told::{Malformed, Part};
use crate::cluster::Call;

/// The key where it is kept who leads, and the channel on which is told that work was given back.
pub const LEADERS: &str = "{overtake}:leaders";

/// Asks for work, goes on with it, or gives it back.
#[derive(Clone, Debug)]
pub struct Lead {
    /// Who asks.
    pub process: Process,
    /// For so long from now; 0: it is given back.
    pub ms: u64,
    /// The names of the work.
    pub works: Vec<Arc<str>>,
}

/// Who leads some work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Led {
    /// The process.
    pub process: Process,
    /// Higher each time that another process begins with the work.
    pub fence: u64,
}

impl Lead {
    /// As a call.
    #[must_use]
    pub fn call(&self) -> Call {
        let works = self.works.iter().map(|work| Bytes::copy_from_slice(work.as_bytes()));
        let who = [Bytes::from(self.process.to_string()), Bytes::from(text(self.ms))];
        let call = Call::write_below("ot_lead", LEADERS, who.into_iter().chain(works).collect());
        Call { is_promise: false, ..call }
    }

    /// Who leads each work, in the order in which it was asked for; none where it was given back.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(value: &Value) -> Result<Vec<Led>, Malformed> {
        let led = |pair: &[Value]| {
            let [process, fence] = pair else { return Err(Malformed) };
            let fence = Part(fence).text()?.parse().map_err(|_| Malformed)?;
            Ok(Led { process: Process::named(Part(process).text()?), fence })
        };
        Part(value).parts()?.chunks(2).map(led).collect()
    }
}

//! Who consumes, of all processes.

use super::ask::{Asked, text};
use super::told::{Declined, Malformed, Part};

/// From now on a process has so many consumers that stay: asked of the first place. Declined with [`ConsumerExclusive`](overtake_lane::Refusal::ConsumerExclusive) where there are more than
/// before and one of them, or one of another process, is to be the only one.
#[derive(Clone, Debug)]
pub struct Attend {
    /// The process.
    pub process: String,
    /// How long it is believed to be there that says nothing more, ms.
    pub ms: u64,
    /// How many it has.
    pub consumers: u64,
    /// Whether one of them is to be the only one.
    pub is_exclusive: bool,
}

/// Who consumes besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attended {
    /// Consumers that other processes have.
    pub others: u64,
    /// This process came first of those that have consumers.
    pub is_first: bool,
    /// Whether anybody ever had one.
    pub has_begun: bool,
}

impl Asked for Attend {
    const FUNCTION: &'static str = "ot_attend";
    const IS_PROMISE: bool = false;
    type Answer = Result<Attended, Declined>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        let Self { process, ms, consumers, is_exclusive } = self;
        arguments.extend([process.as_bytes().to_vec(), text(ms), text(consumers)]);
        arguments.push(text(u8::from(*is_exclusive)));
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        what.or_declined_all(|parts| {
            let [others, is_first, has_begun] = parts else { return Err(Malformed) };
            let (others, is_first) = (Part(others).count()?, Part(is_first).count()? == 1);
            Ok(Attended { others, is_first, has_begun: Part(has_begun).count()? == 1 })
        })
    }
}

//! Whose a place is: asked of places that nobody may know, and said to those that are adopted.

use redis::Value;

use super::define::Of;
use super::told::{Malformed, Part};
use crate::cluster::Call;

/// Asks whose a place is.
#[derive(Clone, Copy, Debug)]
pub struct Whose;

/// What a place says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The text of [`Of`]; empty: an older version made it, which did not say.
    pub of: String,
    /// What [`Configure::queue`](super::Configure::queue) said last.
    pub queue: Vec<u8>,
    /// The name of its queue.
    pub name: String,
    /// How many messages it has.
    pub messages: u64,
}

impl Whose {
    /// As a call to the place whose keys begin so.
    #[must_use]
    pub fn call(self, base: &str) -> Call {
        Call { is_write: false, ..Call::write_below("ot_whose", base, Vec::new()) }
    }

    /// What it comes to; `None`: there is no such place.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(value: &Value) -> Result<Option<Owned>, Malformed> {
        match Part(value).parts()? {
            [word] if Part(word).bytes()? == b"gone" => Ok(None),
            [of, queue, name, messages] => Ok(Some(Owned {
                of: Part(of).text()?.to_owned(),
                queue: Part(queue).bytes()?.to_vec(),
                name: Part(name).text()?.to_owned(),
                messages: Part(messages).count()?,
            })),
            _ => Err(Malformed),
        }
    }
}

/// Says to a place whose it is from now on.
#[derive(Clone, Debug)]
pub struct Adopt {
    /// What it says of itself now, or nothing is changed.
    pub from: String,
    /// What it says from now on.
    pub of: Of,
}

impl Adopt {
    /// As a call to the place whose keys begin so.
    #[must_use]
    pub fn call(self, base: &str) -> Call {
        Call::write_below("ot_adopt", base, vec![self.from.into(), self.of.as_str().to_owned().into()])
    }

    /// Whether it says so now.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn is_done(value: &Value) -> Result<bool, Malformed> {
        Ok(Part(value).number()? == 1)
    }
}

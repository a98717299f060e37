//! What goes next at a place, seen and not taken.

use overtake_lane::Head;
use redis::Value;

use super::ask::{maybe, text};
use super::told::{Malformed, Part, Where, read_heads};
use crate::cluster::Call;

/// Looks at what goes next where nothing but the lanes decides it: not messages of a key that are out, not a lane's cap. Nothing is changed, and no time passes: what is over by now is there
/// still, and what is due is not ready yet.
#[derive(Clone, Copy, Debug)]
pub struct Peek {
    /// Most messages, 1 or more.
    pub most: u32,
    /// From this level down; `None`: from the most urgent one.
    pub from: Option<i32>,
}

/// A message that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Where it stands.
    pub stands: Where,
    /// How large it is.
    pub bytes: u64,
}

/// What is seen of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The number of the last call there: what another one says is older or newer.
    pub calls: u64,
    /// What it shows, of each lane.
    pub heads: Vec<Head>,
    /// What goes next, in order. Less than was asked for: there is no more.
    pub ready: Vec<Ready>,
}

impl Peek {
    /// As a call to the place whose keys begin so, of this queue.
    #[must_use]
    pub fn call(self, base: &str, of: &str) -> Call {
        let args = [of.into(), text(self.most), maybe(self.from)].map(Into::into).to_vec();
        Call { is_write: false, ..Call::write_below("ot_peek", base, args) }
    }

    /// What it comes to; `None`: there is no such place, or it is of another queue.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(value: &Value) -> Result<Option<Outlook>, Malformed> {
        match Part(value).parts()? {
            [word] if Part(word).bytes()? == b"gone" => Ok(None),
            [word, _] if Part(word).bytes()? == b"another" => Ok(None),
            [calls, heads, ready] => {
                let (all, []) = Part(ready).bytes()?.as_chunks::<24>() else { return Err(Malformed) };
                let one = |one: &[u8; 24]| {
                    let (stands, bytes) = one.split_first_chunk::<16>()?;
                    let bytes = u64::from_be_bytes(bytes.try_into().ok()?);
                    Some(Ready { stands: Where(*stands), bytes })
                };
                Ok(Some(Outlook {
                    calls: Part(calls).count()?,
                    heads: read_heads(Part(heads).bytes()?)?,
                    ready: all.iter().map(|member| one(member).ok_or(Malformed)).collect::<Result<_, _>>()?,
                }))
            }
            _ => Err(Malformed),
        }
    }
}

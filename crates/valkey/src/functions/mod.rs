//! What a place does: server-side functions, how they are asked, and what they answer.
//!
//! What the functions mean is what one queue of [`overtake_lane::Broker`] does; a test compares the two on random histories. Who waits, who shares what is leased,
//! and where dead letters and records go that leave their queue is for whoever asks.
//!
//! # What leaves
//! its queue is kept apart until it is elsewhere. An answer says that there is something ([`Told::Done`]); whoever reads it asks for it ([`Leaving`]), has the places take it to which it goes
//! ([`Admit`], with an [`Arrival`]), and says what became of it ([`Left`]). Several may do that at once: each place answers the same to the same message.
//!
//! # Asking
//! A call names whose place it is ([`Of`]), who calls, and the number of the call. One to a place of another queue changes
//! nothing ([`Told::Another`]): definitions that were lost cannot give anybody what is another's. One that is asked again, because its answer was lost, is answered as it was, and nothing is done twice: a place remembers the last
//! [`CALLS_MAX`] calls of each caller for ten minutes.
//!
//! # Time
//! is the server's, and never goes back in a place. Whatever is asked, what was to happen by itself until now has happened before.

mod administer;
mod arrival;
mod ask;
mod attend;
mod define;
mod lead;
mod leaving;
mod look;
mod parts;
mod peek;
mod roll;
mod slots;
mod terms;
mod told;
mod whose;

use crate::cluster::Library;

pub use administer::{Cancel, FinishLate, Purge, Remove, Replay, Reprioritise, SendHome, Which};
pub use arrival::{Arrival, Provenance};
pub use ask::{
    Admit, Alive, Asked, Call, Choice, Configure, Configured, Extend, Extended, Finish, Forget, How, Leasing,
    Offer, Out, RETURNED_MAX, Said, Settle, Standing, Sweep, Unknown, Use, View,
};
pub use attend::{Attend, Attended};
pub use define::{
    DEFINITIONS, Decide, Decision, Define, Defined, Enrol, Enrolled, Of, Process, Read, Rebase, Restate,
    Version, random,
};
pub use lead::{LEADERS, Lead, Led};
pub use leaving::{Fate, Leaver, Leaving, Left};
pub use look::{Ahead, Find, LOOKS_MAX, List, Look, Looked, Single};
pub use parts::{Abort, Admission, AtFault, Commit, Overdue, Parts, Prepare, Transact};
pub use peek::{Outlook, Peek, Ready};
pub use roll::{Introduce, Introduced};
pub use slots::{GiveBackSlots, Grant, Slots};
pub use terms::Terms;
pub(crate) use told::read_heads;
pub use told::{Admitted, Declined, Malformed, Part, Seen, Shown, Stored, Told, Where};
pub use whose::{Adopt, Owned, Whose};

/// Calls of one caller that a place remembers: so many may be under way at once.
pub const CALLS_MAX: u64 = 64;

/// The library, as servers load it.
pub const LIBRARY: Library = Library { name: "overtake", version: 4, source: SOURCE };

/// What it consists of. The last files use what is before them, and nothing uses them: each is a block of its own, since a chunk of Lua has no more than 200 local names.
const SOURCE: &str = concat!(
    include_str!("register.lua"),
    include_str!("slots.lua"),
    include_str!("levels.lua"),
    include_str!("place.lua"),
    include_str!("groups.lua"),
    include_str!("producers.lua"),
    include_str!("stand.lua"),
    include_str!("attendance.lua"),
    include_str!("left.lua"),
    include_str!("records.lua"),
    include_str!("life.lua"),
    include_str!("publish.lua"),
    include_str!("lease.lua"),
    "do\n",
    include_str!("transact.lua"),
    "end\ndo\n",
    include_str!("grants.lua"),
    "end\ndo\n",
    include_str!("attend.lua"),
    "end\ndo\n",
    include_str!("leaving.lua"),
    "end\ndo\n",
    include_str!("admin.lua"),
    "end\ndo\n",
    include_str!("see.lua"),
    "end\ndo\n",
    include_str!("terms.lua"),
    "end\ndo\n",
    include_str!("define.lua"),
    "end\ndo\n",
    include_str!("roll.lua"),
    "end\ndo\n",
    include_str!("lead.lua"),
    "end\n",
);

//! The model of Overtake, pure: no IO, clock, threads or randomness.
//!
//! A **queue** is an ordered set of **lanes**, each a FIFO; a **picker** names the lane whose head goes next.

mod admin;
mod alarms;
mod bitmap;
mod broker;
mod browse;
mod clock;
mod command;
mod consuming;
mod dead_letters;
mod deaths;
mod declaring;
mod entries;
mod exchanges;
mod fact;
mod fold;
mod groups;
mod history;
mod identity;
mod ids;
mod index;
mod lane;
mod letters;
mod merge;
mod message;
mod metadata;
mod ordinals;
mod partitions;
mod pattern;
mod picker;
mod policy;
mod position;
mod priority;
mod priority_lanes;
mod producers;
mod progress;
mod publishing;
mod pulling;
mod pushes;
mod queue;
mod rate;
mod readers;
mod record;
mod refusal;
mod remains;
mod remote;
mod restate;
mod roster;
mod round;
mod run;
mod seqs;
mod sessions;
mod settings;
mod spilling;
mod stats;
mod ticking;
mod topology;
mod units;
mod vhosts;
mod view;
mod walk;
mod windows;

pub use broker::{Broker, Options};
pub use clock::{CLOCK_KEY, CLOCK_STEP_MS};
pub use command::{
    Address, Command, Consume, Copy, Delivery, Effect, Existing, Few, Get, Gone, Outcome, Part, Publish,
    Published, Reply, RouteCopy, Step, Urgency, UrgentCredit, Which,
};
pub use dead_letters::Onward;
pub use deaths::{DEATHS_MAX, Death, DeathReason, Deaths};
pub use fact::Fact;
pub use fold::{Scan, Unfounded};
pub use identity::Identity;
pub use ids::{
    Asker, ConsumerId, FeedId, LEASE_COUNTER_BITS, LeaseId, MalformedReceipt, Numbers, Place, QueueId,
    Receipt, Seq, SessionId, Time, VhostId, WindowId,
};
pub use letters::{FURTHER_KEYS_LEN_MAX, Letter, Letters, NoLetters, Route};
pub use merge::{Merger, PlaceNumber};
pub use message::{Extras, Located, Message, PutBack, Settled, State, Status, public_id, seq_of_public_id};
pub use metadata::{
    METADATA_BYTES_MAX, METADATA_ENTRY_COST, METADATA_KEY_LEN_MAX, METADATA_VALUE_LEN_MAX, MetadataEntry,
    MetadataSize,
};
pub use ordinals::Ordinals;
pub use partitions::{PARTITION_BANDS_MAX, PLACES_MAX, PartitionMode, Partitions, Traits};
pub use pattern::{BadPattern, PATTERN_LEN_MAX, Pattern};
pub use picker::Head;
pub use policy::{
    ApplyTo, DEFINITION_BYTES_MAX, Definition, POLICIES_MAX, PoliciesSize, Policy, PolicyKind, PolicyValue,
};
pub use priority::{Given, Original, Priority, Scheme};
pub use priority_lanes::{BACKFILL_LANE, DEAD_LETTERS, PRIMARY_LANE, PriorityLanes, StreamLane};
pub use producers::{ORIGIN_LEN_MAX, Origin, PRODUCER_NAME_LEN_MAX, PRODUCERS_BYTES_MAX};
pub use progress::Progress;
pub use pulling::{LaneChoice, LeaseTerm, Pull};
pub use pushes::{PushLimits, PushedView, pushed_bytes};
pub use rate::{RATE_MESSAGES_MAX, RateLimit};
pub use record::{
    ATTEMPTS_BYTES_MAX, ATTEMPTS_MAX, Attempt, Attempts, Ending, REPORT_BYTES_MAX, Record, Report, Work,
};
pub use refusal::Refusal;
pub use remote::RemoteQueue;
pub use restate::TopologyCursor;
pub use roster::{Terms, Want};
pub use run::{
    Backlog, NoBacklog, RUN_LEN_MAX, Rewritten, RunId, RunRecord, RunView, SpillBounds, SpillPlan,
};
pub use settings::{
    Backoff, BadSetting, Band, DURATION_MS_MAX, DeadLetterTo, FIFO_LANE, KEY_WEIGHT_MAX, KEY_WEIGHTS_MAX,
    LaneSettings, LastValue, Order, Overflow, PickerKind, RejectBelow, Settings, WINDOW_MAX,
};
pub use stats::WAIT_BOUNDS_MS;
pub use topology::{
    ARGUMENTS_LEN_MAX, Binding, Destination, Envelope, Exchange, ExchangeKind, ExchangeSettings,
    ExchangeView, HEADER_DEPTH_MAX, HashOn, HeaderValue, Headers, HeadersMatch, Marks, Property, Routed,
    Topology, topic_matches,
};
pub use units::{BYTE_UNITS, Weight, with_unit};
pub use vhosts::{VHOST_DEFAULT_NAME, VHOST_TEXT_LEN_MAX, VHOSTS_MAX, VhostSettings, VhostView};
pub use view::{
    BrowseOrder, Count, Cursor, KEYS_SHOWN, KeyView, LaneView, Look, MessageView, Query, QueueView, WaitView,
};
pub use walk::Walk;

/// Most lanes of one queue that hold messages at once.
pub const LANES_MAX: usize = 256;
/// Longest name of a lane, a virtual host or a policy, and longest id and key, in bytes.
pub const NAME_LEN_MAX: usize = 200;
/// Longest name of a queue or an exchange, in bytes: as long as AMQP can say it.
pub const QUEUE_NAME_LEN_MAX: usize = 255;
/// Most queues of one broker.
pub const QUEUES_MAX: usize = 1_000_000;

/// Whether a name can be used.
///
/// # Errors
/// [`Refusal::NameInvalid`] when it is empty, too long or holds control characters.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let fits = !name.is_empty() && name.len() <= NAME_LEN_MAX && !name.chars().any(char::is_control);
    fits.then_some(()).ok_or(Refusal::NameInvalid)
}

/// Whether a message may have this key, with this weight. An empty key is none.
///
/// # Errors
/// [`Refusal::KeyInvalid`], [`Refusal::KeyWeightInvalid`], [`Refusal::KeyWeightAlone`].
pub fn check_key(key: Option<&str>, weight: Option<u32>) -> Result<(), Refusal> {
    let key = key.unwrap_or("");
    if !key.is_empty() && check_name(key).is_err() {
        return Err(Refusal::KeyInvalid);
    }
    match weight {
        Some(weight) if !(1..=KEY_WEIGHT_MAX).contains(&weight) => Err(Refusal::KeyWeightInvalid),
        Some(_) if key.is_empty() => Err(Refusal::KeyWeightAlone),
        _ => Ok(()),
    }
}

/// Whether a queue or an exchange can have a name. AMQP allows every text; NUL would end it in other programs.
///
/// # Errors
/// [`Refusal::NameInvalid`] when it is empty, too long or holds NUL.
pub fn check_queue_name(name: &str) -> Result<(), Refusal> {
    let fits = !name.is_empty() && name.len() <= QUEUE_NAME_LEN_MAX && !name.contains('\0');
    fits.then_some(()).ok_or(Refusal::NameInvalid)
}

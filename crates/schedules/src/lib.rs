//! Schedules: a message that is published whenever a cron line says so.
//!
//! ```text
//!   Cron ── next occurrence ──▶ Schedule ── its message, delayed until then ──▶ Desk of whoever made it ──▶ queue
//! ```
//!
//! The queue itself is the state: of each schedule one occurrence ahead waits there as a delayed message, whose id is the name of
//! the schedule and the instant. While a message of an id is pending another is not made, so publishing it once more after a crash
//! changes nothing; when its instant has passed the next one after now follows. So no occurrence is there twice, what came due while
//! nobody was there to see it runs once, and those after it are left out.

mod cron;
mod follow;
mod schedule;
mod schedules;
mod state;

pub use cron::{BadCron, CRON_LEN_MAX, Cron};
pub use schedule::{BODY_LEN_MAX, NAME_LEN_MAX, Schedule, Template, Unkeepable, occurrence_id, rfc3339};
pub use schedules::{NotScheduled, SCHEDULES_MAX, ScheduleView, Schedules};

//! Since when something is idle, as RabbitMQ says it: only of what is idle, and as text.

use jiff::Timestamp;
use overtake_lane::Time;
use serde_json::{Value, json};

use crate::app::App;

/// RabbitMQ calls a queue or a channel idle once nothing has happened there for so long.
const IDLE_AFTER_MS: u64 = 1_000;

/// Adds `idle_since` to what is shown of something that was last active then. Zero: that is not known.
pub(crate) fn show(shown: &mut Value, app: &App, active_at: Time) {
    let now = (app.options.clock)();
    if active_at > Time(0) && now.since(active_at) >= IDLE_AFTER_MS {
        shown["idle_since"] = json!(text(active_at));
    }
}

/// A moment as RabbitMQ writes it: `2026-11-27T16:00:00.000+00:00`.
fn text(time: Time) -> String {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    let moment = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX);
    moment.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_milliseconds_and_an_offset() {
        assert_eq!(text(Time(1_664_398_207_080)), "2022-09-28T20:50:07.080+00:00");
        assert_eq!(text(Time(0)), "1970-01-01T00:00:00.000+00:00");
    }
}

//! What systemd is told where it runs the server (`Type=notify`, sd_notify(3)); elsewhere nobody is told anything.

use sd_notify::NotifyState;

/// It serves.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// It reads again what may have changed; [`ready`] says that it is done.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!("cannot tell the time to systemd: {error}"),
    }
}

/// It finishes what is under way.
pub(crate) fn stopping(status: &str) {
    tell(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot tell systemd: {error}");
    }
}

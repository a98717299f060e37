//! File descriptors: raised at start, and shared out between connections and the store.
//!
//! A store that cannot open a file cannot take messages, and connections come by themselves. So connections may take what is left after
//! the store has its share, and are refused beyond it.

use std::sync::Arc;

use overtake_connections::{Descriptors, RESERVE};
use overtake_telemetry::{Collected, Family, Kind, Source};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::{Config, Origin};

/// Descriptors that are kept for the store and for connections to other systems, at least, where there are as many.
const KEPT_MIN: u64 = 128;
/// Connections that are so few that somebody who configured nothing should know.
const FEW: u64 = 500;
/// Descriptors that are kept at most.
const KEPT_MAX: u64 = 4_096;

/// Raises the limit as far as the process may, and answers how many descriptors connections may take.
pub(crate) fn prepare(config: &Config) -> Descriptors {
    let limit = raise();
    let listeners = 1 + u64::from(config.http.tls_listen.value.0.is_some());
    let shared = share_out(limit, listeners);
    let wanted = wanted(config);
    // The defaults are more than many machines give, and few brokers need.
    let is_asked_for = [&config.http.max_connections.origin, &config.amqp.max_connections.origin]
        .into_iter()
        .any(|origin| *origin != Origin::Default);
    if is_asked_for && wanted > shared {
        tracing::warn!(
            "the configured limits allow {wanted} connections, but of the {limit} files that this process may have open at once, {shared} \
             are for connections: further connections will be refused; allow more open files (`ulimit -n`, `LimitNOFILE=` in a systemd unit, \
             `--ulimit nofile=` of docker), or lower http.max_connections and amqp.max_connections"
        );
    }
    if !is_asked_for && shared < FEW {
        tracing::warn!(
            "at most {shared} connections can be open at once, over HTTP and AMQP together, since this process may open only {limit} files: \
             allow more (`ulimit -n`, `LimitNOFILE=` in a systemd unit, `--ulimit nofile=` of docker)"
        );
    }
    Descriptors::new(usize::try_from(shared).unwrap_or(usize::MAX))
}

/// Sets the soft limit to the hard one, and answers the limit that holds.
fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let holds = match current {
        current if current == maximum => current,
        current => match setrlimit(Resource::Nofile, raised) {
            Ok(()) => maximum,
            Err(error) => {
                tracing::warn!("cannot raise the number of files that may be open at once: {error}");
                current
            }
        },
    };
    holds.unwrap_or(u64::MAX)
}

/// The descriptors that connections may take together, of so many that the process may have. Each listener for HTTP has its reserve
/// besides; a connection of the reserve that is ended may keep its descriptor for a moment.
fn share_out(limit: u64, http_listeners: u64) -> u64 {
    let kept = (limit / 4).clamp(KEPT_MIN, KEPT_MAX).min(limit / 2);
    limit.saturating_sub(kept + 2 * RESERVE as u64 * http_listeners).max(1)
}

/// Connections that the configuration allows.
fn wanted(config: &Config) -> u64 {
    let (http, amqp) = (&config.http, &config.amqp);
    let listeners = |listeners: [bool; 2]| listeners.into_iter().filter(|is_there| *is_there).count() as u64;
    let http_listeners = listeners([true, http.tls_listen.value.0.is_some()]);
    let amqp_listeners = listeners([amqp.listen.value.0.is_some(), amqp.tls_listen.value.0.is_some()]);
    u64::from(http.max_connections.value.0) * http_listeners
        + u64::from(amqp.max_connections.value.0) * amqp_listeners
}

/// Connections that were refused, as a metric.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Descriptors);

impl Source for Refused {
    fn collect(&self) -> Collected<'_> {
        let help = "Connections refused, since as many as may be were open.";
        let family = Family::new("overtake.connections.refused", Kind::Counter, "{connection}", help);
        Box::pin(async { vec![family.of(self.0.refused())] })
    }
}

impl Refused {
    pub(crate) fn of(descriptors: &Descriptors) -> Arc<dyn Source> {
        Arc::new(Self(descriptors.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_never_take_what_the_store_needs() {
        for limit in [256, 1_024, 4_096, 65_536, 1 << 20] {
            let shared = share_out(limit, 2);
            assert!(limit - shared >= (limit / 4).min(KEPT_MAX), "{limit}: {shared}");
            assert!(shared < limit);
        }
        assert_eq!(share_out(1_024, 1), 704);
        assert_eq!(share_out(16, 1), 1, "a broker with next to nothing still answers");
    }

    #[test]
    fn the_limit_that_holds_is_raised_to_what_the_process_may_have() {
        let raised = raise();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
        assert_eq!(raised, maximum.unwrap_or(u64::MAX));
    }
}

//! What an answer means for a call: done, or where and when to try again.

use overtake_peer::redis::Fault;

use super::map::Place;

/// What an error means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its slot is elsewhere, from now on.
    Moved(Place),
    /// It is to be asked for elsewhere, this once: its slot is on its way there.
    Ask(Place),
    /// Not now: who holds what is changing, or a server is starting.
    Later,
    /// The functions are not there.
    Unknown,
    /// The answer is no.
    Refused,
}

impl Verdict {
    /// `asked` is the host that said so.
    pub(super) fn of(fault: &Fault, asked: &str) -> Self {
        let place = || {
            let place = fault.details().split(' ').nth(1)?;
            Place::parse(place, asked)
        };
        match fault.code() {
            "MOVED" => place().map_or(Self::Later, Self::Moved),
            "ASK" => place().map_or(Self::Later, Self::Ask),
            // READONLY, MASTERDOWN: a primary became a replica; NOREPLICAS: it has not as many as it must (min-replicas-to-write); BUSY: another function takes long.
            "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "READONLY" | "MASTERDOWN" | "NOREPLICAS" | "BUSY" => {
                Self::Later
            }
            "ERR" if fault.details().starts_with("Function not found") => Self::Unknown,
            _ => Self::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_one_meaning() {
        let of = |code: &str, details: &str| Verdict::of(&Fault::new(code, details), "asked");
        assert_eq!(of("MOVED", "3999 10.0.0.1:6381"), Verdict::Moved(Place::new("10.0.0.1", 6381)));
        assert_eq!(of("MOVED", "3999 :6381"), Verdict::Moved(Place::new("asked", 6381)));
        assert_eq!(of("ASK", "3999 ::1:6381"), Verdict::Ask(Place::new("::1", 6381)));
        assert_eq!(of("MOVED", "nonsense"), Verdict::Later);
        assert_eq!(of("LOADING", "Redis is loading the dataset in memory"), Verdict::Later);
        assert_eq!(of("ERR", "Function not found"), Verdict::Unknown);
        assert_eq!(of("ERR", "wrong number of arguments"), Verdict::Refused);
        assert_eq!(of("OOM", "command not allowed"), Verdict::Refused, "it does not pass by itself");
        assert_eq!(of("STALE", "the lease is another's"), Verdict::Refused, "a word of the function's own");
    }
}

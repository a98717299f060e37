//! What it means for a message that Redis says no.
//!
//! | error | means for a message |
//! |---|---|
//! | `LOADING`, `READONLY`, `MASTERDOWN`, `CLUSTERDOWN`, `TRYAGAIN`, `BUSY`, `NOREPLICAS`, `MISCONF` | busy: the server cannot write now |
//! | `OOM`, `WRONGTYPE` | busy: it is the stream that is in the way, and no message |
//! | `ERR Elements are too large …` | refused for good: no stream holds so much in one entry |
//! | anything else, `NOAUTH` and `NOPERM` among it | failed: tried again |

use overtake_forward::Answer;
use overtake_peer::redis::Fault;

/// So long a server is left alone that cannot write, ms.
const BUSY_MS: u64 = 1_000;
/// Errors that are of the server or of the stream and not of what is written.
const BUSY: [&str; 10] = [
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "NOREPLICAS",
    "MISCONF",
    "OOM",
    "WRONGTYPE",
];

/// What it means for the message that was sent.
pub(crate) fn answer(fault: &Fault) -> Answer {
    let why = fault.to_string().into();
    if fault.code() == "ERR" && fault.details().starts_with("Elements are too large") {
        return Answer::Refused { why };
    }
    let busy_ms = BUSY.contains(&fault.code()).then_some(BUSY_MS);
    Answer::Failed { busy_ms, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: &str, details: &str) -> Answer {
        super::answer(&Fault::new(code, details))
    }

    #[test]
    fn an_error_means_what_the_table_says() {
        for code in BUSY {
            assert!(matches!(answer(code, ""), Answer::Failed { busy_ms: Some(BUSY_MS), .. }), "{code}");
        }
        for code in ["NOAUTH", "NOPERM", "ERR", "MOVED"] {
            assert!(matches!(answer(code, "no"), Answer::Failed { busy_ms: None, .. }), "{code}");
        }
        let why = "it answers ERR Elements are too large to be stored".into();
        assert_eq!(answer("ERR", "Elements are too large to be stored"), Answer::Refused { why });
    }
}

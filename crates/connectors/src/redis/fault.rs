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
/// What it means for the message that was sent.
pub(crate) fn answer(fault: &Fault) -> Answer {
    let why = fault.to_string().into();
    if fault.code() == "ERR" && fault.details().starts_with("Elements are too large") {
        return Answer::Refused { why };
    }
    // Either is of the server or of the stream, and not of what is written.
    let busy_ms = (fault.is_busy() || fault.code() == "WRONGTYPE").then_some(BUSY_MS);
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
        let of_the_server =
            ["LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "MISCONF"];
        for code in of_the_server.into_iter().chain(["OOM", "WRONGTYPE"]) {
            assert!(matches!(answer(code, ""), Answer::Failed { busy_ms: Some(BUSY_MS), .. }), "{code}");
        }
        for code in ["NOAUTH", "NOPERM", "ERR", "MOVED"] {
            assert!(matches!(answer(code, "no"), Answer::Failed { busy_ms: None, .. }), "{code}");
        }
        let why = "it answers ERR Elements are too large to be stored".into();
        assert_eq!(answer("ERR", "Elements are too large to be stored"), Answer::Refused { why });
    }
}

//! Reason codes, in words (MQTT 5, 2.4), and what those of a publish mean.
//!
//! | PUBACK | means |
//! |---|---|
//! | 0x00, 0x10 nobody subscribed | accepted |
//! | 0x90 topic name invalid, 0x99 payload format invalid | refused for good |
//! | 0x97 quota exceeded | busy: a lane is left alone for a second |
//! | anything else, 0x87 not authorised among it | failed: tried again |

use overtake_forward::Answer;
use rumqttc::v5::mqttbytes::v5::{Packet, PubAck, PubAckReason};

use crate::sink::LinkError;

/// So long a server is left alone whose quota is used up, ms.
const BUSY_MS: u64 = 1_000;
/// The server has moved for good.
const MOVED: u8 = 0x9D;

/// What a packet adds to its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reason {
    text: Option<String>,
    elsewhere: Option<String>,
}

impl Reason {
    pub(crate) fn of(packet: &Packet) -> Self {
        match packet {
            Packet::ConnAck(ack) => {
                let said = ack.properties.clone();
                let (text, elsewhere) =
                    said.map_or((None, None), |said| (said.reason_string, said.server_reference));
                Self { text, elsewhere }
            }
            Packet::Disconnect(end) => {
                let said = end.properties.clone();
                let (text, elsewhere) =
                    said.map_or((None, None), |said| (said.reason_string, said.server_reference));
                Self { text, elsewhere }
            }
            _ => Self::default(),
        }
    }
}

/// The end of a connection, or why there is none.
pub(crate) fn ending(code: u8, said: &Reason, before: &str) -> LinkError {
    let mut why = format!("{before}: {}", words(code));
    for more in [&said.text, &said.elsewhere].into_iter().flatten() {
        why.push_str(&format!(" ({more})"));
    }
    if code == MOVED { LinkError::Gone(why) } else { LinkError::Lost(why) }
}

fn words(code: u8) -> String {
    let words = match code {
        0x00 | 0x04 => "without a reason",
        0x80 => "an error it says nothing of",
        0x81 => "it cannot read a packet of ours",
        0x82 => "it finds that we break the protocol",
        0x83 => "an error of its own kind",
        0x84 => "it does not speak MQTT 5",
        0x85 => "it does not take this `client_id`: choose another",
        0x86 => "a wrong user or password; see to `username` and `password`",
        0x87 => "not authorised; see to `username` and `password`, and to what the user may do",
        0x88 => "it cannot be used now",
        0x89 => "it is busy",
        0x8A => "we are banned",
        0x8B => "it is shutting down",
        0x8C => "it wants another way to log in",
        0x8D => "it has not heard from us for too long",
        0x8E => "another client has taken over: give each a `client_id` of its own",
        0x8F => "it does not take this filter of topics",
        0x90 => "it does not take this topic",
        0x91 => "it has an earlier packet of this number",
        0x93 => "it got more at once than it takes",
        0x94 => "an alias of a topic is wrong",
        0x95 => "a packet is larger than it takes",
        0x96 => "messages come too fast",
        0x97 => "a quota is used up",
        0x98 => "somebody who looks after it ended this",
        0x99 => "a payload is not what it says it is",
        0x9A => "it retains no messages: say `retain = false`",
        0x9B => "it does not take this `qos`",
        0x9C => "another server is to be used for now",
        0x9D => "it has moved: change `url`",
        0x9E => "it knows no shared subscriptions",
        0x9F => "connections are made too fast",
        0xA0 => "the longest time of a connection is over",
        0xA1 => "it knows no identifiers of subscriptions",
        0xA2 => "it knows no wildcards in subscriptions",
        other => return format!("reason 0x{other:02X}"),
    };
    words.to_owned()
}

/// What the answer to a publish of so many bytes means.
pub(crate) fn answer(ack: &PubAck, bytes: u64) -> Answer {
    let said = ack.properties.as_ref().and_then(|said| said.reason_string.as_deref());
    let why = |code| {
        let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
        format!("{}{said}", words(code)).into()
    };
    match ack.reason {
        PubAckReason::Success | PubAckReason::NoMatchingSubscribers => Answer::Accepted { bytes },
        PubAckReason::TopicNameInvalid => Answer::Refused { why: why(0x90) },
        PubAckReason::PayloadFormatInvalid => Answer::Refused { why: why(0x99) },
        PubAckReason::QuotaExceeded => Answer::Failed { busy_ms: Some(BUSY_MS), why: why(0x97) },
        PubAckReason::NotAuthorized => Answer::Failed { busy_ms: None, why: why(0x87) },
        PubAckReason::UnspecifiedError => Answer::Failed { busy_ms: None, why: why(0x80) },
        PubAckReason::ImplementationSpecificError => Answer::Failed { busy_ms: None, why: why(0x83) },
        PubAckReason::PacketIdentifierInUse => Answer::Failed { busy_ms: None, why: why(0x91) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(reason: PubAckReason) -> Answer {
        answer(&PubAck { pkid: 1, reason, properties: None }, 9)
    }

    #[test]
    fn an_answer_means_what_the_table_says() {
        for fine in [PubAckReason::Success, PubAckReason::NoMatchingSubscribers] {
            assert_eq!(answered(fine), Answer::Accepted { bytes: 9 });
        }
        for never in [PubAckReason::TopicNameInvalid, PubAckReason::PayloadFormatInvalid] {
            assert!(matches!(answered(never), Answer::Refused { .. }), "{never:?}");
        }
        let busy = answered(PubAckReason::QuotaExceeded);
        assert!(matches!(busy, Answer::Failed { busy_ms: Some(BUSY_MS), .. }), "{busy:?}");
        for again in [PubAckReason::NotAuthorized, PubAckReason::UnspecifiedError] {
            assert!(matches!(answered(again), Answer::Failed { busy_ms: None, .. }), "{again:?}");
        }
    }

    #[test]
    fn a_server_that_moved_is_gone_and_says_where_it_is() {
        let said = Reason { text: None, elsewhere: Some("b:1883".to_owned()) };
        let gone = LinkError::Gone("a: it has moved: change `url` (b:1883)".to_owned());
        assert_eq!(ending(MOVED, &said, "a"), gone);
    }
}

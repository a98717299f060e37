//! What a NATS server says: <https://docs.nats.io/reference/reference-protocols/nats-protocol>.

use anyhow::{Result, bail};

use crate::amqp::wire::line::{body, line, number};

/// What the server says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    Message {
        subject: &'a [u8],
        reply: &'a [u8],
        body: &'a [u8],
    },
    /// Why a request ends, as `404 No Messages`. It comes as a message with headers; ours have none.
    Status(&'a [u8]),
    Ping,
    Pong,
    Nothing,
}

/// The next of them and its length, once it is all there.
pub(super) fn said(bytes: &[u8]) -> Result<Option<(Said<'_>, usize)>> {
    let Some((first, len)) = line(bytes) else { return Ok(None) };
    let mut words = first.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let what = words.next().unwrap_or_default();
    match what {
        b"MSG" | b"HMSG" => {}
        b"PING" => return Ok(Some((Said::Ping, len))),
        b"PONG" => return Ok(Some((Said::Pong, len))),
        b"INFO" => return Ok(Some((Said::Nothing, len))),
        _ => bail!("NATS says {}", first.escape_ascii()),
    }
    let subject = words.next().unwrap_or_default();
    // After the subscription's id: the reply subject or the length of the headers, if there is one; then the length of all.
    let (reply, all) = match (words.nth(1), words.next()) {
        (all, None) => (&[][..], all),
        (reply, all) => (reply.unwrap_or_default(), all),
    };
    let Some((body, len)) = body(bytes, len, number(all)? as usize) else { return Ok(None) };
    let said = match what {
        b"MSG" => Said::Message { subject, reply, body },
        _ => Said::Status(line(body).and_then(|(first, _)| first.strip_prefix(b"NATS/1.0 ")).unwrap_or(body)),
    };
    Ok(Some((said, len)))
}

/// The words of a subject.
pub(super) fn words(subject: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    subject.split(|byte| *byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_with_and_without_a_reply_subject_and_a_status_from_headers() {
        let check = |text: &str, expected: Said<'_>| {
            assert_eq!(said(text.as_bytes()).expect("right"), Some((expected, text.len())));
            assert_eq!(said(&text.as_bytes()[..text.len() - 1]).expect("right"), None, "a byte is missing");
        };
        check("PING\r\n", Said::Ping);
        let (subject, body) = (&b"q.1"[..], &b"a\r\nb"[..]);
        check(
            "MSG q.1 1 $JS.ACK.q.1.1 4\r\na\r\nb\r\n",
            Said::Message { subject, reply: b"$JS.ACK.q.1.1", body },
        );
        check("MSG q.1 1  4\r\na\r\nb\r\n", Said::Message { subject, reply: b"", body });
        let none = "HMSG _INBOX.1.0 1  28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n";
        check(none, Said::Status(b"404 No Messages"));
        assert!(said(b"-ERR 'Unknown Protocol Operation'\r\n").is_err());
    }
}

//! Answers as they come in, RESP2: bytes in any pieces, values out.
//!
//! What is begun is kept on a stack, so that a long answer in many pieces is read once. Nothing is made room for before its bytes are there.

use bytes::{Buf, BytesMut};
use redis::{Value, parse_redis_value};

use super::Fault;

/// Longest text, bytes: what servers allow by default (`proto-max-bulk-len`).
const TEXT_LEN_MAX: usize = 512 << 20;
/// Longest line, bytes.
const LINE_LEN_MAX: usize = 64 << 10;
/// Deepest array in arrays: servers answer with three.
const DEPTH_MAX: usize = 16;

/// The arrays that are begun, the outermost first, each with how many items are still to come.
#[derive(Default)]
pub(super) struct Reading {
    begun: Vec<(usize, Vec<Value>)>,
}

enum Piece {
    Whole(Value),
    Begun(usize),
}

impl Reading {
    /// The next answer, if it is there whole; within: what the server says against the command.
    ///
    /// # Errors
    /// It is no answer of such a server.
    pub(super) fn next(&mut self, bytes: &mut BytesMut) -> Result<Option<Result<Value, Fault>>, String> {
        loop {
            let Some(line_len) = line(bytes)? else { return Ok(None) };
            if self.begun.is_empty() && bytes.first() == Some(&b'-') {
                let text = String::from_utf8_lossy(&bytes[1..line_len]);
                let (code, details) = text.split_once(' ').unwrap_or((&text, ""));
                let fault = Fault::new(code, details);
                bytes.advance(line_len + 2);
                return Ok(Some(Err(fault)));
            }
            match piece(bytes, line_len)? {
                None => return Ok(None),
                Some(Piece::Begun(count)) => {
                    if self.begun.len() == DEPTH_MAX {
                        return Err(strange("arrays nested too deeply"));
                    }
                    self.begun.push((count, Vec::new()));
                }
                Some(Piece::Whole(value)) => {
                    if let Some(whole) = self.add(value) {
                        return Ok(Some(Ok(whole)));
                    }
                }
            }
        }
    }

    /// Puts a value where it belongs; what that makes whole, if it is all.
    fn add(&mut self, mut value: Value) -> Option<Value> {
        loop {
            let Some((left, items)) = self.begun.last_mut() else { return Some(value) };
            items.push(value);
            *left -= 1;
            if *left > 0 {
                return None;
            }
            let (_, items) = self.begun.pop().expect("one was looked at");
            value = Value::Array(items);
        }
    }
}

/// How long the first line is, without its end.
fn line(bytes: &BytesMut) -> Result<Option<usize>, String> {
    let looked_at = &bytes[..bytes.len().min(LINE_LEN_MAX)];
    match looked_at.windows(2).position(|pair| pair == b"\r\n") {
        Some(0) => Err(strange("an empty line")),
        None if bytes.len() >= LINE_LEN_MAX => Err(strange("a line without an end")),
        found => Ok(found),
    }
}

/// Takes a piece that is there whole.
fn piece(bytes: &mut BytesMut, line_len: usize) -> Result<Option<Piece>, String> {
    let (kind, rest) = (bytes[0], &bytes[1..line_len]);
    let whole = match kind {
        b'+' if rest == b"OK" => Value::Okay,
        b'+' => Value::SimpleString(String::from_utf8_lossy(rest).into_owned()),
        b':' => Value::Int(number(rest)?),
        b'-' => parse_redis_value(&bytes[..line_len + 2]).map_err(|error| strange(&error.to_string()))?,
        b'$' | b'*' => match (kind, number(rest)?) {
            (_, -1) => Value::Nil,
            (b'*', 0) => Value::Array(Vec::new()),
            (b'*', count) => {
                let count = usize::try_from(count).map_err(|_| strange("an array of a negative length"))?;
                bytes.advance(line_len + 2);
                return Ok(Some(Piece::Begun(count)));
            }
            (_, len) => return text(bytes, line_len + 2, len),
        },
        _ => return Err(strange("an answer of no kind that RESP2 has")),
    };
    bytes.advance(line_len + 2);
    Ok(Some(Piece::Whole(whole)))
}

/// The text behind a line that says how long it is.
fn text(bytes: &mut BytesMut, from: usize, len: i64) -> Result<Option<Piece>, String> {
    let len = usize::try_from(len).ok().filter(|len| *len <= TEXT_LEN_MAX);
    let len = len.ok_or_else(|| strange("a text of an impossible length"))?;
    let end = from + len + 2;
    if bytes.len() < end {
        bytes.reserve((end - bytes.len()).min(1 << 20));
        return Ok(None);
    }
    let text = bytes[from..from + len].to_vec();
    bytes.advance(end);
    Ok(Some(Piece::Whole(Value::BulkString(text))))
}

fn number(text: &[u8]) -> Result<i64, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| strange("a number that is none"))
}

fn strange(what: &str) -> String {
    format!("it answers as no Redis or Valkey does: {what}; see to the address and whether it wants TLS")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(chunks: &[&[u8]]) -> Vec<Result<Value, Fault>> {
        let (mut reading, mut bytes, mut found) = (Reading::default(), BytesMut::new(), Vec::new());
        for chunk in chunks {
            bytes.extend_from_slice(chunk);
            while let Some(answer) = reading.next(&mut bytes).expect("fine") {
                found.push(answer);
            }
        }
        found
    }

    #[test]
    fn an_answer_is_the_same_in_whatever_pieces_it_comes() {
        let bytes = b"*3\r\n:5\r\n*2\r\n$3\r\na\r\n\r\n$-1\r\n+OK\r\n-MOVED 7 a:1\r\n*0\r\n*-1\r\n+x\r\n";
        let whole = all(&[bytes]);
        let inner = Value::Array(vec![Value::BulkString(b"a\r\n".to_vec()), Value::Nil]);
        assert_eq!(whole[0], Ok(Value::Array(vec![Value::Int(5), inner, Value::Okay])));
        assert_eq!(whole[1], Err(Fault::new("MOVED", "7 a:1")));
        assert_eq!(
            whole[2..],
            [Ok(Value::Array(vec![])), Ok(Value::Nil), Ok(Value::SimpleString("x".to_owned()))]
        );
        for at in 0..bytes.len() {
            assert_eq!(all(&[&bytes[..at], &bytes[at..]]), whole, "in two at {at}");
        }
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(all(&each), whole);
    }

    #[test]
    fn an_error_within_an_answer_stays_there() {
        let Ok(Value::Array(items)) = &all(&[b"*2\r\n-ERR no\r\n:1\r\n"])[0] else { panic!("an array") };
        assert!(matches!(items[0], Value::ServerError(_)));
    }

    #[test]
    fn what_no_server_says_is_refused() {
        let deep = "*1\r\n".repeat(DEPTH_MAX + 1);
        let long = "+".repeat(LINE_LEN_MAX);
        for strange in
            ["HTTP/1.1 400\r\n", "\r\n", "$-7\r\n", "*-7\r\n", ":x\r\n", "$99999999999\r\n", &deep, &long]
        {
            let mut bytes = BytesMut::from(strange);
            let why = Reading::default().next(&mut bytes).expect_err("refused");
            assert!(why.contains("as no Redis"), "{why}");
        }
    }
}

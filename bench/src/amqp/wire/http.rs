//! HTTP/1.1 on one connection that stays: a request is sent when the last is answered.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::Delivery;
use super::input::{Input, connect};

/// guest:guest
const GUEST: &str = "Basic Z3Vlc3Q6Z3Vlc3Q=";

pub(crate) struct Http {
    socket: TcpStream,
    input: Input,
    out: Vec<u8>,
    authorization: String,
}

impl Http {
    /// As guest, by password.
    pub(crate) fn open(address: SocketAddr) -> Result<Self> {
        let socket = connect(address)?;
        Ok(Self { socket, input: Input::new(), out: Vec::new(), authorization: GUEST.to_owned() })
    }

    /// From now on by a token, which costs the broker no check of a password.
    pub(crate) fn use_token(&mut self) -> Result<()> {
        let made = self.post("/v1/tokens", &json!({ "label": "bench" }))?;
        self.authorization =
            format!("Bearer {}", made["secret"].as_str().context("a token without a secret")?);
        Ok(())
    }

    /// Leases one message that waits, and acknowledges it.
    pub(crate) fn lease_and_ack(
        &mut self,
        queue: &str,
        each: &mut dyn FnMut(Delivery<'_>) -> Result<()>,
    ) -> Result<()> {
        let leased = self.post(&format!("/v1/queues/{queue}/leases"), &json!({}))?;
        let message = leased["messages"].get(0).context("the broker says that nothing is left")?;
        let body = match (&message["body"], &message["body_base64"]) {
            (Value::String(text), _) => text.as_bytes().to_vec(),
            (_, Value::String(text)) => base64(text)?,
            _ => bail!("a message without a body"),
        };
        let level = message["priority"].as_u64().context("a priority is missing")?;
        let redelivered =
            message["redelivered"].as_bool().context("it is not said whether it was leased before")?;
        each(Delivery { level: Some(level.try_into()?), redelivered, body: &body, ..Delivery::default() })?;
        let settled = json!({ "receipts": [message["receipt"]], "how": "ack" });
        let settled = self.post(&format!("/v1/queues/{queue}/settle"), &settled)?;
        ensure!(settled["results"][0]["ok"] == true, "an acknowledgement was refused: {settled}");
        Ok(())
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<String> {
        self.ask("GET", path, "")
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        Ok(serde_json::from_str(&self.ask("POST", path, &body.to_string())?)?)
    }

    /// The body of the answer.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<String> {
        let (authorization, len) = (&self.authorization, body.len());
        write!(
            self.out,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {authorization}\r\n\
             content-type: application/json\r\ncontent-length: {len}\r\n\r\n{body}"
        )?;
        self.socket.write_all(&self.out).context("writing to the broker")?;
        self.out.clear();
        let (answer, len) = loop {
            if let Some(answer) = answer(self.input.unread())? {
                break answer;
            }
            self.input.fill(&mut self.socket)?;
        };
        self.input.consume(len);
        answer.with_context(|| format!("{method} {path}"))
    }
}

/// An answer, or what the broker says is wrong, and its length, once it is all there.
fn answer(bytes: &[u8]) -> Result<Option<(Result<String>, usize)>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end])?.to_ascii_lowercase();
    let len = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let len: usize = len.context("an answer without a length")?.trim().parse()?;
    let Some(body) = bytes.get(end + 4..end + 4 + len) else { return Ok(None) };
    let body = String::from_utf8(body.to_vec())?;
    let is_good = head.starts_with("http/1.1 2");
    let answer = if is_good { Ok(body) } else { Err(anyhow::anyhow!("the broker says {body}")) };
    Ok(Some((answer, end + 4 + len)))
}

/// What these letters stand for (RFC 4648, section 4).
fn base64(text: &str) -> Result<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(text.len() * 3 / 4), 0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => bail!("{} is no letter of base64", letter.escape_ascii()),
        };
        (bits, count) = (bits << 6 | u32::from(six), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        for (text, bytes) in
            [("", &b""[..]), ("/w==", b"\xff"), ("/wBs", b"\xff\0l"), ("/wBsbG8=", b"\xff\0llo")]
        {
            assert_eq!(base64(text).expect("base64"), bytes);
        }
        assert!(base64("!").is_err());
    }

    #[test]
    fn an_answer_is_read_once_it_is_whole() {
        let all = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP";
        assert!(answer(&all[..all.len() - 5]).expect("right so far").is_none());
        let (body, len) = answer(all).expect("right").expect("whole");
        assert_eq!((body.expect("good"), len), ("{}".to_owned(), all.len() - 4));
        let (refused, _) =
            answer(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n").expect("right").expect("whole");
        assert!(refused.is_err());
    }
}

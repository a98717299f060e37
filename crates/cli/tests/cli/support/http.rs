//! One request and its answer over a connection of its own: what a client of any language sees.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::TcpStream;

use serde_json::Value;

/// Who asks, as a header.
pub const GUEST: &str = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n";

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    pub json: Value,
}

impl Reply {
    /// The value of a header, whose name is written in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Its JSON; the status must be this.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json
    }
}

/// Asks the broker at `url` and reads JSON.
pub fn ask(url: &str, method: &str, path: &str, body: &Value) -> Reply {
    try_ask(url, method, path, body).expect("it answers")
}

/// The same of a broker that may be gone, or go before it has answered.
pub fn try_ask(url: &str, method: &str, path: &str, body: &Value) -> Result<Reply> {
    let (head, body) = exchange(url, method, path, body)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Ok(Reply { status, head, json: serde_json::from_str(&body)? })
}

/// What the broker at `url` has under a path.
pub fn text(url: &str, path: &str) -> String {
    let (head, body) = exchange(url, "GET", path, &Value::Null).expect("it answers");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body
}

/// Head and body of an answer.
fn exchange(url: &str, method: &str, path: &str, body: &Value) -> Result<(String, String)> {
    let address = url.strip_prefix("http://").expect("a url");
    let mut stream = TcpStream::connect(address)?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{GUEST}Connection: close\r\nContent-Type: application/json\r\n\
        Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    Ok((head.to_owned(), body.to_owned()))
}

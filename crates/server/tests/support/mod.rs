//! Requests as bytes over a connection that stays, and their answers.

use std::io::{Read, Write};
use std::net::TcpStream;

/// Who asks, as a header.
pub(crate) const GUEST: &str = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n";

/// Sends a request, and reads the head and the body of its answer.
pub(crate) fn exchange(stream: &mut TcpStream, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        answer.extend(byte);
    }
    let head = String::from_utf8(answer).expect("text");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let has_body = !request.starts_with("HEAD");
    let mut body = vec![0; length.filter(|_| has_body).unwrap_or_default()];
    stream.read_exact(&mut body).expect("a body");
    (head, String::from_utf8_lossy(&body).into_owned())
}

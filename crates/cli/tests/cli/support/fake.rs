//! A broker that answers as the test wants: what a real one does only when something goes wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::Value;

use super::PATIENCE;

/// Requests that may wait to be looked at.
const ASKED_MAX: usize = 100_000;

/// A request: the last part of its path, and its body.
pub type Asked = (String, Value);
/// Status and body; `None`: the connection is closed without an answer.
pub type Told = Option<(u16, Value)>;
/// How a request is answered.
type Tell = dyn Fn(&str, &Value) -> Told + Send + Sync;

/// Such a broker.
pub struct Fake {
    /// Where it is.
    pub url: String,
    asked: Receiver<Asked>,
}

impl Fake {
    /// One that answers so.
    pub fn start(tell: impl Fn(&str, &Value) -> Told + Send + Sync + 'static) -> Self {
        Self::start_with("", tell)
    }

    /// A broker that answers a request for `held` only when the sending half of its connection is closed.
    pub fn start_with(
        held: &'static str,
        tell: impl Fn(&str, &Value) -> Told + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (send, asked) = sync_channel(ASKED_MAX);
        let tell: Arc<Tell> = Arc::new(tell);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (send, tell) = (send.clone(), Arc::clone(&tell));
                std::thread::spawn(move || converse(&stream, held, &send, &*tell));
            }
        });
        Self { url, asked }
    }

    /// Waits for a request of this kind.
    #[track_caller]
    pub fn await_asked(&self, what: &str) -> Value {
        loop {
            let (kind, body) = self.asked.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {what}"));
            if kind == what {
                return body;
            }
        }
    }
}

/// One request after the other, until there are no more or one is not answered.
fn converse(stream: &TcpStream, held: &str, send: &SyncSender<Asked>, tell: &Tell) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            (reader.read_line(&mut head).ok()? > 0).then_some(())?;
        }
        let path = head.split(' ').nth(1)?;
        let what = path.rsplit('/').next()?.to_owned();
        let len =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; len.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).ok()? };
        send.send((what.clone(), body.clone())).ok()?;
        let told = tell(&what, &body);
        let is_held = what == held;
        if is_held {
            reader.read_to_end(&mut Vec::new()).ok()?;
        }
        let (status, body) = told?;
        let body = body.to_string();
        write!(writer, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    }
}
